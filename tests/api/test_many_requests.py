"""Many requests through the public API: the text of each is its own, and the cache shortens what begins alike."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from paceline import LLM, RequestOutput, SamplingParams, Speculation, UsageError

PROMPTS = [
    "the and of to in hello world",
    "hello",
    "the and of to in hello world the and of",
    "world world world world",
    "of the and in to",
]
PARAMS = SamplingParams(max_tokens=24, ignore_eos=True)


@pytest.fixture(scope="module")
def plain(tiny_llama_path: Path) -> LLM:
    """One request at a time, nothing reused: what everything else must agree with."""
    return LLM(tiny_llama_path, max_num_seqs=1, prefix_caching=False)


def ids(outputs: Sequence[RequestOutput]) -> list[tuple[int, ...]]:
    return [output.token_ids for output in outputs]


@pytest.mark.parametrize("max_num_seqs", [1, 3, 16])
@pytest.mark.parametrize("speculation", [None, Speculation("ngram", 6, {"min_match": 1})])
def test_together_as_alone(tiny_llama_path: Path, plain: LLM, max_num_seqs: int, speculation: Speculation) -> None:
    expected = [plain.generate(prompt, PARAMS)[0] for prompt in PROMPTS * 3]
    llm = LLM(tiny_llama_path, speculation=speculation, max_num_seqs=max_num_seqs)
    for _ in range(2):  # the second time all prompts are in the cache
        together = llm.generate(PROMPTS * 3, PARAMS)
        assert ids(together) == ids(expected)
        assert [output.text for output in together] == [output.text for output in expected]
    assert llm._engine.num_free_pages == llm.runtime.info.num_pages
    llm._engine.check_integrity()


def test_a_cache_too_small_for_all_of_them(tiny_llama_path: Path, plain: LLM) -> None:
    """Requests give way to each other, and none gets another text or an early end."""
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    expected = [plain.generate(prompt, params)[0] for prompt in PROMPTS]
    llm = LLM(tiny_llama_path, max_model_len=96, cache_tokens=96)
    together = llm.generate(PROMPTS, params)
    assert ids(together) == ids(expected)
    assert [output.finish_reason for output in together] == ["length"] * len(PROMPTS)
    assert llm._engine.stats().num_preemptions > 0


def test_what_was_reused_is_counted(tiny_llama_path: Path) -> None:
    llm = LLM(tiny_llama_path)
    prompt = [5 + i % 200 for i in range(64)]
    [first] = llm.generate(prompt, PARAMS)
    [again] = llm.generate(prompt, PARAMS)
    [longer] = llm.generate([*prompt, 7, 8, 9], PARAMS)
    assert (first.usage.cached_tokens, again.usage.cached_tokens, longer.usage.cached_tokens) == (0, 64, 64)
    assert again.token_ids == first.token_ids
    assert again.usage.total_tokens == first.usage.total_tokens


def test_the_next_turn_of_a_conversation_begins_behind_the_last(tiny_llama_path: Path) -> None:
    llm = LLM(tiny_llama_path)
    prompt = [5 + i % 200 for i in range(40)]
    [first] = llm.generate(prompt, PARAMS)
    [second] = llm.generate([*prompt, *first.token_ids, 11, 12], PARAMS)
    assert second.usage.cached_tokens == 48  # of 64 tokens the newest was never computed, so three pages are full


def test_namespaces_share_nothing(tiny_llama_path: Path) -> None:
    llm = LLM(tiny_llama_path)
    prompt = [5 + i % 200 for i in range(64)]
    [mine] = llm.generate(prompt, PARAMS, namespace="mine")
    [theirs] = llm.generate(prompt, PARAMS, namespace="theirs")
    [mine_again] = llm.generate(prompt, PARAMS, namespace="mine")
    assert (theirs.usage.cached_tokens, mine_again.usage.cached_tokens) == (0, 64)
    assert mine.token_ids == theirs.token_ids == mine_again.token_ids


def test_caching_can_be_switched_off(tiny_llama_path: Path) -> None:
    llm = LLM(tiny_llama_path, prefix_caching=False)
    prompt = [5 + i % 200 for i in range(64)]
    outputs = [llm.generate(prompt, PARAMS)[0] for _ in range(2)]
    assert [output.usage.cached_tokens for output in outputs] == [0, 0]


def test_a_request_waits_in_the_queue(tiny_llama_path: Path) -> None:
    llm = LLM(tiny_llama_path, max_num_seqs=1)
    first, second = llm.generate(PROMPTS[:2], PARAMS)
    assert second.timing.queue_seconds > first.timing.queue_seconds >= 0


def test_a_higher_priority_goes_first(tiny_llama_path: Path) -> None:
    """The one seat is taken by a stream; a call with a higher priority takes it, one with the same waits."""
    llm = LLM(tiny_llama_path, max_num_seqs=1)
    for priority, is_first in ((1, True), (0, False)):
        stream = llm.stream(PROMPTS[0], PARAMS)
        next(stream)
        llm.generate(PROMPTS[1], PARAMS, priority=priority)
        assert (stream.output().finish_reason == "abort") == is_first  # not ended yet
        assert len([*stream]) > 0
        assert stream.output().token_ids == llm.generate(PROMPTS[0], PARAMS)[0].token_ids


def test_streams_side_by_side(tiny_llama_path: Path, plain: LLM) -> None:
    llm = LLM(tiny_llama_path, speculation="ngram")
    streams = [llm.stream(prompt, PARAMS) for prompt in PROMPTS]
    texts = ["" for _ in PROMPTS]
    while any(stream.output().finish_reason == "abort" for stream in streams):
        for i, stream in enumerate(streams):
            texts[i] += "".join(piece.text for piece in islice(stream, 2))
    for i, stream in enumerate(streams):
        texts[i] += "".join(piece.text for piece in stream)
    assert texts == [plain.generate(prompt, PARAMS)[0].text for prompt in PROMPTS]


def test_a_stop_string_ends_the_text_before_it(tiny_llama_path: Path, plain: LLM) -> None:
    [free] = plain.generate(PROMPTS[0], PARAMS)
    stop = free.text[9:12]
    begin = free.text.index(stop)
    params = SamplingParams(max_tokens=24, ignore_eos=True, stop=stop)
    for speculation in (None, Speculation("ngram", 6, {"min_match": 1})):
        llm = LLM(tiny_llama_path, speculation=speculation)
        [output] = llm.generate(PROMPTS[0], params)
        assert (output.text, output.finish_reason) == (free.text[:begin], "stop")
        assert output.token_ids == free.token_ids[: len(output.token_ids)]
        assert output.usage.completion_tokens == len(output.token_ids)
        assert stop in llm.tokenizer.decode(output.token_ids)
        assert stop not in llm.tokenizer.decode(output.token_ids[:-1])
        pieces = list(llm.stream(PROMPTS[0], params))
        assert "".join(piece.text for piece in pieces) == output.text


def test_min_tokens_puts_every_stop_off(plain: LLM) -> None:
    [free] = plain.generate(PROMPTS[0], PARAMS)
    stop = free.token_ids[4]
    [early] = plain.generate(PROMPTS[0], SamplingParams(24, stop_token_ids=[stop], ignore_eos=True))
    [late] = plain.generate(PROMPTS[0], SamplingParams(24, stop_token_ids=[stop], ignore_eos=True, min_tokens=10))
    assert len(early.token_ids) <= 5
    assert len(late.token_ids) > 10
    assert stop not in late.token_ids[:10]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs is 0"),
        ({"max_num_seqs": 2.0}, "max_num_seqs is 2.0"),
        ({"max_num_seqs": 100_000}, "max_num_seqs is 100000; expected at most 1024"),
        ({"cache_tokens": 255}, "cache_tokens is 255; expected an integer from 256"),
        ({"cache_tokens": 10**12}, "cache_tokens is 1000000000000"),
        ({"progress": 3}, "progress is 3"),
        ({"max_model_len": 1}, "max_model_len is 1; expected at least 2"),
        ({"cache_tokens": True}, "cache_tokens is True"),
        ({"prefix_caching": 1}, "prefix_caching is 1"),
    ],
)
def test_unusable_arguments(tiny_llama_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LLM(tiny_llama_path, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"namespace": 5}, {"priority": "high"}, {"priority": True}])
def test_unusable_requests(plain: LLM, arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(arguments))):
        plain.generate("hello", PARAMS, **arguments)  # type: ignore[arg-type]
