"""Models of the Hugging Face hub: which files of a repository, and how they come into the hub's own cache."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from paceline.errors import FetchError, ModelNotFoundError, PacelineError
from paceline.models.quoting import quoted
from paceline.models.references.base import HubReference, Progress
from paceline.models.references.selection import choose_files

_WORKER = Path(__file__).with_name("hub_worker.py")
_POLL = 0.1  # seconds between looks at a running download
_PATIENCE = 5.0  # seconds that a stopped download has for tidying up


def fetch_from_hub(reference: HubReference, progress: Progress, cache_folder: Path | None = None) -> Path:
    """Bring what the reference means into the hub's cache, or another folder of that layout, and return its place.

    That is the GGUF file, the first part of a split one, or the folder of a safetensors model. Without a connection,
    what is in the cache stands for the repository. Raises `ModelNotFoundError` or `FetchError`.
    """
    with _Worker(reference) as worker:
        request = {"repository": reference.repository, "revision": reference.revision}
        listing = worker.ask({**request, "cache_folder": str(cache_folder) if cache_folder else None})
        sizes = {file["name"]: file["num_bytes"] for file in listing["files"]}
        names = choose_files(reference, list(sizes), is_offline=listing["is_offline"])
        etags = [file["etag"] for file in listing["files"] if file["name"] in names]
        worker.send({"files": names})
        progress.begin(f"Fetching {reference}", sum(sizes[name] or 0 for name in names))
        try:
            while not worker.has_answer(_POLL):
                progress.update(sum(_num_present(Path(listing["blobs"]), etag) for etag in etags))
            paths = worker.receive()["paths"]
        finally:
            progress.end()
    first = Path(paths[0])
    return first if names[0].lower().endswith(".gguf") else first.parent


def _num_present(blobs: Path, etag: str | None) -> int:
    """Bytes of a file that have arrived, whole or not. Whoever downloads moves and removes files while we look."""
    sizes = [0]
    for path in blobs.glob(f"{etag}*") if etag and etag.isalnum() else ():
        with suppress(FileNotFoundError):
            status = path.stat()
            # a download in several places at once leaves holes, which are not there yet
            is_whole = path.name == etag
            sizes.append(status.st_size if is_whole else min(status.st_size, status.st_blocks * 512))
    return max(sizes)


class _Worker:
    """The running program of `hub_worker`, stopped at the end of a `with` block however that comes."""

    def __init__(self, reference: HubReference) -> None:
        self._reference = reference

    def __enter__(self) -> Self:
        self._log: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER)],  # -P: nothing is imported from the folder of the program
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            process_group=0,  # a terminal's Ctrl-C comes to us alone, and we stop it
            env={**os.environ, "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # a request to tidy up
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        with suppress(BrokenPipeError):
            process.communicate()
        self._log.close()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.send(request)
        return self.receive()

    def send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended; `receive` tells why
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def has_answer(self, seconds: float) -> bool:
        """Wait at most so long for an answer, or for the end."""
        assert self._process.stdout is not None
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise _failure(self._reference, "other", self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise _failure(self._reference, answer["error"], answer["reason"])
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it gave no reason")


def _failure(reference: HubReference, kind: str, reason: str) -> PacelineError:
    """The error for what the worker reports, with what to do about it."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    repository, told = quoted(reference.repository), quoted(reason, 160)
    login = "log in with `hf auth login`, or set HF_TOKEN"
    match kind:
        case "no_repository":
            return ModelNotFoundError(
                f"there is no {repository} on the Hugging Face hub, or it is private: check the name, or {login}"
            )
        case "no_revision":
            return ModelNotFoundError(f"{repository} has no revision {quoted(reference.revision)}; check its name")
        case "no_file":
            return ModelNotFoundError(f"{reference} is not on the Hugging Face hub any more ({told}); try again")
        case "gated":
            return FetchError(
                f"{repository} is gated: accept its terms on {endpoint}/{reference.repository} and {login}"
            )
        case "no_access":
            return FetchError(f"the Hugging Face hub refuses access to {repository} ({told}); {login}")
        case "unreachable":
            return FetchError(
                f"the Hugging Face hub cannot be reached, and {reference} is not in its cache ({told}); check the "
                "network, HF_HUB_OFFLINE and HF_ENDPOINT, or give the path of a .gguf file"
            )
        case "no_space":
            return FetchError(f"no space left to fetch {reference}; free some or set HF_HUB_CACHE to another folder")
        case "no_cache":
            return FetchError(f"cannot use the hub's cache ({told}); set HF_HUB_CACHE to a folder you can write")
        case _:
            return FetchError(f"{reference} on the Hugging Face hub could not be read: {told}; try again")
