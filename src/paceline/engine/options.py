"""How an engine fills its steps: how many sequences and rows ride in one, and what is reserved for drafts."""

from dataclasses import dataclass

from paceline.checks import check_flag, check_integer
from paceline.errors import UsageError
from paceline.runtime.base import RuntimeInfo

DEFAULT_MAX_NUM_SEQS = 16
MAX_NUM_SEQS = 1024
DEFAULT_PREFILL_CHUNK = 256  # rows; enough to use the machine fully, few enough to notice an interrupt soon
DEFAULT_MIXED_PREFILL_CHUNK = 32  # two passes of the kernels' 16 rows: what a running stream waits for at most


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """`max_num_seqs`: sequences that run at the same time; None is 16, or fewer where the runtime cannot.

    `token_budget`: rows of one forward, verification rows included; None is the runtime's own limit. `prefill_chunk`:
    prompt rows of a step in which nothing decodes; `mixed_prefill_chunk`: of one in which something does, so that a
    long prompt does not stall running streams. `max_draft_tokens`: the most that a sequence drafts in a step, for which
    pages are set aside when it is admitted; None is what one forward can verify. `reuses_prefixes`: whether requests
    share what equal beginnings have left in the cache.
    """

    max_num_seqs: int | None = None
    token_budget: int | None = None
    prefill_chunk: int = DEFAULT_PREFILL_CHUNK
    mixed_prefill_chunk: int = DEFAULT_MIXED_PREFILL_CHUNK
    max_draft_tokens: int | None = None
    reuses_prefixes: bool = True

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "token_budget", "prefill_chunk", "mixed_prefill_chunk", "max_draft_tokens"):
            value = getattr(self, name)
            lowest = 0 if name == "max_draft_tokens" else 1
            if name.endswith("_chunk") or value is not None:
                check_integer(name, value, lowest)
        if self.max_num_seqs is not None:
            _check_at_most("max_num_seqs", self.max_num_seqs, MAX_NUM_SEQS, "the limit of this engine")
        check_flag("reuses_prefixes", self.reuses_prefixes)


@dataclass(frozen=True, slots=True)
class Limits:
    """`EngineOptions` made whole for one runtime.

    Every running sequence can have a row with logits, and a prompt can have one beside all of them, in every step.
    """

    max_num_seqs: int
    token_budget: int
    max_logits_rows: int
    prefill_chunk: int
    mixed_prefill_chunk: int
    max_draft_tokens: int

    @classmethod
    def of(cls, options: EngineOptions, info: RuntimeInfo, *, is_drafting: bool) -> "Limits":
        """`is_drafting`: there are proposers. Raises UsageError for options that the runtime cannot serve."""
        budget = info.max_rows if options.token_budget is None else options.token_budget
        _check_at_most("token_budget", budget, info.max_rows, "the rows of one forward of this runtime")
        possible = min(info.max_logits_rows, max(1, budget - 1))
        seats = min(DEFAULT_MAX_NUM_SEQS, possible) if options.max_num_seqs is None else options.max_num_seqs
        _check_at_most("max_num_seqs", seats, possible, "what one forward of this runtime has rows and logits for")
        verifiable = min(budget, info.max_logits_rows) - 1 if is_drafting else 0
        drafted = options.max_draft_tokens
        return cls(
            max_num_seqs=seats,
            token_budget=budget,
            max_logits_rows=info.max_logits_rows,
            prefill_chunk=min(options.prefill_chunk, budget),
            mixed_prefill_chunk=min(options.mixed_prefill_chunk, budget),
            max_draft_tokens=verifiable if drafted is None else min(drafted, verifiable),
        )


def _check_at_most(name: str, value: int, highest: int, what: str) -> None:
    if value > highest:
        raise UsageError(f"{name} is {value}; expected at most {highest}, {what}")
