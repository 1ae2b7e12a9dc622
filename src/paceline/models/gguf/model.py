"""A GGUF file as an opened model."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from paceline.models.architectures import read_config, role_shapes, tensor_name
from paceline.models.base import Model, TensorInfo, TensorRole, TensorType
from paceline.models.chat import ChatTemplate
from paceline.models.gguf.split import open_gguf
from paceline.models.tokenizer import Tokenizer


class GGUFModel(Model):
    def __init__(self, path: Path | str) -> None:
        """Open a whole model, by any of its parts where it is split.

        Raises `ModelNotFoundError`, `ModelFormatError` or `UnsupportedModelError`.
        """
        self.file = open_gguf(path)
        self.path = self.file.path
        try:
            self.config = read_config(self.file)
            tensors = {role: _as_given(self.file.tensors[tensor_name(role)]) for role in role_shapes(self.config)}
        except BaseException:
            self.file.close()
            raise
        self.tensors: Mapping[TensorRole, TensorInfo] = MappingProxyType(tensors)

    def data(self, role: TensorRole) -> NDArray[np.uint8]:
        info = self.tensors[role]
        if len(info.shape) == 1:
            return self.file.floats(info.name).view(np.uint8)
        return self.file.data(info.name)

    def release(self, role: TensorRole) -> None:
        self.file.release(self.tensors[role].name)

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_gguf(self.file)

    def chat_template(self, name: str | Path | None = None) -> ChatTemplate | None:
        return ChatTemplate.from_gguf(self.file, name)

    def close(self) -> None:
        self.file.close()


def _as_given(info: TensorInfo) -> TensorInfo:
    """The tensor as `data` gives it: vectors are F32, whatever the file holds."""
    if len(info.shape) != 1:
        return info
    return TensorInfo(info.name, TensorType.F32, info.shape, info.offset, info.shape[0] * TensorType.F32.block_bytes)
