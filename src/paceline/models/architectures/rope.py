"""Rotary frequencies (Su et al., arXiv:2104.09864) and the ways of stretching them to longer contexts."""

from paceline.models.base import Rope


def plain_rope(theta: float, dim: int) -> Rope:
    """Pair i turns by `theta^(-2i / dim)` radians a position."""
    return Rope(tuple(theta ** (-2.0 * i / dim) for i in range(dim // 2)))
