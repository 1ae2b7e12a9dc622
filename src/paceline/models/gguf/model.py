"""A GGUF file as an opened model."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from paceline.models.architectures import read_config, role_shapes, tensor_name
from paceline.models.base import Model, TensorInfo, TensorRole
from paceline.models.chat import ChatTemplate
from paceline.models.gguf.file import GGUFFile
from paceline.models.tokenizer import Tokenizer


class GGUFModel(Model):
    def __init__(self, path: Path | str) -> None:
        """Raises `ModelNotFoundError`, `ModelFormatError` or `UnsupportedModelError`."""
        self.path = Path(path)
        self.file = GGUFFile.open(path)
        try:
            self.config = read_config(self.file)
            tensors = {role: self.file.tensors[tensor_name(role)] for role in role_shapes(self.config)}
        except BaseException:
            self.file.close()
            raise
        self.tensors: Mapping[TensorRole, TensorInfo] = MappingProxyType(tensors)

    def data(self, role: TensorRole) -> NDArray[np.uint8]:
        return self.file.data(self.tensors[role].name)

    def release(self, role: TensorRole) -> None:
        self.file.release(self.tensors[role].name)

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_gguf(self.file)

    def chat_template(self, name: str | Path | None = None) -> ChatTemplate | None:
        return ChatTemplate.from_gguf(self.file, name)

    def close(self) -> None:
        self.file.close()
