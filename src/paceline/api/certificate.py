"""From a model, a proposer and prompts to a verification that can run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.acceptance import TypicalRule
from paceline.api.encoding import Encoder
from paceline.api.inputs import ChatOptions
from paceline.api.loading import ModelOptions, load_parts
from paceline.api.speculation import Speculation
from paceline.api.verification import LOSSY, Parties, Trial, Verification
from paceline.api.watched_rule import WatchedRule
from paceline.controller import OFF
from paceline.errors import UsageError
from paceline.models import SilentProgress, Tokenizer
from paceline.prompt_files import PromptLine
from paceline.telemetry import SpeculationStats


@dataclass(frozen=True, slots=True)
class OpenVerification:
    """`runtime`: what computed, with its instruction set. `is_chat`: whether prompts are messages to answer, else texts
    to continue."""

    verification: Verification
    tokenizer: Tokenizer
    runtime: str
    is_chat: bool


def open_verification(
    model: str | Path,
    prompts: Sequence[PromptLine],
    trial: Trial,
    options: ModelOptions,
    *,
    is_chat: bool | None = None,
) -> OpenVerification:
    """Load `model` once, for decoding with `options.speculation` and without. Of each prompt the first turn is used:
    what follows it would depend on answers. `is_chat` None: as messages where the model has a chat template.

    Raises UsageError for what cannot be certified, before anything is loaded, and for a prompt that does not fit, by
    its line; PacelineError for a model that cannot be had or run.
    """
    speculation = options.speculation
    if speculation.proposer == OFF:
        raise UsageError(f"the proposer is {OFF!r}, so there is no speculation to certify; name one")
    if speculation.rule == TypicalRule.name:
        raise UsageError(f"the rule {speculation.rule!r} {LOSSY}")
    controller, proposers, rule = speculation.create()
    trial.compares_tokens(rule)
    stats, watched = SpeculationStats(), WatchedRule(rule)
    parts, off = load_parts(model, options), Speculation()
    alone = replace(options, speculation=off, max_num_seqs=1, prefix_caching=False)
    plain = parts.engine(alone, off.create(), None)
    loaded = parts.engine(options, (controller, proposers, watched), stats.add)
    tokenizer, encoder = loaded.tokenizer, loaded.encoder
    is_chat = encoder.has_template if is_chat is None else is_chat
    parties = Parties(
        runtime=loaded.runtime,
        plain=plain.engine,
        candidate=loaded.engine,
        rule=rule,
        watched=watched,
        stats=stats,
        eos_ids=frozenset(tokenizer.stop_ids),
        banned_ids=frozenset(tokenizer.unproducible_ids),
        encode=tokenizer.encode_continuation,
    )
    ids = [_encoded(encoder, prompt, is_chat, loaded.engine.max_length) for prompt in prompts]
    progress = options.progress if options.progress is not None else SilentProgress()
    return OpenVerification(Verification(parties, ids, trial, progress), tokenizer, loaded.runtime.info.name, is_chat)


def _encoded(encoder: Encoder, prompt: PromptLine, is_chat: bool, max_length: int) -> list[int]:
    text = prompt.turns[0]
    try:
        if is_chat:
            ids = encoder.conversation([{"role": "user", "content": text}], ChatOptions())
        else:
            ids = encoder.prompt(text)
    except UsageError as error:
        raise UsageError(f"line {prompt.line}: {error}") from error
    if not 0 < len(ids) < max_length:
        raise UsageError(
            f"line {prompt.line}: the prompt has {len(ids)} tokens; expected 1 to {max_length - 1}, so that prompt and "
            "answer fit"
        )
    return ids
