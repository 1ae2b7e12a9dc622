"""What is asked of the engine, and what it keeps while it answers. Token ids only, no text.

The fields of a request are final. Those that no part of this version acts on may only have their defaults: a value that
would be ignored is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.acceptance.base import Sampler
from paceline.acceptance.grammar.base import Grammar, GrammarMask
from paceline.engine.stops import StopStrings
from paceline.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class Request:
    """`sample_seed`: keys the noise of sampling; at temperature 0 there is none, and every seed gives the same tokens.
    `namespace`: the tenant; nothing that is remembered passes from one to another. `task_class`: a label for the
    controller. `num_speculative_tokens`: draft tokens for each step instead of the controller's own choice; 0 is none.
    `priority`: higher ones first; among equals, first come, first served. `fork_of`: a sequence with the same prompt,
    another choice of one request (n > 1); this one begins with the positions that it has computed. `grammar`: what
    `params.response_format` was compiled to, which takes too long for an engine; every choice gets a state of its own.

    Not yet acted on: `prediction`, token ids that the answer may repeat; `deadline`, seconds from arrival by which it
    is wanted.
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
    fork_of: int | None = None
    grammar: Grammar | None = None


@dataclass(slots=True, eq=False)
class SequenceState:
    """A request under way.

        tokens[0 : num_prompt)      prompt
        tokens[num_prompt : )       emitted
        tokens[0 : length)          cached; while decoding, length == len(tokens) - 1

    `max_tokens` is what the request's limit and the capacity allow, the smaller. `is_running`: it holds pages;
    `is_decoding`: and all but its newest token are cached. A preemption takes both away and sets `length` to 0.
    `is_followed`: the proposers know it. `is_held`: its consumer is behind, so it takes no part in steps.
    `num_reused`: prompt positions that were in the cache when it was first admitted. `num_prompt_logprobs`: prompt
    tokens whose log-probabilities have been told, where they are wanted; a preemption computes none twice.
    `arrived` and `started`: seconds of `perf_counter`, when it was queued and when it was first admitted.
    """

    id: int
    request: Request
    tokens: list[int]
    num_prompt: int
    max_tokens: int
    stop_ids: frozenset[int]
    sampler: Sampler
    stops: StopStrings | None = None
    grammar: GrammarMask | None = None
    arrived: float = 0.0
    started: float | None = None
    length: int = 0
    num_reused: int = 0
    num_prompt_logprobs: int = 0
    is_running: bool = False
    is_decoding: bool = False
    is_followed: bool = False
    is_held: bool = False

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.num_prompt

    @property
    def wants_prompt_logprobs(self) -> bool:
        """Whether rows of its prompt want logits: they can then come from no other sequence."""
        return self.request.params.prompt_logprobs is not None and self.num_prompt_logprobs < self.num_prompt

    @property
    def rank(self) -> tuple[int, int]:
        """The order of service, smallest first: by priority, then by arrival."""
        return -self.request.priority, self.id

    def preempt(self) -> None:
        """Its pages are gone; everything that was emitted stays."""
        self.is_running = self.is_decoding = False
        self.length = 0
