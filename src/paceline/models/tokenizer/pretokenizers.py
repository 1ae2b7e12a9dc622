"""How byte-level vocabularies cut text into words, by the names that GGUF files give to the ways of doing it.

The patterns are those of the models' own tokenizer.json files where one is known, so that ids are the ones that a model
was trained on; where llama.cpp approximates them, or leaves a Unicode normalisation out, it differs.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from paceline.errors import PacelineWarning
from paceline.models.quoting import quoted

if TYPE_CHECKING:
    import tokenizers


class Step(Enum):
    """Steps that the `tokenizers` library has by name; the others are patterns whose matches become words."""

    DIGITS = "each digit on its own"
    WORDS = "GPT-2's pattern"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Steps that each cut the words of the one before, and what else comes with that family of vocabularies."""

    steps: tuple[str | Step, ...]
    is_composed: bool = False
    """Text is brought into the normal form NFC first."""
    keeps_words: bool = False
    """A word that is a token is taken as it is, whatever the merges would make of it."""
    add_bos: bool = False
    """Whether prompts begin with the BOS token where the file does not say."""


_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_OTHERS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+", rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*")
_CASED_OTHERS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_CJK_KANA = "[一-龥\u3040-ゟ゠-ヿ]+"
_CJK_HANGUL = "[一-龥ࠀ-一가-\ud7ff]+"
_ASCII_WORD = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
_PHRASE = " ?[^(\\s|.,!?…。，、।۔،)]+"
_CASED_LETTERS = (  # of deepseek-llm: those of the Unicode version that its authors had
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"
    "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)


def _alternatives(*patterns: str) -> tuple[str, ...]:
    return ("|".join(patterns),)


_GPT2 = PreTokenizer((Step.WORDS,))
_DIGITS = PreTokenizer((Step.DIGITS, Step.WORDS))
_LLAMA3 = PreTokenizer(
    _alternatives(_CONTRACTION, _LETTERS, r"\p{N}{1,3}", _OTHERS, _SPACES), keeps_words=True, add_bos=True
)
_TIKTOKEN = replace(_LLAMA3, keeps_words=False, add_bos=False)
_QWEN2_PLAIN = PreTokenizer(_alternatives(_CONTRACTION, _LETTERS, r"\p{N}", _OTHERS, _SPACES))
_QWEN2 = replace(_QWEN2_PLAIN, is_composed=True)
_QWEN35 = PreTokenizer(
    _alternatives(
        _CONTRACTION, r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", r"\p{N}", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", _SPACES
    ),
    is_composed=True,
)
_GPT4O = PreTokenizer(
    _alternatives(*(f"{case}{_CONTRACTION}?" for case in _CASED), r"\p{N}{1,3}", _CASED_OTHERS, _SPACES)
)
_TEKKEN = PreTokenizer(_alternatives(*_CASED, r"\p{N}", _CASED_OTHERS, _SPACES), keeps_words=True, add_bos=True)
_DEEPSEEK_LLM = PreTokenizer(
    ("[\r\n]", rf"\s?[{_CASED_LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", r"\s+$", _CJK_HANGUL, r"\p{N}+")
)
_DEEPSEEK_CODER = PreTokenizer(("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK_HANGUL, Step.DIGITS))
_DEEPSEEK_V3 = PreTokenizer(
    (
        r"\p{N}{1,3}",
        _CJK_KANA,
        "|".join(
            [_ASCII_WORD, r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+", r" ?[\p{P}\p{S}]+[\r\n]*", _SPACES],
        ),
    )
)
_FALCON = PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", Step.WORDS, "[0-9][0-9][0-9]"))
_DEFAULT = PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", Step.WORDS, r"\p{N}+", "[0-9][0-9][0-9]"))
_BAILING = PreTokenizer(
    _alternatives(
        r"'(?i:[sdmt]|ll|ve|re)", r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"\p{N}", r" ?[^\s\p{L}\p{N}]++[\r\n]*",
        r"\s*[\r\n]|\s+(?!\S)|\s+",
    )
)  # fmt: skip
_SEED_CODER = PreTokenizer(_alternatives(_CONTRACTION, _LETTERS, r"\p{N}", r" ?[^\s\p{L}\p{N}\r\n]+", _SPACES))

# fmt: off
_FAMILIES: tuple[tuple[PreTokenizer, str], ...] = (  # each with the names that mean it
    (_GPT2, "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert jais exaone4"
            " trillion granite-docling"),
    (replace(_GPT2, is_composed=True), "mpt olmo"),  # GPT-NeoX's
    (_DIGITS, "smollm starcoder refact codeshell exaone minerva-7b mellum2"),
    (replace(_DIGITS, is_composed=True), "command-r"),
    (_LLAMA3, "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2"),
    (_TIKTOKEN, "dbrx smaug-bpe glm4 chatglm-bpe"),
    (_QWEN2, "qwen2 megrez"),
    (_QWEN2_PLAIN, "deepseek-r1-qwen stablelm2 hunyuan kormo solar-open grok-2"),
    (_QWEN35, "qwen35"),
    (_GPT4O, "gpt-4o llama4 kanana2 minimax-m2 talkie"),
    (_TEKKEN, "tekken"),
    (_DEEPSEEK_LLM, "deepseek-llm"),
    (_DEEPSEEK_CODER, "deepseek-coder"),
    (_DEEPSEEK_V3, "deepseek-v3 hunyuan-dense joyai-llm hy_v4"),
    (_FALCON, "falcon"),
    (PreTokenizer((_PHRASE,)), "poro-chat bloom gpt3-finnish"),
    (PreTokenizer((_PHRASE, r"\p{N}")), "viking"),
    (_BAILING, "bailingmoe bailingmoe2 llada-moe"),
    (_SEED_CODER, "seed-coder"),
    (_DEFAULT, "default"),
)
# fmt: on
PRE_TOKENIZERS = {name: family for family, names in _FAMILIES for name in names.split()}
_ASSUMED = "llama-bpe"


def find_pre_tokenizer(name: str | None, where: object) -> PreTokenizer:
    """The one of that name. Warns with `PacelineWarning` where it is unknown or, None, missing, and something is
    assumed; `where` is the file to name."""
    if name is None:
        message = "the file does not say how text is cut into words; llama.cpp's old default is assumed"
        family = _DEFAULT
    elif name in PRE_TOKENIZERS:
        return PRE_TOKENIZERS[name]
    else:
        message = f"the pre-tokenizer {quoted(name)} is unknown; the one of {_ASSUMED!r} is assumed"
        family = _TIKTOKEN
    warnings.warn(f"{where}: {message}: answers may be worse than the model's own", PacelineWarning, stacklevel=2)
    return family


def byte_level_splitter(pre: PreTokenizer) -> Callable[[str, bool], Iterable[str]]:
    """Text to words in the alphabet that stands for bytes."""
    from tokenizers import Regex, normalizers, pre_tokenizers  # here, not above: a help text must not wait for it

    def build(step: str | Step) -> "tokenizers.pre_tokenizers.PreTokenizer":
        match step:
            case Step.DIGITS:
                return pre_tokenizers.Digits(individual_digits=True)
            case Step.WORDS:
                return pre_tokenizers.Split(Regex(_WORDS), "isolated")
            case pattern:
                return pre_tokenizers.Split(Regex(pattern), "isolated")

    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    cut = pre_tokenizers.Sequence([*map(build, pre.steps), to_bytes]).pre_tokenize_str
    compose = normalizers.NFC().normalize_str if pre.is_composed else str

    def split(text: str, _is_first: bool) -> Iterable[str]:
        return [word for word, _ in cut(compose(text))]

    return split


_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
