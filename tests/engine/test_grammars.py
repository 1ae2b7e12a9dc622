"""Grammars in the engine: same tokens whatever is drafted, and every way in which a grammar and an answer can end."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from engine_parts import CapriciousController
from toy_grammars import compiled, regex

from paceline.acceptance import AcceptanceRule, create_acceptance_rule
from paceline.acceptance.grammar import Grammar
from paceline.controller import Controller, FixedController, OffController
from paceline.engine import Engine, FinishReason, Request
from paceline.errors import UsageError
from paceline.proposers import Ask, Capabilities, Draft, DraftDistribution, NgramProposer, Proposer
from paceline.sampling_params import SamplingParams
from paceline.telemetry import StepRecord
from paceline.testing import LogitsTable, ScriptedDraft, ScriptedProposer, TableModel, TableProposer, seeded_table

TEXTS = [b"", b"a", b"b", b"ab", b"c", b"aa", b"", b"bc"]
EOS, A, B, AB, C, AA, OTHER, BC = range(8)
SIZE = len(TEXTS)
PATTERNS = ["(ab|c){2,4}b?", "a+(bc)*", "[abc]{7}", "(a|b(a|c))*c{0,2}", "ab|abc+"]


@dataclass
class Result:
    tokens: tuple[int, ...] = ()
    reason: FinishReason | None = None
    error: str | None = None

    @property
    def text(self) -> str:
        return b"".join(TEXTS[token] for token in self.tokens).decode()


@dataclass
class Desk:
    """An engine over a table, and what it did."""

    table: LogitsTable
    controller: Controller
    proposers: Sequence[Proposer] = ()
    rule: str | AcceptanceRule = "match"

    def serve(self, requests: Sequence[Request], random: Random | None = None) -> list[Result]:
        self.records = list[StepRecord]()
        rule = create_acceptance_rule(self.rule) if isinstance(self.rule, str) else self.rule
        runtime = TableModel(self.table, SIZE, num_padding=3, num_pages=24)
        engine = Engine(
            runtime, self.controller, self.proposers, rule, eos_token_ids=[EOS], records=self.records.append
        )
        results = {engine.add_request(request): Result() for request in requests}
        while engine.has_unfinished:
            assert len(self.records) < 2000, "a sequence does not end"
            for output in engine.step():
                result = results[output.sequence]
                assert result.reason is None
                result.tokens += output.tokens
                result.reason, result.error = output.finish_reason, output.error
            engine.check_integrity()
            if random is not None and random.random() < 0.2:
                engine.preempt(random.choice(list(results)))
        return list(results.values())


def request_of(pattern: str | Grammar, seed: int = 0, prompt: Sequence[int] = (1, 2), **fields: object) -> Request:
    grammar = regex(TEXTS, pattern) if isinstance(pattern, str) else pattern
    params = SamplingParams(**{"max_tokens": 20, **fields})  # type: ignore[arg-type]
    return Request(prompt, params, sample_seed=seed, grammar=grammar)


def plain(table: LogitsTable, request: Request) -> Result:
    return Desk(table, OffController()).serve([request])[0]


def saying(*tokens: int) -> LogitsTable:
    """A model that would write `tokens` behind a prompt of two, and EOS for ever after."""

    def table(seen: tuple[int, ...]) -> np.ndarray:  # type: ignore[type-arg]
        row = np.linspace(0.0, 0.7, SIZE, dtype=np.float32)
        index = len(seen) - 2
        row[tokens[index] if index < len(tokens) else EOS] = 9.0
        return row

    return table


def drafting(*tokens: int) -> ScriptedProposer:
    """Drafts what is left of `tokens`, behind a prompt of two."""
    return ScriptedProposer(lambda context, num: ScriptedDraft(tokens[len(context) - 2 :][:num]))


def run(table: LogitsTable, request: Request, *drafted: int) -> tuple[Result, list[StepRecord]]:
    """The answer with such a draft, which is the answer without."""
    desk = Desk(table, FixedController("scripted", 8), [drafting(*drafted)])
    [result] = desk.serve([request])
    assert result == plain(table, request)
    return result, desk.records


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_same_tokens_whatever_is_drafted(temperature: float) -> None:
    """Chains and trees of all tokens, illegal ones and end tokens among them, of several proposers; together and
    preempted, too."""
    random, ends = Random(1), set[FinishReason | None]()
    for trial in range(12):
        table = seeded_table(SIZE, seed=trial, order=3)
        requests = [
            request_of(
                pattern, seed, prompt=(trial % SIZE, seed), temperature=temperature, stop_token_ids=[OTHER] * (seed % 2)
            )
            for seed, pattern in enumerate(PATTERNS)
        ]
        expected = [plain(table, request) for request in requests]

        def script(context: tuple[int, ...], num_tokens: int, right: list[Result] = expected) -> ScriptedDraft:
            """Mostly the true continuation, behind wrong siblings; or a chain."""
            truth = right[context[1]].tokens[len(context) - 2 :]
            is_tree, parent, tokens, parents = random.random() < 0.5, -1, list[int](), list[int]()
            for token in [*truth, *random.choices(range(SIZE), k=3)]:
                if is_tree and random.random() < 0.5:
                    tokens.append(random.randrange(SIZE))
                    parents.append(parent)
                tokens.append(token if random.random() < 0.9 else random.randrange(SIZE))
                parents.append(parent)
                parent = len(tokens) - 1
            return ScriptedDraft(tuple(tokens), tuple(parents) if is_tree else ()).cut(num_tokens)

        proposers = [
            ScriptedProposer(script),
            NgramProposer(min_match=1),
            TableProposer(TableModel(table, SIZE, num_pages=24)),
        ]
        desk = Desk(table, CapriciousController(("scripted", "ngram", "table"), random), proposers)
        assert desk.serve(requests, random) == expected
        for request, result in zip(requests, expected, strict=True):
            ends.add(result.reason)
            if result.reason is FinishReason.STOP:
                assert re.fullmatch(PATTERNS[request.sample_seed], result.text)
    assert FinishReason.STOP in ends


def test_draft_is_cut_at_its_first_illegal_token() -> None:
    result, records = run(saying(A, B, C, A), request_of("abca?"), A, B, B, C)
    assert result == Result((A, B, C, A), FinishReason.STOP)
    assert [record.num_draft_rows for record in records[1:]] == [1, 0]  # of four and three: B, and nothing behind C


def test_illegal_nodes_of_a_tree_take_their_subtrees_along() -> None:
    tree = ScriptedDraft((C, B, A, B, BC, C), (-1, -1, 0, 1, 1, 2))  # behind the first A only B and BC are legal
    proposer = ScriptedProposer(lambda context, _: tree if len(context) == 3 else ScriptedDraft())
    desk = Desk(saying(A, B, B, C), FixedController("scripted", 8), [proposer])
    request = request_of("ab+c")
    [result] = desk.serve([request])
    assert result == plain(desk.table, request) == Result((A, B, B, C), FinishReason.STOP)
    assert [record.num_draft_rows for record in desk.records] == [0, 3]  # B, and behind it B and BC


def test_draft_that_ends_where_the_grammar_does() -> None:
    result, records = run(saying(A, B, C), request_of("abc"), A, B, C)
    assert result == Result((A, B, C), FinishReason.STOP)
    assert len(records) == 2


def test_nothing_is_drafted_behind_the_end_of_the_grammar() -> None:
    result, records = run(saying(A, B, C, A, A), request_of("abc"), A, B, C, EOS, A, A)
    assert result == Result((A, B, C), FinishReason.STOP)
    assert records[1].num_draft_rows == 2


def test_end_of_text_inside_a_draft() -> None:
    result, records = run(saying(A, A, EOS), request_of("a+"), A, A, EOS, A, A)
    assert result == Result((A, A, EOS), FinishReason.STOP)
    assert records[1].num_draft_rows == 2  # A and EOS


def test_end_of_text_where_the_grammar_cannot_end() -> None:
    """The model would end; the grammar makes it go on, and end without an end token."""
    result, records = run(saying(A, EOS), request_of("a{3}(bc)?b"), A, EOS, A)
    assert result.reason is FinishReason.STOP
    assert re.fullmatch("a{3}(bc)?b", result.text)
    assert records[1].num_draft_rows == 0


def test_nothing_of_a_rejected_draft_is_remembered() -> None:
    """Behind the draft A, as behind the C that came instead, a lexeme begins; what may follow it is not the same."""
    grammar = compiled(TEXTS, {"type": "grammar", "grammar": 'start: "b" (T T? | "c" T T?)\nT: /b*a/'})
    result, records = run(saying(B, C, C), request_of(grammar), B, A)
    assert (result.tokens, result.reason) == ((B, C, AA), FinishReason.STOP)
    assert [record.num_draft_rows for record in records] == [0, 1, 0]


def test_accepted_stop_token() -> None:
    request = request_of("a+", stop_token_ids=[C, OTHER])
    for stop in (C, OTHER):
        result, records = run(saying(A, A, stop), request, A, A, stop, A)
        assert result == Result((A, A, stop), FinishReason.STOP)
        assert records[1].sequences[0].accepted == 2


def test_stop_token_with_a_text() -> None:
    """Behind the whole text, or the last of it."""
    result, _ = run(saying(AB, B), request_of("(ab)+", stop_token_ids=[B]), AB, B, A)
    assert result == Result((AB, B), FinishReason.STOP)
    result, _ = run(saying(A, B, A), request_of("(ab)+", stop_token_ids=[B]), A, B, A)
    assert result == Result((A, B), FinishReason.STOP)
    result, _ = run(saying(A, B, C), request_of("a(b|aa)c", stop_token_ids=[B]), A, B, C)
    assert result == Result((A, BC), FinishReason.STOP)


def test_ignored_end_tokens_are_never_legal() -> None:
    result, _ = run(saying(A, EOS), request_of("a+", ignore_eos=True, max_tokens=6), A, EOS, A)
    assert result.reason is FinishReason.LENGTH
    assert EOS not in result.tokens
    result, _ = run(saying(A, EOS), request_of("a{4}", ignore_eos=True), A, EOS, A)
    assert (result.text, result.reason) == ("aaaa", FinishReason.STOP)


@pytest.mark.parametrize("min_tokens", [1, 2, 3, 9])
def test_grammar_ends_before_min_tokens(min_tokens: int) -> None:
    """Where text can follow, it does; where none can, that is the end."""
    result, _ = run(saying(A, A, EOS), request_of("a{1,3}", min_tokens=min_tokens), A, A, EOS)
    assert result == Result((A, A, EOS if min_tokens < 3 else A), FinishReason.STOP)


def test_limit_and_end_at_the_same_token() -> None:
    for limit, reason in ((2, FinishReason.LENGTH), (3, FinishReason.STOP)):
        result, _ = run(saying(A, B, C), request_of("abc", max_tokens=limit), A, B, C)
        assert result == Result((A, B, C)[:limit], reason)


def test_choices_have_states_of_their_own() -> None:
    grammar = regex(TEXTS, PATTERNS[0])
    requests = [request_of(grammar, seed, temperature=1.0) for seed in range(6)]
    table = seeded_table(SIZE, seed=3)
    together = Desk(table, OffController()).serve(requests)
    assert together == [plain(table, request) for request in requests]
    assert len({result.tokens for result in together}) > 2


def test_grammar_and_other_limits_that_leave_nothing() -> None:
    """The answer ends with an error that says why; others go on."""
    bad = request_of("abc", allowed_token_ids=[A, B, EOS])
    [result, other] = Desk(saying(A, B, C), OffController()).serve([bad, request_of("abc")])
    assert result.tokens == (A, B)
    assert result.reason is FinishReason.ERROR
    assert result.error is not None
    assert "no token id is allowed at position 4; what the response format asks for" in result.error
    assert other == Result((A, B, C), FinishReason.STOP)
    with pytest.raises(UsageError, match=r"allowed_token_ids is .* and a grammar is given: that leaves none"):
        Desk(saying(), OffController()).serve([request_of("abc", allowed_token_ids=[C])])


def test_grammar_that_cannot_be_followed_ends_its_own_answer() -> None:
    table, pattern = saying(*[A] * 400), "((a{1,1000}){1,1000}){1,1000}"
    request = request_of(pattern, max_tokens=60, temperature=1.0)
    for controller, proposers in ((OffController(), []), (FixedController("scripted", 4), [drafting(*[A] * 60)])):
        [result, other] = Desk(table, controller, proposers).serve([request, request_of("a+b", max_tokens=60)])
        assert result.reason is FinishReason.ERROR
        assert result.error is not None
        assert result.error.startswith("the grammar cannot be followed any further: lexer error")
        assert other.reason is not FinishReason.ERROR


class SampledProposer(Proposer):
    """Chains drawn from a q that knows no grammar."""

    name = "sampled"
    capabilities = Capabilities(is_sampled=True)

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:
        pass

    def extend(self, sequence: int, tokens: Sequence[int], evidence: object = None) -> None:
        pass

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        return [self._draft(ask) for ask in asks]

    def finish(self, sequence: int) -> None:
        pass

    def reset(self) -> None:
        pass

    def _draft(self, ask: Ask) -> Draft:
        q = self._generator.dirichlet(np.ones(SIZE), size=ask.num_tokens)
        tokens = tuple(int(self._generator.choice(SIZE, p=row)) for row in q)
        return Draft(ask.sequence, tokens, q=DraftDistribution(q), proposer=self.name)


@pytest.mark.parametrize("rule", ["rejection", "block", "match"])
def test_sampled_drafts_with_illegal_tokens(rule: str) -> None:
    """Under the ratio rules they stay as they are, rows behind end tokens and all; under match they are cut."""
    num_drafted, table = 0, seeded_table(SIZE, seed=4, order=2)
    for seed in range(25):
        pattern = PATTERNS[seed % len(PATTERNS)]
        desk = Desk(table, FixedController("sampled", 4), [SampledProposer(seed)], rule)
        [result] = desk.serve([request_of(pattern, seed, temperature=1.0, max_tokens=40)])
        assert result.error is None
        if result.reason is FinishReason.STOP:
            assert re.fullmatch(pattern, result.text)
        num_drafted += sum(step.planned - step.drafted for record in desk.records for step in record.sequences)
    assert (num_drafted > 0) == (rule == "match")


def test_requests_that_an_engine_cannot_serve() -> None:
    request = request_of("abc")
    engine = Engine(TableModel(saying(A), SIZE), OffController(), [], create_acceptance_rule("match"))
    params = SamplingParams(response_format={"type": "regex", "pattern": "a"})
    with pytest.raises(UsageError, match=r"response_format is ResponseFormat.* and grammar None; an engine compiles"):
        engine.add_request(Request((1,), params))
    with pytest.raises(UsageError, match="grammar is for a vocabulary of 3 tokens; this engine's has 8"):
        engine.add_request(replace(request, grammar=regex([b"a", b"b", b"c"], "abc")))


def test_sequences_without_a_grammar_ride_along() -> None:
    table = seeded_table(SIZE, seed=6)
    free = Request((1, 2), SamplingParams(max_tokens=12))
    desk = Desk(table, FixedController("ngram", 4), [NgramProposer(min_match=1)])
    assert desk.serve([free, request_of(PATTERNS[2])]) == [plain(table, free), plain(table, request_of(PATTERNS[2]))]
