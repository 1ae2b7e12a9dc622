"""An engine in figures, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.engine.output import FinishReason


@dataclass(frozen=True, slots=True)
class EngineStats:
    """`num_running` sequences hold pages, `num_waiting` wait to be admitted, for the first time or again.

    `num_preemptions`: how often a sequence gave its pages back. `num_integrity_failures`: checks that found something
    wrong. `finish_counts`: how many sequences have ended for which reason.
    """

    num_running: int
    num_waiting: int
    num_steps: int
    num_preemptions: int
    num_integrity_failures: int
    finish_counts: Mapping[FinishReason, int]
