"""An exchange of messages about a building site, each quoting the one before, as mail programs do."""

from collections.abc import Iterator
from itertools import count

from picker import Picker

PEOPLE = ["Rosa Almeida", "Jonas Petersen", "Chidi Obi", "Marta Kowalska", "Lee Sung-min"]
POINTS = [
    "The window on the {floor} floor has come in the wrong size, {cm} centimetres in place of {more}; the joiner will {fix} it.",
    "The plaster in room {room} is dry enough now, at {percent} percent, so that the painters can begin on the {day}th.",
    "Please do not let anybody walk on the screed in room {room} before the {day}th.",
    "The bill of the roofer is {cost} higher than his offer. I have asked him for the reason, and he names the {thing}.",
    "We still need a decision about the {thing}: oak at {cost}, or ash, which would be {percent} percent cheaper.",
    "The inspector comes on the {day}th at nine. He will want to see the {thing} and the papers for it.",
    "The crane is rented until the {day}th; every further day costs {cost}.",
    "Somebody has taken {percent} metres of cable from the container in the yard. I have changed the lock and told the insurance.",
    "The neighbours complain about the noise before seven. I promised that the {thing} will only be moved after eight.",
    "The electrician asks for {percent} more sockets in room {room}, and suggests to put them {cm} centimetres above the floor.",
    "Water stood in the cellar this morning, about {percent} centimetres. The pump has been running since, and it is falling.",
    "The delivery of the {thing} was put off for a second time, now until the {day}th.",
]
THINGS = [
    "staircase",
    "handrail",
    "heat pump",
    "front door",
    "tiles for the bath",
    "scaffold",
    "chimney",
    "boiler",
    "gutter",
    "cable drum",
]
ENDS = [
    "Can you confirm that by tomorrow?",
    "More on Thursday.",
    "I am on the site until four.",
    "Call me if that is a problem.",
]


def sections() -> Iterator[str]:
    pick = Picker(6)
    yield "Correspondence about the house at 7 Quarry Road, oldest message first\n\n"
    before: list[str] = []
    writer = PEOPLE[0]
    for number in count(1):
        reader = pick.one([person for person in PEOPLE if person != writer])
        points = [_filled(pick, point) for point in pick.some(POINTS, 3)]
        quoted = [f"> {point}" for point in before[:2]]
        yield "\n".join(
            [
                f"Message {number}",
                f"From: {writer}",
                f"To: {reader}",
                f"Subject: {'Re: ' if before else ''}Quarry Road, week {10 + number // 3}",
                "",
                *quoted,
                *([""] if quoted else []),
                *points,
                pick.one(ENDS),
                f"{writer.split()[0]}\n\n\n",
            ]
        )
        before, writer = points, reader


def _filled(pick: Picker, point: str) -> str:
    cm = pick.number(60, 140)
    return point.format(
        floor=pick.one(["first", "second", "top"]),
        cm=cm,
        more=cm + pick.number(2, 12),
        fix=pick.one(["plane", "replace", "change"]),
        room=pick.number(1, 14),
        percent=pick.number(3, 18),
        day=pick.number(4, 19),
        cost=f"{pick.number(3, 70) * 40}",
        thing=pick.one(THINGS),
    )
