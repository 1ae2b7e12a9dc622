"""Answers in a given form, the same with drafts as without. Run: python examples/structured.py [MAX_TOKENS]"""

import json
import re
import sys

from paceline import LLM, SamplingParams

max_tokens = max(40, int(sys.argv[1])) if len(sys.argv) > 1 else 100
llm = LLM("smollm2", speculation="ngram")

schema = {
    "type": "object",
    "properties": {"legs": {"type": "integer", "maximum": 1000}, "flies": {"type": "boolean"}},
    "required": ["legs", "flies"],
    "additionalProperties": False,
}
form = {"type": "json_schema", "json_schema": {"schema": schema}}
[answer] = llm.chat(
    [{"role": "user", "content": "How many legs has a bee, and does it fly? Answer in JSON."}],
    SamplingParams(max_tokens=max_tokens, response_format=form),
)
bee = json.loads(answer.text)
print(bee)

pattern = "(red|green|blue|yellow)(, (red|green|blue|yellow)){2}"
[answer] = llm.generate(
    "Three colours:", SamplingParams(max_tokens=max_tokens, response_format={"type": "regex", "pattern": pattern})
)
print(answer.text)
print(f"-- the form holds: {set(bee) == {'legs', 'flies'} and re.fullmatch(pattern, answer.text) is not None}")
