"""The options that several commands share: names, help and types. Ranges are checked by what the values are for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from paceline.cli.failures import remember_debug


class ProposerName(StrEnum):
    """What may ride in front of the model. Spelled out here so that `--help` need not import the proposers."""

    OFF = "off"
    NGRAM = "ngram"


class RuleName(StrEnum):
    """Which draft tokens stand, of the rules that lose nothing. Spelled out here for the same reason."""

    MATCH = "match"
    REJECTION = "rejection"
    BLOCK = "block"


class QuantizationName(StrEnum):
    """How weights that are not packed yet may be. Spelled out here for the same reason."""

    Q8 = "q8"
    Q4 = "q4"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to load a model."""

    model: str
    quantization: QuantizationName | None
    proposer: ProposerName
    num_speculative_tokens: int | None
    max_model_len: int | None
    threads: int | None
    chat_template: str | None


Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="A short name (see `paceline models`), the path of a .gguf file or of a folder, or a model on the Hugging "
        "Face hub: org/repo, org/repo:QUANT or org/repo/file.gguf, each with @REVISION if wanted.",
    ),
]
Proposer = Annotated[
    ProposerName,
    typer.Option(
        "--proposer",
        help="Who drafts tokens for the model to check. The text is the same with any. Off unless asked for: drafts "
        "pay where an answer repeats its prompt or itself, and nothing decides yet by itself when they do.",
    ),
]
Rule = Annotated[
    RuleName,
    typer.Option(
        "--rule",
        help="Which draft tokens stand. Under match the text is that of plain decoding; rejection and block keep its "
        "distribution.",
    ),
]
Quantization = Annotated[
    QuantizationName | None,
    typer.Option(
        "--quantization",
        help="How to pack the weights of a safetensors folder while loading: in 8 bits, in 4 (smaller and faster, but "
        "not the same model), or as they are stored. 8 bits if not given. Not for .gguf files, packed as they are.",
        show_default=False,
    ),
]
NumSpeculativeTokens = Annotated[
    int | None,
    typer.Option(
        "-k",
        "--num-speculative-tokens",
        metavar="K",
        help="The most draft tokens in one step, 1 to 15; 4 if not given. Without a proposer it has no effect.",
        show_default=False,
    ),
]
MaxTokens = Annotated[int, typer.Option("--max-tokens", metavar="N", help="The most tokens to generate, at least 1.")]
Stop = Annotated[
    list[str] | None,
    typer.Option(
        "--stop",
        metavar="TEXT",
        help="End the answer before this text; may be repeated. Taken as it is: \\n is two characters.",
        show_default=False,
    ),
]
MinTokens = Annotated[
    int, typer.Option("--min-tokens", metavar="N", help="The tokens to generate before anything may end the answer.")
]
Temperature = Annotated[
    float,
    typer.Option("--temperature", metavar="T", help="0 for the most likely token at every position, or 1e-6 to 2."),
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p", metavar="P", help="Above temperature 0, draw from the likeliest tokens that have this probability."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="The same one gives the same answer; one is drawn if not given, and --json tells it.",
        show_default=False,
    ),
]
MaxModelLen = Annotated[
    int | None,
    typer.Option(
        "--max-model-len",
        metavar="N",
        help="The most tokens that prompt and answer may have together; the model's context if not given.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Threads to compute with; if not given, one for each physical core that this process may use.",
        show_default=False,
    ),
]
ChatTemplate = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="FILE|NAME",
        help="The name of one of the model's chat templates, else a file with one (write ./NAME for a file of such a "
        "name). If not given, the model's default.",
        show_default=False,
    ),
]
ShowDrafts = Annotated[
    bool,
    typer.Option(
        "--show-drafts", help="Colour accepted draft tokens. On a terminal only, and not where NO_COLOR is set."
    ),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of an error. May stand before or after the command.",
        callback=remember_debug,
    ),
]
