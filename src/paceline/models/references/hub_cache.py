"""The hub's cache as it is on the disk: the models in it, whether they are whole, and how to remove them.

Its layout is the hub client's: for each repository `blobs`, named by hash, and for each commit a folder of links to
them. A blob may be a link itself, into a store that several repositories share.
"""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import FetchError
from paceline.models.gguf.parts import model_files, part_names
from paceline.models.quoting import quoted
from paceline.models.references.base import CachedModel, HubReference

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


def remove_from_hub(models: Sequence[CachedModel]) -> int:
    """Remove listed models; the bytes freed.

    A revision without another model goes whole, with what else there is of it. What other revisions and repositories
    share stays, and so does the shared store's copy where a revision keeps other models: the hub client prunes that.
    """
    cache = _scan()
    doomed = {path for model in models for path in model.files}
    freed, commits = 0, []
    for repository in cache.repos if cache else ():
        for revision in repository.revisions:
            listed = _describe(repository, revision)
            if any(set(model.files) <= doomed for model in listed):
                if all(set(model.files) <= doomed for model in listed):
                    commits.append(revision.commit_hash)
                else:
                    freed += _unlink(repository, revision, doomed)
    return freed + (_delete(cache, commits) if cache and commits else 0)


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
            files=tuple(revision.snapshot_path / part for part in present),
        )

    models = model_files(sizes)
    weights = [name for name in sizes if name.endswith(".safetensors")]
    if models or "config.json" not in sizes or not weights:
        return [described(model, part_names(model), part_names(model)) for model in models]
    return [described(None, sizes, {part for weight in weights for part in part_names(weight)})]


def _unlink(repository: "CachedRepoInfo", revision: "CachedRevisionInfo", doomed: Collection[Path]) -> int:
    kept = {file.blob_path for other in repository.revisions for file in other.files if file.file_path not in doomed}
    freed = 0
    try:
        for file in revision.files:
            if file.file_path in doomed:
                file.file_path.unlink()
                if file.blob_path not in kept and file.blob_path != file.file_path:
                    freed += 0 if file.blob_path.is_symlink() else file.size_on_disk
                    file.blob_path.unlink(missing_ok=True)
    except OSError as error:
        raise _not_removed(revision.snapshot_path, error) from error
    return freed


def _delete(cache: "HFCacheInfo", commits: Sequence[str]) -> int:
    strategy = cache.delete_revisions(*commits)
    strategy.execute()
    left = [path for path in (*strategy.repos, *strategy.snapshots) if path.exists()]
    if left:  # the client only logs it
        raise _not_removed(left[0], "it is still there")
    return strategy.expected_freed_size


def _not_removed(folder: Path, reason: object) -> FetchError:
    return FetchError(f"cannot remove {quoted(folder)} from the hub's cache: {reason}; check its permissions")
