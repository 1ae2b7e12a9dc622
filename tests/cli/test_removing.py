"""`paceline models remove` in caches that hold more than what is to go: only what was named goes."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Invoke = Callable[..., Any]  # see conftest.py
COMMIT, OLDER = "a" * 40, "b" * 40
TOKENIZERS = "tokenizers"


@pytest.fixture
def cache(tmp_path: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's empty cache, with an empty one of our own in `paceline` of the same folder as its parent."""
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "paceline"))
    hub_cache.mkdir(parents=True)
    return hub_cache


def put(folder: Path, name: str, content: bytes, commit: str = COMMIT, ref: str = "main") -> Path:
    """Add a file to a repository's folder as the hub's client does; its blob."""
    blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
    entry = folder / "snapshots" / commit / name
    for path in (blob, entry, folder / "refs" / ref):
        path.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    entry.symlink_to(os.path.relpath(blob, entry.parent))
    (folder / "refs" / ref).write_text(commit)
    return blob


def contents(folder: Path) -> dict[str, bytes]:
    """What can be read below a folder, through links too."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(invoke: Invoke) -> set[str]:
    return {model["name"] for model in json.loads(invoke("models", "--json").stdout) if model["is_present"]}


def removed(invoke: Invoke, reference: str) -> str:
    """Remove it; the last line on standard output and what was shown before."""
    result = invoke("models", "remove", reference, "--yes")
    assert result.exit_code == 0, result.stderr
    return str(result.stdout + result.stderr)


def refused(invoke: Invoke, reference: str) -> str:
    result = invoke("models", "remove", reference, "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    return str(result.stderr.splitlines()[-1])


def test_a_commit_is_of_one_repository(invoke: Invoke, cache: Path) -> None:
    folders = [cache / name for name in ("models--org--a", "models--org--b", "datasets--org--a", "models--Org--A")]
    for folder in folders:
        put(folder, "m-Q8_0.gguf", b"the same")
    before = [contents(folder) for folder in folders]
    assert "8 bytes are free again" in removed(invoke, "org/a")
    assert not folders[0].exists()
    assert [contents(folder) for folder in folders[1:]] == before[1:]
    assert names(invoke) == {"org/b/m-Q8_0.gguf", "Org/A/m-Q8_0.gguf"}


def test_beside_a_gguf_file_everything_stays(invoke: Invoke, cache: Path) -> None:
    folder = cache / "models--org--mixed"
    for name in ("config.json", "tokenizer.json", "model.safetensors", "README.md", "mmproj-F16.gguf"):
        put(folder, name, name.encode())
    before = contents(folder)
    put(folder, "sub/m-Q8_0.gguf", b"GGUF")
    shown = removed(invoke, "org/mixed")
    assert "4 bytes are free again" in shown
    assert "1 file: m-Q8_0.gguf" in shown
    assert contents(folder) == before
    assert not (folder / "snapshots" / COMMIT / "sub").exists()


def test_with_safetensors_only_its_own_files_go(invoke: Invoke, cache: Path) -> None:
    folder = cache / "models--org--hf"
    put(folder, "README.md", b"Read me.")
    put(folder, "pytorch_model.bin", b"pickle")
    before = contents(folder)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        put(folder, name, name.encode())
    shown = removed(invoke, "org/hf")
    assert "3 files: config.json, tokenizer.json, model.safetensors" in shown
    assert f"{len('config.jsontokenizer.jsonmodel.safetensors')} bytes are free again" in shown
    assert contents(folder) == before
    assert names(invoke) == set()


def test_what_another_revision_uses_stays(invoke: Invoke, cache: Path) -> None:
    folder = cache / "models--org--a"
    for commit, ref in ((OLDER, "v1"), (COMMIT, "main")):
        put(folder, "m-Q8_0.gguf", b"in both", commit, ref)
    put(folder, "old-Q4_0.gguf", b"in one", OLDER, "v1")
    assert "6 bytes are free again" in removed(invoke, "org/a@v1")
    assert [path.name for path in (folder / "refs").iterdir()] == ["main"]
    assert [path.name for path in (folder / "snapshots").iterdir()] == [COMMIT]
    assert names(invoke) == {"org/a/m-Q8_0.gguf"}
    assert invoke("models", "verify", "org/a").exit_code == 0


def test_a_link_to_elsewhere_is_not_followed(invoke: Invoke, cache: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"mine")
    folder = cache / "models--org--a"
    put(folder, "m-Q8_0.gguf", b"fetched")
    (folder / "snapshots" / COMMIT / "linked-Q4_0.gguf").symlink_to(mine)
    other = put(cache / "models--org--b", "m-Q8_0.gguf", b"another's")
    (folder / "snapshots" / COMMIT / "other-F16.gguf").symlink_to(other)
    assert "7 bytes are free again" in removed(invoke, "org/a")
    assert not folder.exists()
    assert mine.read_bytes() == b"mine"
    assert names(invoke) == {"org/b/m-Q8_0.gguf"}


def test_a_blob_that_is_a_link_frees_nothing(invoke: Invoke, cache: Path) -> None:
    folder, stored = cache / "models--org--a", cache / "blobs" / "0f" / ("0f" * 32)
    blob = put(folder, "m-Q8_0.gguf", b"shared")
    stored.parent.mkdir(parents=True)
    (cache / "blobs" / ".huggingface-shared-blobs").write_text("1\n")
    blob.rename(stored)
    blob.symlink_to(os.path.relpath(stored, blob.parent))
    assert "\n0 bytes are free again" in f"\n{removed(invoke, 'org/a')}"
    assert not folder.exists()
    assert stored.read_bytes() == b"shared"


def test_a_blob_that_another_repository_uses_stays(invoke: Invoke, cache: Path) -> None:
    blob = put(cache / "models--org--a", "m-Q8_0.gguf", b"used twice")
    other = put(cache / "models--org--b", "m-Q8_0.gguf", b"used twice")
    other.unlink()
    other.symlink_to(blob)
    assert "\n0 bytes are free again" in f"\n{removed(invoke, 'org/a')}"
    assert names(invoke) == {"org/b/m-Q8_0.gguf"}
    assert other.read_bytes() == b"used twice"


@pytest.mark.parametrize("part", [".", "blobs", "refs", "snapshots", f"snapshots/{COMMIT}", f"snapshots/{COMMIT}/sub"])
def test_a_folder_that_is_elsewhere_is_left_alone(invoke: Invoke, cache: Path, tmp_path: Path, part: str) -> None:
    folder = cache / "models--org--a"
    put(folder, "sub/m-Q8_0.gguf", b"GGUF")
    copied = folder / "snapshots" / COMMIT / "sub" / "copied-Q4_0.gguf"
    copied.write_bytes(b"no link, and so at hand")
    moved, elsewhere = folder / part, tmp_path / "elsewhere"
    moved.rename(elsewhere)
    (folder if part == "." else moved).symlink_to(elsewhere)
    before = contents(elsewhere)
    result = invoke("models", "remove", "org/a", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert contents(elsewhere) == before


def test_why_a_folder_is_left_alone(invoke: Invoke, cache: Path, tmp_path: Path) -> None:
    put(cache / "models--org--a", "m-Q8_0.gguf", b"GGUF")
    (cache / "models--org--a").rename(tmp_path / "elsewhere")
    (cache / "models--org--a").symlink_to(tmp_path / "elsewhere")
    assert "models--org--a' is a link to elsewhere; remove that yourself" in refused(invoke, "org/a")


def test_a_file_without_a_blob_goes(invoke: Invoke, cache: Path) -> None:
    folder = cache / "models--org--a"
    put(folder, "m-Q8_0.gguf", b"GGUF").unlink()
    entry = folder / "snapshots" / COMMIT / "m-Q8_0.gguf"
    entry.unlink()
    entry.write_bytes(b"copied")
    assert "6 bytes are free again" in removed(invoke, "org/a")
    assert not folder.exists()


def test_an_unfinished_download_stays(invoke: Invoke, cache: Path) -> None:
    folder = cache / "models--org--a"
    unfinished = put(folder, "m-Q8_0.gguf", b"GGUF").with_name("0f.incomplete")
    unfinished.write_bytes(b"half of it")
    removed(invoke, "org/a")
    assert contents(folder) == {"blobs/0f.incomplete": b"half of it"}
    assert not (folder / "snapshots" / COMMIT).exists()


def test_what_becomes_free_is_said_before(terminal: Callable[..., Any], cache: Path) -> None:
    for commit, ref in ((OLDER, "v1"), (COMMIT, "main")):
        put(cache / "models--org--a", "m-Q8_0.gguf", b"in both", commit, ref)
    before = contents(cache)
    asked = terminal("models", "remove", "org/a@v1", stdout=subprocess.PIPE)
    asked.wait_for(
        "Remove this, freeing 0 bytes, the rest is used elsewhere too, from a cache that other programs share?"
    )
    asked.type("n\n")
    assert asked.finish() == 1
    assert contents(cache) == before


@pytest.mark.parametrize("revision", [COMMIT, "main", "v1"])
def test_each_name_of_a_revision_finds_it(invoke: Invoke, cache: Path, revision: str) -> None:
    for ref in ("main", "v1"):
        folder = cache / "models--org--a"
        (folder / "snapshots").mkdir(parents=True, exist_ok=True)
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / ref).write_text(COMMIT)
    put(folder, "m-Q8_0.gguf", b"GGUF")
    put(folder, "old-Q8_0.gguf", b"old", OLDER, "v0")
    assert "org/a/m-Q8_0.gguf" in invoke("models", "verify", f"org/a:Q8_0@{revision}").stdout
    removed(invoke, f"org/a@{revision}")
    assert names(invoke) == {"org/a/old-Q8_0.gguf@v0"}
    assert f"'org/a@{revision}' is not in the cache" in refused(invoke, f"org/a@{revision}")


def test_only_built_tokenizers_go(invoke: Invoke, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "paceline" / TOKENIZERS
    (folder / "sub").mkdir(parents=True)
    foreign = [folder / "notes.json", folder / "sub" / f"{64 * 'b'}.1.json", folder / f"{64 * 'c'}.json"]
    for path in foreign:
        path.write_bytes(b"mine")
    (folder / f"{64 * 'd'}.1.json").symlink_to(foreign[0])
    before = contents(folder)
    assert TOKENIZERS not in names(invoke)
    built = folder / f"{64 * 'a'}.1.json"
    built.write_bytes(b"built")
    shown = removed(invoke, TOKENIZERS)
    assert "5 bytes are free again" in shown
    assert f"1 file: {built.name}\n" in shown
    assert contents(folder) == before
    assert cache.is_dir()


@pytest.mark.usefixtures("cache")
def test_an_empty_tokenizers_folder_goes(invoke: Invoke, tmp_path: Path) -> None:
    built = tmp_path / "paceline" / TOKENIZERS / f"{64 * 'a'}.1.json"
    built.parent.mkdir(parents=True)
    built.write_bytes(b"built")
    removed(invoke, TOKENIZERS)
    assert not built.parent.exists()


@pytest.mark.usefixtures("cache")
def test_a_path_has_nothing_to_verify(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("models", "verify", tmp_path)
    assert result.exit_code == 2
    assert "is a file or folder of your own, not in a cache; it has no hash to check" in result.stderr
