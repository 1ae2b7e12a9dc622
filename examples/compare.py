"""The same prompt with and without drafts: the same text, sooner. Run: python examples/compare.py [MAX_TOKENS]"""

import sys

from paceline import LLM, SamplingParams

params = SamplingParams(max_tokens=int(sys.argv[1]) if len(sys.argv) > 1 else 128)
letter = (
    "Dear Ms. Miller, the two missing chairs will be sent on Monday, together with the blue cushions that you ordered "
    "last week. Please let us know if there is anything else that we can do for you."
)
messages = [{"role": "user", "content": f"Repeat this letter word for word:\n\n{letter}"}]

[plain] = LLM("smollm2").chat(messages, params)
[drafted] = LLM("smollm2", speculation="ngram").chat(messages, params)

print(drafted.text)
for name, output in (("plain", plain), ("drafted", drafted)):
    length, speed = output.speculation.mean_acceptance_length, output.timing.tokens_per_second
    print(f"-- {name}: {length or 0:.2f} tokens per forward, {speed or 0:.1f} tokens per second")
print(f"-- identical: {plain.token_ids == drafted.token_ids}")
