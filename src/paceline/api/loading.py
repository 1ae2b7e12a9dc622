"""From what a user asks for to a model that is loaded and an engine that serves it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.acceptance import AcceptanceRule
from paceline.api.encoding import Encoder
from paceline.api.speculation import Speculating, Speculation
from paceline.checks import check_flag, check_integer
from paceline.engine import DEFAULT_MAX_NUM_SEQS, Engine, EngineOptions
from paceline.errors import UsageError
from paceline.models import ChatTemplate, Progress, Quantization, SilentProgress, Tokenizer, open_model
from paceline.runtime.native import SPARE_SLOTS, NativeOptions, NativeRuntime
from paceline.runtime.profile import step_weight_bytes
from paceline.telemetry import StepRecord

PAGE_SIZE = 16
MAX_CACHE_TOKENS = PAGE_SIZE * (2**31 - 1)
MAX_DEFAULT_CACHE_TOKENS = 16384  # of several sequences; one alone always has room for all of its context


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The arguments of `paceline.LLM`, which documents them."""

    quantization: Quantization | None = None
    speculation: Speculation = field(default_factory=Speculation)
    max_model_len: int | None = None
    max_num_seqs: int = DEFAULT_MAX_NUM_SEQS
    cache_tokens: int | None = None
    prefix_caching: bool = True
    num_threads: int | None = None
    chat_template: str | Path | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        progress = self.progress
        if progress is not None and not all(hasattr(progress, name) for name in ("begin", "update", "end")):
            raise UsageError(f"progress is {progress!r}; expected None or an object with begin, update and end")
        if self.max_model_len == 1:
            raise UsageError("max_model_len is 1; expected at least 2, a token of the prompt and one of the answer")
        check_flag("prefix_caching", self.prefix_caching)
        check_integer("max_num_seqs", self.max_num_seqs, 1)

    @classmethod
    def of(cls, *, speculation: Speculation | Mapping[str, Any] | str | None, **arguments: Any) -> "ModelOptions":
        """Raises UsageError for speculation that does not exist, or a value of another type."""
        return cls(speculation=Speculation.of(speculation), **arguments)

    def of_engine(self) -> EngineOptions:
        """Raises UsageError for what no engine can do."""
        return EngineOptions(
            max_num_seqs=self.max_num_seqs,
            max_draft_tokens=self.speculation.max_draft_tokens,
            reuses_prefixes=self.prefix_caching,
        )


@dataclass(frozen=True, slots=True)
class ModelParts:
    """What a model is made of, whoever drafts for it. Engines over one `runtime` share its cache: only one of them may
    have requests, and what it has left there for reuse is lost once another has run. `step_weight_bytes`: of the
    weights that one step reads.
    """

    runtime: NativeRuntime
    step_weight_bytes: int
    tokenizer: Tokenizer
    template: ChatTemplate | None

    def engine(
        self, options: ModelOptions, speculating: Speculating, records: Callable[[StepRecord], None] | None
    ) -> "LoadedModel":
        """`speculating`: what `options.speculation` created. Raises UsageError for options out of range."""
        controller, proposers, rule = speculating
        tokenizer = self.tokenizer
        engine = Engine(
            self.runtime,
            controller,
            proposers,
            rule,
            eos_token_ids=tokenizer.stop_ids,
            banned_token_ids=tokenizer.unproducible_ids,
            token_text=tokenizer.text_bytes,
            encode=tokenizer.encode_continuation,
            options=options.of_engine(),
            records=records,
        )
        return LoadedModel(self.runtime, tokenizer, Encoder(tokenizer, self.template, engine.max_length), engine, rule)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    runtime: NativeRuntime
    tokenizer: Tokenizer
    encoder: Encoder
    engine: Engine
    rule: AcceptanceRule


def load(model: str | Path, options: ModelOptions, records: Callable[[StepRecord], None] | None) -> LoadedModel:
    """Raises PacelineError for a model that cannot be had or run, UsageError for options out of range."""
    speculating = options.speculation.create()  # first: loading takes long
    return load_parts(model, options).engine(options, speculating, records)


def load_parts(model: str | Path, options: ModelOptions) -> ModelParts:
    """Raises as `load` does."""
    options.of_engine()  # first: loading takes long
    progress = options.progress if options.progress is not None else SilentProgress()
    with open_model(model, quantization=options.quantization, progress=progress) as opened:
        template = opened.chat_template(options.chat_template)  # first: a name may be wrong, and loading takes long
        tokenizer = opened.tokenizer()
        native = _native_options(options, opened.config.context_length, tokenizer.vocab_size)
        runtime = NativeRuntime.load(opened, native, progress)
        return ModelParts(runtime, step_weight_bytes(opened), tokenizer, template)


def _native_options(options: ModelOptions, context_length: int, vocab_size: int) -> NativeOptions:
    defaults = NativeOptions()
    num_seqs = options.max_num_seqs
    return NativeOptions(
        max_length=options.max_model_len,
        num_threads=options.num_threads,
        vocab_size=vocab_size,
        num_pages=_num_pages(options, context_length),
        max_rows=max(defaults.max_rows, 2 * num_seqs),
        max_logits_rows=max(defaults.max_logits_rows, num_seqs),
    )


def _num_pages(options: ModelOptions, context_length: int) -> int | None:
    """None for what one sequence needs."""
    length = options.max_model_len if options.max_model_len is not None else context_length
    if type(length) is not int or not 1 <= length <= context_length:
        return None  # the runtime refuses it by name
    num_tokens = options.cache_tokens
    if num_tokens is None:
        one = length + SPARE_SLOTS
        return -(-max(one, min(options.max_num_seqs * one, MAX_DEFAULT_CACHE_TOKENS)) // PAGE_SIZE)
    if type(num_tokens) is not int or not length <= num_tokens <= MAX_CACHE_TOKENS:
        raise UsageError(
            f"cache_tokens is {num_tokens!r}; expected an integer from {length}, so that one request of max_model_len "
            f"fits, to {MAX_CACHE_TOKENS}"
        )
    return -(-num_tokens // PAGE_SIZE)
