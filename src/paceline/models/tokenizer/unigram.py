"""Unigram vocabularies: of all ways to write a word in tokens, the most probable one.

Kudo, "Subword Regularization", arXiv:1804.10959; the search and the unknown token's penalty are SentencePiece's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from paceline.errors import ModelFormatError
from paceline.models.tokenizer.sentencepiece import ByteFallback, sentencepiece_model, space_splitter
from paceline.models.tokenizer.tokenizer import TextModel

_UNKNOWN_PENALTY = 10.0  # below the least probable token
_CACHED_WORDS = 1 << 16
_MAX_CACHED_CHARACTERS = 64


def unigram_model(
    ids: Mapping[str, int],
    scores: Mapping[str, float],
    fallback: ByteFallback,
    *,
    charsmap: bytes,
    has_space_prefix: bool,
    merges_spaces: bool,
) -> TextModel:
    """`ids`: the ordinary tokens; `charsmap`: SentencePiece's compiled normalisation, empty for none.

    With `merges_spaces`, spaces at the ends are dropped and those inside become one. Raises `ModelFormatError` for a
    map that cannot be read.
    """
    normalise = _normaliser(charsmap)
    cut = space_splitter(ids, has_space_prefix)

    def split(text: str, is_first: bool) -> Iterable[str]:
        text = normalise(text)
        if merges_spaces:
            text = " ".join(filter(None, text.split(" ")))
        return cut(text, is_first) if text else ()

    has_bound = not charsmap and not merges_spaces
    encode = UnigramModel(ids, scores, fallback)
    return sentencepiece_model(ids, split, encode, fallback, has_space_prefix=has_space_prefix, has_bound=has_bound)


def _normaliser(charsmap: bytes) -> Callable[[str], str]:
    if not charsmap:
        return str
    from tokenizers import normalizers  # here, not above: a help text must not wait for it

    try:
        return normalizers.Precompiled(charsmap).normalize_str
    except Exception as error:  # the library raises nothing narrower
        raise ModelFormatError(
            f"the vocabulary's map of characters cannot be read: {error}; convert it again"
        ) from error


class UnigramModel:
    """Turns words into ids. `scores` are log-probabilities of the ordinary tokens."""

    def __init__(self, ids: Mapping[str, int], scores: Mapping[str, float], fallback: ByteFallback) -> None:
        self._ids = ids
        self._scores = scores
        self._fallback = fallback
        self._longest = max(map(len, ids), default=1)
        self._unknown_score = min(scores.values(), default=0.0) - _UNKNOWN_PENALTY
        self._cached = lru_cache(_CACHED_WORDS)(self._encode)

    def __call__(self, word: str) -> Sequence[int]:
        return self._cached(word) if len(word) <= _MAX_CACHED_CHARACTERS else self._encode(word)

    def _encode(self, word: str) -> Sequence[int]:
        found: list[int] = []
        for token in self._best_path(word):
            token_id = self._ids.get(token)
            if token_id is not None:
                found.append(token_id)
            else:
                found += self._fallback(token)
        return tuple(found)

    def _best_path(self, word: str) -> list[str]:
        """Viterbi over the word's positions: the best score up to each, and where its last token begins."""
        scores = self._scores
        best = [0.0] + [float("-inf")] * len(word)
        begins = [0] * (len(word) + 1)
        for begin in range(len(word)):
            reached = best[begin]
            for end in range(begin + 1, min(begin + self._longest, len(word)) + 1):
                score = scores.get(word[begin:end], self._unknown_score if end == begin + 1 else None)
                if score is not None and reached + score > best[end]:
                    best[end], begins[end] = reached + score, begin
        tokens: list[str] = []
        end = len(word)
        while end > 0:
            tokens.append(word[begins[end] : end])
            end = begins[end]
        return tokens[::-1]
