"""References: what a user may name a model by, where it is kept, and how it gets there."""

from paceline.models.references.aliases import ALIASES
from paceline.models.references.base import (
    CachedModel,
    HubReference,
    ModelAlias,
    Progress,
    SilentProgress,
    WheelSource,
)
from paceline.models.references.cache import CACHE_VARIABLE, cache_folder, unusable_cache
from paceline.models.references.inventory import bytes_to_free, list_cached, remove_cached
from paceline.models.references.parse import parse_reference
from paceline.models.references.resolve import resolve

__all__ = [
    "ALIASES",
    "CACHE_VARIABLE",
    "CachedModel",
    "HubReference",
    "ModelAlias",
    "Progress",
    "SilentProgress",
    "WheelSource",
    "bytes_to_free",
    "cache_folder",
    "list_cached",
    "parse_reference",
    "remove_cached",
    "resolve",
    "unusable_cache",
]
