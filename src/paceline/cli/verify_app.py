"""The command `paceline verify` and its options."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import options as opt
from paceline.cli.failures import reported_failures
from paceline.cli.interrupts import interrupts_at_once

DEFAULT_LENGTH = 64
DEFAULT_NUM_SAMPLES = 8
DEFAULT_RATE = 1e-6


class NamedRule(StrEnum):
    """Every rule there is, the lossy one too: it is refused with its reason. Spelled out here so that `--help` need not
    import the rules."""

    MATCH = "match"
    REJECTION = "rejection"
    BLOCK = "block"
    TYPICAL = "typical"


def verify(
    prompts: Annotated[
        Path,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="The prompts: Spec-Bench questions (of several turns the first is used), JSON lines with a `prompt`, "
            "or text with one prompt a line.",
        ),
    ],
    proposer: Annotated[opt.ProposerName, typer.Option("--proposer", help="Whose drafts to certify; not off.")],
    model: opt.Model = opt.DEFAULT_MODEL,
    quantization: opt.Quantization = None,
    rule: Annotated[
        NamedRule,
        typer.Option(
            "--rule",
            help="Which drafted tokens stand. match gives the tokens of plain decoding, rejection and block their "
            "distribution; typical is lossy by design, so it is refused.",
        ),
    ] = NamedRule.MATCH,
    num_speculative_tokens: opt.NumSpeculativeTokens = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            metavar="T",
            help="0 for the most likely token at every position, where all rules have to give the same tokens, or 1e-6 "
            "to 2. If not given, 0 under the rule match, 1 under others.",
            show_default=False,
        ),
    ] = None,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = 0,
    min_p: opt.MinP = 0.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same one gives the same certificate.")] = 0,
    max_tokens: opt.MaxTokens = DEFAULT_LENGTH,
    num_prompts: Annotated[
        int | None,
        typer.Option(
            "--num-prompts", metavar="N", help="Only so many of the prompts, from the first.", show_default=False
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            metavar="N",
            help=f"Answers to each prompt, each with a seed of its own. If not given, {DEFAULT_NUM_SAMPLES} where a "
            "distribution is tested, 1 elsewhere.",
            show_default=False,
        ),
    ] = None,
    false_alarm_rate: Annotated[
        float,
        typer.Option(
            "--false-alarm-rate", metavar="RATE", help="How often a test of distributions may blame what is right."
        ),
    ] = DEFAULT_RATE,
    numerics: Annotated[
        float,
        typer.Option(
            "--numerics",
            metavar="MARGIN",
            help="For a runtime that is lossless only up to numerics: excuse another token where the two best lie no "
            "further apart than this, in logits. The built-in one needs none.",
        ),
    ] = 0.0,
    chat: Annotated[
        bool | None,
        typer.Option(
            "--chat/--no-chat",
            help="Whether prompts are messages to answer or texts to continue. Messages if not given, where the model "
            "has a chat template.",
            show_default=False,
        ),
    ] = None,
    chat_template: opt.ChatTemplate = None,
    max_model_len: opt.MaxModelLen = None,
    threads: opt.Threads = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object: all evidence, and the verdict.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Certify that speculation leaves the text as it is.

    Under match, tokens are compared with those of plain decoding; under rejection and block, samples are tested against
    the model's own distribution. The exit status is 0 only for a verdict of "certified".
    """
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.verify import Sampling
            from paceline.cli.verify import verify as run

        run(
            prompts,
            opt.ModelOptions(
                model, quantization, proposer, num_speculative_tokens, max_model_len, threads, chat_template
            ),
            Sampling(rule.value, temperature, top_p, top_k, min_p, seed, max_tokens, samples),
            num_prompts=num_prompts,
            false_alarm_rate=false_alarm_rate,
            numerics=numerics,
            chat=chat,
            is_json=json,
        )
