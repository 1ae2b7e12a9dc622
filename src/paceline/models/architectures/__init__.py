"""Architectures: which there are, their tensors, and their numbers from each kind of file."""

from paceline.models.architectures.base import Architecture, layer_shapes, role_shapes
from paceline.models.architectures.gguf_config import read_config, tensor_name
from paceline.models.architectures.registry import (
    ARCHITECTURES,
    architecture_named,
    refusal,
)

__all__ = [
    "ARCHITECTURES",
    "Architecture",
    "architecture_named",
    "layer_shapes",
    "read_config",
    "refusal",
    "role_shapes",
    "tensor_name",
]
