"""`paceline generate`: one prompt, one answer."""

import json
import math
import sys
from typing import Any

import typer

from paceline import LLM, RequestOutput, SamplingParams, Stream, UsageError
from paceline.cli.failures import EXIT_FAILURE, complain
from paceline.cli.interrupts import EXIT_INTERRUPTED, Interrupts
from paceline.cli.loading import load, read_prompt
from paceline.cli.options import ModelOptions
from paceline.cli.terminal import AnswerWriter


def generate(
    prompt: str,
    options: ModelOptions,
    params: SamplingParams,
    *,
    chat: bool | None,
    show_drafts: bool,
    is_json: bool,
) -> None:
    """Answer and print. Raises typer.Exit where the exit status is not 0."""
    if chat is False and options.chat_template is not None:
        raise UsageError("--no-chat uses no template, so --chat-template cannot go with it; leave one out")
    text = read_prompt(prompt)
    llm = load(options)
    stream = _begin(llm, text, params, llm.has_chat_template if chat is None else chat)
    if is_json:
        output = follow(stream)
        typer.echo(json.dumps(as_json(output), allow_nan=False))
    else:
        output = follow(stream, AnswerWriter(show_drafts=show_drafts))
        if sys.stderr.isatty():
            typer.echo(summary(output), err=True)
    _exit_unless_whole(output)


def _begin(llm: LLM, text: str, params: SamplingParams, is_chat: bool) -> Stream:
    return llm.stream([{"role": "user", "content": text}] if is_chat else text, params)


def follow(stream: Stream, writer: AnswerWriter | None = None) -> RequestOutput:
    """Run a stream to its end, or to Ctrl-C: the answer is then what there is of it, with finish reason "abort".

    `writer` shows the pieces as they come; its last line is ended.
    """
    with stream, Interrupts() as interrupts:
        try:
            for piece in stream:
                interrupts.hold()
                if writer is not None:
                    writer.write(piece)
                if interrupts.is_pending:
                    break
        except KeyboardInterrupt:
            stream.close()
        if writer is not None:
            writer.end()
    return stream.output()


def as_json(output: RequestOutput) -> dict[str, Any]:
    """What `--json` prints; null where there is no value."""
    usage, timing, speculation = output.usage, output.timing, output.speculation
    has_tokens = usage.completion_tokens > 0
    return {
        "text": output.text,
        "token_ids": list(output.token_ids),
        "finish_reason": output.finish_reason,
        "sample_seed": output.sample_seed,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        },
        "timing": {
            "prefill_seconds": _number(timing.prefill_seconds if has_tokens else None),
            "decode_seconds": _number(timing.decode_seconds if has_tokens else None),
            "tokens_per_second": _number(timing.tokens_per_second),
        },
        "speculation": {
            "mean_acceptance_length": _number(speculation.mean_acceptance_length),
            "draft_acceptance_rate": _number(speculation.draft_acceptance_rate),
            "num_drafts": speculation.num_drafts,
            "num_draft_tokens": speculation.num_draft_tokens,
            "num_accepted_tokens": speculation.num_accepted_tokens,
        },
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def summary(output: RequestOutput) -> str:
    """One line for a person."""
    parts = [f"{output.usage.completion_tokens} tokens"]
    if output.timing.tokens_per_second is not None:
        parts.append(f"{output.timing.tokens_per_second:.1f} tokens per second")
    if output.speculation.num_drafts and output.speculation.mean_acceptance_length is not None:
        parts.append(f"{output.speculation.mean_acceptance_length:.2f} tokens per forward")
    return f"[{', '.join(parts)}, {output.finish_reason}]"


def _exit_unless_whole(output: RequestOutput) -> None:
    if output.finish_reason == "error":
        complain(f"{output.error}; what was written before stands. Check the model file")
        raise typer.Exit(EXIT_FAILURE)
    if output.finish_reason == "abort":
        raise typer.Exit(EXIT_INTERRUPTED)
