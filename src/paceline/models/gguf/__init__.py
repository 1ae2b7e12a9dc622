"""GGUF files: a reader of headers, of one file or of all parts of one, and an opened model."""

from paceline.models.gguf.file import GGUFFile
from paceline.models.gguf.metadata import Metadata
from paceline.models.gguf.split import SplitGGUFFile, open_gguf

__all__ = ["GGUFFile", "Metadata", "SplitGGUFFile", "open_gguf"]
