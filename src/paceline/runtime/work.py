"""What each part of a forward must read and multiply at least: a model's shapes as bytes and multiply-adds.

Weights count as their file holds them, keys and values once for all rows that see them. Activations count as nothing:
they stay in caches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paceline.models import Model, ModelConfig, TensorRole
from paceline.models.base import TensorInfo, TensorType

_MATRICES = {"qkv": ("q", "k", "v"), "o": ("o",), "gate_up": ("gate", "up"), "down": ("down",)}
_STORED_WITH = ("q_bias", "k_bias", "v_bias", "q_norm", "k_norm")  # vectors that belong to the phase `store`
_SPLIT_TYPES = (TensorType.Q8_0, TensorType.Q8_K, TensorType.IQ4_NL, TensorType.IQ4_XS)  # codes of 8 bits
_CACHE_BYTES = 2  # of one key or value


@dataclass(frozen=True, slots=True)
class Work:
    """`multiply_adds` is what the shapes ask for. `code_products` and `float_products` are what the kernels do for it
    with codes and with float32: weights whose codes have 8 bits take two products for each multiply-add.
    """

    num_bytes: int = 0
    multiply_adds: int = 0
    code_products: int = 0
    float_products: int = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.num_bytes + other.num_bytes,
            self.multiply_adds + other.multiply_adds,
            self.code_products + other.code_products,
            self.float_products + other.float_products,
        )


@dataclass(frozen=True, slots=True)
class PartWork:
    """A part of a forward: the phases of one `kind` in the `scopes` of a trace (0: no layer, i + 1: layer i).

    `shape` and `types` describe a product's matrices, side by side: outputs x inputs, and one type where all have the
    same.
    """

    name: str
    kind: str
    scopes: tuple[int, ...]
    work: Work = field(default_factory=Work)
    shape: str = ""
    types: str = ""


class ModelWork:
    """Knows a model's shapes and types; needs no open file."""

    def __init__(self, config: ModelConfig, tensors: Mapping[TensorRole, TensorInfo]) -> None:
        self._config = config
        self._tensors = dict(tensors)
        self._layers = tuple(range(1, config.num_layers + 1))

    @classmethod
    def of(cls, model: Model) -> "ModelWork":
        return cls(model.config, model.tensors)

    def parts(self, rows: int, context: int) -> tuple[PartWork, ...]:
        """Of a forward over a chain of `rows` behind `context` cached tokens, every row with logits."""
        head = TensorRole("embedding" if self._config.is_head_tied else "head")
        return (
            PartWork("embedding", "embed", (0,), self._embedding(rows)),
            PartWork("norms", "norm", (0, *self._layers), Work(self._vector_bytes(is_stored_with=False))),
            *self._products("qkv", rows),
            PartWork("rotation, store", "store", self._layers, self._stored(rows)),
            PartWork("attention", "attention", self._layers, self._attention(rows, context)),
            *self._products("o", rows),
            *self._products("gate_up", rows),
            PartWork("gating", "gating", self._layers),
            *self._products("down", rows),
            self._product("head", "head", (0,), [head], rows),
        )

    def _products(self, kind: str, rows: int) -> list[PartWork]:
        """One part for the layers that have the same types: files mix them."""
        by_types: dict[tuple[TensorType, ...], list[int]] = {}
        for scope in self._layers:
            roles = [TensorRole(name, scope - 1) for name in _MATRICES[kind]]
            by_types.setdefault(tuple(self._tensors[role].type for role in roles), []).append(scope)
        name = "+".join(_MATRICES[kind])
        return [
            self._product(
                name, kind, scopes, [TensorRole(matrix, s - 1) for s in scopes for matrix in _MATRICES[kind]], rows
            )
            for scopes in by_types.values()
        ]

    def _product(self, name: str, kind: str, scopes: Iterable[int], roles: list[TensorRole], rows: int) -> PartWork:
        infos = [self._tensors[role] for role in roles]
        work = sum((_product_work(info, rows) for info in infos), Work())
        first = infos[: len(_MATRICES.get(kind, ("head",)))]  # of one layer; the others are like it
        types = [info.type.name for info in first]
        return PartWork(
            name,
            kind,
            tuple(scopes),
            work,
            shape=f"{'+'.join(str(info.shape[0]) for info in first)} x {first[0].shape[1]}",
            types=types[0] if len(set(types)) == 1 else "+".join(types),
        )

    def _embedding(self, rows: int) -> Work:
        info = self._tensors[TensorRole("embedding")]
        return Work(rows * (info.num_bytes // info.shape[0]))

    def _vector_bytes(self, *, is_stored_with: bool) -> int:
        return sum(
            info.num_bytes
            for role, info in self._tensors.items()
            if len(info.shape) == 1 and (role.name in _STORED_WITH) == is_stored_with
        )

    def _stored(self, rows: int) -> Work:
        config = self._config
        written = 2 * _CACHE_BYTES * rows * config.num_layers * config.num_kv_heads * config.head_dim
        return Work(self._vector_bytes(is_stored_with=True) + written)

    def _attention(self, rows: int, context: int) -> Work:
        config = self._config
        num_read = num_seen = 0
        for layer in config.layers:
            window = layer.window or context + rows
            num_read += context + rows - max(0, context + 1 - window)
            num_seen += sum(min(context + row + 1, window) for row in range(rows))
        multiply_adds = 2 * num_seen * config.num_heads * config.head_dim
        return Work(
            2 * _CACHE_BYTES * num_read * config.num_kv_heads * config.head_dim,
            multiply_adds,
            float_products=multiply_adds,
        )


def _product_work(info: TensorInfo, rows: int) -> Work:
    multiply_adds = rows * info.shape[0] * info.shape[1]
    if info.type.is_float:
        return Work(info.num_bytes, multiply_adds, float_products=multiply_adds)
    return Work(info.num_bytes, multiply_adds, code_products=(1 + (info.type in _SPLIT_TYPES)) * multiply_adds)
