"""The loans of a library as JSON, one object a line."""

import json
from collections.abc import Iterator
from datetime import date, timedelta

from picker import Picker

TITLES = [
    "The Salt Road", "Winter Grammar", "A Field Guide to Doubt", "Ninety Degrees North", "The Glass Orchard", "Small Engines",
    "Letters to a Cartographer", "What the Tide Left", "The Ninth Apprentice", "Bread and Iron", "Soft Machines", "A House of Ropes",
]  # fmt: skip
READERS = ["A. Novak", "B. Osei", "C. Lund", "D. Moreau", "E. Tanaka", "F. Silva", "G. Weiss", "H. Popescu", "I. Khan"]
BRANCHES = ["central", "harbour", "north", "school"]


def sections() -> Iterator[str]:
    pick = Picker(8)
    yield "Loans of the town's libraries, as exported on 2024-12-01. A loan without `returned` is still open.\n\n"
    number, day = 70_310, date(2024, 3, 4)
    while True:
        number += pick.number(1, 4)
        day += timedelta(days=pick.number(0, 2))
        loan: dict[str, object] = {
            "loan": number,
            "title": pick.one(TITLES),
            "copy": pick.number(1, 60),
            "reader": pick.one(READERS),
            "branch": pick.one(BRANCHES),
            "lent": day.isoformat(),
            "due": (day + timedelta(days=21)).isoformat(),
        }
        if pick.chance(85):
            loan["returned"] = (day + timedelta(days=pick.number(2, 34))).isoformat()
        if pick.chance(20):
            loan["renewed"] = pick.number(1, 3)
        yield json.dumps(loan) + "\n"
