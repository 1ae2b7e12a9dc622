"""The options of `paceline verify`: names, help and types. Ranges are checked by what the values are for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import options as opt

DEFAULT_NUM_SAMPLES = 8


class NamedRule(StrEnum):
    """Every rule there is, the lossy one too: it is refused with its reason. Spelled out here so that `--help` need not
    import the rules."""

    MATCH = "match"
    REJECTION = "rejection"
    BLOCK = "block"
    TYPICAL = "typical"


Prompts = Annotated[
    Path,
    typer.Option(
        "--prompts",
        metavar="FILE",
        help="The prompts: Spec-Bench questions (of several turns the first is used), JSON lines with a `prompt`, "
        "or text with one prompt a line.",
    ),
]
Proposer = Annotated[opt.ProposerName, typer.Option("--proposer", help="Whose drafts to certify; not off.")]
Rule = Annotated[
    NamedRule,
    typer.Option(
        "--rule",
        help="Which drafted tokens stand. match gives the tokens of plain decoding, rejection and block their "
        "distribution; typical is lossy by design, so it is refused.",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        metavar="T",
        help="0 for the most likely token at every position, where all rules have to give the same tokens, or 1e-6 "
        "to 2. If not given, 0 under the rule match, 1 under others.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same one gives the same certificate.")]
NumPrompts = Annotated[
    int | None,
    typer.Option("--num-prompts", metavar="N", help="Only so many of the prompts, from the first.", show_default=False),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        metavar="N",
        help=f"Answers to each prompt, each with a seed of its own. If not given, {DEFAULT_NUM_SAMPLES} where a "
        "distribution is tested, 1 elsewhere.",
        show_default=False,
    ),
]
FalseAlarmRate = Annotated[
    float,
    typer.Option(
        "--false-alarm-rate", metavar="RATE", help="How often a test of distributions may blame what is right."
    ),
]
Numerics = Annotated[
    float,
    typer.Option(
        "--numerics",
        metavar="MARGIN",
        help="For a runtime that is lossless only up to numerics: excuse another token where the two best lie no "
        "further apart than this, in logits. The built-in one needs none.",
    ),
]
Chat = Annotated[
    bool | None,
    typer.Option(
        "--chat/--no-chat",
        help="Whether prompts are messages to answer or texts to continue. Messages if not given, where the model "
        "has a chat template.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object: all evidence, and the verdict.")]
