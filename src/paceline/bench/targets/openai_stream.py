"""An answer from the events of OpenAI's streaming interface, in chat's shape or completions'.

How many tokens a chunk holds is what that interface leaves open, and with speculation it is what matters. It is taken
from, in this order: the chunk's `token_ids`; its `logprobs`; what has been generated so far, which vLLM and SGLang tell
with every chunk as `usage` and llama.cpp as `timings`. From a server that tells none of these only the sum is known,
from the last event's `usage`: then the first chunk with text is taken for one token, and the others share the rest
evenly. Rates over a whole answer are right then as far as the first chunk really was one token, as it is where prefill
yields it; a rate over a part of an answer is not.

Every event is a chunk. llama.cpp's server sends one for each token, those that it checked together too, where vLLM and
SGLang send one for each step: the gaps between chunks are not to be compared across them, all other times are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.bench.base import Answer, Chunk
from paceline.bench.targets.answer_counts import detailed_counts, timing_counts
from paceline.bench.targets.json_fields import (
    EndpointError,
    checked_count,
    decoded,
    error_message,
    fields,
    items,
    number,
    text,
)

DONE = "[DONE]"
TEXTS = ("reasoning_content", "reasoning", "content")  # in the order in which a delta's fields were generated
FAILED = ("error", "abort")  # reasons to finish that are none
COUNTERS = ("metrics", "sglext", "timings")


@dataclass(frozen=True, slots=True)
class _Piece:
    """`num_tokens`: None where the server did not tell it."""

    time: float
    num_tokens: int | None


class AnswerReader:
    """Events go in with the times at which they came, an answer comes out. `is_counted`: the server's counters are read
    over the whole session, and are worth more than llama.cpp's of one answer."""

    def __init__(self, *, is_counted: bool) -> None:
        self._is_counted = is_counted
        self._pieces: list[_Piece] = []
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._has_ids = True  # of everything so far
        self._has_counts = True  # likewise
        self._num_told = 0
        self._last: dict[str, Any] = {}  # the latest of every field that stands beside the choices
        self._finish_reason: str | None = None
        self._finish_time = 0.0

    def add(self, time: float, data: str) -> None:
        """Raise EndpointError for an event that is an error, or no event of this interface."""
        if data.strip() == DONE:
            return
        event = decoded(data, "an event of the stream")
        if event.get("error") is not None:
            raise EndpointError(f"the server broke off: {error_message(event)}")
        self._last |= {name: event[name] for name in (*COUNTERS, "usage") if event.get(name) is not None}
        for choice in items(event, "choices"):
            if not isinstance(choice, dict):
                raise EndpointError(f"the server sent {choice!r:.100} in 'choices'; expected objects")
            if number(choice, "index") in (None, 0):
                self._add_choice(time, choice, event)

    def answer(self) -> Answer:
        """Raise EndpointError for a stream that ended before the answer did."""
        if self._finish_reason is None:
            raise EndpointError("the stream ended before the answer did: no event told a finish_reason")
        if self._finish_reason in FAILED:
            raise EndpointError(f"the server broke off: finish_reason {self._finish_reason!r}")
        num_tokens = self._num_tokens()
        is_told = self._has_ids and len(self._ids) == num_tokens
        counts = detailed_counts(self._last, num_tokens)
        if counts is None and not self._is_counted:
            counts = timing_counts(self._last)
        return Answer(
            prompt_tokens=number(fields(self._last, "usage"), "prompt_tokens") or 0,
            num_tokens=num_tokens,
            chunks=self._chunks(num_tokens),
            text=_joined(self._texts),
            token_ids=tuple(self._ids) if is_told else None,
            finish_reason=self._finish_reason,
            counts=counts,
        )

    def failed(self, error: str) -> Answer:
        """What had come when it went wrong."""
        chunks = tuple(Chunk(piece.time, piece.num_tokens or 1) for piece in self._pieces)
        return Answer(
            prompt_tokens=0,
            num_tokens=sum(chunk.num_tokens for chunk in chunks),
            chunks=chunks,
            text=_joined(self._texts),
            finish_reason="error",
            error=error,
        )

    def _add_choice(self, time: float, choice: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        delta = fields(choice, "delta")
        written = "".join(text(delta, name) for name in TEXTS) or text(choice, "text")
        num_tokens = self._num_in(choice, event)
        if num_tokens or (written and num_tokens is None):
            self._pieces.append(_Piece(time, num_tokens))
            self._has_counts = self._has_counts and num_tokens is not None
        if written:
            self._texts.append(written)
            self._has_ids = self._has_ids and choice.get("token_ids") is not None
        if text(choice, "finish_reason"):
            self._finish_reason, self._finish_time = text(choice, "finish_reason"), time

    def _num_in(self, choice: Mapping[str, Any], event: Mapping[str, Any]) -> int | None:
        """None where the server does not tell, for this chunk or for one before it."""
        ids = [checked_count("token_ids", token) for token in items(choice, "token_ids")]
        self._ids += ids
        told = number(fields(event, "usage"), "completion_tokens")
        if told is None:
            told = number(fields(event, "timings"), "predicted_n")
        num_before, self._num_told = self._num_told, max(self._num_told, told or 0)
        if ids:
            return len(ids)
        if with_logprobs := _num_logprobs(choice):
            return with_logprobs
        return self._num_told - num_before if told is not None and self._has_counts else None

    def _num_tokens(self) -> int:
        usage = number(fields(self._last, "usage"), "completion_tokens")
        counted = [piece.num_tokens for piece in self._pieces if piece.num_tokens is not None]
        if usage is not None:
            if usage < sum(counted):
                raise EndpointError(f"the server's usage is {usage} tokens, and its events hold {sum(counted)}")
            return usage
        if len(counted) < len(self._pieces) or not counted:
            raise EndpointError(
                "the server told no usage: the answer's tokens cannot be counted "
                "(it has to know stream_options.include_usage, or tell token_ids or logprobs)"
            )
        return sum(counted)

    def _chunks(self, num_tokens: int) -> tuple[Chunk, ...]:
        """What no chunk told of came with the finish: an end-of-text token, which has no text."""
        pieces, counted = self._pieces, [piece.num_tokens for piece in self._pieces if piece.num_tokens is not None]
        if len(counted) < len(pieces):
            shares = _shares(num_tokens, len(pieces))
            return tuple(Chunk(piece.time, share) for piece, share in zip(pieces, shares, strict=True))
        chunks = [Chunk(piece.time, count) for piece, count in zip(pieces, counted, strict=True)]
        if num_tokens > sum(counted) or not chunks:
            chunks.append(Chunk(self._finish_time, num_tokens - sum(counted)))
        return tuple(chunks)


def _joined(texts: Sequence[str]) -> str:
    """JSON can hold half a surrogate pair, which can be no part of a later turn's request; the other half may be in the
    next event."""
    return "".join(texts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _num_logprobs(choice: Mapping[str, Any]) -> int:
    """Tokens that a chunk tells log probabilities of: `content` in chat's shape, `tokens` in completions'."""
    logprobs = fields(choice, "logprobs")
    return len(items(logprobs, "content")) or len(items(logprobs, "tokens"))


def _shares(num_tokens: int, num_chunks: int) -> Sequence[int]:
    """One token for the first chunk, an equal part of the rest for each other one; all for a chunk that is alone."""
    if num_chunks == 1:
        return (num_tokens,)
    first, others = min(num_tokens, 1), num_chunks - 1
    rest = num_tokens - first
    return (first, *(rest * (i + 1) // others - rest * i // others for i in range(others)))
