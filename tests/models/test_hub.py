"""Models of the Hugging Face hub, through its own client, from a stand-in on this machine."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hub_server import HubServer, commit_of

from paceline.errors import FetchError, ModelNotFoundError, PacelineError, UnsupportedModelError
from paceline.models import open_model, resolve

BIG, SMALL = bytes(range(256)) * 2000, b"small" * 100
GGUF = {"m-Q4_K_M.gguf": BIG, "m-Q8_0.gguf": SMALL, "mmproj-F16.gguf": SMALL, "README.md": b"Read me."}
SPLIT = {f"F16/m-F16-{number:05}-of-00003.gguf": SMALL + bytes([number]) for number in (1, 2, 3)}
TRANSFORMERS = {
    "config.json": b"{}",
    "tokenizer.json": b'{"version": "1.0"}',
    "model.safetensors": BIG,
    "pytorch_model.bin": BIG,
    "README.md": b"Read me.",
}
CHILD = "import sys; from paceline.models import resolve; print(resolve(sys.argv[1]))"


class Recorder:
    """A progress display that remembers, and may press Ctrl-C."""

    def __init__(self, on_update: Callable[[int], None] = lambda _: None) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.num_ended = 0
        self._on_update = on_update

    def begin(self, description: str, total: int | None) -> None:
        self.stages.append((description, total))

    def update(self, done: int) -> None:
        self._on_update(done)

    def end(self) -> None:
        self.num_ended += 1


@pytest.fixture
def repositories(hub: HubServer) -> HubServer:
    hub.repositories |= {"org/gguf": dict(GGUF), "org/hf": dict(TRANSFORMERS), "org/split": dict(SPLIT)}
    return hub


def failure(reference: str, kind: type[PacelineError] = FetchError) -> str:
    with pytest.raises(kind) as caught:
        resolve(reference)
    message = str(caught.value)
    assert "\n" not in message
    return message


def is_at_work(process_id: int) -> bool:
    """Whether a process runs; an ended one that nobody has collected does not."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_model_is_fetched_once(repositories: HubServer, hub_cache: Path) -> None:
    recorder = Recorder()
    path = resolve("org/gguf", progress=recorder)
    assert path == hub_cache / "models--org--gguf" / "snapshots" / commit_of(GGUF) / "m-Q4_K_M.gguf"
    assert path.read_bytes() == BIG
    assert (recorder.stages, recorder.num_ended) == ([("Fetching org/gguf", len(BIG))], 1)
    assert resolve("org/gguf:q4_k_m") == resolve("org/gguf/m-Q4_K_M.gguf") == path
    assert repositories.downloads() == ["/org/gguf/resolve/main/m-Q4_K_M.gguf"]
    assert resolve("org/gguf:Q8_0").read_bytes() == SMALL
    assert len(repositories.downloads()) == 2


def test_all_parts_come(repositories: HubServer) -> None:
    recorder = Recorder()
    path = resolve("org/split:f16", progress=recorder)
    assert path.name == "m-F16-00001-of-00003.gguf"
    assert {f"F16/{part.name}": part.read_bytes() for part in path.parent.iterdir()} == SPLIT
    assert recorder.stages == [("Fetching org/split:f16", sum(map(len, SPLIT.values())))]
    assert resolve("org/split/F16/m-F16-00002-of-00003.gguf") == path
    assert len(repositories.downloads()) == 3


@pytest.mark.usefixtures("repositories")
def test_a_transformers_model_is_a_folder_without_pickles() -> None:
    folder = resolve("org/hf")
    assert {path.name for path in folder.iterdir()} == {"config.json", "tokenizer.json", "model.safetensors"}
    assert (folder / "model.safetensors").read_bytes() == BIG


def test_it_opens(hub: HubServer, tiny_llama_path: Path) -> None:
    hub.repositories["org/tiny"] = {"tiny.gguf": tiny_llama_path.read_bytes()}
    with open_model("org/tiny") as model, open_model(tiny_llama_path) as local:
        assert model.config == local.config


def test_a_revision_is_a_tag_or_a_commit(repositories: HubServer) -> None:
    old = {"m-Q4_K_M.gguf": b"the old one"}
    repositories.tags["org/gguf", "v1"] = old
    commit = commit_of(old)
    assert resolve("org/gguf@v1").read_bytes() == b"the old one"
    assert resolve("org/gguf", revision="v1") == resolve(f"org/gguf@{commit}") == resolve(f"org/gguf:Q4_K_M@{commit}")
    assert resolve("org/gguf").read_bytes() == BIG
    assert "'org/gguf' has no revision 'v2'" in failure("org/gguf@v2", ModelNotFoundError)


def test_a_newer_file_comes_by_itself(repositories: HubServer) -> None:
    assert resolve("org/gguf:Q8_0").read_bytes() == SMALL
    repositories.repositories["org/gguf"]["m-Q8_0.gguf"] = b"a newer one"
    assert resolve("org/gguf:Q8_0").read_bytes() == b"a newer one"


def test_what_is_cached_needs_no_hub(repositories: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    references = ["org/gguf", f"org/gguf/m-Q4_K_M.gguf@{commit_of(GGUF)}", "org/hf"]
    fetched = [resolve(reference) for reference in references]
    with monkeypatch.context() as offline:
        offline.setenv("HF_HUB_OFFLINE", "1")
        repositories.requests.clear()
        assert [resolve(reference) for reference in references] == fetched
        assert repositories.requests == []
        message = failure("org/gguf:Q8_0", ModelNotFoundError)
        assert "'org/gguf' in the cache (the hub cannot be reached) has no Q8_0 model; there is 'Q4_K_M'" in message
        assert "org/split is not in its cache" in failure("org/split")
    with monkeypatch.context() as unplugged:
        unplugged.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        assert resolve("org/gguf") == fetched[0]
    repositories.status = 503
    assert resolve("org/gguf") == fetched[0]


def test_an_incomplete_cache_is_no_model(repositories: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = resolve("org/split")
    path.with_name("m-F16-00003-of-00003.gguf").unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "'F16/m-F16-00003-of-00003.gguf' is missing" in failure("org/split", ModelNotFoundError)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert resolve("org/split") == path
    assert path.with_name("m-F16-00003-of-00003.gguf").is_file()
    assert len(repositories.downloads()) == 3  # what was there is not fetched again


def test_a_file_that_was_cut_is_fetched_again(repositories: HubServer) -> None:
    path = resolve("org/gguf")
    os.truncate(path, 1000)
    assert resolve("org/gguf").read_bytes() == BIG
    assert len(repositories.downloads()) == 2


def test_private_and_gated_repositories_need_a_login(repositories: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    repositories.gated.add("org/gguf")
    message = failure("org/gguf")
    assert f"'org/gguf' is gated: accept its terms on {repositories.url}/org/gguf and log in with" in message
    repositories.gated.clear()
    repositories.token = "hf_secret"
    message = failure("org/gguf", ModelNotFoundError)
    assert "there is no 'org/gguf' on the Hugging Face hub, or it is private: check the name, or log in" in message
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert resolve("org/gguf").read_bytes() == BIG


@pytest.mark.usefixtures("repositories")
def test_what_is_not_there_is_refused() -> None:
    assert "there is no 'org/other' on the Hugging Face hub" in failure("org/other", ModelNotFoundError)
    assert "no Q2_K model; there is 'Q4_K_M', 'Q8_0'" in failure("org/gguf:Q2_K", ModelNotFoundError)
    assert "has no file 'm.gguf'" in failure("org/gguf/m.gguf", ModelNotFoundError)


def test_a_repository_without_a_model_is_refused(hub: HubServer) -> None:
    hub.repositories["org/pickles"] = {"config.json": b"{}", "pytorch_model.bin": BIG}
    assert "only weights in pickle files" in failure("org/pickles", UnsupportedModelError)
    assert hub.downloads() == []


@pytest.mark.usefixtures("hub_cache")
def test_no_connection_is_said() -> None:
    message = failure("org/gguf")
    assert message.startswith("the Hugging Face hub cannot be reached, and org/gguf is not in its cache (")
    assert message.endswith("check the network, HF_HUB_OFFLINE and HF_ENDPOINT, or give the path of a .gguf file")


def test_a_refusal_is_said(repositories: HubServer) -> None:
    repositories.status = 403
    assert "the Hugging Face hub refuses access to 'org/gguf'" in failure("org/gguf")
    repositories.status = 418
    message = failure("org/gguf")
    assert "org/gguf on the Hugging Face hub could not be read:" in message
    assert "418" in message


@pytest.mark.usefixtures("repositories")
def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "file"))
    message = failure("org/gguf")
    assert "cannot use the hub's cache" in message
    assert message.endswith("set HF_HUB_CACHE to a folder you can write")


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("import errno\nraise OSError(errno.ENOSPC, 'full')", "no space left to fetch org/gguf; free some or set HF_"),
        (
            "raise RuntimeError('we are closed\\nfor today')",
            "could not be read: 'RuntimeError: we are closed for today'",
        ),
        ("import os, sys\nprint('dying', file=sys.stderr, flush=True)\nos._exit(3)", "could not be read: 'dying'; try"),
        ("import os\nos._exit(3)", "could not be read: 'it gave no reason'; try again"),
    ],
)
@pytest.mark.usefixtures("hub_cache")
def test_a_failing_client_is_named(client: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "huggingface_hub.py").write_text(client)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert expected in failure("org/gguf")


def start(reference: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, reference], stdout=subprocess.PIPE, text=True, env=environment
    )


def workers(hub_cache: Path) -> list[int]:
    """The processes that have a file of the cache open."""
    found = []
    for links in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(str(hub_cache) in str(link.readlink()) for link in links.iterdir()):
                found.append(int(links.parent.name))
        except OSError:  # it has ended, or is not ours
            continue
    return found


def test_two_processes_at_once_download_once(repositories: HubServer) -> None:
    repositories.hold_after = 1000
    first, second = start("org/gguf"), start("org/gguf")
    try:
        wait_until(lambda: sum("HEAD /org/gguf" in request for request in repositories.requests) >= 2)
        repositories.hold_after = None
        repositories.release.set()
        outputs = [process.communicate(timeout=60)[0].strip() for process in (first, second)]
    finally:
        for process in (first, second):
            process.kill()
            process.wait()
    assert (first.returncode, second.returncode) == (0, 0)
    assert outputs[0] == outputs[1]
    assert Path(outputs[0]).read_bytes() == BIG
    assert len(repositories.downloads()) == 1


def test_an_interrupt_stops_the_download(repositories: HubServer, hub_cache: Path) -> None:
    def press_ctrl_c(done: int) -> None:
        if done:  # some of what the hub has sent, seen in the middle of a write perhaps
            assert done <= repositories.hold_after
            running.extend(workers(hub_cache))
            raise KeyboardInterrupt

    running: list[int] = []
    content = os.urandom(24 << 20)
    repositories.repositories["org/gguf"]["m-Q4_K_M.gguf"] = content
    repositories.hold_after = 22 << 20
    recorder = Recorder(press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        resolve("org/gguf", progress=recorder)
    assert recorder.num_ended == 1
    assert len(running) == 1
    assert not is_at_work(running[0])
    repositories.hold_after = None
    assert resolve("org/gguf").read_bytes() == content


def test_a_killed_process_takes_its_download_along(repositories: HubServer, hub_cache: Path) -> None:
    repositories.hold_after = 100_000
    with start("org/gguf") as process:
        wait_until(lambda: bool(workers(hub_cache)))
        (running,) = workers(hub_cache)
        process.kill()
    wait_until(lambda: not is_at_work(running))
    repositories.hold_after = None
    assert resolve("org/gguf").read_bytes() == BIG
