"""An engine over one small table, and what it has handed out: for tests that ask several things of it."""

from collections.abc import Callable, Iterable, Sequence

from paceline.acceptance import MatchRule
from paceline.controller import Controller, OffController
from paceline.engine import Engine, EngineOptions, FinishReason, Request, StepOutput
from paceline.proposers import Proposer
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord
from paceline.testing import ScriptedDraft, TableModel, decode_plainly, seeded_table

VOCAB = 5
TABLE = seeded_table(VOCAB, seed=3)
TEXTS = (b"a", b"b", b"c", b"d", b"e")


def right(context: tuple[int, ...], num: int) -> ScriptedDraft:
    return ScriptedDraft(tuple(decode_plainly(TABLE, context, num)))


def wrong(context: tuple[int, ...], num: int) -> ScriptedDraft:
    return ScriptedDraft(tuple((token + 1) % VOCAB for token in decode_plainly(TABLE, context, num)))


class Desk:
    """An engine over TABLE, and what it has handed out."""

    def __init__(
        self,
        controller: Controller | None = None,
        proposers: Sequence[Proposer] = (),
        *,
        eos: Iterable[int] = (),
        num_pages: int = 16,
        page_size: int = 4,
        max_length: int = 64,
        on_record: Callable[[StepRecord], object] | None = None,
        model: TableModel | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        self.runtime = model or TableModel(
            TABLE, VOCAB, num_pages=num_pages, page_size=page_size, max_length=max_length
        )
        self.records: list[StepRecord] = []
        self.outputs: list[StepOutput] = []
        self._on_record = on_record
        self.engine = Engine(
            self.runtime,
            controller or OffController(),
            proposers,
            MatchRule(),
            eos_token_ids=eos,
            token_text=TEXTS.__getitem__,
            options=options,
            records=self._observe,
        )

    def _observe(self, record: StepRecord) -> None:
        self.records.append(record)
        if self._on_record is not None:
            self._on_record(record)

    def ask(self, prompt: Sequence[int], max_tokens: int | None = 12, **fields: object) -> int:
        names = ("priority", "namespace", "num_speculative_tokens")
        own = {name: fields.pop(name) for name in names if name in fields}
        return self.engine.add_request(Request(prompt, SamplingParams(max_tokens, **fields), **own))  # type: ignore[arg-type]

    def step(self, num: int = 1) -> list[StepOutput]:
        new = []
        for _ in range(num):
            new += self.engine.step()
            self.engine.check_integrity()
        self.outputs += new
        return new

    def drain(self) -> None:
        for _ in range(1000):
            if not self.engine.has_unfinished:
                assert self.engine.num_free_pages == self.runtime.info.num_pages
                return
            self.step()
        raise AssertionError("the sequences do not end")

    def tokens(self, sequence: int) -> list[int]:
        return [token for output in self.outputs if output.sequence == sequence for token in output.tokens]

    def reason(self, sequence: int) -> FinishReason | None:
        return next(o.finish_reason for o in reversed(self.outputs) if o.sequence == sequence)

    def num_reused(self, sequence: int) -> int:
        return next(o.num_reused for o in self.outputs if o.sequence == sequence)
