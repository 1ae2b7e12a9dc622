"""The contracts of `base.py` files as checks that any implementation can be put through.

They use no test framework: a violation raises AssertionError that says which promise was broken.
"""

from paceline.testing.cache_contract import check_cache
from paceline.testing.cache_shadow import CacheShadow, SlotStore
from paceline.testing.proposer_contract import check_proposer
from paceline.testing.runtime_contract import RuntimeSizes, check_equal_runtimes, check_runtime

__all__ = [
    "CacheShadow",
    "RuntimeSizes",
    "SlotStore",
    "check_cache",
    "check_equal_runtimes",
    "check_proposer",
    "check_runtime",
]
