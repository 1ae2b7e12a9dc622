"""A program, no module: lists a repository of the Hugging Face hub and downloads files of it in a process of its own.

It can be stopped at any time, so it runs alone, and imports nothing but the hub's client, which knows caches, tokens,
proxies and the offline switch. It reads and writes one JSON object a line:

    asked {repository, revision, cache_folder}, answers {files: [{name, num_bytes, etag}], blobs, is_offline};
    asked {files: [name, …]}, answers {paths: [path, …]};
    either answer may be {error: kind, reason} instead.

It ends when its input does: whoever asked is gone then.
"""

import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Names of classes and their bases, because the clients that the hub uses differ from version to version.
_UNREACHABLE = {"ConnectionError", "Timeout", "TransportError", "OfflineModeIsEnabled", "LocalEntryNotFoundError"}
_KINDS = {
    "GatedRepoError": "gated",
    "RepositoryNotFoundError": "no_repository",
    "RevisionNotFoundError": "no_revision",
    "EntryNotFoundError": "no_file",
    "HFValidationError": "no_repository",
}


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # how we are stopped, even if started where it is ignored
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        for answer in _session():
            print(json.dumps(answer), file=answers, flush=True)
    except Exception as error:  # noqa: BLE001 (whoever asked words it)
        print(json.dumps(_explain(error)), file=answers, flush=True)


def _session() -> Iterator[dict[str, Any]]:
    request = json.loads(sys.stdin.readline())
    listing = _list(**request)
    yield listing
    wanted = json.loads(sys.stdin.readline())["files"]
    threading.Thread(target=_end_with_input, daemon=True).start()
    sizes = {file["name"]: file["num_bytes"] for file in listing["files"]}
    if listing["is_offline"]:
        folder = _snapshot(request["repository"], request["revision"], request["cache_folder"])
        yield {"paths": [str(folder / name) for name in wanted]}
    else:
        yield {"paths": _download(request, {name: sizes[name] for name in wanted})}


def _end_with_input() -> None:
    while os.read(0, 1 << 10):  # not through `sys.stdin`, whose lock a thread must not hold at the end
        pass
    os._exit(1)


def _list(repository: str, revision: str | None, cache_folder: str | None) -> dict[str, Any]:
    """The files of the repository, or, where the hub cannot be reached, those of them that are in the cache."""
    from huggingface_hub import HfApi, constants

    blobs = str(_repository_folder(repository, cache_folder) / "blobs")
    try:
        timeout = constants.HF_HUB_ETAG_TIMEOUT
        info = HfApi().model_info(repository, revision=revision, files_metadata=True, timeout=timeout)
    except Exception as error:
        if _explain(error)["error"] != "unreachable":
            raise
        snapshot = _snapshot(repository, revision, cache_folder)
        files = [_cached(path, snapshot) for path in sorted(snapshot.rglob("*")) if path.is_file()]
        if not files:
            raise
        return {"files": files, "blobs": blobs, "is_offline": True}
    siblings = info.siblings or []
    files = [
        {"name": file.rfilename, "num_bytes": file.size, "etag": file.lfs.sha256 if file.lfs else file.blob_id}
        for file in siblings
    ]
    return {"files": files, "blobs": blobs, "is_offline": False}


def _cached(path: Path, snapshot: Path) -> dict[str, Any]:
    return {"name": path.relative_to(snapshot).as_posix(), "num_bytes": path.stat().st_size, "etag": None}


def _download(request: dict[str, Any], sizes: dict[str, int | None]) -> list[str]:
    """All files of one commit: the first asks which one the revision is now."""
    from huggingface_hub import hf_hub_download

    paths: list[str] = []
    repository, revision, cache = request["repository"], request["revision"], request["cache_folder"]
    for name, num_bytes in sizes.items():
        path = hf_hub_download(repository, name, revision=revision, cache_dir=cache)
        if num_bytes is not None and Path(path).stat().st_size != num_bytes:  # somebody has cut or changed it
            path = hf_hub_download(repository, name, revision=revision, cache_dir=cache, force_download=True)
        revision = Path(path).relative_to(_repository_folder(repository, cache) / "snapshots").parts[0]
        paths.append(path)
    return paths


def _repository_folder(repository: str, cache_folder: str | None) -> Path:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(cache_folder or constants.HF_HUB_CACHE)
    return folder / repo_folder_name(repo_id=repository, repo_type="model")


def _snapshot(repository: str, revision: str | None, cache_folder: str | None) -> Path:
    """Where the cache keeps the files of a revision, a commit itself or the name that was last seen to mean one."""
    folder, commit = _repository_folder(repository, cache_folder), revision or "main"
    reference = folder / "refs" / commit
    if reference.is_file():
        commit = reference.read_text().strip()
    return folder / "snapshots" / commit


def _explain(error: BaseException) -> dict[str, str]:
    names = [kind.__name__ for kind in type(error).__mro__]
    status = getattr(getattr(error, "response", None), "status_code", None)
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    if "No space left on device" in reason or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        kind = "no_space"
    elif not _UNREACHABLE.isdisjoint(names) or (isinstance(status, int) and (status >= 500 or status == 429)):
        kind = "unreachable"
    elif status == 401 and "GatedRepoError" not in names and "RepositoryNotFoundError" not in names:
        kind = "no_access"
    else:
        kind = next((_KINDS[name] for name in names if name in _KINDS), "no_access" if status == 403 else "other")
    if kind == "other" and isinstance(error, OSError) and error.errno is not None:
        kind = "no_cache"
    return {"error": kind, "reason": reason}


if __name__ == "__main__":
    main()
