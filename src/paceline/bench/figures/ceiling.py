"""The most that speculation could give, from the times of a target forward alone."""

from collections.abc import Mapping

from paceline.bench.statistics import interpolate


def speculation_ceiling(forward_ms: Mapping[int, float], concurrency: int | None) -> float | None:
    """max over n of n · T(B) / T(n · B), B answers at a time, with every draft token accepted and all else free.

    `forward_ms`: T(n), milliseconds of a forward over n rows. Between measured n it is interpolated linearly, beyond
    them nothing is assumed: None where not even B and 2 · B rows were measured, or in an open loop, where B varies.
    """
    if concurrency is None or not forward_ms:
        return None
    plain = interpolate(forward_ms, concurrency)
    longest = max(forward_ms) // concurrency
    if plain is None or longest < 2:
        return None
    times = ((n, interpolate(forward_ms, n * concurrency)) for n in range(1, longest + 1))
    return max(n * plain / time for n, time in times if time is not None)
