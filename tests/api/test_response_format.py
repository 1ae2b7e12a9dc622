"""`response_format` through the public API: answers have the form, and speculation changes no token of them."""

import asyncio
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paceline import LLM, AsyncLLM, RequestOutput, SamplingParams, Speculation, UsageError
from paceline.acceptance.grammar import CompiledGrammar

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["kind", "tall", "old"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
FORMATS: list[dict[str, Any]] = [
    {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}},
    {"type": "regex", "pattern": r"(Ann|Bob) is \d{1,3} years old\."},
    {"type": "grammar", "grammar": 'root ::= item ("\\n" item){2}\nitem ::= "- " [A-Za-z ]{3,12}'},
]
PROMPTS = [
    'Describe Ann as JSON, like {"name": "Bob", "age": 31, "tags": ["kind", "old"]}.',
    "How old is Ann? Bob is 31 years old.",
    "List three animals:\n- a dog\n- a cat\n- a cow",
]


def has_form(output: RequestOutput, given: dict[str, Any]) -> bool:
    if given["type"] == "regex":
        return re.fullmatch(given["pattern"], output.text) is not None
    if given["type"] == "grammar":
        return re.fullmatch("- [A-Za-z ]{3,12}(\n- [A-Za-z ]{3,12}){2}", output.text) is not None
    value = json.loads(output.text)
    return (
        list(value) == ["name", "age", "tags"]
        and len(value["name"]) <= 20
        and 0 <= value["age"] <= 150
        and 1 <= len(value["tags"]) <= 3
        and set(value["tags"]) <= {"kind", "tall", "old"}
    )


@pytest.fixture(scope="module")
def llms(smollm2_path: Path) -> list[LLM]:
    ngram = Speculation("ngram", 5, {"min_match": 1})
    return [
        LLM(smollm2_path, max_model_len=512, max_num_seqs=1),
        LLM(smollm2_path, max_model_len=512, speculation=ngram),
    ]


def answers(llm: LLM, temperature: float) -> list[RequestOutput]:
    """Streams that are open together, then each to its end."""
    streams = []
    for index, (prompt, given) in enumerate(zip(PROMPTS, FORMATS, strict=True)):
        params = SamplingParams(
            max_tokens=90, temperature=temperature, seed=index, response_format=given, repetition_penalty=1.05
        )
        streams.append(llm.stream([{"role": "user", "content": prompt}], params))
    for stream in streams:
        for _ in stream:
            pass
    return [stream.output() for stream in streams]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_have_the_form_and_are_the_same_with_drafts(llms: Sequence[LLM], temperature: float) -> None:
    plain, drafted = (answers(llm, temperature) for llm in llms)
    assert [output.token_ids for output in drafted] == [output.token_ids for output in plain]
    assert sum(output.speculation.num_accepted_tokens for output in drafted) > 5
    for output, given in zip(plain, FORMATS, strict=True):
        assert (output.finish_reason, output.error) == ("stop", None)
        assert has_form(output, given)


def test_choices_and_any_json_object(llms: Sequence[LLM]) -> None:
    params = SamplingParams(max_tokens=60, temperature=1.0, seed=5, n=3, response_format={"type": "json_object"})
    [plain], [drafted] = (llm.generate("A point, as JSON with x and y:", params) for llm in llms)
    assert [choice.token_ids for choice in drafted.choices] == [choice.token_ids for choice in plain.choices]
    assert len({choice.token_ids for choice in plain.choices}) > 1
    for choice in plain.choices:
        assert choice.text.startswith("{")
        if choice.finish_reason == "stop":
            assert isinstance(json.loads(choice.text), dict)


def test_what_cannot_be_compiled_is_refused(tiny_llama_path: Path) -> None:
    llm = LLM(tiny_llama_path)
    for given, message in (
        ({"type": "regex", "pattern": "("}, r"response_format.pattern cannot be compiled: .*unclosed group"),
        ({"type": "grammar", "grammar": "start: other"}, "response_format.grammar cannot be compiled: .*other"),
        (
            {"type": "json_schema", "json_schema": {"schema": {"type": "strnig"}}},
            "response_format.json_schema.schema cannot be compiled: .*strnig",
        ),
        ({"type": "json_schema", "json_schema": {"schema": {"unevaluatedItems": {}}}}, "unevaluatedItems"),
    ):
        with pytest.raises(UsageError, match=message):
            llm.generate("hello", SamplingParams(response_format=given))
        with pytest.raises(UsageError, match=message):
            llm.stream("hello", SamplingParams(response_format=given))


def test_nothing_is_compiled_in_the_loop_or_by_the_engine(
    tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, compile_one = list[threading.Thread](), CompiledGrammar.__init__

    def spied(*arguments: Any) -> None:
        threads.append(threading.current_thread())
        compile_one(*arguments)

    monkeypatch.setattr(CompiledGrammar, "__init__", spied)
    params = SamplingParams(max_tokens=8, response_format={"type": "regex", "pattern": "[a-z]+"})

    async def main() -> set[threading.Thread]:
        async with AsyncLLM(tiny_llama_path) as served:
            await asyncio.gather(*(served.generate("hello", params) for _ in range(20)))
            return {threading.main_thread(), served._engine()._thread._thread}

    others = asyncio.run(main())
    assert len(threads) == 1  # of twenty that ask for the same
    assert threads[0] not in others


def test_async_answers_are_those_of_llm(tiny_llama_path: Path) -> None:
    formats = [*FORMATS[1:], {"type": "json_object"}, {"type": "regex", "pattern": "[a-z ]{5,9}"}]
    params = [
        SamplingParams(max_tokens=30, temperature=1.0, seed=i, response_format=given)
        for i, given in enumerate(formats * 3)
    ]
    llm = LLM(tiny_llama_path)
    expected = [llm.generate("hello world", each)[0].token_ids for each in params]

    async def main() -> list[tuple[int, ...]]:
        async with AsyncLLM(tiny_llama_path, speculation=Speculation("ngram", 4, {"min_match": 1})) as served:
            bad = SamplingParams(response_format={"type": "regex", "pattern": "("})
            refused, stream = served.generate("hello", bad), served.stream("hello", bad)
            outputs = await asyncio.gather(*(served.generate("hello world", each) for each in params))
            for wrong in (refused, anext(stream)):
                with pytest.raises(UsageError, match="unclosed group"):
                    await wrong
            async with served.stream("hello world", params[0]) as good:
                assert "".join([piece.text async for piece in good]) == good.output().text
                assert good.output().token_ids == expected[0]
            return [output[0].token_ids for output in outputs]

    assert asyncio.run(main()) == expected
