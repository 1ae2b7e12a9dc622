"""Three ways to run the command line: in this process, as a process of its own, and on a terminal."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from gguf_files import write_tiny_llama
from typer.testing import CliRunner, Result

from paceline.cli.app import app

SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
from paceline.cli import main
main()
"""
PROGRAM = [sys.executable, "-c", SCRIPT]
PATIENCE = 120  # seconds after which a test gives up on a process that says nothing

Invoke = Callable[..., Result]


class Terminal:
    """A process whose standard streams are a terminal. `stdin` or `stdout` may be something else."""

    def __init__(self, arguments: Sequence[str], **streams: Any) -> None:
        self._master, slave = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            **{"stdin": slave, "stdout": slave, "stderr": slave, **streams},
            env={**environment, "TERM": "xterm"},
        )
        os.close(slave)
        self.shown = ""
        self._data = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.process:
            self.process.kill()
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def interrupt_to_the_end(self) -> int:
        """Press Ctrl-C until the process ends; the exit status. Line editing misses one that comes while it starts."""
        while True:
            self.interrupt()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                continue
            return self.finish()

    def wait_for(self, text: str, count: int = 1) -> None:
        """Read until `text` has been shown `count` times."""
        while self.shown.count(text) < count:
            assert self._read(), f"{text!r} was never shown, only {self.shown!r}"

    def finish(self) -> int:
        """Read to the end; the exit status."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE)
        assert ready, f"nothing came for {PATIENCE} s after {self.shown!r}"
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # how a terminal says that nobody writes to it any more
            return False
        self._data += data
        self.shown = self._data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@pytest.fixture
def invoke() -> Invoke:
    """Run in this process: `invoke("generate", "hi", input=b"…")`."""

    def run(*arguments: object, input: bytes | None = None) -> Result:  # noqa: A002 (the runner's own name for it)
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)

    return run


@pytest.fixture
def generate_json(invoke: Invoke) -> Callable[..., dict[str, Any]]:
    """Run `generate --json`, which must succeed, and return its object."""

    def run(*arguments: object) -> dict[str, Any]:
        result = invoke("generate", "--json", *arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        parsed: dict[str, Any] = json.loads(result.stdout)
        return parsed

    return run


@pytest.fixture
def spawn() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run as a process of its own, with pipes."""

    def run(*arguments: str | bytes | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*PROGRAM, *arguments], capture_output=True, timeout=PATIENCE, check=False, **options)

    return run


@pytest.fixture
def spawn_open() -> Callable[..., subprocess.Popen[bytes]]:
    """Start as a process of its own, with pipes on its outputs. Use it as a context manager."""

    def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Start on a terminal; what still runs at the end of the test is ended."""
    started: list[Terminal] = []

    def start(*arguments: object, **streams: Any) -> Terminal:
        started.append(Terminal([str(argument) for argument in arguments], **streams))
        return started[-1]

    yield start
    for one in started:
        one.__exit__(None, None, None)


@pytest.fixture(scope="session")
def long_llama_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with room for a lot. Its answers soon go round in circles, so that they never end by themselves."""
    path = tmp_path_factory.mktemp("models") / "long.gguf"
    write_tiny_llama(path, context_length=200_000)
    return path


@pytest.fixture(scope="session")
def plain_llama_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model without a chat template."""
    path = tmp_path_factory.mktemp("models") / "plain.gguf"
    write_tiny_llama(path, extra_metadata={"tokenizer.chat_template": None})
    return path
