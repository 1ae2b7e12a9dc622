"""What all fuzzing programs share: what counts as a finding, the bounds, and the start of libFuzzer through atheris.

Only `PacelineError` with a short message of one line may come out of whatever is tried, and no warnings but
`PacelineWarning`. Anything else ends the program with a traceback, and the input lies beside it for another look.
"""

import importlib
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["paceline"]):  # all that is to guide the search is imported here
    for _name in ("models", "models.chat.sandbox.interpreter", "models.tokenizer.folder", "models.tokenizer.gguf"):
        importlib.import_module(f"paceline.{_name}")
    from paceline.errors import PacelineError, PacelineWarning

_SPARE_BYTES = 768 << 20  # of address space, beyond what the process has at its start
_MAX_MESSAGE = 600  # characters, the path of the file included
_NO_MEMORY = "not enough memory"  # what the runtime makes of a MemoryError: for files this small a finding too


class FindingError(Exception):
    """What came out is not what may come out."""


def attempt(action: Callable[[], object]) -> bool:
    """Whether the action succeeded, where it may also fail in the one way that is allowed."""
    try:
        action()
    except PacelineError as error:
        check_message(str(error))
        return False
    return True


def check_message(message: str) -> None:
    if not message.isprintable() or not message or len(message) > _MAX_MESSAGE or _NO_MEMORY in message:
        raise FindingError(f"a message of {len(message)} characters that is no line to show: {message[:2000]!r}")


def fuzz(
    test: Callable[[bytes], None],
    seeds: Iterable[bytes],
    *,
    mutate: Callable[[bytes, int, int], bytes] | None = None,
) -> None:
    """Run libFuzzer with the options of the command line. `mutate` gets an input, a largest size and a seed."""
    warnings.simplefilter("error")
    warnings.simplefilter("always", PacelineWarning)
    warnings.showwarning = lambda message, *_: check_message(str(message))
    arguments = list(sys.argv)
    if not any(Path(argument).exists() for argument in arguments[1:]):  # an input that is given is to be run alone
        corpus = Path(tempfile.mkdtemp(prefix="paceline-fuzz-"))
        for index, seed in enumerate(seeds):
            (corpus / f"seed-{index}").write_bytes(seed)
        arguments.append(str(corpus))
    extra = {} if mutate is None else {"custom_mutator": mutate}
    atheris.Setup(arguments, test, **extra)
    _bound_memory()
    atheris.Fuzz()


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
