"""Sampling through the public API: one seed, one text, whatever drafts, batches and caches do."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paceline import LLM, RequestOutput, SamplingParams, Speculation, UsageError
from paceline.acceptance.noise import sample_seed

PROMPTS = ["the and of to in hello world the and of", "hello", "world world world the"]
NGRAM = Speculation("ngram", 6, {"min_match": 1})
COVERING = [
    {"temperature": 0.7},
    {"temperature": 1.5, "top_p": 0.9},
    {"temperature": 1.0, "top_k": 20, "repetition_penalty": 1.3},
    {"temperature": 1.0, "min_p": 0.05, "presence_penalty": 1.5},
    {"temperature": 0.7, "top_p": 0.8, "frequency_penalty": -1.0},
    {"temperature": 1.0, "logit_bias": {5: 30.0, 17: -100.0}},
    {"temperature": 0.7, "allowed_token_ids": list(range(4, 60))},
    {"temperature": 1.0, "bad_words": ["the", "hello"]},
    {"temperature": 1.5, "min_tokens": 30, "stop_token_ids": list(range(40, 90)), "min_p": 0.02},
    {"temperature": 0.0, "repetition_penalty": 1.2, "frequency_penalty": 0.5},
    {"temperature": 1e-6, "presence_penalty": 2.0},
]


def params_of(fields: dict[str, object], seed: int = 7) -> SamplingParams:
    return SamplingParams(max_tokens=48, ignore_eos=True, seed=seed, **fields)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plain(flat_llama_path: Path) -> LLM:
    return LLM(flat_llama_path, max_num_seqs=1, prefix_caching=False)


def ids(outputs: Sequence[RequestOutput]) -> list[tuple[int, ...]]:
    return [output.token_ids for output in outputs]


@pytest.mark.parametrize("fields", COVERING, ids=lambda fields: "-".join(map(str, fields)))
def test_a_seed_gives_one_text(flat_llama_path: Path, plain: LLM, fields: dict[str, object]) -> None:
    """With drafts and without, together and alone, from the cache or not, preempted or not."""
    params = params_of(fields)
    expected = [plain.generate(prompt, params)[0] for prompt in PROMPTS]
    roomy = LLM(flat_llama_path, speculation=NGRAM)
    tight = LLM(flat_llama_path, speculation=NGRAM, max_model_len=72, cache_tokens=72)
    for llm in (roomy, tight):
        for _ in range(2):
            outputs = llm.generate(PROMPTS, params)
            assert ids(outputs) == ids(expected)
            assert sum(output.speculation.num_draft_tokens for output in outputs) > 0
        llm._engine.check_integrity()
    assert tight._engine.stats().num_preemptions > 0


def test_seeds_differ_and_are_told(plain: LLM) -> None:
    params = SamplingParams(max_tokens=24, ignore_eos=True, temperature=1.0)
    first, second = (plain.generate(PROMPTS[0], params)[0] for _ in range(2))
    assert first.sample_seed != second.sample_seed
    assert first.token_ids != second.token_ids
    again = SamplingParams(max_tokens=24, ignore_eos=True, temperature=1.0, seed=second.sample_seed)
    assert plain.generate(PROMPTS[0], again)[0].token_ids == second.token_ids


@pytest.mark.parametrize("prefix_caching", [True, False])
@pytest.mark.parametrize("max_num_seqs", [1, 2, 16])
def test_choices(flat_llama_path: Path, plain: LLM, prefix_caching: bool, max_num_seqs: int) -> None:
    """Each differs, and each is the answer to its own seed alone."""
    llm = LLM(flat_llama_path, speculation=NGRAM, max_num_seqs=max_num_seqs, prefix_caching=prefix_caching)
    prompt = [5 + i % 200 for i in range(37)]
    params = SamplingParams(max_tokens=20, ignore_eos=True, temperature=1.0, seed=11, n=4)
    [output] = llm.generate(prompt, params)
    assert [choice.sample_seed for choice in output.choices] == [sample_seed(11, i) for i in range(4)]
    assert output.token_ids == output.choices[0].token_ids
    assert len(set(ids(output.choices))) == 4
    for choice in output.choices:
        alone = SamplingParams(max_tokens=20, ignore_eos=True, temperature=1.0, seed=choice.sample_seed)
        assert plain.generate(prompt, alone)[0].token_ids == choice.token_ids
    assert llm._engine.num_free_pages == llm.runtime.info.num_pages
    llm._engine.check_integrity()


def test_choices_read_their_prompt_once(flat_llama_path: Path) -> None:
    llm = LLM(flat_llama_path, prefix_caching=False)
    params = SamplingParams(max_tokens=4, ignore_eos=True, temperature=1.0, seed=1, n=3)
    [output] = llm.generate([5 + i % 200 for i in range(37)], params)
    assert [choice.usage.cached_tokens for choice in output.choices] == [0, 37, 37]


def test_logprobs_are_the_targets_raw_ones(flat_llama_path: Path, plain: LLM) -> None:
    """The same with drafts, through trims and processors, and they add up."""
    fields = {"temperature": 0.7, "top_k": 5, "repetition_penalty": 1.3, "logprobs": 3}
    [expected] = plain.generate(PROMPTS[0], params_of(fields))
    [drafted] = LLM(flat_llama_path, speculation=NGRAM).generate(PROMPTS[0], params_of(fields))
    assert drafted.logprobs == expected.logprobs
    assert expected.logprobs is not None
    assert [each.token for each in expected.logprobs] == list(expected.token_ids)
    for each in expected.logprobs:
        assert len(each.top) == 3
        assert each.top[0][1] >= each.top[1][1] >= each.top[2][1] >= -20
        assert each.rank >= 1
        if each.rank <= 3:
            assert each.top[each.rank - 1] == (each.token, each.logprob)
    [whole] = plain.generate(PROMPTS[0], params_of({"temperature": 0.7, "logprobs": -1}))
    assert whole.logprobs is not None
    total = np.logaddexp.reduce([logprob for _, logprob in whole.logprobs[0].top])
    assert abs(float(total)) < 1e-9


@pytest.mark.parametrize("num_prompt", [1, 2, 20, 200])
def test_prompt_logprobs(flat_llama_path: Path, plain: LLM, num_prompt: int) -> None:
    """As though each prompt token had been the answer to those before it; in spite of what is in the cache."""
    prompt = [5 + 7 * i % 200 for i in range(num_prompt)]
    params = SamplingParams(max_tokens=2, ignore_eos=True, prompt_logprobs=2)
    llm = LLM(flat_llama_path, speculation=NGRAM)
    llm.generate(prompt, SamplingParams(max_tokens=2, ignore_eos=True))
    [output] = llm.generate(prompt, params)
    assert output.prompt_logprobs is not None
    assert output.prompt_logprobs[0] is None
    scored = output.prompt_logprobs[1:]
    assert [each.token for each in scored if each is not None] == prompt[1:]
    for i in {1, num_prompt // 2, num_prompt - 1} - {0, num_prompt}:
        [there] = plain.generate(prompt[:i], SamplingParams(max_tokens=1, ignore_eos=True, logprobs=2))
        assert there.logprobs is not None
        assert scored[i - 1] is not None
        assert scored[i - 1].top == there.logprobs[0].top  # type: ignore[union-attr]
    assert output.token_ids == plain.generate(prompt, params)[0].token_ids


def test_other_rules_say_so(flat_llama_path: Path) -> None:
    params = SamplingParams(max_tokens=24, ignore_eos=True, temperature=1.0, seed=3)
    for rule in ("rejection", "block"):
        options = {"proposer": "ngram", "rule": rule, "options": {"min_match": 1}}
        outputs = [LLM(flat_llama_path, speculation=options).generate(PROMPTS[0], params)[0] for _ in range(2)]
        first, second = outputs
        assert first.token_ids == second.token_ids  # one plan, one text
        assert first.speculation.plan == second.speculation.plan
        assert first.is_lossless
        num_drafted = sum(step.num_draft_tokens for step in first.speculation.plan)
        assert num_drafted == first.speculation.num_draft_tokens > 0
    lossy = {"proposer": "ngram", "rule": "typical", "allow_lossy": True, "options": {"min_match": 1}}
    [output] = LLM(flat_llama_path, speculation=lossy).generate(PROMPTS[0], params)
    assert not output.is_lossless
    with pytest.raises(UsageError, match="allow_lossy"):
        LLM(flat_llama_path, speculation={"proposer": "ngram", "rule": "typical"})
    with pytest.raises(UsageError, match="loses nothing"):
        LLM(flat_llama_path, speculation={"proposer": "ngram", "allow_lossy": True})


def test_what_cannot_be_served(plain: LLM) -> None:
    with pytest.raises(UsageError, match="a stream is one answer"):
        plain.stream("hello", SamplingParams(n=2, temperature=1.0))
    with pytest.raises(UsageError, match="allowed_token_ids"):
        plain.generate("hello", SamplingParams(allowed_token_ids=[10**6]))
    assert not plain._engine.has_unfinished


def test_a_processor_of_ones_own(flat_llama_path: Path, plain: LLM) -> None:
    def no_repeats(tokens: Sequence[int], row: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        row[list(tokens)] = -np.inf
        return row

    params = SamplingParams(max_tokens=30, ignore_eos=True, temperature=0.7, seed=5, logits_processors=[no_repeats])
    [expected] = plain.generate(PROMPTS[0], params)
    assert len(set(expected.token_ids)) == 30
    assert LLM(flat_llama_path, speculation=NGRAM).generate(PROMPTS[0], params)[0].token_ids == expected.token_ids


def test_a_processor_that_fails_ends_its_own_answer(flat_llama_path: Path, plain: LLM) -> None:
    def failing(tokens: Sequence[int], row: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        if len(tokens) == 5:
            raise KeyError("no such row")
        return row

    params = SamplingParams(max_tokens=30, ignore_eos=True, temperature=0.7, seed=5)
    [expected] = plain.generate(PROMPTS[0], params)
    llm = LLM(flat_llama_path, speculation=NGRAM)
    beside = llm.stream(PROMPTS[0], params)
    next(beside)
    [output] = llm.generate(PROMPTS[0], replace(params, logits_processors=[failing]))
    assert (output.finish_reason, output.token_ids) == ("error", expected.token_ids[:5])
    assert output.error is not None
    assert "raised KeyError: 'no such row'" in output.error
    for _ in beside:
        pass
    assert (beside.output().token_ids, beside.output().error) == (expected.token_ids, None)


def test_no_token_left_ends_the_answer(plain: LLM) -> None:
    def ban_all(tokens: Sequence[int], row: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return np.full_like(row, -np.inf) if tokens else row

    [output] = plain.generate(PROMPTS[0], SamplingParams(temperature=1.0, seed=1, logits_processors=[ban_all]))
    assert (output.finish_reason, len(output.token_ids)) == ("error", 1)
    assert output.error is not None
    assert "no token id is allowed at position" in output.error


def test_logprobs_are_trimmed_with_their_tokens(tiny_llama_path: Path) -> None:
    """A model that is sure of itself: whole drafts stand, and the stop falls into the middle of one."""
    plain, drafting = LLM(tiny_llama_path), LLM(tiny_llama_path, speculation=NGRAM)
    [free] = plain.generate(PROMPTS[0], SamplingParams(max_tokens=30, ignore_eos=True))
    for params in (
        SamplingParams(max_tokens=30, ignore_eos=True, logprobs=1, stop=free.text[22:26]),
        SamplingParams(max_tokens=30, ignore_eos=True, logprobs=1, stop=free.text[-5:], min_tokens=9),
        SamplingParams(max_tokens=11, ignore_eos=True, logprobs=1),
    ):
        [expected] = plain.generate(PROMPTS[0], params)
        [output] = drafting.generate(PROMPTS[0], params)
        assert output.speculation.num_accepted_tokens > 0
        assert output.logprobs == expected.logprobs
        assert output.logprobs is not None
        assert [each.token for each in output.logprobs] == list(output.token_ids) == list(expected.token_ids)
        assert output.text == expected.text
        assert len(output.token_ids) < 30
