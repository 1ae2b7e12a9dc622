"""Token ids of the default model against those that a reference tokenizer gave over the same file."""

import json
from pathlib import Path

from paceline.models import GGUFFile, Tokenizer

GOLDEN = Path(__file__).parents[1] / "golden" / "tokens.json"


def test_ids_equal_the_reference_ones(smollm2_path: Path) -> None:
    samples = json.loads(GOLDEN.read_text(encoding="utf-8"))["strings"]
    with GGUFFile.open(smollm2_path) as file:
        tokenizer = Tokenizer.from_gguf(file)
    assert len(samples) >= 200
    wrong = [sample["text"] for sample in samples if tokenizer.encode(sample["text"]) != sample["ids"]]
    assert wrong == []
    known = {tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)}  # a few bytes have no token
    for sample in samples:
        if all(bytes([byte]) in known for byte in sample["text"].encode()):
            assert tokenizer.decode(sample["ids"]) == sample["text"]
