"""Architectures: which there are, their tensors, and their numbers from each kind of file."""

from paceline.models.architectures.base import layer_shapes, role_shapes
from paceline.models.architectures.llama import read_config, tensor_name

__all__ = ["layer_shapes", "read_config", "role_shapes", "tensor_name"]
