"""What is asked of the engine, what it keeps while it answers, and what it hands back. Token ids only, no text.

The fields of a request are final. Those that no part of this version acts on may only have their defaults: a value that
would be ignored is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import index

from paceline.acceptance.base import Sampler
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams
from paceline.value import value


class FinishReason(StrEnum):
    """Why a sequence ended. A stop and a limit at the same token are a stop."""

    STOP = "stop"  # an end-of-text or stop token was emitted
    LENGTH = "length"  # the request's limit, or the capacity of the model
    ERROR = "error"  # the target's logits were not finite
    ABORT = "abort"  # the caller withdrew the request


@dataclass(frozen=True, slots=True)
class Request:
    """`sample_seed`: keys the noise of sampling; at temperature 0 there is none, and every seed gives the same tokens.
    `namespace`: the tenant; nothing that is remembered passes from one to another. `task_class`: a label for the
    controller. `num_speculative_tokens`: draft tokens for each step instead of the controller's own choice; 0 is none.

    Not yet acted on: `prediction`, token ids that the answer may repeat; `deadline`, seconds from arrival by which it
    is wanted; `priority`, higher ones first.
    """

    prompt: Sequence[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    sample_seed: int = 0
    namespace: str = ""
    task_class: str | None = None
    prediction: Sequence[int] | None = None
    num_speculative_tokens: int | None = None
    deadline: float | None = None
    priority: int = 0


@dataclass(slots=True, eq=False)
class SequenceState:
    """A request under way.

        tokens[0 : num_prompt)      prompt
        tokens[num_prompt : )       emitted
        tokens[0 : length)          cached; while decoding, length == len(tokens) - 1

    `max_tokens` is what the request's limit and the capacity allow, the smaller.
    """

    id: int
    request: Request
    tokens: list[int]
    num_prompt: int
    max_tokens: int
    stop_ids: frozenset[int]
    sampler: Sampler
    length: int = 0

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.num_prompt

    @property
    def is_prefilling(self) -> bool:
        return self.length < self.num_prompt


@value
class StepOutput:
    """What one step yields for one sequence: its new tokens, the stop token included, and why it ended, if it did.

    `is_draft[i]` tells whether `tokens[i]` is an accepted draft token; the others are the target's own.
    """

    sequence: int
    tokens: tuple[int, ...] = ()
    is_draft: tuple[bool, ...] = ()
    finish_reason: FinishReason | None = None


def checked_prompt(request: Request, vocab_size: int, max_length: int) -> list[int]:
    """The prompt as a list of its own. Raises UsageError for a request that could not run, before it does."""
    try:
        prompt = [index(token) for token in request.prompt]
    except TypeError as error:
        raise UsageError(f"the prompt holds something that is no token id: {error}") from None
    if not prompt:
        raise UsageError("the prompt is empty; expected at least one token")
    if len(prompt) >= max_length:
        raise UsageError(
            f"the prompt has {len(prompt)} tokens, and prompt and answer together may have {max_length}; "
            f"shorten it to at most {max_length - 1}"
        )
    _check_ids("the prompt", prompt, vocab_size)
    _check_ids("stop_token_ids", request.params.stop_token_ids, vocab_size)
    for name, default in (("prediction", None), ("deadline", None), ("priority", 0)):
        if getattr(request, name) != default:
            raise UsageError(f"{name} is {getattr(request, name)!r}; this version acts on no {name}, leave it out")
    override = request.num_speculative_tokens
    if override is not None and (not isinstance(override, int) or isinstance(override, bool) or override < 0):
        raise UsageError(f"num_speculative_tokens is {override!r}; expected None or an integer of at least 0")
    return prompt


def _check_ids(where: str, tokens: Sequence[int], vocab_size: int) -> None:
    if tokens and not (min(tokens) >= 0 and max(tokens) < vocab_size):
        wrong = next(token for token in tokens if not 0 <= token < vocab_size)
        raise UsageError(f"{where} holds the token id {wrong}; expected 0 to {vocab_size - 1}")
