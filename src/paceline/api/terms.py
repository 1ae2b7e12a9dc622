"""What a call says of its requests beside their prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from paceline.engine import Request
from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class Terms:
    """Common to all prompts of a call."""

    params: SamplingParams
    namespace: str
    priority: int

    @classmethod
    def of(cls, params: SamplingParams | None, namespace: str, priority: int) -> Self:
        """Raises UsageError for `params` of another type; None stands for the defaults."""
        if params is not None and not isinstance(params, SamplingParams):
            raise UsageError(f"params is {params!r}; expected SamplingParams or None")
        return cls(params if params is not None else SamplingParams(), namespace, priority)

    def request(self, ids: Sequence[int]) -> Request:
        return Request(ids, self.params, namespace=self.namespace, priority=self.priority)
