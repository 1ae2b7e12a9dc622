"""Minutes of a town council: sessions, numbered items, who said what, votes."""

from collections.abc import Iterator
from itertools import count

from picker import Picker

MEMBERS = [
    "Mr Adeyemi",
    "Mrs Bergström",
    "Dr Castellano",
    "Ms Dvorak",
    "Mr Eklund",
    "Mrs Farouk",
    "Mr Gruber",
    "Ms Ito",
]
TOPICS = [
    ("the repair of the covered bridge", "the beams on the eastern side are rotten to a depth of four centimetres"),
    ("new lamps in the park", "the present ones attract insects and cannot be dimmed"),
    ("the opening hours of the swimming pool", "early swimmers have asked for six o'clock since last year"),
    ("a second crossing guard at the primary school", "lorries have used Mill Street since the bypass was closed"),
    ("the purchase of a used snow plough", "the old one broke its blade twice in January"),
    ("rents for the market stalls", "they have not changed since the hall was painted"),
    ("trees on the station square", "three of the planes have a fungus and may drop branches"),
    ("the archive in the cellar of the town hall", "the moisture has risen to seventy percent"),
    ("a skate ramp behind the gymnasium", "the youth club has collected 312 signatures"),
    ("the contract with the bus company", "it ends in December and must be announced six months before"),
    ("fees of the music school", "the number of pupils has fallen for the third time"),
    ("benches along the river path", "elderly people find no place to rest between the weir and the mill"),
    ("the flood wall at the tannery", "the gauge stood eleven centimetres below the top in March"),
    ("public toilets at the market", "the nearest ones are eight minutes away and closed on Sundays"),
]
REMARKS = [
    "{who} asked what it would cost in later years, and was told that {cost} a year should be enough.",
    "{who} reminded the council that the same had been promised in the spring of last year.",
    "{who} thought that two offers were too few and would have liked to see a third from outside the county.",
    "{who} reported that residents had written to {other}, most of them in favour, some with good ideas.",
    "{who} wondered whether the work could wait until the school holidays.",
    "{who} pointed to the reserve, which after this would stand at {cost}.",
    "{who} and {other} disagreed about whether the building code allowed it; the clerk will find out.",
    "{who} had seen a similar solution in the neighbouring town and described it in detail.",
]
OUTCOMES = [
    "Approved with {yes} votes to {no}. {who} sees to it and reports by the end of {month}.",
    "Postponed to the next session, since the figures of the treasurer were not yet there.",
    "Approved unanimously, up to a limit of {cost}. The order is placed by {who}.",
    "Rejected with {no} votes in favour and {yes} against.",
    "Referred to the committee for works, which is chaired by {who}, with the request to answer before {month}.",
]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "September", "October", "November"]


def sections() -> Iterator[str]:
    pick = Picker(1)
    yield "MINUTES OF THE TOWN COUNCIL OF HARROWFIELD\n\n"
    for number in count():
        month = MONTHS[number % len(MONTHS)]
        absent = pick.one(MEMBERS)
        present = [member for member in MEMBERS if member != absent]
        yield (
            f"Session {number + 1}, {pick.number(2, 27)} {month}, council chamber, 19:00\n"
            f"Present: {', '.join(present)}. Excused: {absent}. Chair: {present[0]}. Clerk: Mr Nakamura.\n\n"
        )
        for item, (topic, reason) in enumerate(pick.some(TOPICS, 4), 1):
            yield _item(pick, f"{number + 1}.{item}", topic, reason, present)


def _item(pick: Picker, number: str, topic: str, reason: str, present: list[str]) -> str:
    def filled(text: str) -> str:
        who, other = pick.some(present, 2)
        yes = pick.number(4, 6)
        cost = f"{pick.number(3, 48) * 250:,}"
        return text.format(who=who, other=other, yes=yes, no=7 - yes, cost=cost, month=pick.one(MONTHS))

    remarks = " ".join(filled(remark) for remark in pick.some(REMARKS, 3))
    opening = f"{pick.one(present)} introduced {topic}: {reason}."
    return f"{number} {topic[0].upper()}{topic[1:]}\n{opening} {remarks}\nDecision: {filled(pick.one(OUTCOMES))}\n\n"
