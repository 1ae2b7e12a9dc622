"""The noise of sampling: a pure function of (sample seed, absolute position, token id, stream), the same bits everywhere.

Nothing is drawn in order, so nothing can be drawn out of order: a rejected draft, a preemption or another batch costs
no randomness. One integer hash and one logarithm, both written out here operation by operation, so that NumPy, native
and torch code agree bit for bit.
"""

from enum import IntEnum


class Stream(IntEnum):
    """What a number is drawn for. Equal keys in different streams give independent numbers.

    TARGET is the noise g of `argmax(z + g)`, the target's own draw. A draft that is coupled to the target on purpose is
    drawn with it too, and may then only be judged by the rule `match`: the same noise in a ratio test would bias it.
    """

    TARGET = 0
    DRAFT = 1  # a sampled draft token, independent of the target's draw
    ACCEPT = 2  # the uniform of a ratio test
    RESIDUAL = 3  # the token that is emitted in place of a rejected one
