"""Make family_tokens.json beside this file: token ids of small vocabularies of every kind that GGUF files have.

    python make_token_golden.py OUT [--llama-python PYTHON]

Needs gguf, tokenizers, numpy and sentencepiece, and an interpreter that can import llama_cpp (llama-cpp-python).

Byte-level vocabularies: one table of merges for all pre-tokenizers, learnt here from the strings as they stand, so
that merges cross every border at which one family of models cuts and another does not. Ids come from llama.cpp and from
the `tokenizers` library with the pattern of the models' own tokenizer.json (`PATTERNS`); where the two differ, the
string is under `disagreements`, with the library's ids, which are the ones that those models were trained on.

SentencePiece vocabularies are trained here; ids come from llama.cpp for BPE and from the `tokenizers` library for
unigram. The sentencepiece library differs on few strings: one that itself holds U+2581 twice, which it takes for the
token of two spaces, and ones that two ways of cutting make equally probable but for rounding (it adds up in single
precision).
"""

import argparse
import io
import json
import logging
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy
import sentencepiece
from inputs import PERPLEXITY_TEXT
from token_inputs import MARKED, SEED, STRINGS
from tokenizer_files import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    byte_level_settings,
    sentencepiece_settings,
    write_vocabulary,
)
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

log = logging.getLogger("make_token_golden")

NUM_MERGES = 800
NUM_PIECES = 700
SPACE = "\u2581"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r" ?[^\s\p{L}", r" ?[^\s\p{L}\p{M}")
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    TEKKEN.replace(r"\p{M}]+|", r"\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|")
    .replace(r"\p{M}]*|", r"\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|")
    .replace(r"|\p{N}|", r"|\p{N}{1,3}|")
)
DEEPSEEK_V3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
HAN_AND_HANGUL = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DIGITS = "digits"
# What the models' own files say; None where only llama.cpp's word is at hand.
PATTERNS: dict[str, tuple[list[str], bool] | None] = {
    "gpt-2": ([GPT2], False),
    "mpt": ([GPT2], True),
    "smollm": ([DIGITS, GPT2], False),
    "command-r": ([DIGITS, GPT2], True),
    "llama-bpe": ([LLAMA3], False),
    "dbrx": ([LLAMA3], False),
    "qwen2": ([QWEN2], True),
    "deepseek-r1-qwen": ([QWEN2], False),
    "qwen35": ([QWEN35], True),
    "tekken": ([TEKKEN], False),
    "gpt-4o": ([GPT4O], False),
    "deepseek-v3": ([r"\p{N}{1,3}", HAN, DEEPSEEK_V3], False),
    "deepseek-coder": (["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN_AND_HANGUL, DIGITS], False),
    "deepseek-llm": None,
    "falcon": None,
    "default": None,
    "poro-chat": None,
    "viking": None,
    "bailingmoe": None,
    "seed-coder": None,
}
KEEPS_WORDS = ("llama-bpe", "tekken")

LLAMA_TOKENIZE = """
import json, sys
import llama_cpp
model = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)
ids = [model.tokenize(text.encode(), add_bos=False, special=False) for text in json.load(sys.stdin)]
print(json.dumps({"version": llama_cpp.__version__, "ids": ids}))
"""


def llama_cpp_ids(python: str, settings: dict[str, Any], texts: list[str]) -> tuple[str, list[list[int]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary.gguf"
        write_vocabulary(path, settings)
        command = [python, "-c", LLAMA_TOKENIZE, str(path)]
        done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"make_token_golden: llama.cpp failed: {done.stderr[-400:]}")
    answer = json.loads(done.stdout)
    return answer["version"], answer["ids"]


# ---- byte-level vocabularies ----


def learn_merges(texts: list[str]) -> list[str]:
    """The commonest pair of neighbouring symbols in all texts, again and again; ties to the pair that sorts first."""
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    runs = [list(to_bytes.pre_tokenize_str(text)[0][0]) for text in texts if text]
    merges: list[str] = []
    while len(merges) < NUM_MERGES:
        counts = Counter(pair for run in runs for pair in pairwise(run))
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(" ".join(pair))
        for run in runs:
            index = 0
            while index < len(run) - 1:
                if (run[index], run[index + 1]) == pair:
                    run[index : index + 2] = ["".join(pair)]
                index += 1
    return merges


def library_ids(settings: dict[str, Any], family: str, texts: list[str]) -> list[list[int]] | None:
    known = PATTERNS[family]
    if known is None:
        return None
    patterns, is_composed = known
    vocabulary = {token: index for index, token in enumerate(settings["tokens"])}
    pairs = [tuple(merge.split(" ")) for merge in settings["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=family in KEEPS_WORDS))
    steps = [
        pre_tokenizers.Digits(individual_digits=True)
        if pattern == DIGITS
        else pre_tokenizers.Split(Regex(pattern), "isolated")
        for pattern in patterns
    ]
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, last])
    if is_composed:
        tokenizer.normalizer = normalizers.NFC()
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


def byte_level_golden(python: str) -> tuple[str, dict[str, Any]]:
    merges = learn_merges([*STRINGS, PERPLEXITY_TEXT[:1500], *[SEED, MARKED] * 4])
    ids: list[dict[str, list[str]]] = [{} for _ in STRINGS]
    disagreements: dict[str, dict[str, list[int]]] = {}
    llama_version = ""
    for family in PATTERNS:
        settings = byte_level_settings(family, merges)
        llama_version, reference = llama_cpp_ids(python, settings, STRINGS)
        library = library_ids(settings, family, STRINGS) or reference
        for index, (one, other) in enumerate(zip(reference, library, strict=True)):
            if one == other:
                ids[index].setdefault(" ".join(map(str, one)), []).append(family)
            else:
                disagreements.setdefault(family, {})[str(index)] = other
        log.info("%s: %d strings on which the library differs", family, len(disagreements.get(family, {})))
    return llama_version, {"merges": merges, "ids": ids, "disagreements": disagreements}


# ---- SentencePiece vocabularies ----


def train(model_type: str, **options: Any) -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*STRINGS[:150], *PERPLEXITY_TEXT.split("\n"), *[SEED] * 3]),
        model_writer=model,
        model_type=model_type,
        vocab_size=NUM_PIECES,
        character_coverage=0.98,
        byte_fallback=True,
        hard_vocab_limit=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        max_sentencepiece_length=12,
        num_threads=1,
        **options,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def pieces_of(processor: sentencepiece.SentencePieceProcessor, defined: list[str]) -> list[tuple[str, float, int]]:
    pieces = []
    for index in range(processor.get_piece_size()):
        name = processor.id_to_piece(index)
        kind = NORMAL
        if processor.is_unknown(index):
            kind = UNKNOWN
        elif processor.is_control(index):
            kind = CONTROL
        elif processor.is_byte(index):
            kind = BYTE
        elif name in defined:
            kind, name = USER_DEFINED, name.replace(SPACE, " ")  # as converters to GGUF write it
        pieces.append((name, round(processor.get_score(index), 6), kind))
    return pieces


def sentencepiece_golden(python: str, name: str) -> dict[str, Any]:
    """`bpe`: a space in front of every text. `gemma`: none, and runs of spaces and line feeds as tokens."""
    defined = ["<tool>", "\n\n", "\n\n\n", *(SPACE * count for count in (2, 3, 4))] if name == "gemma" else []
    processor = train(
        "unigram" if name == "unigram" else "bpe", add_dummy_prefix=name != "gemma", user_defined_symbols=defined
    )
    pieces = pieces_of(processor, defined)
    own = [processor.encode(text) for text in STRINGS]
    if name == "unigram":
        ids = unigram_ids(pieces)
    else:
        settings = sentencepiece_settings(pieces) | {"add_space_prefix": name != "gemma"}
        _, ids = llama_cpp_ids(python, settings, STRINGS)
    log.info(
        "%s: sentencepiece differs on %s", name, [STRINGS[i] for i, own_ids in enumerate(own) if own_ids != ids[i]]
    )
    return {"pieces": pieces, "ids": [" ".join(map(str, found)) for found in ids]}


def unigram_ids(pieces: list[tuple[str, float, int]]) -> list[list[int]]:
    """Of the `tokenizers` library, with scores as a GGUF file holds them and control tokens that no text can name."""
    names = [chr(0x100000 + i) if kind in (CONTROL, UNKNOWN) else name for i, (name, _, kind) in enumerate(pieces)]
    scored = [(name, float(numpy.float32(score))) for name, (_, score, _) in zip(names, pieces, strict=True)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in STRINGS]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the reference token ids of small vocabularies.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--llama-python", default=sys.executable, help="an interpreter that can import llama_cpp")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    llama_version, byte_level = byte_level_golden(arguments.llama_python)
    versions = {name: version(name) for name in ("tokenizers", "sentencepiece", "gguf")}
    content = {
        "provenance": {
            "command": "python make_token_golden.py OUT --llama-python PYTHON",
            "packages": versions | {"llama-cpp-python": llama_version},
        },
        "strings": STRINGS,
        "byte_level": byte_level,
        **{name: sentencepiece_golden(arguments.llama_python, name) for name in ("bpe", "gemma", "unigram")},
    }
    path = arguments.out / "family_tokens.json"
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="ascii")
    log.info("%s: %d bytes, %d strings", path.name, path.stat().st_size, len(STRINGS))


if __name__ == "__main__":
    main()
