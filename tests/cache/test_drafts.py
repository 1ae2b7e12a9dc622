"""The coordinator under a proposer with a model of its own: what it has seen, and no draft made from stale rows."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.cache import CacheCoordinator, DraftCache, PagedCache
from paceline.proposers import Ask, CacheSpec
from paceline.runtime import Segment
from paceline.testing import LogitsTable, TableModel, TableProposer, check_proposer, decode_plainly, seeded_table

VOCAB = 5
TRUTH = seeded_table(VOCAB, order=3)


def often_wrong(seen: tuple[int, ...]) -> NDArray[np.float32]:
    """The truth, but for contexts that end in 0 or 1."""
    return -TRUTH(seen) if seen[-1] < 2 else TRUTH(seen)


def always_wrong(seen: tuple[int, ...]) -> NDArray[np.float32]:
    return -TRUTH(seen)


class Loop:
    """The steps of an engine, one sequence at a time; every draft is checked against the draft model's table."""

    def __init__(
        self,
        table: LogitsTable = TRUTH,
        *,
        num_pages: int = 40,
        draft_pages: int = 40,
        draft_length: int = 64,
        draft_rows: int = 32,
        reuses_prefixes: bool = True,
    ) -> None:
        self.table = table
        self.target = TableModel(TRUTH, VOCAB, num_pages=num_pages)
        model = TableModel(table, VOCAB, num_pages=draft_pages, max_length=draft_length, max_rows=draft_rows)
        self.proposer = TableProposer(model)
        spec = self.proposer.cache_spec
        cache = PagedCache(spec.store, spec.num_pages, spec.page_size)
        self.proposer.attach(cache)
        drafts = {"table": DraftCache(cache, spec.max_length)}
        self.caches = CacheCoordinator(PagedCache(self.target, num_pages, 4), drafts, reuses_prefixes=reuses_prefixes)
        self.tokens: dict[int, list[int]] = {}
        self.num_prompt: dict[int, int] = {}

    def start(self, sequence: int, prompt: Sequence[int], namespace: str = "") -> int:
        """Read the prompt; returns how much of it was there."""
        num_reused = self.caches.admit(sequence, prompt, namespace, 1, 0)
        begin = min(num_reused, len(prompt) - 1)
        is_complete = num_reused == len(prompt)
        self.caches.reserve(sequence, 0 if is_complete else len(prompt) - begin)
        logits = self.forward(sequence, begin, prompt[begin:], len(prompt) - 1 - begin, is_complete)
        self.caches.commit(sequence, () if is_complete else range(len(prompt) - begin), len(prompt), ())
        self.tokens[sequence] = [*prompt, int(np.argmax(logits[0]))]
        self.num_prompt[sequence] = len(prompt)
        self.proposer.start(sequence, self.tokens[sequence], namespace)
        self.caches.publish(sequence, self.tokens[sequence])
        self.verify(sequence)
        return num_reused

    def forward(
        self, sequence: int, length: int, tokens: Sequence[int], first: int, is_write_suppressed: bool = False
    ) -> NDArray[np.float32]:
        wanted = tuple(range(first, len(tokens)))
        pages = self.caches.pages(sequence)
        segment = Segment(sequence, length, pages, tuple(tokens), (), wanted, (), is_write_suppressed)
        return self.target.forward([segment]).logits

    def propose(self, sequence: int, num_tokens: int) -> tuple[int, ...]:
        known = self.tokens[sequence]
        (draft,) = self.proposer.propose([Ask(sequence, num_tokens)])
        (again,) = self.proposer.propose([Ask(sequence, num_tokens)])
        assert again.tokens == draft.tokens
        assert list(draft.tokens) == decode_plainly(self.table, known, len(draft.tokens))
        assert self.caches.seen("table", sequence) < len(known)
        self.caches.check_integrity()
        return draft.tokens

    def step(self, sequence: int, num_tokens: int, num_kept: int | None = None) -> int:
        """Draft at most `num_tokens`, verify the first `num_kept`; returns how many were accepted."""
        known = self.tokens[sequence]
        draft = self.propose(sequence, num_tokens)[:num_kept] if num_tokens else ()
        self.caches.reserve(sequence, 1 + len(draft))
        targets = np.argmax(self.forward(sequence, len(known) - 1, [known[-1], *draft], 0), axis=1).tolist()
        num_accepted = 0
        while num_accepted < len(draft) and targets[num_accepted] == draft[num_accepted]:
            num_accepted += 1
        emitted = targets[: num_accepted + 1]
        self.caches.commit(sequence, range(num_accepted + 1), len(known), range(num_accepted))
        known += emitted
        self.proposer.extend(sequence, emitted)
        self.caches.publish(sequence, known)
        self.verify(sequence)
        return num_accepted

    def end(self, sequence: int) -> None:
        self.proposer.finish(sequence)
        self.caches.release(sequence)
        del self.tokens[sequence]
        self.caches.check_integrity()

    def verify(self, sequence: int) -> None:
        self.caches.check_integrity()
        known, num_prompt = self.tokens[sequence], self.num_prompt[sequence]
        assert known[num_prompt:] == decode_plainly(TRUTH, known[:num_prompt], len(known) - num_prompt)

    def lag(self, sequence: int) -> int:
        return self.caches.length(sequence) - self.caches.seen("table", sequence)


def test_contract() -> None:
    def proposer() -> TableProposer:
        made = TableProposer(TableModel(seeded_table(4, order=2), 4, num_pages=64))
        made.attach(PagedCache(made.cache_spec.store, 64, 4))
        return made

    check_proposer(proposer, 4, num_rounds=6)


def test_draft_model_lags_by_one_after_full_acceptance() -> None:
    loop = Loop()
    loop.start(0, [1, 2, 3])
    for num_tokens in (3, 1, 4, 3):
        assert loop.step(0, num_tokens) == num_tokens
        assert loop.lag(0) == 1  # the last draft token had no row


def test_catches_up_after_steps_in_which_it_was_idle() -> None:
    loop = Loop(often_wrong)
    loop.start(0, [1, 2, 3])
    seen = loop.caches.seen("table", 0)
    for _ in range(6):
        loop.step(0, 0)
    assert loop.caches.seen("table", 0) == seen == 0
    loop.step(0, 3)
    assert loop.lag(0) <= 1


def test_catches_up_in_chunks_of_what_its_runtime_can_do() -> None:
    loop = Loop(draft_rows=4)
    loop.start(0, list(range(5)) * 4)
    assert loop.step(0, 3) == 3
    assert loop.lag(0) == 1


def test_rejected_rows_are_forgotten() -> None:
    loop = Loop(always_wrong)
    loop.start(0, [1, 2, 3])
    for _ in range(8):
        assert loop.step(0, 3) == 0
        assert loop.lag(0) == 0


def test_trimmed_drafts() -> None:
    loop = Loop(often_wrong)
    loop.start(0, [1, 2, 3])
    for num_kept in (0, 1, 2, 3, 0, 2, 1, 4):
        loop.step(0, 4, num_kept)
        assert loop.lag(0) <= 1


def test_tokens_behind_a_stop_are_not_committed() -> None:
    loop = Loop()
    loop.start(0, [1, 2, 3])
    known = loop.tokens[0]
    draft = loop.propose(0, 4)
    loop.caches.reserve(0, 5)
    loop.forward(0, len(known) - 1, [known[-1], *draft], 0)
    loop.caches.commit(0, range(2), len(known), range(2))  # all are accepted; the second token emitted is a stop
    assert loop.caches.length(0) == len(known) + 1
    assert loop.lag(0) == 0
    loop.caches.check_integrity()


def test_short_context_stops_proposing() -> None:
    loop = Loop(draft_length=10)
    loop.start(0, [1, 2, 3, 4])
    accepted = []
    while len(loop.tokens[0]) < 20:
        room = loop.caches.draft_room("table", len(loop.tokens[0]))
        num_accepted = loop.step(0, 3)
        assert room is not None
        assert num_accepted == min(3, room)
        accepted.append(num_accepted)
    assert accepted[:2] == [3, 2]  # 5 known tokens, then 9: positions up to 9 have rows, and one token needs none
    assert set(accepted[2:]) == {0}
    loop.start(1, [3] * 30)  # longer than the draft model's context from the beginning
    assert loop.step(1, 3) == 0


def test_draft_room() -> None:
    loop = Loop(draft_length=10)
    assert [loop.caches.draft_room("table", num_known) for num_known in (1, 9, 10, 11, 30)] == [10, 2, 1, 0, 0]
    assert loop.caches.draft_room("ngram", 5) is None


def test_no_page_left_for_a_draft_is_an_empty_draft() -> None:
    loop = Loop(draft_pages=3, draft_length=12)
    loop.start(0, [1, 2, 3])
    loop.start(1, [2, 2, 2, 2])
    for _ in range(3):
        loop.step(0, 3)
    assert loop.propose(1, 9) == ()
    loop.end(0)
    assert loop.propose(1, 8) != ()


def test_prefixes_are_reused_in_both_caches() -> None:
    loop = Loop(often_wrong)
    prompt = [1, 2, 3, 4, 1, 1, 2, 3]
    assert loop.start(0, prompt) == 0
    loop.step(0, 3)
    assert loop.start(1, prompt) == 8  # all of it: its last token runs again and writes nothing
    assert loop.caches.seen("table", 1) == 8
    assert loop.start(2, [*prompt[:5], 0, 0]) == 5
    assert loop.caches.seen("table", 2) == 5
    for sequence in (0, 1, 2, 1, 0, 2):
        loop.step(sequence, 4)


def test_draft_model_may_have_more_of_a_prompt_than_the_target() -> None:
    loop = Loop(num_pages=3)
    prompt = [1, 2, 3, 4, 1, 1, 2]
    loop.start(0, prompt)
    loop.step(0, 2)
    loop.end(0)
    loop.caches.admit(1, [0] * 11, "", 1, 0)  # evicts all that the target had
    loop.caches.release(1)
    assert loop.start(2, prompt) == 0
    assert loop.caches.seen("table", 2) == 7
    loop.step(2, 3)


def test_preempted_sequence_finds_what_it_had() -> None:
    loop = Loop()
    loop.start(0, [1, 2, 3])
    for _ in range(3):
        loop.step(0, 3)
    known = loop.tokens[0]
    loop.end(0)
    assert loop.start(0, known) >= (len(known) - 1) // 4 * 4
    loop.step(0, 3)


def test_sequences_that_share_a_prefix_diverge_inside_a_draft() -> None:
    loop = Loop(often_wrong)
    loop.start(0, [1, 2, 3, 4, 2, 2, 2, 2])
    first = loop.propose(0, 4)
    loop.start(1, [1, 2, 3, 4, 2, 2, 2, 2])
    assert loop.propose(1, 4) == first
    loop.end(0)  # cancelled with its draft's rows written
    for _ in range(5):
        loop.step(1, 4)


@pytest.mark.parametrize("reuses_prefixes", [True, False])
@pytest.mark.parametrize("table", [TRUTH, often_wrong], ids=["right", "often wrong"])
def test_random_traffic(table: LogitsTable, reuses_prefixes: bool) -> None:
    random = Random(0)
    loop = Loop(table, draft_pages=24, draft_length=32, draft_rows=6, reuses_prefixes=reuses_prefixes)
    num_reused = 0
    for i in range(200):
        sequence = random.choice([*loop.tokens, i])
        if sequence == i and len(loop.tokens) < 3:
            num_reused += loop.start(i, [*[1, 2, 3, 4] * 2, *random.choices(range(2), k=random.randint(0, 4))])
        elif sequence in loop.tokens and (len(loop.tokens[sequence]) > 44 or random.random() < 0.1):
            loop.end(sequence)
        elif sequence in loop.tokens:
            loop.step(sequence, random.randint(0, 4), random.randint(0, 4))
    assert (num_reused > 20) == reuses_prefixes


def test_proposer_without_a_cache_says_so() -> None:
    proposer = TableProposer(TableModel(TRUTH, VOCAB))
    proposer.start(0, [1, 2], "")
    with pytest.raises(RuntimeError, match="has no cache"):
        proposer.propose([Ask(0, 1)])
    with pytest.raises(ValueError, match="pages of 8 slots; expected 4"):
        proposer.attach(PagedCache(proposer.cache_spec.store, 4, 8))


def test_spec_refuses_a_context_that_its_pages_do_not_hold() -> None:
    with pytest.raises(ValueError, match="context of 9 positions in 2 pages of 4"):
        CacheSpec(TableModel(TRUTH, VOCAB), num_pages=2, page_size=4, max_length=9)
