"""The hub's cache as it is on the disk: the models in it, and whether they are whole.

Its layout is the hub client's: for each repository `blobs`, named by hash, and for each commit a folder of links to
them. A blob may be a link itself, into a store that several repositories share.
"""

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import FetchError
from paceline.models.gguf.parts import model_files, part_names
from paceline.models.references.base import CachedModel, HubReference
from paceline.models.references.selection import safetensors_files, safetensors_weights

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo, CachedRevisionInfo, HFCacheInfo

_SHA256_DIGITS, _SHA1_DIGITS = 64, 40


def list_hub() -> list[CachedModel]:
    """Every GGUF and safetensors model in the hub's cache, whoever fetched it."""
    cache = _scan()
    listed: list[CachedModel] = []
    for repository in sorted(cache.repos, key=lambda repository: repository.repo_id) if cache else ():
        for revision in sorted(repository.revisions, key=lambda revision: revision.commit_hash):
            listed += _describe(repository, revision)
    return listed


def is_unchanged(path: Path) -> bool | None:
    """Whether the content has the hash that its blob is named by; None where no hash is known."""
    expected = path.readlink().name if path.is_symlink() else ""
    with path.open("rb") as file:
        if len(expected) == _SHA256_DIGITS:
            return hashlib.file_digest(file, "sha256").hexdigest() == expected
        if len(expected) == _SHA1_DIGITS:  # as git has it; a small file
            content = file.read()
            return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == expected
    return None


def _scan() -> "HFCacheInfo | None":
    from huggingface_hub import CacheNotFound, constants, scan_cache_dir

    try:
        return scan_cache_dir(constants.HF_HUB_CACHE)
    except CacheNotFound:
        return None
    except (OSError, ValueError) as error:
        raise FetchError(f"cannot read the hub's cache: {error}; check HF_HUB_CACHE and its permissions") from error


def _describe(repository: "CachedRepoInfo", revision: "CachedRevisionInfo") -> list[CachedModel]:
    if repository.repo_type != "model":
        return []
    sizes = {
        file.file_path.relative_to(revision.snapshot_path).as_posix(): file.size_on_disk for file in revision.files
    }
    name = None if "main" in revision.refs else next(iter(sorted(revision.refs)), revision.commit_hash)

    def described(file: str | None, wanted: Collection[str], needed: Collection[str]) -> CachedModel:
        reference = HubReference(repository.repo_id, file=file, revision=name)
        present = [part for part in wanted if part in sizes]
        missing = [part for part in needed if part not in sizes]
        return CachedModel(
            str(reference),
            "hub",
            f"{len(missing)} of {len(needed)} files missing" if missing else "from the Hugging Face hub",
            revision.snapshot_path / (file or ""),
            sum(sizes[part] for part in present),
            not missing,
            hub=reference,
            revisions=revision.refs | {revision.commit_hash},
            files=tuple(revision.snapshot_path / part for part in present),
        )

    models = model_files(sizes)
    weights = safetensors_weights(list(sizes))
    if models or "config.json" not in sizes or not weights:  # beside a GGUF file, no reference means safetensors
        return [described(model, part_names(model), part_names(model)) for model in models]
    needed = ["config.json", *dict.fromkeys(part for weight in weights for part in part_names(weight))]
    return [described(None, list(dict.fromkeys([*safetensors_files(list(sizes)), *needed])), needed)]
