"""The canonical sampler: a sequence's logits processors, then the one draw that array code and compiled code share."""

from collections.abc import Collection, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from paceline._native import search_row
from paceline.acceptance import reference
from paceline.acceptance.base import Law, NonFiniteLogitsError, Sampler
from paceline.acceptance.grammar.base import GrammarMask
from paceline.acceptance.processors import (
    BadWords,
    Bits,
    Edit,
    Encode,
    FixedMask,
    LogitBias,
    LogitsProcessor,
    Mask,
    MinTokens,
    OccurrencePenalties,
    RepetitionPenalty,
    UserProcessor,
    bad_word_sequences,
)
from paceline.acceptance.processors.bits import all_but, only, unpacked
from paceline.acceptance.reference import DrawParams, NothingAllowedError
from paceline.acceptance.sampling import Draw, NativeSampler
from paceline.checks import checked_biases
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams

Row = NDArray[np.float32]


class CanonicalSampler(Sampler):
    """Draws as `params` say from rows that went through `processors`, in their order; at temperature 0 the most likely
    token. Padding behind `vocab_size` is never looked at.

    A row costs a pass over it even where no processor is active: logits that are not finite are refused as they come.
    """

    def __init__(
        self,
        seed: int,
        params: SamplingParams,
        processors: Sequence[LogitsProcessor],
        vocab_size: int,
        native: NativeSampler | None = None,
    ) -> None:
        """`processors`: edits first, as they are to be applied, then masks. `native`: draws the same tokens as array
        code, sooner; may be shared, by one caller at a time."""
        self._seed = seed
        self._params = draw_params(params)
        self._processors = tuple(processors)
        self._edits = [each for each in processors if isinstance(each, Edit)]
        self._masks = [each for each in processors if isinstance(each, Mask)]
        self._vocab_size = vocab_size
        # A function of the caller's may ban by minus infinity, which compiled code refuses in a row.
        self._native = None if any(isinstance(edit, UserProcessor) for edit in self._edits) else native

    @property
    def seed(self) -> int:
        return self._seed

    def extend(self, tokens: Sequence[int]) -> None:
        for processor in self._processors:
            processor.extend(tokens)

    def sample(self, logits: Row, position: int, drafted: Sequence[int] = ()) -> int:
        """Raises NonFiniteLogitsError, or the NothingAllowedError among them where the processors left no token."""
        if self._params.temperature == 0:
            best = self._search(logits, position)
            if self._stands(best, drafted):
                return best
        row, mask = self._edited(logits, position, drafted), self._allowed(drafted)
        if self._native is None:
            return reference.sample(self._masked(row, mask, position), self._params, self._seed, position)
        try:
            return self._native.sample(row, Draw(self._params, self._seed, position, mask=mask))
        except NothingAllowedError:
            raise self._nothing_allowed(position) from None

    def law(self, logits: Row, position: int, drafted: Sequence[int] = ()) -> Law:
        """Raises as `sample` does."""
        self._search(logits, position)
        row = self._masked(self._edited(logits, position, drafted), self._allowed(drafted), position)
        law: Law = reference.law(row, self._params)
        return law

    def _search(self, logits: Row, position: int) -> int:
        """The most likely token of the row as it comes."""
        best = search_row(logits, self._vocab_size)
        if best < 0:
            raise NonFiniteLogitsError(f"the logits that decide position {position} are not finite")
        return best

    def _stands(self, best: int, drafted: Sequence[int]) -> bool:
        """Whether the most likely token stays it: it does where nothing is edited and it is allowed."""
        return not any(edit.is_active(drafted) for edit in self._edits) and all(
            mask.allows(best, drafted) for mask in self._masks if mask.is_active(drafted)
        )

    def _edited(self, logits: Row, position: int, drafted: Sequence[int]) -> Row:
        """The row as the edits leave it; as it comes, unchecked, where none is active and compiled code will check."""
        edits = [edit for edit in self._edits if edit.is_active(drafted)]
        if edits or self._native is None:
            self._search(logits, position)  # before an edit can hide it
        row = logits[: self._vocab_size]
        if edits:
            row = row.copy()
        for edit in edits:
            edit.apply(row, drafted)
        return row

    def _allowed(self, drafted: Sequence[int]) -> Bits | None:
        """What all masks allow; None for everything."""
        masks = [mask.allowed(drafted) for mask in self._masks if mask.is_active(drafted)]
        return reduce(np.bitwise_and, masks) if masks else None

    def _masked(self, row: Row, mask: Bits | None, position: int) -> Row:
        if mask is not None:
            row = np.where(unpacked(mask, self._vocab_size), row, np.float32(-np.inf))
        if not row.max() > -np.inf:
            raise self._nothing_allowed(position)
        return row

    def _nothing_allowed(self, position: int) -> NothingAllowedError:
        is_grammar = any(isinstance(mask, GrammarMask) for mask in self._masks)
        reason = (
            "; what the response format asks for there is not to be had within the other limits" if is_grammar else ""
        )
        return NothingAllowedError(f"no token id is allowed at position {position}{reason}")


def create_sampler(
    params: SamplingParams,
    *,
    seed: int,
    prompt: Sequence[int],
    vocab_size: int,
    banned_ids: Collection[int] = (),
    stop_ids: Collection[int] = (),
    encode: Encode | None = None,
    grammar: Mask | None = None,
    native: NativeSampler | None = None,
) -> CanonicalSampler:
    """The sampler of one sequence, as it stands behind `prompt`.

    `banned_ids`: never drawn, as ids that only fill the vocabulary. `stop_ids`: all that end this answer. `encode`: for
    `bad_words` (see `Encode`); None where there is no tokenizer. `grammar`: one more mask, of this sequence alone.
    `native`: see `CanonicalSampler`.

    Raises UsageError for token ids that the model lacks and where no token could come first.
    """
    biases = checked_biases(params.logit_bias)
    _check_ids("logit_bias", [token for token, _ in biases], vocab_size)
    _check_ids("allowed_token_ids", params.allowed_token_ids or (), vocab_size)
    edits: list[Edit] = [UserProcessor(function) for function in params.logits_processors]
    if params.repetition_penalty != 1:
        edits.append(RepetitionPenalty(params.repetition_penalty, prompt))
    if params.presence_penalty or params.frequency_penalty:
        edits.append(OccurrencePenalties(params.presence_penalty, params.frequency_penalty))
    if biases:
        edits.append(LogitBias(biases))
    masks = _masks(params, vocab_size, banned_ids, stop_ids, encode)
    if grammar is not None:
        masks.append(grammar)
    _check_first(masks, vocab_size, params, has_grammar=grammar is not None)
    return CanonicalSampler(seed, params, [*edits, *masks], vocab_size, native)


def draw_params(params: SamplingParams) -> DrawParams:
    """What of the sampling parameters is left to do for a processed row."""
    return DrawParams(float(params.temperature), max(params.top_k, 0), float(params.top_p), float(params.min_p))


def _masks(
    params: SamplingParams,
    vocab_size: int,
    banned_ids: Collection[int],
    stop_ids: Collection[int],
    encode: Encode | None,
) -> list[Mask]:
    masks = list[Mask]()
    if params.bad_words:
        if encode is None:
            raise UsageError(f"bad_words is {params.bad_words!r:.100}; this engine has no tokenizer to find them with")
        masks.append(BadWords(bad_word_sequences(params.bad_words, encode), vocab_size))
    if params.allowed_token_ids is not None:
        masks.append(FixedMask(only(params.allowed_token_ids, vocab_size)))
    banned = [token for token in banned_ids if token < vocab_size]
    if banned:
        masks.append(FixedMask(all_but(banned, vocab_size)))
    early = [token for token in stop_ids if token < vocab_size]
    if params.min_tokens and early:
        masks.append(MinTokens(params.min_tokens, early, vocab_size))
    return masks


def _check_ids(name: str, tokens: Sequence[int], vocab_size: int) -> None:
    for token in tokens:
        if token >= vocab_size:
            raise UsageError(f"{name} holds the token id {token}; expected 0 to {vocab_size - 1}")


def _check_first(masks: Sequence[Mask], vocab_size: int, params: SamplingParams, *, has_grammar: bool) -> None:
    """Raise UsageError where no token could come first."""
    allowed: list[Bits] = [mask.allowed(()) for mask in masks if mask.is_active(())]
    if not allowed or reduce(np.bitwise_and, allowed).any():
        return
    given = [
        f"{name} is {getattr(params, name)!r:.60}"
        for name in ("allowed_token_ids", "bad_words", "min_tokens")
        if getattr(params, name)
    ]
    given += ["a grammar is given"] if has_grammar else []
    raise UsageError(
        f"{' and '.join(given) or 'ids are banned'}: that leaves none of {vocab_size} tokens to begin with"
    )
