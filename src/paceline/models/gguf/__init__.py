"""GGUF files: a reader of headers and an opened model."""

from paceline.models.gguf.file import GGUFFile
from paceline.models.gguf.metadata import Metadata

__all__ = ["GGUFFile", "Metadata"]
