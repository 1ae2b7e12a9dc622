"""A catalogue of spare parts: groups, articles with number, material, measures, price and what they fit."""

from collections.abc import Iterator
from itertools import count

from picker import Picker

GROUPS = [
    ("Valves", ["Ball valve", "Check valve", "Needle valve", "Relief valve", "Gate valve", "Drain cock"]),
    ("Seals", ["O-ring", "Shaft seal", "Flat gasket", "Lip seal", "Wiper ring", "Thread tape"]),
    ("Bearings", ["Deep groove bearing", "Needle bearing", "Thrust washer", "Plain bush", "Flange bearing"]),
    ("Drives", ["Toothed belt", "V-belt", "Chain link", "Pulley", "Coupling half", "Gear wheel"]),
    ("Electrics", ["Limit switch", "Pressure sensor", "Solenoid coil", "Motor capacitor", "Terminal block"]),
    ("Filters", ["Oil filter", "Suction strainer", "Air filter", "Fine filter", "Filter bag"]),
    ("Housings", ["Pump cover", "Sight glass", "Foot plate", "Terminal box", "Guard, hinged"]),
    ("Fasteners", ["Hexagon bolt", "Stud", "Spring washer", "Lock nut", "Eye bolt", "Clamp, two-part"]),
]
MATERIALS = [
    "brass",
    "stainless steel",
    "grey cast iron",
    "nitrile rubber",
    "PTFE",
    "bronze",
    "polyamide",
    "steel, zinc-plated",
]
PUMPS = ["P40", "P40 S", "P63", "P63 S", "P80", "P100", "P100 V"]
NOTES = [
    "Replace together with the seal next to it.",
    "Tighten crosswise, in two passes.",
    "Sold in pairs only.",
    "Up to serial number 20417; later pumps take the reinforced type.",
    "Oil lightly before fitting.",
    "Not for drinking water.",
    "Keep in the dark; use within five years.",
    "Delivery takes three weeks.",
    "Includes screws and washers.",
    "Check after the first fifty hours.",
]


def sections() -> Iterator[str]:
    pick = Picker(3)
    yield "SPARE PARTS FOR PUMPS, TYPES P40 TO P100\nPrices in euros for one piece, without tax. Article numbers are unique.\n\n"
    number = 10_400
    for page in count():
        group, names = GROUPS[page % len(GROUPS)]
        yield f"{group}, page {page + 1}\n\n"
        for name in names:
            number += pick.number(3, 19)
            yield _article(pick, number, name)


def _article(pick: Picker, number: int, name: str) -> str:
    inner, thickness = pick.number(8, 60), pick.number(2, 14)
    lines = [
        f"{number}  {name}, {pick.one(MATERIALS)}",
        f"  size {inner} x {inner + pick.number(4, 30)} x {thickness} mm, {pick.number(8, 990)} g",
        f"  fits {', '.join(pick.some(PUMPS, pick.number(1, 4)))}; stock {pick.number(0, 240)}; "
        f"price {pick.number(1, 139)}.{pick.one(['20', '45', '60', '90'])}",
    ]
    if pick.chance(45):
        lines.append(f"  {pick.one(NOTES)}")
    return "\n".join(lines) + "\n\n"
