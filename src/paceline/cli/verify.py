"""`paceline verify`: a certificate that speculation leaves the text, or its distribution, as it is."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from paceline import SamplingParams
from paceline.acceptance import MatchRule
from paceline.api.certificate import OpenVerification, open_verification
from paceline.api.loading import ModelOptions
from paceline.api.verification import Trial
from paceline.certificate import Certificate, Difference, GoodnessOfFit
from paceline.checks import check_integer
from paceline.cli.failures import EXIT_FAILURE
from paceline.cli.interrupts import EXIT_INTERRUPTED
from paceline.cli.loading import quantization_of, speculation_of
from paceline.cli.options import ModelOptions as ModelArguments
from paceline.cli.progress import terminal_progress
from paceline.cli.verify_app import DEFAULT_NUM_SAMPLES
from paceline.errors import UsageError
from paceline.models import Tokenizer
from paceline.prompt_files import PromptLine, read_prompts


@dataclass(frozen=True, slots=True)
class Sampling:
    """The rule and how it draws. `temperature` None: 0 under `match`, 1 under others; `num_samples` None: several where
    a distribution is tested."""

    rule: str
    temperature: float | None
    top_p: float
    top_k: int
    min_p: float
    seed: int
    max_tokens: int
    num_samples: int | None

    def params(self) -> SamplingParams:
        is_match = self.rule == MatchRule.name
        return SamplingParams(
            max_tokens=self.max_tokens,
            temperature=self.temperature if self.temperature is not None else 0.0 if is_match else 1.0,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            seed=self.seed,
        )

    def trial(self, false_alarm_rate: float, numerics: float) -> Trial:
        params, number = self.params(), self.num_samples
        if number is None:
            is_tested = self.rule != MatchRule.name and params.temperature > 0
            number = DEFAULT_NUM_SAMPLES if is_tested else 1
        return Trial(params, number, false_alarm_rate, numerics)


@dataclass(frozen=True, slots=True)
class Setting:
    """What was asked for, as far as the output tells it."""

    file: Path
    model: ModelArguments
    num_speculative_tokens: int
    rule: str
    trial: Trial
    prompts: Sequence[PromptLine]

    def line(self, answer: int) -> int:
        """The line of the file that an answer belongs to."""
        return self.prompts[answer // self.trial.num_samples].line

    def where(self, answer: int) -> dict[str, int]:
        return {"line": self.line(answer), "sample": answer % self.trial.num_samples}


def verify(
    file: Path,
    model: ModelArguments,
    sampling: Sampling,
    *,
    num_prompts: int | None,
    false_alarm_rate: float,
    numerics: float,
    chat: bool | None,
    is_json: bool,
) -> None:
    """Verify and print. Raises typer.Exit with status 1 for any verdict but "certified", 130 after Ctrl-C."""
    if chat is False and model.chat_template is not None:
        raise UsageError("--no-chat uses no template, so --chat-template cannot go with it; leave one out")
    check_integer("num_prompts", num_prompts, 1, or_none=True)
    trial = sampling.trial(false_alarm_rate, numerics)
    prompts = read_prompts(file)[:num_prompts]
    options = ModelOptions.of(
        speculation=speculation_of(model) | {"rule": sampling.rule},
        quantization=quantization_of(model.quantization),
        max_model_len=model.max_model_len,
        num_threads=model.threads,
        chat_template=model.chat_template,
        progress=terminal_progress(),
    )
    setting = Setting(file, model, options.speculation.num_speculative_tokens, sampling.rule, trial, prompts)
    opened = open_verification(model.model, prompts, trial, options, is_chat=chat)
    certificate = _run(opened)
    if is_json:
        typer.echo(json.dumps(as_json(certificate, setting, opened.tokenizer), allow_nan=False))
    else:
        typer.echo(table(certificate, setting, opened.tokenizer))
    if certificate.is_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if certificate.verdict != "certified":
        raise typer.Exit(EXIT_FAILURE)


def _run(opened: OpenVerification) -> Certificate:
    try:
        opened.verification.run()
    except KeyboardInterrupt:
        return opened.verification.certificate(is_interrupted=True)
    return opened.verification.certificate()


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
    yield "model", model.model
    yield "speculation", f"{model.proposer.value}, up to {setting.num_speculative_tokens} tokens, rule {setting.rule}"
    parts = [f"temperature {params.temperature:g}", *cuts, f"up to {params.max_tokens} tokens", f"seed {params.seed}"]
    yield "sampling", ", ".join(parts)
    yield "prompts", f"{len(setting.prompts)} of {setting.file}, {setting.trial.num_samples} sample(s) each"


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
