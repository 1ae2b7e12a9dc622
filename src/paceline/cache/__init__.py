"""Sequence caches: which pages hold whose committed positions. `base` holds the contract."""

from paceline.cache.base import IntegrityError, OutOfPagesError, SequenceCache
from paceline.cache.paged import PagedCache, PageStore

__all__ = ["IntegrityError", "OutOfPagesError", "PageStore", "PagedCache", "SequenceCache"]
