"""From a benchmark's blocks to its figures: every definition of a figure is here, and nothing else."""

from paceline.bench.figures.summary import summarise
from paceline.bench.figures.sums import block_sums

__all__ = ["block_sums", "summarise"]
