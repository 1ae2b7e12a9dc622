"""Write the documents of the embedded suite's class long_context, each of about 7,000 tokens of the default model.

usage: python tools/long_context

A document is a beginning and sections; sections are added until the next one would make it too long. Every document has
a structure of its own. Needs the installed package and its default model, whose tokenizer counts.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import catalogue
import contract
import interviews
import letters
import listing
import minutes
import records
import service_log

from paceline.models import open_model

TARGET = Path(__file__).parents[2] / "src" / "paceline" / "bench" / "workloads" / "builtin" / "long_context"
MAX_TOKENS = 7_300  # the instruction comes on top
DOCUMENTS = {
    "minutes.txt": minutes.sections,
    "service_log.txt": service_log.sections,
    "catalogue.txt": catalogue.sections,
    "contract.txt": contract.sections,
    "listing.txt": listing.sections,
    "letters.txt": letters.sections,
    "interviews.txt": interviews.sections,
    "records.txt": records.sections,
}


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    with open_model("smollm2") as model:
        tokenizer = model.tokenizer()
        for name, sections in DOCUMENTS.items():
            text, tokens = fitted(sections(), lambda text: len(tokenizer.encode(text)))
            (TARGET / name).write_text(text, encoding="utf-8")
            print(f"{name}: {tokens} tokens, {len(text.encode())} bytes")


def fitted(sections: Iterator[str], count: Callable[[str], int]) -> tuple[str, int]:
    """As many sections as fit, and their tokens."""
    text, tokens = "", 0
    for section in sections:
        longer = count(text + section)
        if longer > MAX_TOKENS:
            return text, tokens
        text, tokens = text + section, longer
    raise SystemExit(f"the sections end at {tokens} tokens")


if __name__ == "__main__":
    main()
