"""References: what a user may name a model by, where it is kept, and how it gets there."""

from paceline.models.references.resolve import (
    ALIASES,
    CACHE_VARIABLE,
    CachedModel,
    HubSource,
    ModelAlias,
    Progress,
    SilentProgress,
    WheelSource,
    cache_folder,
    list_cached,
    resolve,
    unusable_cache,
)

__all__ = [
    "ALIASES",
    "CACHE_VARIABLE",
    "CachedModel",
    "HubSource",
    "ModelAlias",
    "Progress",
    "SilentProgress",
    "WheelSource",
    "cache_folder",
    "list_cached",
    "resolve",
    "unusable_cache",
]
