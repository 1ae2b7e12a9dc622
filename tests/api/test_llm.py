"""The public API on tiny models: results, streaming, ends, refusals."""

from pathlib import Path

import numpy as np
import pytest
from gguf_files import VARIANTS, write_tiny_llama, write_tiny_model

from paceline import LLM, PacelineError, SamplingParams, Speculation, UsageError
from paceline.models import GGUFFile

PROMPT = "the and of to in hello world the and of to in hello world the and of"


@pytest.fixture(scope="module")
def llm(tiny_llama_path: Path) -> LLM:
    return LLM(tiny_llama_path)


@pytest.fixture(scope="module")
def drafting(tiny_llama_path: Path) -> LLM:
    options = {"min_match": 1}
    return LLM(tiny_llama_path, speculation=Speculation("ngram", num_speculative_tokens=6, options=options))


def test_result(llm: LLM) -> None:
    [output] = llm.generate(PROMPT, SamplingParams(max_tokens=20, ignore_eos=True))
    assert len(output.token_ids) == 20
    assert output.finish_reason == "length"
    assert output.text == llm.tokenizer.decode(output.token_ids)
    assert output.prompt_token_ids == tuple(llm.tokenizer.encode(PROMPT))
    assert output.usage.prompt_tokens == len(output.prompt_token_ids)
    assert output.usage.completion_tokens == 20
    assert output.usage.total_tokens == output.usage.prompt_tokens + 20
    assert output.timing.prefill_seconds > 0
    assert output.timing.decode_seconds > 0
    assert output.speculation.mean_acceptance_length == 1.0
    assert output.speculation.draft_acceptance_rate is None
    assert output.speculation.num_drafts == 0


def test_speculation_changes_no_token(llm: LLM, drafting: LLM) -> None:
    params = SamplingParams(max_tokens=150, ignore_eos=True)
    [plain] = llm.generate(PROMPT, params)
    [spec] = drafting.generate(PROMPT, params)
    assert spec.token_ids == plain.token_ids
    assert spec.text == plain.text
    assert spec.finish_reason == plain.finish_reason
    assert spec.speculation.num_draft_tokens > 0
    assert 0 <= spec.speculation.num_accepted_tokens <= spec.speculation.num_draft_tokens


def test_many_prompts_keep_their_order(llm: LLM) -> None:
    prompts = [PROMPT, "hello", llm.tokenizer.encode(" the world")]
    params = SamplingParams(max_tokens=5)
    together = llm.generate(prompts, params)
    alone = [llm.generate(prompt, params)[0] for prompt in prompts]
    assert [output.token_ids for output in together] == [output.token_ids for output in alone]


def test_chat_renders_the_template(llm: LLM) -> None:
    message = {"role": "user", "content": "hello <|im_end|>"}
    [output] = llm.chat([message], SamplingParams(max_tokens=2))
    text = llm.tokenizer.decode(output.prompt_token_ids, skip_special=False)
    assert text == "<|im_start|>user\nhello <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert list(output.prompt_token_ids).count(2) == 1  # the template's own <|im_end|>, not the user's
    assert len(llm.chat([[message], [message]], SamplingParams(max_tokens=2))) == 2


TOOL = {"type": "function", "function": {"name": "find", "parameters": {}}}


def test_tools_and_variables_reach_the_template(tiny_llama_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("{{ tools[0].function.name if tools }} {{ mood }} {{ messages[0].content }}", encoding="utf-8")
    llm = LLM(tiny_llama_path, chat_template=file)
    message = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    params = SamplingParams(max_tokens=1)
    [output] = llm.chat([message], params, tools=[TOOL], chat_template_kwargs={"mood": "calm"})
    assert llm.tokenizer.decode(output.prompt_token_ids) == "find calm hello"
    with llm.stream([message], params, tools=[TOOL], chat_template_kwargs={"mood": "calm"}) as stream:
        assert stream.output().prompt_token_ids == output.prompt_token_ids
    with pytest.raises(UsageError, match="are for conversations"):
        llm.stream("hello", params, tools=[TOOL])
    with pytest.raises(UsageError, match="has no variable 'temper'"):
        llm.chat([message], params, chat_template_kwargs={"temper": 1})


def test_a_chat_template_that_is_nowhere_is_refused(tiny_llama_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'nowhere' names no file, .* has the chat templates 'default'"):
        LLM(tiny_llama_path, chat_template="nowhere")


def test_stream_joins_to_the_text(drafting: LLM) -> None:
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    stream = drafting.stream(PROMPT, params)
    pieces = list(stream)
    output = stream.output()
    assert "".join(piece.text for piece in pieces) == output.text
    assert tuple(token for piece in pieces for token in piece.token_ids) == output.token_ids
    num_draft = sum(len(piece.token_ids) for piece in pieces if piece.is_draft)
    assert num_draft == output.speculation.num_accepted_tokens
    [whole] = drafting.generate(PROMPT, params)
    assert output.token_ids == whole.token_ids


def test_leaving_a_stream_frees_everything(drafting: LLM) -> None:
    engine = drafting._engine
    num_free = engine.num_free_pages
    with drafting.stream(PROMPT, SamplingParams(max_tokens=60)) as stream:
        next(stream)
        assert engine.num_free_pages < num_free
    assert stream.output().finish_reason == "abort"
    assert stream.output().token_ids
    assert engine.num_free_pages == num_free
    engine.check_integrity()
    assert len(drafting.generate(PROMPT, SamplingParams(max_tokens=3))) == 1


def test_a_stream_and_a_call_beside_it(drafting: LLM) -> None:
    """A call made while a stream is open waits for it inside; the stream's pieces are kept for its consumer."""
    params = SamplingParams(max_tokens=12, ignore_eos=True)
    [expected] = drafting.generate(PROMPT, params)
    stream = drafting.stream(PROMPT, params)
    next(stream)
    [other] = drafting.generate(PROMPT, params)
    for _ in stream:
        pass
    assert other.token_ids == expected.token_ids
    assert stream.output().token_ids == expected.token_ids


def test_stop_token(llm: LLM) -> None:
    [free] = llm.generate(PROMPT, SamplingParams(max_tokens=30, ignore_eos=True))
    stop = free.token_ids[7]
    first = free.token_ids.index(stop)
    [stopped] = llm.generate(PROMPT, SamplingParams(max_tokens=30, ignore_eos=True, stop_token_ids=(stop,)))
    assert stopped.token_ids == free.token_ids[: first + 1]
    assert stopped.finish_reason == "stop"


def test_length_at_the_capacity(tiny_llama_path: Path) -> None:
    for speculation in (None, Speculation("ngram", 6, {"min_match": 1})):
        llm = LLM(tiny_llama_path, max_model_len=64, speculation=speculation)
        [output] = llm.generate(PROMPT, SamplingParams(max_tokens=None, ignore_eos=True))
        assert output.usage.total_tokens == 64
        assert output.finish_reason == "length"


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "empty"),
        ([1] * 64, "64"),
        ([1, 320], "320"),
        ([1, -1], "-1"),
        ("\ud800", "surrogate"),
    ],
)
def test_prompts_that_cannot_run(tiny_llama_path: Path, prompt: object, message: str) -> None:
    llm = LLM(tiny_llama_path, max_model_len=64)
    with pytest.raises(UsageError, match=message):
        llm.generate(prompt)  # type: ignore[arg-type]
    assert len(llm.generate("hello", SamplingParams(max_tokens=2))) == 1


def test_one_bad_prompt_among_good_ones_runs_none(llm: LLM) -> None:
    with pytest.raises(UsageError):
        llm.generate(["hello", ""])
    assert not llm._engine.has_unfinished
    assert llm._deliveries._collectors == {}


@pytest.mark.parametrize(
    "speculation",
    [
        "nonesuch",
        {"proposer": "ngram", "num_speculativ_tokens": 3},
        {"proposer": "ngram", "num_speculative_tokens": 0},
        {"proposer": ["ngram"]},
        {"options": None},
        5,
    ],
)
def test_unknown_speculation(tiny_llama_path: Path, speculation: object) -> None:
    with pytest.raises(UsageError, match=r"speculat|proposer"):
        LLM(tiny_llama_path, speculation=speculation)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_threads", [0, -1, 100_000])
def test_impossible_thread_count(tiny_llama_path: Path, num_threads: int) -> None:
    with pytest.raises(UsageError, match="num_threads"):
        LLM(tiny_llama_path, num_threads=num_threads)


@pytest.mark.parametrize("max_model_len", [0, 257])
def test_impossible_capacity(tiny_llama_path: Path, max_model_len: int) -> None:
    with pytest.raises(UsageError, match="256"):
        LLM(tiny_llama_path, max_model_len=max_model_len)


def test_numbers_that_are_not_finite_end_the_sequence(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write_tiny_llama(path)
    with GGUFFile.open(path) as file:
        offset = file.tensors["blk.1.ffn_norm.weight"].offset
    with path.open("r+b") as raw:
        raw.seek(offset)
        raw.write(np.float32(np.nan).tobytes())
    llm = LLM(path)
    [output] = llm.generate(PROMPT)
    assert output.finish_reason == "error"
    assert output.text == ""
    assert output.token_ids == ()
    llm._engine.check_integrity()


def test_every_error_is_a_paceline_error() -> None:
    with pytest.raises(PacelineError, match="nonesuch"):
        LLM("nonesuch")


class Recorder:
    """A progress that writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def begin(self, description: str, total: int | None) -> None:
        self.events.append((description, total))

    def update(self, done: int) -> None:
        self.events.append(("update", done))

    def end(self) -> None:
        self.events.append(("end", None))


def test_progress_of_a_long_prompt(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "m.gguf", context_length=4096)
    recorder = Recorder()
    llm = LLM(tmp_path / "m.gguf", progress=recorder)
    assert recorder.events[0][0] == "Packing weights"
    recorder.events.clear()
    llm.generate([5] * 1500, SamplingParams(max_tokens=1))
    assert recorder.events[0] == ("Reading the prompt", 1500)
    assert recorder.events[-2:] == [("update", 1500), ("end", None)]


def test_progress_of_a_long_prompt_that_begins_in_the_cache(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "m.gguf", context_length=4096)
    recorder = Recorder()
    llm = LLM(tmp_path / "m.gguf", progress=recorder)
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    llm.generate([5] * 1500, params)
    recorder.events.clear()
    with llm.stream([5] * 1500 + [6] * 700, params) as stream:
        next(stream)  # the answer has begun, so the prompt has been read
        assert recorder.events[0] == ("Reading the prompt", 2200)
        assert recorder.events[-2:] == [("update", 2200), ("end", None)]
    recorder.events.clear()
    llm.generate([5] * 1500 + [7], params)  # one row
    assert recorder.events == []


@pytest.mark.parametrize("prompts", [None, 5, b"abc", {}, {"a", "b"}, [None], [1, True], [1.5], [b"a"]])
def test_what_is_no_prompt(llm: LLM, prompts: object) -> None:
    with pytest.raises(UsageError, match="expected"):
        llm.generate(prompts)  # type: ignore[arg-type]


def test_token_ids_of_any_integer_type(llm: LLM) -> None:
    params = SamplingParams(max_tokens=3)
    [expected] = llm.generate([5, 6, 7], params)
    for prompt in (np.array([5, 6, 7]), [np.int64(5), np.int32(6), 7], (5, 6, 7)):
        [output] = llm.generate(prompt, params)  # type: ignore[arg-type]
        assert output.token_ids == expected.token_ids
        assert all(type(token) is int for token in output.prompt_token_ids)


def test_params_of_another_type(llm: LLM) -> None:
    with pytest.raises(UsageError, match="SamplingParams"):
        llm.generate("hello", {"max_tokens": 3})  # type: ignore[arg-type]


def test_wrong_kinds_of_arguments_are_named(tiny_llama_path: Path) -> None:
    with pytest.raises(UsageError, match=r"chat_template is 5; expected the name of a template"):
        LLM(tiny_llama_path, chat_template=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"is a folder, and .*; give a file, or a name"):
        LLM(tiny_llama_path, chat_template=str(tiny_llama_path.parent))
    with pytest.raises(UsageError, match="quantization is 'q9'; expected one of"):
        LLM(tiny_llama_path, quantization="q9")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_num_seqs is None; expected an integer of at least 1"):
        LLM(tiny_llama_path, max_num_seqs=None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there are no messages; give at least one"):
        LLM(tiny_llama_path).chat([])


@pytest.mark.parametrize("tensor_type", ["Q4_K", "Q6_K", "Q5_0"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_architecture_gives_the_same_text_with_speculation(
    tmp_path: Path, variant: str, tensor_type: str
) -> None:
    """Past every window; random models soon repeat themselves, so drafts are accepted."""
    write_tiny_model(tmp_path / "m.gguf", tensor_type=tensor_type, **VARIANTS[variant])
    params = SamplingParams(max_tokens=120, ignore_eos=True)
    prompt = [5, 17, 300, 2, 88, 88, 261, 40] * 3
    [plain] = LLM(tmp_path / "m.gguf").generate([prompt], params)
    options = {"proposer": "ngram", "num_speculative_tokens": 5}
    [drafted] = LLM(tmp_path / "m.gguf", speculation=options, num_threads=1).generate([prompt], params)
    assert drafted.token_ids == plain.token_ids
    assert drafted.speculation.num_accepted_tokens > 0


def test_a_progress_that_fails_is_its_callers_alone(tmp_path: Path) -> None:
    class Failing(Recorder):
        def begin(self, description: str, total: int | None) -> None:
            super().begin(description, total)
            if description == "Reading the prompt":
                raise ValueError("no terminal")

    write_tiny_llama(tmp_path / "m.gguf", context_length=4096)
    llm = LLM(tmp_path / "m.gguf", progress=Failing())
    params = SamplingParams(max_tokens=40, ignore_eos=True)
    [expected] = llm.generate("hello", params)
    stream = llm.stream("hello", params)
    next(stream)
    with pytest.raises(ValueError, match="no terminal"):
        llm.generate([5] * 1500, SamplingParams(max_tokens=1))
    for _ in stream:
        pass
    assert stream.output().token_ids == expected.token_ids
    llm._engine.check_integrity()
