"""What can be told of a model once it is opened, and whether two models speak of the same tokens."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from paceline.models.base import Model, ModelConfig
from paceline.models.tokenizer import Tokenizer

_CACHE_ITEM_BYTES = 2  # float16


@dataclass(frozen=True, slots=True)
class TypeShare:
    """The tensors of one type, as they are loaded."""

    type: str
    num_tensors: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """A model in numbers."""

    path: Path
    config: ModelConfig
    types: tuple[TypeShare, ...]
    """The most bytes first."""
    num_parameters: int
    num_tokens: int
    """That text has; the embedding may have more rows."""
    stop_tokens: tuple[tuple[int, str], ...]
    """Ids and names of the tokens that end an answer."""
    has_chat_template: bool

    @property
    def weight_bytes(self) -> int:
        return sum(share.num_bytes for share in self.types)

    def cache_bytes(self, context: int, concurrency: int) -> int:
        """Keys and values of `concurrency` sequences of `context` tokens each."""
        config = self.config
        of_position = 2 * config.num_layers * config.num_kv_heads * config.head_dim * _CACHE_ITEM_BYTES
        return of_position * context * concurrency


@dataclass(frozen=True, slots=True)
class Difference:
    """An id that stands for two things; None where a vocabulary ends before it."""

    token_id: int
    target: str | None
    draft: str | None


@dataclass(frozen=True, slots=True)
class VocabularyComparison:
    """Token string by token string, but for ids that either model only fills its vocabulary up with."""

    num_compared: int
    num_different: int
    first_difference: Difference | None

    @property
    def is_same(self) -> bool:
        return self.num_different == 0


def inspect_model(model: Model, tokenizer: Tokenizer) -> Inspection:
    """`tokenizer`: the model's own, which takes a while to make."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for info in model.tensors.values():
        counts[info.type.name] += 1
        sizes[info.type.name] += info.num_bytes
    return Inspection(
        path=model.path,
        config=model.config,
        types=tuple(TypeShare(name, counts[name], size) for name, size in sizes.most_common()),
        num_parameters=sum(math.prod(info.shape) for info in model.tensors.values()),
        num_tokens=tokenizer.vocab_size - len(tokenizer.unproducible_ids),
        stop_tokens=tuple((i, _name(tokenizer, i)) for i in sorted(tokenizer.stop_ids)),
        has_chat_template=model.chat_template() is not None,
    )


def compare_vocabularies(target: Tokenizer, draft: Tokenizer) -> VocabularyComparison:
    """A draft model's tokens are the target's only where the ids mean the same in both."""
    used = _used_ids(target, draft)
    differences = target.differences(draft, used)
    first = None
    if differences:
        names = [
            _name(tokenizer, differences[0]) if differences[0] < tokenizer.vocab_size else None
            for tokenizer in (target, draft)
        ]
        first = Difference(differences[0], *names)
    return VocabularyComparison(len(used), len(differences), first)


def _used_ids(target: Tokenizer, draft: Tokenizer) -> list[int]:
    unused = target.unproducible_ids | draft.unproducible_ids
    return [i for i in range(max(target.vocab_size, draft.vocab_size)) if i not in unused]


def _name(tokenizer: Tokenizer, token_id: int) -> str:
    return tokenizer.token_bytes(token_id).decode(errors="replace")
