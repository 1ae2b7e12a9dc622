"""Models: references and fetching, the GGUF reader, tokenizer, chat template."""

from paceline.models.base import ModelConfig, TensorInfo, TensorType
from paceline.models.chat import encode_chat
from paceline.models.detokenizer import Detokenizer
from paceline.models.gguf import GGUFFile
from paceline.models.llama import layer_tensors, read_config
from paceline.models.metadata import Metadata
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
from paceline.models.template import ChatTemplate, Message
from paceline.models.tokenizer import Tokenizer

__all__ = [
    "ALIASES",
    "CachedModel",
    "ChatTemplate",
    "Detokenizer",
    "GGUFFile",
    "HubSource",
    "Message",
    "Metadata",
    "ModelAlias",
    "ModelConfig",
    "Progress",
    "SilentProgress",
    "TensorInfo",
    "TensorType",
    "Tokenizer",
    "WheelSource",
    "cache_folder",
    "encode_chat",
    "layer_tensors",
    "list_cached",
    "read_config",
    "resolve",
]
