"""What is cached: the models with a short name, the hub's cache, and the tokenizers that were built."""

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.errors import ModelNotFoundError, UsageError
from paceline.models.quoting import quoted
from paceline.models.references.aliases import ALIASES
from paceline.models.references.base import CachedModel, HubReference, ModelAlias
from paceline.models.references.cache import cache_folder, unusable_cache
from paceline.models.references.parse import parse_reference

TOKENIZERS = "tokenizers"
"""What the built tokenizers are called, all together."""
_BUILT = re.compile(r"[0-9a-f]{64}\.\d+\.json")  # a source's hash and the number of a format; the rest is not ours


def list_cached(
    reference: str | None = None, *, verify: bool = False, aliases: Mapping[str, ModelAlias] = ALIASES
) -> list[CachedModel]:
    """Every alias, present or not, and everything else that is cached; or only what `reference` names.

    `org/repo` names every model of the repository, with `@revision` those of one revision. `verify` reads each file to
    check its hash. Raises `ModelNotFoundError` where nothing that is cached has the name.
    """
    listed = [_describe_alias(alias) for alias in aliases.values()]
    if reference not in aliases:
        from paceline.models.references.hub_cache import list_hub

        listed += [*list_hub(), *_describe_tokenizers()]
    if reference is not None:
        own = "it has no hash to check" if verify else "it is left alone"
        listed = _named(listed, reference, aliases, own)
    return [_verified(model, aliases) for model in listed] if verify else listed


def remove_cached(models: Sequence[CachedModel]) -> int:
    """Remove what `list_cached` has listed, `files` and nothing else; the bytes that are free now.

    A blob of the hub's cache that something else uses stays. Raises `FetchError` where something cannot be removed.
    """
    from paceline.models.references.hub_removal import carry_out, plan_removals

    freed = sum(carry_out(removal) for removal in plan_removals(_of_hub(models)))
    for model in models:
        match model.source:
            case "alias":
                freed += _remove_alias(model)
            case "tokenizers":
                freed += _remove_tokenizers(model)
    return freed


def bytes_to_free(models: Sequence[CachedModel]) -> int:
    """What `remove_cached` would free now. Raises `FetchError` where it would refuse to remove them."""
    from paceline.models.references.hub_removal import plan_removals

    freed = sum(removal.num_bytes for removal in plan_removals(_of_hub(models)))
    return freed + sum(_size(path) for model in models if model.source != "hub" for path in model.files)


def _of_hub(models: Sequence[CachedModel]) -> list[CachedModel]:
    return [model for model in models if model.source == "hub"]


def _describe_alias(alias: ModelAlias) -> CachedModel:
    path, is_present = alias.cached_path(), alias.is_cached()
    files = (path,) if is_present else ()
    return CachedModel(alias.name, "alias", alias.description, path, alias.num_bytes, is_present, files=files)


def _describe_tokenizers() -> list[CachedModel]:
    folder = cache_folder() / TOKENIZERS
    try:
        names = sorted(path for path in folder.glob("*") if _BUILT.fullmatch(path.name))
        files = tuple(path for path in names if stat.S_ISREG(path.lstat().st_mode))
        size = sum(map(_size, files))
    except OSError as error:
        raise unusable_cache(folder, error) from error
    description = "built tokenizers, made again when they are needed"
    return [CachedModel(TOKENIZERS, "tokenizers", description, folder, size, True, files=files)] if files else []


def _named(listed: list[CachedModel], reference: str, aliases: Mapping[str, ModelAlias], own: str) -> list[CachedModel]:
    """What a reference names; `own` is said of what is a user's own."""
    exact = [model for model in listed if model.reference == reference]
    if exact:
        return exact
    parsed = None if reference == TOKENIZERS else parse_reference(reference, aliases)
    if isinstance(parsed, Path):
        raise UsageError(f"{quoted(reference)} is a file or folder of your own, not in a cache; {own}")
    named = [model for model in listed if model.hub is not None and _is_meant(model, model.hub, parsed)]
    if not named:
        raise ModelNotFoundError(f"{quoted(reference)} is not in the cache; `paceline models` lists what is")
    return _same_case(named, parsed) or named  # the hub knows no case, but folders of a cache may differ in it


def _same_case(named: list[CachedModel], asked: ModelAlias | HubReference | None) -> list[CachedModel]:
    repository = asked.repository if isinstance(asked, HubReference) else None
    return [model for model in named if model.hub is not None and model.hub.repository == repository]


def _is_meant(model: CachedModel, cached: HubReference, asked: ModelAlias | HubReference | None) -> bool:
    from paceline.models.references.selection import has_label

    if not isinstance(asked, HubReference) or cached.repository.lower() != asked.repository.lower():
        return False
    has_revision = asked.revision is None or asked.revision in model.revisions
    has_file = asked.file in (None, cached.file)
    return (
        has_revision and has_file and (asked.quantization is None or has_label(cached.file or "", asked.quantization))
    )


def _verified(model: CachedModel, aliases: Mapping[str, ModelAlias]) -> CachedModel:
    from paceline.models.references.hub_cache import is_unchanged
    from paceline.models.references.integrity import file_sha256

    if not model.files:
        return model
    match model.source:
        case "alias":
            return replace(model, is_verified=file_sha256(model.path) in aliases[model.reference].sha256)
        case "hub":
            states = [is_unchanged(path) for path in model.files]
            return replace(model, is_verified=False if False in states else None if None in states else True)
        case _:
            return model


def _remove_alias(model: CachedModel) -> int:
    from filelock import FileLock

    from paceline.models.references.integrity import record_path

    path = model.path
    try:
        with FileLock(path.with_name(f"{path.name}.lock")):  # nobody fetches it meanwhile
            num_bytes = _size(path)
            path.unlink(missing_ok=True)
            record_path(path).unlink(missing_ok=True)
    except OSError as error:
        raise unusable_cache(path.parent, error) from error
    return num_bytes


def _remove_tokenizers(model: CachedModel) -> int:
    """Only the listed files; the folder where nothing else is in it."""
    freed = 0
    try:
        for path in model.files:
            freed += _size(path)
            path.unlink(missing_ok=True)
        if model.path.is_dir() and not model.path.is_symlink() and not any(model.path.iterdir()):
            model.path.rmdir()
    except OSError as error:
        raise unusable_cache(model.path, error) from error
    return freed


def _size(path: Path) -> int:
    """Bytes of the file itself; 0 where it has gone."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
