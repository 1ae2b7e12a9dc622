"""From the command line's options to a loaded model and a prompt."""

import sys
from typing import Any, TextIO

from paceline import LLM
from paceline.cli.options import ModelOptions, QuantizationName
from paceline.cli.progress import terminal_progress
from paceline.errors import UsageError
from paceline.models import Quantization

STANDARD_INPUT = "-"


def load(options: ModelOptions) -> LLM:
    return LLM(
        options.model,
        quantization=quantization_of(options.quantization),
        speculation=speculation_of(options),
        max_model_len=options.max_model_len,
        max_num_seqs=1,  # commands ask one thing at a time: the cache need not be larger
        num_threads=options.threads,
        chat_template=options.chat_template,
        progress=terminal_progress(),
    )


def speculation_of(options: ModelOptions) -> dict[str, Any]:
    """As `LLM` takes it."""
    speculation: dict[str, Any] = {"proposer": options.proposer.value}
    if options.num_speculative_tokens is not None:
        speculation["num_speculative_tokens"] = options.num_speculative_tokens
    return speculation


def quantization_of(name: QuantizationName | None) -> Quantization | None:
    return None if name is None else name.value


def read_prompt(argument: str) -> str:
    """The prompt that an argument stands for: itself, or all of standard input without the newline at its end."""
    if argument == STANDARD_INPUT:
        prompt = decode(standard_input().buffer.read(), "standard input").removesuffix("\n")
    else:
        try:  # bytes that the locale does not know arrive as lone surrogates, UTF-8 or not
            prompt = argument.encode(errors="surrogateescape").decode()
        except UnicodeError as error:
            raise UsageError("the prompt is not valid UTF-8; convert it, or give it on standard input") from error
    if not prompt:
        raise UsageError("the prompt is empty; give some text, or - to read standard input")
    return prompt


def standard_input() -> TextIO:
    """Standard input, which whoever started this process may have closed."""
    stream: TextIO | None = sys.stdin
    if stream is None:
        raise UsageError("standard input is closed; give it a file, a pipe or a terminal")
    return stream


def decode(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{where} is not valid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; convert it"
        ) from error
