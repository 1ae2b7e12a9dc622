"""From a reference to files on this machine, fetched where they are not here yet."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from paceline.errors import UsageError
from paceline.models.quoting import quoted
from paceline.models.references.aliases import ALIASES
from paceline.models.references.base import HubReference, ModelAlias, Progress, SilentProgress
from paceline.models.references.cache import unusable_cache
from paceline.models.references.folder import model_in_folder
from paceline.models.references.parse import parse_reference


def resolve(
    reference: str | Path,
    *,
    revision: str | None = None,
    progress: Progress | None = None,
    aliases: Mapping[str, ModelAlias] = ALIASES,
) -> Path:
    """The model's place: a .gguf file, the first part of a split one, or a folder with a Hugging Face model.

    `reference` is an alias, a path, or a model on the hub: `org/repo`, `org/repo:QUANT`, `org/repo/file.gguf`, each
    with `@revision` if wanted, which `revision` can say too. What is fetched is kept; a damaged copy of an alias's file
    is fetched again. Raises `ModelNotFoundError` for what names nothing, `UnsupportedModelError` for a repository
    without a file that can be read, `FetchError` where something cannot be fetched, and `UsageError` for a revision of
    what has none and for a reference that is neither a string nor a path.
    """
    parsed = _with_revision(parse_reference(reference, aliases), revision)
    match parsed:
        case HubReference():
            from paceline.models.references.hub import fetch_from_hub

            return fetch_from_hub(parsed, progress or SilentProgress())
        case ModelAlias():
            return _resolve_alias(parsed, progress or SilentProgress())
        case _:
            return model_in_folder(parsed) if parsed.is_dir() else parsed


def _with_revision(parsed: ModelAlias | Path | HubReference, revision: str | None) -> ModelAlias | Path | HubReference:
    if revision is None:
        return parsed
    if not isinstance(parsed, HubReference):
        named = parsed.name if isinstance(parsed, ModelAlias) else parsed
        raise UsageError(f"{quoted(named)} is not a model on the Hugging Face hub and has no revisions; leave it out")
    if parsed.revision not in (None, revision):
        raise UsageError(f"{parsed} names another revision than {quoted(revision)}; give one of them")
    return replace(parsed, revision=revision)


def _resolve_alias(alias: ModelAlias, progress: Progress) -> Path:
    if alias.is_cached() and _is_intact(alias):
        return alias.cached_path()
    from paceline.models.references.fetch import fetch

    return fetch(alias, progress)


def _is_intact(alias: ModelAlias) -> bool:
    from paceline.models.references.integrity import is_intact

    path = alias.cached_path()
    try:
        return is_intact(path, alias.sha256)
    except FileNotFoundError:  # another process found it damaged and fetches it again
        return False
    except OSError as error:
        raise unusable_cache(path.parent, error) from error
