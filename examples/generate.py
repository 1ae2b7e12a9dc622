"""Answers two prompts in a row. Run: python examples/generate.py [MAX_TOKENS]"""

import sys

from paceline import LLM, SamplingParams

max_tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 64
llm = LLM("smollm2")

for output in llm.generate(["The capital of France is", "Water boils at"], SamplingParams(max_tokens=max_tokens)):
    print(output.text.strip())
    print(f"-- {output.usage.completion_tokens} tokens, ended by {output.finish_reason}")
