"""The folder for what this package fetches and makes; the Hugging Face hub has one of its own."""

import os
from pathlib import Path

from paceline.errors import FetchError
from paceline.models.quoting import quoted

CACHE_VARIABLE = "PACELINE_CACHE"
"""Environment variable that moves the cache folder."""


def cache_folder() -> Path:
    """The folder for everything that is fetched: `$PACELINE_CACHE`, else the platform's place for caches.

    Raises `FetchError` where the variable names the home of nobody.
    """
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        try:
            return Path(override).expanduser()
        except RuntimeError as error:
            raise FetchError(
                f"{CACHE_VARIABLE} is {quoted(override)}, but there is no such user; set it to a folder you can write"
            ) from error
    from platformdirs import user_cache_path

    return user_cache_path("paceline")


def unusable_cache(folder: Path, error: OSError) -> FetchError:
    """What to raise where the cache folder cannot be read or written."""
    return FetchError(
        f"cannot use the cache folder {quoted(folder)}: {error.strerror or error}; "
        f"set {CACHE_VARIABLE} to a folder you can write"
    )
