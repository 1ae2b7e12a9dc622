"""Runtimes: one target forward over any mixture of rows. `base` holds the contract."""

from paceline.runtime.base import Runtime, RuntimeInfo, Scores, Segment

__all__ = ["Runtime", "RuntimeInfo", "Scores", "Segment"]
