"""What `paceline verify` prints of a certificate: a table, or one JSON object."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.api.verification import Trial
from paceline.certificate import Certificate, Difference, GoodnessOfFit
from paceline.cli.options import ModelOptions
from paceline.models import Tokenizer
from paceline.prompt_files import PromptLine


@dataclass(frozen=True, slots=True)
class Setting:
    """What was asked for, as far as the output tells it."""

    file: Path
    model: ModelOptions
    num_speculative_tokens: int
    rule: str
    trial: Trial
    prompts: Sequence[PromptLine]
    runtime: str
    is_chat: bool

    def line(self, answer: int) -> int:
        """The line of the file that an answer belongs to."""
        return self.prompts[answer // self.trial.num_samples].line

    def where(self, answer: int) -> dict[str, int]:
        return {"line": self.line(answer), "sample": answer % self.trial.num_samples}


def as_json(certificate: Certificate, setting: Setting, tokenizer: Tokenizer) -> dict[str, Any]:
    """What `--json` prints; null where there is no value. Lines count from 1, samples and tokens from 0."""
    params, trial = setting.trial.params, setting.trial
    return {
        "verdict": certificate.verdict,
        "statement": certificate.statement,
        "faults": certificate.faults,
        "gaps": certificate.gaps,
        "is_interrupted": certificate.is_interrupted,
        "model": setting.model.model,
        "runtime": setting.runtime,
        "proposer": setting.model.proposer.value,
        "num_speculative_tokens": setting.num_speculative_tokens,
        "rule": setting.rule,
        "sampling": {
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": params.top_k,
            "min_p": params.min_p,
            "max_tokens": params.max_tokens,
            "seed": params.seed,
        },
        "prompts": str(setting.file),
        "is_chat": setting.is_chat,
        "num_prompts": len(setting.prompts),
        "num_samples": trial.num_samples,
        "numerics": trial.numerics,
        "drafts": asdict(certificate.drafts),
        "comparison": _comparison_json(certificate, setting, tokenizer),
        "goodness_of_fit": None if certificate.fit is None else _fit_json(certificate.fit, setting, tokenizer),
        "errors": [{**setting.where(each.answer), "error": each.error} for each in certificate.failed],
    }


def _comparison_json(certificate: Certificate, setting: Setting, tokenizer: Tokenizer) -> dict[str, Any] | None:
    if certificate.comparison is None:
        return None
    values, first = asdict(certificate.comparison), certificate.comparison.first
    del values["first"]
    return {**values, "first_difference": None if first is None else _difference_json(first, setting, tokenizer)}


def _difference_json(difference: Difference, setting: Setting, tokenizer: Tokenizer) -> dict[str, Any]:
    values = asdict(difference)
    del values["answer"]
    values["margin"] = difference.margin if math.isfinite(difference.margin) else None  # where nothing else can come
    texts = {f"{name}_text": _text(values[name], tokenizer) for name in ("expected", "found")}
    return {**setting.where(difference.answer), **values, **texts}


def _fit_json(fit: GoodnessOfFit, setting: Setting, tokenizer: Tokenizer) -> dict[str, Any]:
    values, impossible = asdict(fit), fit.first_impossible
    del values["acceptance"], values["uniformity"]
    values["tests"] = [{**asdict(test), "has_failed": test.has_failed} for test in fit.tests]
    if impossible is not None:
        place = {"index": impossible.index, "token": impossible.token, "text": _text(impossible.token, tokenizer)}
        values["first_impossible"] = {**setting.where(impossible.answer), **place}
    return values


def table(certificate: Certificate, setting: Setting, tokenizer: Tokenizer) -> str:
    """The evidence, one piece a line, and the verdict."""
    rows = [*_asked(setting), *_found(certificate, setting, tokenizer)]
    verdict = "certified" if certificate.verdict == "certified" else certificate.verdict.upper()
    return "\n".join([*(f"{name:<12}{value}" for name, value in rows), "", f"{verdict}: {certificate.statement}"])


def _asked(setting: Setting) -> Iterator[tuple[str, str]]:
    params, model = setting.trial.params, setting.model
    cut = {"top-p": (params.top_p, 1.0), "top-k": (params.top_k, 0), "min-p": (params.min_p, 0.0)}
    cuts = [f"{name} {given:g}" for name, (given, default) in cut.items() if given != default]
    yield "model", f"{model.model} ({setting.runtime})"
    yield "speculation", f"{model.proposer.value}, up to {setting.num_speculative_tokens} tokens, rule {setting.rule}"
    parts = [f"temperature {params.temperature:g}", *cuts, f"up to {params.max_tokens} tokens", f"seed {params.seed}"]
    yield "sampling", ", ".join(parts)
    kind, number = "as messages" if setting.is_chat else "as texts", setting.trial.num_samples
    samples = f", {number} samples of each" if number > 1 else ""
    yield "prompts", f"{len(setting.prompts)} of {setting.file}, {kind}{samples}"


def _found(certificate: Certificate, setting: Setting, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    drafts, comparison, fit = certificate.drafts, certificate.comparison, certificate.fit
    length = drafts.mean_acceptance_length
    yield (
        "drafts",
        f"{drafts.num_drafts:,} with {drafts.num_draft_tokens:,} tokens, {drafts.num_accepted_tokens:,} accepted"
        + ("" if length is None else f"; {length:.2f} tokens per forward"),
    )
    if comparison is not None:
        excused = f", {comparison.num_excused} of them excused" if comparison.num_excused else ""
        yield "compared", f"{comparison.num_tokens:,} tokens of {comparison.num_answers} answers with plain decoding"
        yield "different", f"{comparison.num_differing} answers{excused}"
        if comparison.first is not None:
            yield "first", _difference(comparison.first, setting, tokenizer)
    if fit is not None:
        yield from _fit(fit, setting, tokenizer)


def _fit(fit: GoodnessOfFit, setting: Setting, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    yield "tested", f"{fit.num_tokens:,} tokens of {fit.num_answers} answers against the model's own distribution"
    bets = fit.acceptance
    odds = "no" if bets.detectable_odds is None else f"{bets.detectable_odds:.2g} times the"
    yield (
        bets.name,
        f"{bets.num_hits:,} of {bets.num_tokens:,} tokens are what drafts favour, {bets.num_expected:,.1f} expected, "
        f"p {bets.p_value:.2g}; finds {odds} odds",
    )
    for test in fit.uniformity:
        yield (
            test.name,
            f"chi-square {test.statistic:.1f} of {test.df} degrees of freedom, p {test.p_value:.2g}; "
            f"finds a shift of {100 * test.detectable_shift:.1f}%",
        )
    if fit.first_impossible is not None:
        first = fit.first_impossible
        yield "impossible", f"line {setting.line(first.answer)}, token {first.index}: {_named(first.token, tokenizer)}"


def _difference(difference: Difference, setting: Setting, tokenizer: Tokenizer) -> str:
    return (
        f"line {setting.line(difference.answer)}, token {difference.index}: "
        f"{_named(difference.found, tokenizer)} instead of {_named(difference.expected, tokenizer)}; "
        f"top-2 margin {difference.margin:.4g}"
    )


def _named(token: int | None, tokenizer: Tokenizer) -> str:
    return "nothing" if token is None else f"{token} ({_text(token, tokenizer)!r})"


def _text(token: int | None, tokenizer: Tokenizer) -> str | None:
    return None if token is None else tokenizer.text_bytes(token).decode(errors="replace")
