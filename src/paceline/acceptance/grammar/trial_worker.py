"""A program, no module: compiles a grammar in a process of its own, so that what it would cost is known before the
engine's process pays for it. The library bounds most of its work, but not all: intersections of patterns double it with
each, and a kilobyte of schema can take minutes and gigabytes.

Reads one JSON object {grammar, is_gbnf, limits, seconds, num_bytes} and writes one: {grammar} in the library's own
syntax, or {error}. The system ends it where it needs more than `seconds` of processor time or `num_bytes` of memory.
"""

import json
import os
import resource
import sys
from typing import Any


def main() -> None:
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is no answer
    limit(resource.RLIMIT_CPU, request["seconds"])
    limit(resource.RLIMIT_AS, request["num_bytes"])
    limit(resource.RLIMIT_CORE, 0)
    print(json.dumps(answer(request["grammar"], request["is_gbnf"], request["limits"])), file=answers, flush=True)
    os._exit(0)  # nothing to tidy up, and some of it is large


def limit(kind: int, most: int) -> None:
    """Lower a limit of this process; one that is lower already stays."""
    _, highest = resource.getrlimit(kind)
    most = most if highest == resource.RLIM_INFINITY else min(most, highest)
    resource.setrlimit(kind, (most, most))


def answer(grammar: str, is_gbnf: bool, limits: dict[str, Any]) -> dict[str, str]:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer
    from llguidance.gbnf_to_lark import gbnf_to_lark

    if is_gbnf:
        try:
            grammar = gbnf_to_lark(grammar)
        except Exception as error:  # noqa: BLE001 (it raises plain ones; whoever asked words it)
            return {"error": str(error) or type(error).__name__}
    matcher = LLMatcher(LLTokenizer("byte"), grammar, log_level=0, limits=LLParserLimits(**limits))
    matcher.compute_bitmask()
    return {"error": matcher.get_error()} if matcher.is_error() else {"grammar": grammar}


if __name__ == "__main__":
    main()
