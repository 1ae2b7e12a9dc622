"""A source file: a Python module of a game's units, each class much like the others and yet not the same."""

from collections.abc import Iterator

from picker import Picker

UNITS = [
    "Archer", "Baker", "Cartographer", "Diver", "Engineer", "Falconer", "Guard", "Herald", "Innkeeper", "Juggler", "Knight",
    "Lamplighter", "Mason", "Navigator", "Oarsman", "Potter", "Quarryman", "Ranger", "Smith", "Tailor", "Usher", "Vintner",
    "Weaver", "Yeoman", "Alchemist", "Beekeeper", "Carpenter", "Dyer", "Fisher", "Gardener", "Healer", "Inventor", "Jeweller",
    "Locksmith", "Miller", "Nomad", "Painter", "Rigger", "Shepherd", "Tinker",
]  # fmt: skip
ACTIONS = [
    ("scout", "fog", "world.reveal(self.position, radius={n})"),
    ("repair", "wood", "world.building_at(self.position).damage -= {n}"),
    ("trade", "silver", "self.owner.silver += {n} * world.market.price(self.cargo)"),
    (
        "heal",
        "herbs",
        "for other in world.units_near(self.position, {n}):\n            other.health = min(other.health + 1, other.max_health)",
    ),
    ("dig", "stone", "world.terrain_at(self.position).height -= {n}"),
    ("signal", "light", "world.events.append(Signal(self.owner, self.position, strength={n}))"),
    ("guard", "courage", "self.stance = Stance(radius={n}, until=world.turn + 1)"),
]
HEADER = '''"""The units of the island game. Every unit acts once in a turn, if it has what its action uses up."""

from dataclasses import dataclass, field

from island.events import Signal
from island.world import Owner, Position, Stance, World


class CannotAct(Exception):
    """The unit lacks what its action needs."""


@dataclass
class Unit:
    owner: Owner
    position: Position
    health: int
    cargo: str | None = None
    supplies: dict[str, int] = field(default_factory=dict)

    def use(self, supply: str, amount: int) -> None:
        if self.supplies.get(supply, 0) < amount:
            raise CannotAct(f"{type(self).__name__} needs {amount} {supply}, has {self.supplies.get(supply, 0)}")
        self.supplies[supply] -= amount

    def move(self, target: Position, world: World) -> None:
        if not world.is_passable(target):
            raise CannotAct(f"{target} is not passable")
        self.position = target


'''


def sections() -> Iterator[str]:
    pick = Picker(5)
    yield HEADER
    for name in UNITS:
        lines = [
            "@dataclass",
            f"class {name}(Unit):",
            f"    max_health: int = {pick.number(6, 30)}",
            f"    speed: int = {pick.number(1, 6)}",
            f"    cost: int = {pick.number(3, 40) * 5}",
            "",
        ]
        for action, supply, effect in pick.some(ACTIONS, 2):
            amount = pick.number(1, 4)
            lines += [
                f"    def {action}(self, world: World) -> None:",
                f'        """Uses up {amount} {supply}."""',
                f'        self.use("{supply}", {amount})',
                f"        {effect.format(n=pick.number(1, 5))}",
            ]
            if pick.chance(60):
                lines.append(
                    f'        world.log(f"{{self.owner.name}}: {name.lower()} uses {action} at {{self.position}}")'
                )
            lines.append("")
        lines += [
            "    def is_tired(self) -> bool:",
            f"        return self.health < {pick.number(2, 5)} or not any(self.supplies.values())",
            "",
            "",
        ]
        yield "\n".join(lines) + "\n"
