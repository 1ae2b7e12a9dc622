"""Telemetry: what every step did and cost. `base` holds the record; nothing here knows tokens or text."""

from paceline.telemetry.base import Reason, SequenceStep, StepRecord
from paceline.telemetry.stats import SpeculationStats

__all__ = ["Reason", "SequenceStep", "SpeculationStats", "StepRecord"]
