"""Models: references and fetching, file formats, architectures, tokenizers, chat templates."""

from paceline.models.architectures import read_config, role_shapes
from paceline.models.base import LayerConfig, Model, ModelConfig, Rope, TensorInfo, TensorRole, TensorType
from paceline.models.chat import ChatTemplate, Message, Tool, encode_chat
from paceline.models.gguf import GGUFFile, Metadata
from paceline.models.gguf.model import GGUFModel
from paceline.models.hf import HFModel, Quantization
from paceline.models.opening import open_model
from paceline.models.references import (
    ALIASES,
    CachedModel,
    HubReference,
    ModelAlias,
    Progress,
    SilentProgress,
    WheelSource,
    bytes_to_free,
    cache_folder,
    list_cached,
    parse_reference,
    remove_cached,
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
    "HFModel",
    "HubReference",
    "LayerConfig",
    "Message",
    "Metadata",
    "Model",
    "ModelAlias",
    "ModelConfig",
    "Progress",
    "Quantization",
    "Rope",
    "SilentProgress",
    "TensorInfo",
    "TensorRole",
    "TensorType",
    "Tokenizer",
    "Tool",
    "WheelSource",
    "bytes_to_free",
    "cache_folder",
    "encode_chat",
    "list_cached",
    "open_model",
    "parse_reference",
    "read_config",
    "remove_cached",
    "resolve",
    "role_shapes",
]
