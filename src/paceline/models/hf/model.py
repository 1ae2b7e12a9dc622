"""A Hugging Face folder of safetensors as an opened model, its weights quantised while they are loaded."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.architectures import role_shapes
from paceline.models.base import Model, ModelConfig, TensorInfo, TensorRole, TensorType
from paceline.models.chat import ChatTemplate
from paceline.models.hf.config import read_config
from paceline.models.hf.names import is_computed, tensor_name
from paceline.models.hf.quantization import (
    Quantization,
    check_quantization,
    loaded_type,
    quantized,
    stored_type,
    to_floats,
)
from paceline.models.hf.refusals import check_folder
from paceline.models.hf.settings import Settings, read_settings
from paceline.models.hf.shards import Shards
from paceline.models.quoting import quoted
from paceline.models.tokenizer import Tokenizer

_SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")  # that templates know by these names


class HFModel(Model):
    """`data` makes packed blocks anew at each call; with `none`, matrices are views of the files."""

    def __init__(self, path: Path | str, quantization: Quantization) -> None:
        """Raises `ModelNotFoundError`, `ModelFormatError` or `UnsupportedModelError`."""
        self.path = Path(path)
        self.quantization = check_quantization(quantization)
        check_folder(self.path)
        settings = read_settings(self.path / "config.json")
        self._shards = Shards(self.path)
        try:
            config = read_config(settings, len(self._shards.tensors))
            # A folder that ties its head and stores one all the same means the one that it stores.
            has_head = tensor_name(TensorRole("head"), config) in self._shards.tensors
            self.config = replace(config, is_head_tied=config.is_head_tied and not has_head)
            self._stored = _stored_types(self.path, self.config, self._shards)
        except BaseException:
            self._shards.close()
            raise
        self.tensors: Mapping[TensorRole, TensorInfo] = MappingProxyType(
            {role: self._loaded(role) for role in self._stored}
        )

    def data(self, role: TensorRole) -> NDArray[np.uint8]:
        info, stored = self.tensors[role], self._stored[role]
        raw = self._shards.data(info.name)
        if len(info.shape) == 1:
            return self._vector(role, to_floats(raw, stored))
        if info.type is not stored:
            return quantized(raw, stored, (info.shape[0], info.shape[1]), info.type)
        return raw if raw.ctypes.data % info.type.block_bytes == 0 else raw.copy()  # the format aligns nothing

    def release(self, role: TensorRole) -> None:
        self._shards.release(self.tensors[role].name)

    def tokenizer(self) -> Tokenizer:
        tokenizer = Tokenizer.from_folder(self.path)
        for token_id in range(self.config.vocab_size, tokenizer.vocab_size):  # Gemma 3's image token has no row
            if not tokenizer.is_special(token_id):
                raise ModelFormatError(
                    f"{self.path}: token {token_id} is past the {self.config.vocab_size} rows of the embedding; "
                    "fetch the tokenizer that belongs to it"
                )
        return tokenizer

    def chat_template(self, name: str | Path | None = None) -> ChatTemplate | None:
        return ChatTemplate.from_folder(self.path, **_special_tokens(self.path), name=name)

    def close(self) -> None:
        self._shards.close()

    def _vector(self, role: TensorRole, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        if self.config.architecture == "gemma3" and role.name.endswith("norm"):
            with np.errstate(invalid="ignore"):  # signalling NaN, which stay NaN
                values = values + np.float32(1)  # Gemma stores what its norms add to 1
        return np.ascontiguousarray(values).view(np.uint8)

    def _loaded(self, role: TensorRole) -> TensorInfo:
        name = tensor_name(role, self.config)
        source = self._shards.tensors[name]
        kind = loaded_type(self._stored[role], role, source.shape, self.quantization)
        num_blocks = math.prod(source.shape) // kind.block_size
        return TensorInfo(name, kind, source.shape, source.offset, num_blocks * kind.block_bytes)


def _special_tokens(folder: Path) -> dict[str, str | None]:
    """The special tokens by the names that templates use; None for one that the folder does not name."""
    names: dict[str, str | None] = dict.fromkeys(_SPECIAL_TOKENS)
    for path in (folder / "special_tokens_map.json", folder / "tokenizer_config.json"):  # the later counts
        settings = read_settings(path) if path.exists() else Settings({}, path)
        for key in _SPECIAL_TOKENS:
            if settings.mentions(key):
                names[key] = settings.text(key, "content") if key in settings else None
    return names


def _stored_types(folder: Path, config: ModelConfig, shards: Shards) -> dict[TensorRole, TensorType]:
    """Each role's type as stored, every shape checked, and nothing in the folder left over that should be read."""
    stored: dict[TensorRole, TensorType] = {}
    left = {name for name in shards.tensors if not is_computed(name)}
    for role, shape in role_shapes(config).items():
        name = tensor_name(role, config)
        info = shards.tensors.get(name)
        if info is None:
            raise ModelFormatError(f"{folder}: tensor {quoted(name)} is missing; fetch or convert it again")
        if info.shape != shape:
            raise ModelFormatError(
                f"{folder}: tensor {quoted(name)} has shape {info.shape}, expected {shape}; fetch or convert it again"
            )
        kind = stored_type(info.dtype)
        if kind is None:
            raise UnsupportedModelError(
                f"{folder}: tensor {quoted(name)} has dtype {info.dtype}, only F32, F16 and BF16 are supported; "
                "convert the model"
            )
        stored[role] = kind
        left.discard(name)
    if left:
        raise UnsupportedModelError(
            f"{folder}: tensor {quoted(min(left))} is part of nothing in a {config.architecture}; choose another model"
        )
    return stored
