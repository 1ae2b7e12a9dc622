"""What the engine hands back for a sequence: its new tokens, and why it ended, if it did."""

from enum import StrEnum

from paceline.engine.logprobs import TokenLogprobs
from paceline.engine.stops import StopMatch
from paceline.telemetry.base import SequenceStep
from paceline.value import value


class FinishReason(StrEnum):
    """Why a sequence ended. A stop and a limit at the same token are a stop."""

    STOP = "stop"  # an end-of-text or stop token was emitted, a stop string or a grammar's text completed
    LENGTH = "length"  # the request's limit, or the capacity of the model
    ERROR = "error"  # no token could be drawn: logits that are not finite, everything banned, a processor that failed
    ABORT = "abort"  # the caller withdrew the request


@value
class OutputTimes:
    """Seconds of `perf_counter`: when the request was queued, when its first step began, and when this step ended."""

    arrived: float
    started: float
    now: float


@value
class StepOutput:
    """What one step yields for one sequence: its new tokens, the stop token included, and why it ended, if it did.

    `is_draft[i]` tells whether `tokens[i]` is an accepted draft token; the others are the target's own. `stop`: the
    stop string that the last of the tokens completed. `error`: what went wrong, where that is the reason. `step`: the
    sequence's part in the step's record. `num_reused`: prompt tokens that were in the cache already. `logprobs`: one
    for each token, where the request wants them; `prompt_logprobs`: of the prompt tokens that this step scored, in
    order, from the second one on. Nothing but the reason is known of a sequence that was withdrawn.
    """

    sequence: int
    tokens: tuple[int, ...] = ()
    is_draft: tuple[bool, ...] = ()
    finish_reason: FinishReason | None = None
    stop: StopMatch | None = None
    error: str | None = None
    step: SequenceStep | None = None
    times: OutputTimes | None = None
    num_reused: int = 0
    logprobs: tuple[TokenLogprobs, ...] = ()
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()
