"""Interrupts that strike between two chosen bytecodes."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest


@pytest.fixture(scope="session")
def interrupted() -> Callable[[Callable[[], object], int], bool]:
    return _interrupted


def _interrupted(verb: Callable[[], object], num_opcodes: int) -> bool:
    """Whether `verb` was interrupted, after so many bytecodes of the cache's own code."""
    num_left = num_opcodes

    def trace(frame: FrameType, event: str, argument: object) -> object:  # noqa: ARG001
        nonlocal num_left
        if "paceline/cache/" not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            num_left -= 1
            if num_left < 0:
                raise KeyboardInterrupt
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        verb()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(previous)
    return False
