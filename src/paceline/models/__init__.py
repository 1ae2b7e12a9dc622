"""Models: references and fetching, file formats, architectures, tokenizers, chat templates."""

from paceline.models.architectures import read_config, role_shapes
from paceline.models.base import LayerConfig, Model, ModelConfig, Rope, TensorInfo, TensorRole, TensorType
from paceline.models.chat import ChatTemplate, Message, Tool, encode_chat
from paceline.models.gguf import GGUFFile, Metadata
from paceline.models.gguf.model import GGUFModel
from paceline.models.opening import open_model
from paceline.models.references import (
    ALIASES,
    CachedModel,
    HubSource,
    ModelAlias,
    Progress,
    SilentProgress,
    WheelSource,
    cache_folder,
    list_cached,
    resolve,
)
from paceline.models.tokenizer import Detokenizer, Tokenizer

__all__ = [
    "ALIASES",
    "CachedModel",
    "ChatTemplate",
    "Detokenizer",
    "GGUFFile",
    "GGUFModel",
    "HubSource",
    "LayerConfig",
    "Message",
    "Metadata",
    "Model",
    "ModelAlias",
    "ModelConfig",
    "Progress",
    "Rope",
    "SilentProgress",
    "TensorInfo",
    "TensorRole",
    "TensorType",
    "Tokenizer",
    "Tool",
    "WheelSource",
    "cache_folder",
    "encode_chat",
    "list_cached",
    "open_model",
    "read_config",
    "resolve",
    "role_shapes",
]
