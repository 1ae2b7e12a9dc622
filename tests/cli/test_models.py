"""`paceline models`: what is cached, whether it is intact, and how it goes."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_server import HubServer, commit_of, serve_hub

from paceline.models import ALIASES, resolve

Invoke = Callable[..., Any]  # see conftest.py
FIELDS = ["name", "source", "description", "path", "num_bytes", "is_present", "is_verified"]
MIB = 2**20
GGUF = {"m-Q4_K_M.gguf": bytes(3 * MIB), "m-Q8_0.gguf": bytes(range(256)) * 8192}
SPLIT = {f"s-0000{number}-of-00002.gguf": bytes([number]) * MIB for number in (1, 2)}
TRANSFORMERS = {"config.json": b"{}", "tokenizer.json": b"[]", "model.safetensors": bytes(4 * MIB)}


@pytest.fixture
def empty_cache(tmp_path: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "paceline"))
    return hub_cache.parent.parent / "paceline"


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the hub's client made of its cache; not to be changed."""
    folder = tmp_path_factory.mktemp("fetched")
    with serve_hub() as hub, pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(folder), "NO_PROXY": "127.0.0.1"}.items():
            monkeypatch.setenv(name, value)
        hub.repositories |= {"org/gguf": GGUF, "org/split": SPLIT, "org/hf": TRANSFORMERS}
        for reference in ("org/gguf:Q4_K_M", "org/gguf:Q8_0", "org/split", "org/hf"):
            resolve(reference)
    return folder


@pytest.fixture
def full(fetched: Path, hub_cache: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of some models of the hub and of built tokenizers; no hub to fetch any again. Returns the hub's cache."""
    shutil.copytree(fetched, hub_cache, symlinks=True)
    (empty_cache / "tokenizers").mkdir(parents=True)
    (empty_cache / "tokenizers" / f"{64 * 'a'}.1.json").write_bytes(bytes(2 * MIB))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return hub_cache


def listed(invoke: Invoke, *arguments: str) -> dict[str, dict[str, Any]]:
    result = invoke("models", *arguments)
    assert result.stderr == ""
    return {model["name"]: model for model in json.loads(result.stdout)}


def size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("arguments", [(), ("--verify",), ("verify",), ("verify", "smollm2")])
def test_what_is_not_there(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    result = invoke("models", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "smollm2  SmolLM2-135M-Instruct" in result.stdout
    assert "not fetched yet" in result.stdout


@pytest.mark.usefixtures("smollm2_path", "hub_cache")
def test_what_is_there(invoke: Invoke) -> None:
    model = listed(invoke, "--json")["smollm2"]
    assert list(model) == FIELDS
    assert (model["source"], model["is_present"], model["is_verified"]) == ("alias", True, None)
    assert listed(invoke, "--json", "--verify")["smollm2"]["is_verified"] is True
    assert listed(invoke, "verify", "smollm2", "--json")["smollm2"]["is_verified"] is True
    assert "hash verified" in invoke("models", "verify", "smollm2").stdout


@pytest.mark.parametrize("arguments", [("--verify",), ("verify",), ("--verify", "--json"), ("verify", "--json")])
def test_what_is_damaged(invoke: Invoke, empty_cache: Path, arguments: tuple[str, ...]) -> None:
    path = ALIASES["smollm2"].cached_path()
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(ALIASES["smollm2"].num_bytes)
    result = invoke("models", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"paceline: {empty_cache}")
    assert "is not the expected file; it will be fetched again" in result.stderr
    assert ("WRONG HASH" in result.stdout) or not json.loads(result.stdout)[0]["is_verified"]


def test_the_models_of_the_hub(invoke: Invoke, full: Path) -> None:
    models = listed(invoke, "--json")
    sizes = {name: model["num_bytes"] for name, model in models.items() if model["is_present"]}
    assert sizes == {
        "org/gguf/m-Q4_K_M.gguf": 3 * MIB,
        "org/gguf/m-Q8_0.gguf": 2 * MIB,
        "org/hf": 4 * MIB + 4,
        "org/split/s-00001-of-00002.gguf": 2 * MIB,
        "tokenizers": 2 * MIB,
    }
    assert models["org/hf"]["path"] == str(full / "models--org--hf" / "snapshots" / commit_of(TRANSFORMERS))
    for name in sizes:
        if name != "tokenizers":  # what is listed can be typed
            assert str(resolve(name)) == models[name]["path"]
    verified = listed(invoke, "verify", "--json")
    states = {name: model["is_verified"] for name, model in verified.items() if model["is_present"]}
    assert states == {**dict.fromkeys(sizes, True), "tokenizers": None}


def test_some_of_the_hub(invoke: Invoke, full: Path) -> None:
    assert list(listed(invoke, "verify", "org/gguf", "--json")) == ["org/gguf/m-Q4_K_M.gguf", "org/gguf/m-Q8_0.gguf"]
    assert list(listed(invoke, "verify", "org/gguf:q8_0", "--json")) == ["org/gguf/m-Q8_0.gguf"]
    result = invoke("models", "verify", "org/gguf:Q2_K")
    assert result.exit_code == 1
    assert "'org/gguf:Q2_K' is not in the cache; `paceline models` lists what is" in result.stderr
    assert full.is_dir()


def test_what_is_damaged_on_the_hubs_side(invoke: Invoke, full: Path) -> None:
    for path in (*full.rglob("s-00002-of-00002.gguf"), *full.rglob("config.json")):
        path.write_bytes(bytes(path.stat().st_size))
    result = invoke("models", "verify", "--json")
    assert result.exit_code == 1
    wrong = [model["name"] for model in json.loads(result.stdout) if model["is_verified"] is False]
    assert wrong == ["org/hf", "org/split/s-00001-of-00002.gguf"]
    assert "remove it with `paceline models remove org/hf` to fetch it again" in result.stderr


def test_what_is_incomplete(invoke: Invoke, full: Path) -> None:
    next(full.rglob("s-00001-of-00002.gguf")).unlink()
    model = listed(invoke, "--json")["org/split/s-00001-of-00002.gguf"]
    assert (model["is_present"], model["num_bytes"]) == (False, MIB)
    assert "1 of 2 files missing" in invoke("models").stdout


def test_an_older_revision_has_its_name(hub: HubServer, empty_cache: Path, invoke: Invoke) -> None:
    hub.repositories["org/gguf"] = dict(SPLIT)
    hub.tags["org/gguf", "v1"] = dict(GGUF)
    hub.tags["org/gguf", "gone"] = {"old.gguf": b"old"}
    commit = commit_of({"old.gguf": b"old"})
    for reference in ("org/gguf", "org/gguf@v1", f"org/gguf@{commit}"):
        resolve(reference)
    names = list(listed(invoke, "verify", "org/gguf", "--json"))
    expected = ["org/gguf/s-00001-of-00002.gguf", "org/gguf/m-Q4_K_M.gguf@v1", f"org/gguf/old.gguf@{commit}"]
    assert sorted(names) == sorted(expected)
    assert list(listed(invoke, "verify", "org/gguf@v1", "--json")) == ["org/gguf/m-Q4_K_M.gguf@v1"]
    assert not empty_cache.exists()


@pytest.mark.parametrize(
    ("reference", "freed", "gone"),
    [
        ("org/gguf:Q8_0", 2, {"org/gguf/m-Q8_0.gguf"}),
        ("org/gguf", 5, {"org/gguf/m-Q8_0.gguf", "org/gguf/m-Q4_K_M.gguf"}),
        ("org/hf", 4, {"org/hf"}),
        ("org/split/s-00001-of-00002.gguf", 2, {"org/split/s-00001-of-00002.gguf"}),
        ("tokenizers", 2, {"tokenizers"}),
    ],
)
def test_removing(invoke: Invoke, full: Path, reference: str, freed: int, gone: set[str]) -> None:
    before, names = size(full.parent.parent), set(listed(invoke, "--json"))
    result = invoke("models", "remove", reference, "--yes")
    assert (result.exit_code, result.stdout) == (0, f"{freed} MiB are free again\n")
    assert before - size(full.parent.parent) >= freed * MIB
    assert names - set(listed(invoke, "--json")) == gone
    assert all(model["is_verified"] in (True, None) for model in listed(invoke, "verify", "--json").values())
    result = invoke("models", "remove", reference, "--yes")
    assert result.exit_code == 1
    assert "is not in the cache" in result.stderr


def test_what_another_revision_shares_stays(hub: HubServer, empty_cache: Path, invoke: Invoke) -> None:
    hub.repositories["org/gguf"] = dict(GGUF)
    hub.tags["org/gguf", "v1"] = {**GGUF, "other-F16.gguf": b"other"}
    for reference in ("org/gguf", "org/gguf@v1", "org/gguf:F16@v1"):
        resolve(reference)
    result = invoke("models", "remove", "org/gguf:Q4_K_M@v1", "--yes")
    assert (result.exit_code, result.stdout) == (0, "0 bytes are free again\n")
    left = listed(invoke, "verify", "org/gguf", "--json")
    assert {name: model["is_verified"] for name, model in left.items()} == {
        "org/gguf/m-Q4_K_M.gguf": True,
        "org/gguf/other-F16.gguf@v1": True,
    }
    assert not empty_cache.exists()


def test_removing_an_alias(invoke: Invoke, empty_cache: Path) -> None:
    path = ALIASES["smollm2"].cached_path()
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(ALIASES["smollm2"].num_bytes)
    result = invoke("models", "remove", "smollm2", "--yes")
    assert (result.exit_code, result.stdout) == (0, "94 MiB are free again\n")
    assert not path.exists()
    result = invoke("models", "remove", "smollm2", "--yes")
    assert result.exit_code == 1
    assert "smollm2 is not in the cache; there is nothing to remove" in result.stderr
    assert empty_cache.is_dir()


@pytest.mark.usefixtures("empty_cache")
def test_what_is_not_ours_is_left_alone(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"mine")
    result = invoke("models", "remove", tmp_path / "mine.gguf", "--yes")
    assert result.exit_code == 2
    assert "is a file or folder of your own, not in a cache; it is left alone" in result.stderr
    assert (tmp_path / "mine.gguf").is_file()
    assert invoke("models", "remove", "nonsense", "--yes").exit_code == 1


def test_nothing_is_removed_unasked(invoke: Invoke, full: Path) -> None:
    result = invoke("models", "remove", "org/hf")
    assert result.exit_code == 2
    assert "standard input is not a terminal; give --yes to remove this" in result.stderr
    assert "org/hf" in listed(invoke, "--json")
    assert full.is_dir()


@pytest.mark.usefixtures("full")
def test_a_terminal_is_asked(terminal: Callable[..., Any], invoke: Invoke) -> None:
    for answer, status, is_there in (("n", 1, True), ("y", 0, False)):
        asked = terminal("models", "remove", "org/gguf:Q8_0", stdout=subprocess.PIPE)
        asked.wait_for("Remove this, 2 MiB, from a cache that other programs share? [y/N]")
        asked.type(f"{answer}\n")
        assert asked.finish() == status
        assert ("org/gguf/m-Q8_0.gguf" in listed(invoke, "--json")) is is_there


@pytest.mark.usefixtures("empty_cache")
def test_options_in_front_of_a_command_are_refused(invoke: Invoke) -> None:
    result = invoke("models", "--json", "verify")
    assert result.exit_code == 2
    assert "options of `models verify` go behind it" in result.stderr
