"""Shows an answer as it is written, accepted draft tokens in green. Run: python examples/chat_stream.py [MAX_TOKENS]"""

import sys

from paceline import LLM, SamplingParams

GREEN, PLAIN = ("\033[32m", "\033[0m") if sys.stdout.isatty() else ("", "")

max_tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 128
llm = LLM("smollm2", speculation={"proposer": "ngram", "num_speculative_tokens": 5})
question = "Repeat this sentence twice: The river runs south for forty miles before it reaches the sea."

with llm.stream([{"role": "user", "content": question}], SamplingParams(max_tokens=max_tokens)) as stream:
    for piece in stream:
        print(f"{GREEN}{piece.text}{PLAIN}" if piece.is_draft else piece.text, end="", flush=True)

speculation = stream.output().speculation
print(f"\n-- {speculation.num_accepted_tokens} of {speculation.num_draft_tokens} draft tokens accepted")
