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
from inputs import PERPLEXITY_TEXT, TOKEN_STRINGS
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
SEED = "Wait, it's 12345.67 km (or 7,000,000 m)...\n\n\tdef f(x):\n        return x_1 + 'ab' # NOTE: can't\r\n"
# Letters with marks that NFC leaves alone.
MARKED = "x\u0304x\u0304 \u0928\u092e\u0938\u094d\u0924\u0947 -x\u0304 \u0651\u064e "

MORE_STRINGS = [
    MARKED,
    "\u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u05d9\u05ea \u05d1\u05b8\u05bc\u05e8\u05b8\u05d0",
    "\u0642\u0627\u0644 123 \u0648 \u0664\u0665\u0666\u060c \u062b\u0645\u2026 (abc) \u0635\u0644\u0649",
    "\u200fRTL mark\u200f and \u200eLTR mark\u200e",
    "\u0627\u200d\u0628\u200c\u062a joined and not",
    "\U0001f9d1\u200d\U0001f680\U0001f9d1\U0001f3fd\u200d\U0001f393 123\U0001f4af!!",
    "\U0001f3f4\u200d\u2620\ufe0f\u200d\U0001f3f4 \u200d \u200d\u200d",
    "\u1e69 \u1e69\u0323 s\u0323\u0307 s\u0307\u0323 \ud55c\uae00",
    "\u1112\u1161\u11ab\u1100\u1173\u11af\u1112\u1161",
    "\u0958 \u0915\u093c \u0b94 \u0b92\u0bd7",
    "\ufb1d \u05d9\u05b4 \u2126 \u03a9 \u212a K \u00c5",
    "D\u0307\u0323 d\u0323\u0307, e\u0301\u0300\u0302x",
    " " * 33 + "x" + " " * 65 + "\n",
    "\t" * 20 + "x\n" + "\t" * 7,
    "\n" * 40,
    "x\n\n\n\n\ny\n\n\nz\n\nw",
    "\r\n" * 9 + "a\r\n\r\nb\r\r\nc",
    "a \r\n b\t\r\n\tc \n\r d",
    "   \n   \r\n   \t  end   ",
    "\u3000\u3000\u6587\u3000\u3002\u3000 \u00a0\u00a0x",
    "  'S 'T'RE'VE'M'LL'D it'S IT'LL we'Re \u017f's '\u017f",
    "I'm 5'11\", you're 6'2\"; '90s '20s",
    "1 12 123 1234 12345 123456 1234567 12345678",
    "x12y345z6789 1a22b333c4444",
    "\u0661\u0662\u0663\u0664 \u0967\u0968\u0969\u096a \u2460\u2461\u2462\u2463 \u2167\u2168",
    "3.1415,9265;3589-7932/3846",
    "HTTPServer parseXMLDocument iPhone15Pro eBay \u00c9COLE\u00e9cole \u00d1and\u00fa\u00d1",
    "\u01c5\u01c8 \u02b0x\u02b0 \u5b57A\u5b57a \u00e9\u00c9\u00e9 \u0130i\u0131I",
    "fooBar/bazQux//path/to//File.txt",
    "!!!???...///\n\n///---\n===\r\n",
    "#include<a>\n#define X(y) ((y)->z[0])\n",
    "$100 +5 =7 <8> ^9 ~10 |11 `12`",
    "a.b,c;d:e!f?g(h)i[j]k{l}m\"n\"o'p'q",
    "\u201cq\u201d\u2018r\u2019\u00abs\u00bb\u2014t\u2026u\uff01v\uff0cw\u3002x\u3001y\u060cz",
    "\u4e2d\u6587English\u65e5\u672c\u8a9e\u30ab\u30bf\u3072\u3089\ud55c\uad6d\uc5b4mixed123\u4e2d",
    "\u4f60\u597d \u4e16\u754c\u3002 \u4eca\u5929 2026\u5e7411\u670829\u65e5\uff0c\u661f\u671f\u65e5\uff01",
    "\u30e9\u30fc\u30e1\u30f3\u3068\u9903\u5b50\u3092\u98df\u3079\u305f\u3002\u300c\u306f\u3044\u300d",
    "_ __ ___ ____ _a_ __b__ c_",
    "a_b_c d-e-f g.h.i j/k/l m\\n\\o",
    "\u2581 \u2581\u2581x \u2581y",
    "<tool>\n\n<tool>  x   y    z</tool>",
    "the<tool>the <tool> the",
    " <tool>",
    "\u0301a \u0301 \u0e33\u0e33 \u0e01\u0e33",
    "\u00ad\u200b\u2060 x\u200by\u2060z",
]
STRINGS = list(dict.fromkeys([*TOKEN_STRINGS, *MORE_STRINGS]))

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
