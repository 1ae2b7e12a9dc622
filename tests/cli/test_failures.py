"""Bad input to every command: one line that names what was wrong, exit status 1 or 2, a traceback only on request."""

import json
import os
import resource
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from gguf_files import write_tiny_llama

from paceline.cli.failures import exit_status
from paceline.errors import PacelineWarning

Invoke = Callable[..., Any]  # see conftest.py
LOADING = [("generate", "hi"), ("chat",), ("profile",), ("demo",)]


def check_line(result: Any, status: int, *words: str) -> None:
    """One line on standard error, in which all of `words` occur, and nothing on standard output."""
    assert (result.exit_code, result.stdout) == (status, ""), result.stderr
    assert result.stderr.startswith("paceline: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert len(result.stderr) < 500
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize("command", LOADING, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smolm2", ("unknown model", "did you mean 'smollm2'")),
        ("missing.gguf", ("no file", "missing.gguf")),
        (".", ("holds 5 models", "give the path of one")),
        ("text.gguf", ("text.gguf", "not a GGUF file")),
        ("empty.gguf", ("empty.gguf", "empty")),
        ("cut.gguf", ("cut.gguf", "end")),
        ("\udcff.gguf", ("no file",)),
        ("zero.gguf", ("zero.gguf", "llama.embedding_length is 0")),
        ("", ("name is empty", "give the path")),
        ("y" * 5000, ("too long", "y…y")),
        ("z.gguf", ("architecture 'zzz", "z…z", "choose another model")),
    ],
)
def test_models_that_cannot_be_loaded(
    invoke: Invoke,
    bad_files: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Sequence[str],
    name: str,
    words: Sequence[str],
) -> None:
    monkeypatch.chdir(bad_files)
    check_line(invoke(*command, "-m", name), 1, *words)


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory: pytest.TempPathFactory, tiny_llama_path: Path) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "text.gguf").write_text("this is no model\n")
    (folder / "empty.gguf").touch()
    write_tiny_llama(folder / "z.gguf", extra_metadata={"general.architecture": "z" * 5000})
    write_tiny_llama(folder / "zero.gguf", extra_metadata={"llama.embedding_length": 0})
    data = tiny_llama_path.read_bytes()
    (folder / "cut.gguf").write_bytes(data[: len(data) // 2])
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-tokens", "0"), ("--max-tokens is 0",)),
        (("--max-tokens", "-5"), ("--max-tokens is -5",)),
        (("-k", "0"), ("--num-speculative-tokens is 0", "1 to 15")),
        (("-k", "16"), ("--num-speculative-tokens is 16",)),
        (("-k", "1" * 40, "--proposer", "ngram"), ("--num-speculative-tokens",)),
        (("--threads", "0"), ("--threads is 0",)),
        (("--threads", "-1"), ("--threads is -1",)),
        (("--threads", "1" * 40), ("--threads",)),
        (("--max-model-len", "0"), ("--max-model-len is 0", "1 to 256")),
        (("--max-model-len", "257"), ("257", "1 to 256")),
        (("--max-model-len", "1" * 40), ("1 to 256",)),
    ],
    ids=lambda value: " ".join(value)[:30],
)
@pytest.mark.parametrize("command", [("generate", "hi"), ("chat",)], ids=lambda command: command[0])
def test_numbers_out_of_range(
    invoke: Invoke, tiny_llama_path: Path, command: Sequence[str], arguments: Sequence[str], words: Sequence[str]
) -> None:
    check_line(invoke(*command, "-m", tiny_llama_path, *arguments), 2, *words)


@pytest.mark.parametrize(
    ("prompt", "data", "words"),
    [
        ("", b"", ("prompt is empty",)),
        ("-", b"", ("prompt is empty",)),
        ("-", b"\n", ("prompt is empty",)),
        ("-", b"good \xff bad", ("standard input is not valid UTF-8", "0xff at offset 5")),
        ("good \udcff bad", b"", ("prompt is not valid UTF-8",)),
        ("?" * 300, b"", ("300 tokens", "256")),
    ],
)
def test_prompts_that_cannot_be_answered(
    invoke: Invoke, tiny_llama_path: Path, prompt: str, data: bytes, words: Sequence[str]
) -> None:
    check_line(invoke("generate", "--no-chat", "-m", tiny_llama_path, prompt, input=data), 2, *words)
    check_line(invoke("generate", "--no-chat", "--json", "-m", tiny_llama_path, prompt, input=data), 2, *words)


def test_arguments_that_are_not_text(spawn: Invoke, tiny_llama_path: Path) -> None:
    result = spawn("generate", "-m", tiny_llama_path, b"good \xff bad")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"paceline: the prompt is not valid UTF-8")


def test_chat_needs_a_template(invoke: Invoke, plain_llama_path: Path) -> None:
    check_line(invoke("chat", "-m", plain_llama_path), 2, "no chat template")
    check_line(invoke("generate", "--chat", "-m", plain_llama_path, "hi"), 2, "no chat template")


@pytest.mark.parametrize(
    "arguments",
    [
        ("generate",),
        ("generate", "hi", "--proposer", "psychic"),
        ("generate", "hi", "--max-tokens", "many"),
        ("generate", "hi", "--surprise"),
        ("models", "--json", "extra"),
        ("profile", "--context", "long"),
        ("fly",),
    ],
)
def test_wrong_usage(invoke: Invoke, arguments: Sequence[str]) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert "Traceback" not in result.stderr


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def test_not_enough_memory(spawn: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "roomy.gguf"
    write_tiny_llama(path, context_length=1 << 24)  # its cache would take 4 GiB
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # its threads would take address space of their own
    result = spawn("generate", "-m", path, "--threads", "1", "hi", preexec_fn=limit_memory)
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"not enough memory" in result.stderr
    assert b"a smaller --max-model-len" in result.stderr
    assert result.stderr.count(b"\n") == 1


def test_a_full_disk(spawn_into_full: Callable[..., tuple[int, bytes]], tiny_llama_path: Path) -> None:
    status, errors = spawn_into_full("generate", "-m", str(tiny_llama_path), "hi")
    assert status == 1
    assert errors.startswith(b"paceline: no space left on the device for standard output")
    assert b"Traceback" not in errors


@pytest.mark.parametrize("argument", ["--help", "--version", "models"])
def test_a_full_disk_for_short_commands(spawn_into_full: Callable[..., tuple[int, bytes]], argument: str) -> None:
    status, errors = spawn_into_full(argument)
    assert (status, errors.count(b"\n")) == (1, 1)
    assert errors.startswith(b"paceline: no space left on the device for standard output")
    status, errors = spawn_into_full("--debug", argument)
    assert b"Traceback" in errors


@pytest.mark.parametrize("arguments", [("models",), ("--help",), ("generate", "hi")])
def test_a_closed_output_takes_nothing(spawn: Invoke, tiny_llama_path: Path, arguments: Sequence[str]) -> None:
    model = ("-m", str(tiny_llama_path)) if arguments[0] == "generate" else ()
    result = spawn(*arguments, *model, preexec_fn=lambda: os.close(1))
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_closed_errors_leave_the_answer(spawn: Invoke, tiny_llama_path: Path) -> None:
    arguments = ("generate", "hi", "-m", tiny_llama_path)
    result = spawn(*arguments, preexec_fn=lambda: os.close(2))
    assert (result.returncode, result.stdout) == (0, spawn(*arguments).stdout)
    assert result.stdout
    assert spawn("generate", "hi", "-m", "missing", preexec_fn=lambda: os.close(2)).returncode == 1


@pytest.mark.parametrize("arguments", [("generate", "-"), ("chat",)])
def test_a_closed_input_is_named(spawn: Invoke, tiny_llama_path: Path, arguments: Sequence[str]) -> None:
    result = spawn(*arguments, "-m", tiny_llama_path, preexec_fn=lambda: os.close(0))
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"paceline: standard input is closed")


def test_without_a_locale_arguments_are_utf8(
    spawn: Invoke, tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("generate", "-m", tiny_llama_path, "--json", "--", "é".encode())
    expected = spawn(*arguments)
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    result = spawn(*arguments)
    assert (result.returncode, result.stderr) == (0, b"")
    assert json.loads(result.stdout)["token_ids"] == json.loads(expected.stdout)["token_ids"]
    assert "there is no file 'ünope.gguf'" in spawn("generate", "hi", "-m", "ünope.gguf".encode()).stderr.decode()


@pytest.mark.parametrize("folder", ["x" * 300, "~nouser/x"])
def test_a_cache_that_cannot_be(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("PACELINE_CACHE", folder)
    check_line(invoke("models"), 1, "PACELINE_CACHE")
    check_line(invoke("generate", "hi"), 1, "PACELINE_CACHE")


def test_a_template_that_writes_nothing(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "silent.gguf"
    write_tiny_llama(path, extra_metadata={"tokenizer.chat_template": "{# nothing #}"})
    check_line(invoke("generate", "hi", "-m", path), 1, "chat template wrote nothing", "--no-chat")


@pytest.fixture
def spawn_into_full(spawn: Invoke) -> Callable[..., tuple[int, bytes]]:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")

    def run(*arguments: str) -> tuple[int, bytes]:
        with full.open("wb") as output:
            shell = spawn(*arguments, preexec_fn=lambda: os.dup2(output.fileno(), 1))
        return shell.returncode, shell.stderr

    return run


def test_only_parameters_become_options(invoke: Invoke) -> None:
    check_line(invoke("generate", "hi", "-m", "max_tokens"), 1, "unknown model 'max_tokens'")
    check_line(invoke("generate", "hi", "-m", "a/max_tokens b.gguf"), 1, "'a/max_tokens b.gguf'")


@pytest.mark.parametrize("arguments", [("--debug", "generate"), ("generate", "--debug")])
def test_debug_shows_the_traceback(spawn: Invoke, arguments: Sequence[str]) -> None:
    result = spawn(*arguments, "-m", "missing.gguf", "hi")
    assert result.returncode == 1
    assert result.stderr.startswith(b"Traceback")
    assert b"ModelNotFoundError" in result.stderr


def test_what_nobody_expected(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("one\nover zero")

    monkeypatch.setattr("paceline.cli.models.show", fail)
    check_line(invoke("models"), 1, "unexpected ZeroDivisionError: one over zero", "--debug")


def test_warnings_of_the_package_are_lines_shown_once(capfd: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        for _ in range(2):
            warnings.warn("model.gguf: something\nis assumed", PacelineWarning, stacklevel=1)
        with pytest.raises(DeprecationWarning, match="another"):
            warnings.warn("another", DeprecationWarning, stacklevel=1)

    assert exit_status(program, debug=False) == 0
    assert capfd.readouterr().err == "paceline: model.gguf: something is assumed\n"
