"""The requests of a soak: texts that begin alike, next turns of old answers, ends of every kind, several tenants."""

import json
from collections import deque
from pathlib import Path
from random import Random

from paceline.engine import Request
from paceline.models import Tokenizer
from paceline.sampling_params import SamplingParams

QUESTIONS = Path(__file__).parent.parent / "tests" / "data" / "spec_bench_subset.jsonl"
NUM_BEGINNINGS = 6
NUM_REMEMBERED = 32  # answers that a next turn may begin with
STOPS = ((), (), (), (",",), (" the", "\n\n"), (". The", "ing to"))


class Traffic:
    """`max_length`: tokens that prompt and answer may have together."""

    def __init__(self, tokenizer: Tokenizer, max_length: int, random: Random) -> None:
        self._random = random
        self._max_length = max_length
        turns = [turn for line in QUESTIONS.read_text().splitlines() for turn in json.loads(line)["turns"]]
        self._texts = [tokenizer.encode(turn) for turn in turns]
        long = [text for text in self._texts if len(text) >= 32]
        self._beginnings = [random.choice(long)[: random.randint(20, 200)] for _ in range(NUM_BEGINNINGS)]
        self._answers: deque[tuple[int, ...]] = deque(maxlen=NUM_REMEMBERED)

    def remember(self, text: tuple[int, ...]) -> None:
        """A finished request's prompt and answer."""
        if len(text) < self._max_length // 2:
            self._answers.append(text)

    def request(self) -> Request:
        random = self._random
        return Request(
            self._prompt()[: self._max_length - 8],
            SamplingParams(
                random.choice((1, 4, 12, 24, 24, 48)),
                stop=random.choice(STOPS),
                min_tokens=random.choice((0, 0, 0, 1)),
                ignore_eos=random.random() < 0.3,
            ),
            namespace=random.choice(("", "", "tenant")),
            num_speculative_tokens=random.choice((None, None, 0, 2, 8)),
            priority=random.choice((0, 0, 0, 0, 1, -1)),
        )

    def _prompt(self) -> list[int]:
        random = self._random
        text = random.choice(self._texts)
        kind = random.random()
        if kind < 0.4:
            return [*random.choice(self._beginnings), *text[: random.randint(1, 40)]]
        if kind < 0.6 and self._answers:
            return [*random.choice(self._answers), *text[: random.randint(1, 20)]]
        if kind < 0.65:  # a long one, that others wait beside
            return [token for _ in range(8) for token in random.choice(self._texts)]
        return text[: random.randint(4, 120)]
