"""What a call says of its requests beside their prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from secrets import randbits
from typing import Self

from paceline.acceptance.grammar import Grammar, GrammarCompiler
from paceline.acceptance.noise import sample_seed
from paceline.engine import Request
from paceline.errors import UsageError
from paceline.response_format import ResponseFormat, checked_format
from paceline.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class Terms:
    """Common to all prompts of a call. `grammar`: what the response format of `params` is compiled to."""

    params: SamplingParams
    namespace: str
    priority: int
    grammar: Grammar | None = None

    @classmethod
    def of(cls, params: SamplingParams | None, namespace: str, priority: int) -> Self:
        """Raises UsageError for `params` of another type; None stands for the defaults."""
        if params is not None and not isinstance(params, SamplingParams):
            raise UsageError(f"params is {params!r}; expected SamplingParams or None")
        return cls(params if params is not None else SamplingParams(), namespace, priority)

    @property
    def response_format(self) -> ResponseFormat | None:
        return checked_format(self.params.response_format)

    def compiled(self, compiler: GrammarCompiler) -> Self:
        """With the grammar, where there is a response format; a new one takes a while. Raises UsageError for one that
        cannot be compiled."""
        wanted = self.response_format
        return self if wanted is None else replace(self, grammar=compiler.compile(wanted))

    def choices(self, ids: Sequence[int]) -> list[Request]:
        """The requests that answer one prompt, `params.n` of them. Without a seed one is drawn; at temperature 0, where
        there is no noise, it is 0."""
        params, seed = self.params, self.params.seed
        if seed is None:
            seed = randbits(64) if params.temperature else 0
        others = replace(params, prompt_logprobs=None) if params.n > 1 else params  # the prompt is scored once
        return [
            Request(
                ids,
                others if i else params,
                sample_seed=sample_seed(seed, i),
                namespace=self.namespace,
                priority=self.priority,
                grammar=self.grammar,
            )
            for i in range(params.n)
        ]

    def only_choice(self, ids: Sequence[int]) -> Request:
        """Raises UsageError where more than one answer is wanted: a stream is one."""
        if self.params.n != 1:
            raise UsageError(f"n is {self.params.n}; a stream is one answer, ask for each with a seed of its own")
        return self.choices(ids)[0]
