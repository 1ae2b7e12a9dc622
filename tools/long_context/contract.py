"""A contract between two firms: articles, numbered clauses, references from one to another."""

from collections.abc import Iterator
from itertools import count

from picker import Picker

ARTICLES = [
    "Definitions", "Services", "Delivery", "Acceptance", "Fees", "Invoices", "Changes", "Personnel", "Access to premises",
    "Materials", "Intellectual property", "Confidentiality", "Personal data", "Security", "Audits", "Warranties", "Liability",
    "Insurance", "Force majeure", "Suspension", "Term", "Termination", "Consequences of termination", "Subcontractors",
    "Assignment", "Notices", "Disputes", "Governing law", "Severability", "Whole agreement",
]  # fmt: skip
CLAUSES = [
    "The Supplier shall inform the Customer in writing within {days} working days of any event that may delay {thing}, and "
    "shall propose measures by which the delay can be made good.",
    "Where {thing} is not provided by the agreed date, the Customer may reduce the fee for the month in question by "
    "{percent} percent for each full week of delay, up to {cap} percent of that fee.",
    "The Customer shall name a person who may give instructions about {thing}, and a deputy. Instructions by others do not "
    "bind the Supplier.",
    "Neither party may use {thing} for purposes other than those of this agreement, unless the other party has consented in "
    "writing; consent may not be withheld without good reason.",
    "The Supplier keeps records of {thing} for {years} years and shows them to the Customer on request, during office hours "
    "and with {days} working days' notice.",
    "If the parties cannot agree on {thing} within {days} working days, each may refer the matter to the steering committee, "
    "whose unanimous decision is binding.",
    "Costs that arise because {thing} was described wrongly by the Customer are borne by the Customer, provided that the "
    "Supplier has pointed out the mistake as soon as it could be seen.",
    "The obligations under this article survive the end of the agreement by {years} years, except in respect of {thing} that "
    "has become public without a breach of it.",
    "The amount payable for {thing} is adjusted on the 1st of January of each year by the change of the consumer price index, "
    "but by no more than {percent} percent.",
    "The Supplier maintains a register in which every change of {thing} is entered with the date, the reason and the name of "
    "the person who approved it.",
    "As regards {thing}, the time limit begins anew if the Customer has asked for a correction, though only for the part that "
    "the correction concerns.",
]
THINGS = [
    "a deliverable", "the monitoring service", "the test environment", "the migration of stored data", "the help desk",
    "a replacement part", "the documentation", "the interface to the customer's ledger", "the backup", "a software update",
    "the training of users", "the annual maintenance", "the equipment on loan", "the source code held in escrow",
]  # fmt: skip


def sections() -> Iterator[str]:
    pick = Picker(4)
    yield (
        "FRAMEWORK AGREEMENT\n\nbetween Lindqvist Instruments Ltd (the Customer) and Orsolo Systems plc (the Supplier), "
        "concerning the operation and maintenance of the laboratory information system.\n\n"
    )
    for number in count(1):
        name = ARTICLES[(number - 1) % len(ARTICLES)]
        yield f"Article {number}. {name}{', supplement' if number > len(ARTICLES) else ''}\n\n"
        for clause, text in enumerate(pick.some(CLAUSES, 4), 1):
            yield f"{number}.{clause} {_filled(pick, text)}{_reference(pick, number)}\n\n"


def _filled(pick: Picker, text: str) -> str:
    return text.format(
        thing=pick.one(THINGS),
        days=pick.one([2, 3, 5, 10, 15]),
        percent=pick.one([2, 3, 4, 5]),
        cap=pick.one([15, 20, 25, 30]),
        years=pick.one([2, 3, 5, 6, 10]),
    )


def _reference(pick: Picker, number: int) -> str:
    if number == 1 or not pick.chance(35):
        return ""
    what = pick.one(["applies accordingly", "remains unaffected", "takes precedence", "applies in addition"])
    return f" Clause {pick.number(1, number - 1)}.{pick.number(1, 4)} {what}."
