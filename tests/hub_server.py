"""A stand-in for the Hugging Face hub on this machine: listings and downloads as its API has them, and failures."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]


class HubServer:
    """What the hub holds, and what it was asked. Change it at any time; `url` is its address."""

    def __init__(self) -> None:
        self.url = ""
        self.repositories: dict[str, Files] = {}
        self.tags: dict[tuple[str, str], Files] = {}
        self.gated: set[str] = set()
        self.token: str | None = None
        """Where set, requests without it are refused as for a private repository."""
        self.status: int | None = None
        """Where set, every answer."""
        self.hold_after: int | None = None
        """Where set, downloads stop after so many bytes until `release`."""
        self.release = threading.Event()
        self.requests: list[str] = []

    def files(self, repository: str, revision: str) -> Files | None:
        main = self.repositories[repository]
        known = {"main": main, commit_of(main): main}
        for (owner, name), files in self.tags.items():
            if owner == repository:
                known |= {name: files, commit_of(files): files}
        return known.get(revision)

    def downloads(self) -> list[str]:
        """The paths whose content was asked for."""
        return [request.removeprefix("GET ") for request in self.requests if request.startswith("GET /org/")]


def commit_of(files: Files) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


@contextmanager
def serve_hub() -> Iterator[HubServer]:
    hub = HubServer()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield hub
        finally:
            hub.release.set()
            server.shutdown()
            thread.join()


def _etag(name: str, content: bytes) -> str:
    """Large files are stored apart and named by SHA-256, the others by git's hash."""
    if name.endswith((".gguf", ".safetensors", ".bin")):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._handle()

    def do_GET(self) -> None:
        self._handle()

    def _handle(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        parts = path.strip("/").split("/")
        is_api = parts[:2] == ["api", "models"]
        repository = "/".join(parts[2:4] if is_api else parts[:2])
        if self.hub.status is not None:
            return self._fail(self.hub.status, None)
        is_known = self.hub.token in (None, self.headers.get("Authorization", "").removeprefix("Bearer "))
        if repository not in self.hub.repositories or not is_known:
            return self._fail(404 if self.hub.token in (None, "") else 401, "RepoNotFound")
        if is_api:
            revision = "/".join(parts[5:]) or "main"
        elif repository in self.hub.gated:
            return self._fail(403, "GatedRepo")
        else:
            revision = parts[3]
        files = self.hub.files(repository, revision)
        if files is None:
            return self._fail(404, "RevisionNotFound")
        if is_api:
            return self._list(repository, files)
        name = "/".join(parts[4:])
        return self._send_file(name, files) if name in files else self._fail(404, "EntryNotFound")

    def _fail(self, status: int, code: str | None) -> None:
        self.send_response(status)
        if code is not None:
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", f"{code}, says the hub")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _list(self, repository: str, files: Files) -> None:
        siblings: list[dict[str, Any]] = []
        for name, content in files.items():
            etag = _etag(name, content)
            sibling: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": etag[:40]}
            if len(etag) == 64:
                sibling["lfs"] = {"sha256": etag, "size": len(content), "pointerSize": 130}
            siblings.append(sibling)
        body = json.dumps({"id": repository, "sha": commit_of(files), "siblings": siblings, "tags": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_file(self, name: str, files: Files) -> None:
        content = files[name]
        start = 0
        if asked := self.headers.get("Range"):
            start = int(asked.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if asked else 200)
        self.send_header("X-Repo-Commit", commit_of(files))
        self.send_header("ETag", f'"{_etag(name, content)}"')
        self.send_header("X-Linked-Etag", f'"{_etag(name, content)}"')
        self.send_header("X-Linked-Size", str(len(content)))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "HEAD":
            return
        hold = self.hub.hold_after
        try:
            self.wfile.write(content[start:][:hold])
            self.wfile.flush()
            if hold is not None:
                self.hub.release.wait(60)
                self.wfile.write(content[start:][hold:])
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
