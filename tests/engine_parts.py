"""The parts of an engine under random walks: they look closer than the shipped ones, and they can be struck."""

from collections.abc import Callable, Sequence
from random import Random

from paceline.acceptance import MatchRule, Outcome, Verification
from paceline.controller import OFF, BatchView, Controller, Plan, PlanEntry
from paceline.proposers import Ask, Draft
from paceline.runtime import Scores, Segment
from paceline.telemetry import Reason, StepRecord
from paceline.testing import LogitsTable, ScriptedDraft, TableModel, TableProposer, decode_plainly

Hook = Callable[[str], None]  # is told which moment of a step it is


class WatchedModel(TableModel):
    """Keeps beside every slot the namespace that it was written for, and lets nobody read another's."""

    def __init__(self, table: LogitsTable, vocab_size: int, hook: Hook, **sizes: int) -> None:
        super().__init__(table, vocab_size, num_padding=2, **sizes)
        self._hook = hook
        self._owners: list[list[str | None]] = [[None] * self.info.page_size for _ in range(self.info.num_pages)]
        self.namespaces: dict[int, str] = {}  # by sequence

    def forward(self, segments: Sequence[Segment]) -> Scores:
        self._hook("before")
        for segment in segments:
            self._watch(segment)
        scores = super().forward(segments)
        self._hook("after")
        return scores

    def copy_slots(self, pages: Sequence[int], moves: Sequence[tuple[int, int]]) -> None:
        super().copy_slots(pages, moves)
        for source, destination in moves:
            page, offset = self._where(pages, destination)
            source_page, source_offset = self._where(pages, source)
            self._owners[page][offset] = self._owners[source_page][source_offset]

    def copy_page(self, source: int, destination: int) -> None:
        super().copy_page(source, destination)
        self._owners[destination] = list(self._owners[source])

    def _watch(self, segment: Segment) -> None:
        namespace = self.namespaces[segment.sequence]
        for slot in range(segment.length):
            page, offset = self._where(segment.pages, slot)
            owner = self._owners[page][offset]
            assert owner == namespace, f"sequence {segment.sequence} of {namespace!r} sees a slot of {owner!r}"
        for slot in range(segment.length, segment.length + len(segment.tokens)):
            page, offset = self._where(segment.pages, slot)
            self._owners[page][offset] = namespace


class WatchedProposer(TableProposer):
    """Its drafts must be what its model says behind the committed tokens, whatever lies in its cache."""

    def __init__(self, table: LogitsTable, model: TableModel) -> None:
        super().__init__(model)
        self._table = table

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        drafts = super().propose(asks)
        for draft in drafts:
            right = decode_plainly(self._table, self._contexts[draft.sequence], len(draft.tokens))
            assert list(draft.tokens) == right, f"the draft model of sequence {draft.sequence} saw something else"
        return drafts


class HookedRule(MatchRule):
    def __init__(self, hook: Hook) -> None:
        self._hook = hook

    def accept(self, verification: Verification) -> Outcome:
        self._hook("accept")
        return super().accept(verification)


class CapriciousController(Controller):
    """Another proposer and another number of draft tokens each time, none at all among them."""

    def __init__(self, proposers: Sequence[str], random: Random) -> None:
        self._proposers = proposers
        self._random = random

    def plan(self, batch: BatchView) -> Plan:
        entries, num_left = list[PlanEntry](), batch.max_draft_rows
        for view in batch.sequences:
            wanted = view.num_speculative_tokens
            if wanted is None:
                wanted = self._random.choice((0, 0, 1, 2, 3, 5, 8))
            num_tokens = min(wanted, view.room, num_left)
            num_left -= num_tokens
            proposer = self._random.choice(self._proposers) if num_tokens else OFF
            entries.append(PlanEntry(view.sequence, proposer, num_tokens, Reason.SCRIPTED))
        return Plan(tuple(entries))

    def observe(self, record: StepRecord) -> None:
        pass


def informed_script(
    table: LogitsTable, vocab_size: int, seed: int, share_right: float
) -> Callable[[tuple[int, ...], int], ScriptedDraft]:
    """Chains and trees whose tokens are the target's own as often as `share_right` says."""

    def script(context: tuple[int, ...], num_tokens: int) -> ScriptedDraft:
        random = Random(f"{seed} {context}")
        is_tree = random.random() < 0.5
        tokens, parents, paths = list[int](), list[int](), dict[int, tuple[int, ...]]({-1: ()})
        for i in range(num_tokens):
            parent = random.randint(-1, i - 1) if is_tree else i - 1
            (right,) = decode_plainly(table, (*context, *paths[parent]), 1)
            tokens.append(right if random.random() < share_right else random.randrange(vocab_size))
            parents.append(parent)
            paths[i] = (*paths[parent], tokens[i])
        return ScriptedDraft(tuple(tokens), tuple(parents) if is_tree else ())

    return script
