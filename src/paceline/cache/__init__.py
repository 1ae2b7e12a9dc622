"""Sequence caches: which pages hold whose committed positions. `base` holds the contract."""

from paceline.cache.base import IntegrityError, OutOfPagesError, PageStore, SequenceCache
from paceline.cache.coordinator import CacheCoordinator, DraftCache
from paceline.cache.paged import PagedCache

__all__ = [
    "CacheCoordinator",
    "DraftCache",
    "IntegrityError",
    "OutOfPagesError",
    "PageStore",
    "PagedCache",
    "SequenceCache",
]
