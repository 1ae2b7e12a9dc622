"""One caller at a time, interventions at any moment, and order restored after whatever struck in between.

An interrupt can strike between any two instructions, a finaliser can run in any of them, another thread beside them. So
work is done under a lock that nobody waits for; what is to be done to a sequence meanwhile is noted, and carried out by
whoever holds the lock or, between turns, by whoever noted it.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from paceline.errors import UsageError

T = TypeVar("T")

IN_USE = "this model is in use by another thread or caller; give each a model of its own, or a lock"


class Turn:
    """`repair` makes an interrupted structure whole again, before the next work."""

    def __init__(self, repair: Callable[[], None]) -> None:
        self._repair = repair
        self._lock = Lock()
        self._notes: deque[tuple[int, Callable[[int], None]]] = deque()
        self._is_broken = False

    def take(self, work: Callable[[], T]) -> T:
        """The result of `work`. Raises UsageError where other work is under way."""
        if self._lock.locked():
            raise UsageError(IN_USE)
        try:
            return self._locked(work)
        finally:
            self._settle()

    def intervene(self, sequence: int, action: Callable[[int], None]) -> None:
        """Do `action` to `sequence` now, or when the work at hand is done."""
        self._notes.append((sequence, action))
        self._settle()

    def noted(self) -> set[int]:
        """The sequences to which something is to be done when the work at hand is done."""
        return {sequence for sequence, _ in self._notes.copy()} if self._notes else set()

    def _settle(self) -> None:
        """Carry out what was noted when nobody held the lock any more."""
        while self._notes and not self._lock.locked():
            self._locked(lambda: None)

    def _locked(self, work: Callable[[], T]) -> T:
        with self._lock:
            try:
                if self._is_broken:
                    self._repair()
                    self._is_broken = False
                try:
                    return work()
                finally:
                    while self._notes:
                        sequence, action = self._notes.popleft()
                        action(sequence)
            except BaseException:
                self._is_broken = True
                raise
