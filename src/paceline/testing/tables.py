"""Language models as tables: a function from the tokens seen so far to the logits of the next one."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

# From the tokens a row sees, its own last, to float32 [vocabulary]. Pure: equal tokens give equal bits.
LogitsTable = Callable[[tuple[int, ...]], NDArray[np.float32]]


def explicit_table(entries: Mapping[tuple[int, ...], Sequence[float]]) -> LogitsTable:
    """The entry of the longest suffix that has one; the empty suffix serves contexts without any. Raises KeyError."""
    longest = max(len(context) for context in entries)
    rows = {context: np.array(logits, np.float32) for context, logits in entries.items()}

    def table(seen: tuple[int, ...]) -> NDArray[np.float32]:
        for length in range(min(longest, len(seen)), -1, -1):
            suffix = seen[len(seen) - length :]
            if suffix in rows:
                return rows[suffix]
        raise KeyError(f"no entry for a context that ends in {seen[-longest:]}")

    return table


def seeded_table(vocab_size: int, seed: int = 0, order: int | None = None) -> LogitsTable:
    """Normal random logits that depend on the last `order` tokens seen, or on all of them."""

    def table(seen: tuple[int, ...]) -> NDArray[np.float32]:
        context = seen if order is None else seen[max(0, len(seen) - order) :]
        generator = np.random.default_rng((seed, len(context), *context))
        return generator.standard_normal(vocab_size, dtype=np.float32)

    return table


def decode_plainly(table: LogitsTable, prompt: Sequence[int], num_tokens: int) -> list[int]:
    """The greedy continuation, straight from the table: the reference for everything that runs through an engine."""
    tokens = list(prompt)
    for _ in range(num_tokens):
        tokens.append(int(np.argmax(table(tuple(tokens)))))
    return tokens[len(prompt) :]
