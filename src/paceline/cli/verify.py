"""`paceline verify`: a certificate that speculation leaves the text, or its distribution, as it is."""

import json
from dataclasses import dataclass
from pathlib import Path

import typer

from paceline import SamplingParams
from paceline.acceptance import MatchRule
from paceline.api.certificate import OpenVerification, open_verification
from paceline.api.loading import ModelOptions
from paceline.api.verification import Trial
from paceline.certificate import Certificate
from paceline.checks import check_integer
from paceline.cli.certificate import Setting, as_json, table
from paceline.cli.failures import EXIT_FAILURE
from paceline.cli.interrupts import EXIT_INTERRUPTED
from paceline.cli.loading import quantization_of, speculation_of
from paceline.cli.options import ModelOptions as ModelArguments
from paceline.cli.progress import terminal_progress
from paceline.cli.verify_flags import DEFAULT_NUM_SAMPLES
from paceline.errors import UsageError
from paceline.prompt_files import read_prompts


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
    opened = open_verification(model.model, prompts, trial, options, is_chat=chat)
    setting = Setting(
        file,
        model,
        options.speculation.num_speculative_tokens,
        sampling.rule,
        trial,
        prompts,
        opened.runtime,
        opened.is_chat,
    )
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
