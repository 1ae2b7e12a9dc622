"""`paceline demo`: one prompt, answered plainly and with drafts, and what the drafts were good for."""

from dataclasses import dataclass
from statistics import median

import typer

from paceline import LLM, RequestOutput, SamplingParams, Speculation, Stream
from paceline.cli.failures import EXIT_FAILURE
from paceline.cli.generate import follow
from paceline.cli.interrupts import EXIT_INTERRUPTED
from paceline.cli.progress import terminal_progress
from paceline.cli.terminal import AnswerWriter, colour_draft, has_colour

PROMPT = (
    "Correct the grammar of this letter and write it again:\n\nDear Ms. Miller,\n\n"
    "thank you for you letter of 3 May. We was very happy to hear that the garden tables have arrived in time for the "
    "summer party. The two missing chairs will be sent on Monday, together with the blue cushions that you ordered "
    "last week. Please let us know if there is anything else that we can do for you.\n\nKind regards,\nAnna Berg"
)
MAX_TOKENS = 200
_REPEATS = 2  # beyond the answers shown, alternating, so that a slow moment of the machine does not decide


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers of both ways, in the order in which they were made."""

    plain: list[RequestOutput]
    speculative: list[RequestOutput]

    @property
    def is_identical(self) -> bool:
        return len({output.token_ids for output in [*self.plain, *self.speculative]}) == 1


def demo(model: str, *, num_speculative_tokens: int, threads: int | None) -> None:
    """Show and compare. Raises typer.Exit with status 1 where the texts differ."""
    speculation = Speculation("ngram", num_speculative_tokens)
    progress = terminal_progress()
    plain = LLM(model, num_threads=threads, progress=progress)
    speculative = LLM(model, speculation=speculation, num_threads=threads, progress=progress)
    typer.echo(f"Prompt:\n\n{PROMPT}\n\nPlain decoding:\n")
    first = _show(plain)
    legend = f", {colour_draft('accepted draft tokens like this')}" if has_colour() else ""
    typer.echo(f"\nWith n-gram speculation{legend}:\n")
    comparison = Comparison([first], [_show(speculative)])
    for _ in range(_REPEATS):
        comparison.plain.append(_ended(_stream(plain)))
        comparison.speculative.append(_ended(_stream(speculative)))
    typer.echo(f"\n{table(comparison)}")
    if not comparison.is_identical:
        raise typer.Exit(EXIT_FAILURE)


def _stream(llm: LLM) -> Stream:
    params = SamplingParams(max_tokens=MAX_TOKENS)
    return llm.stream([{"role": "user", "content": PROMPT}] if llm.has_chat_template else PROMPT, params)


def _show(llm: LLM) -> RequestOutput:
    return _unless_interrupted(follow(_stream(llm), AnswerWriter(show_drafts=True)))


def _ended(stream: Stream) -> RequestOutput:
    return _unless_interrupted(follow(stream))


def _unless_interrupted(output: RequestOutput) -> RequestOutput:
    if output.finish_reason == "abort":
        raise typer.Exit(EXIT_INTERRUPTED)
    return output


def table(comparison: Comparison) -> str:
    """The figures, one a line. Speeds are medians."""
    plain, speculative = _speed(comparison.plain), _speed(comparison.speculative)
    length = comparison.speculative[0].speculation.mean_acceptance_length
    rows = [
        ("plain", _figure(plain, "tokens per second")),
        ("speculative", _figure(speculative, "tokens per second")),
        ("speedup", _figure(speculative / plain if plain and speculative else None, "x")),
        ("mean acceptance length", _figure(length, "tokens per forward")),
        ("identical text", "yes" if comparison.is_identical else "no"),
    ]
    return "\n".join(f"{name:<24}{value}" for name, value in rows)


def _speed(outputs: list[RequestOutput]) -> float | None:
    rates = [output.timing.tokens_per_second for output in outputs]
    known = [rate for rate in rates if rate is not None]
    return median(known) if known else None


def _figure(value: float | None, unit: str) -> str:
    return "none" if value is None else f"{value:.2f} {unit}"
