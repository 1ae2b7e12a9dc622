"""Tokenizers: text to token ids and back, at once or as it comes."""

from paceline.models.tokenizer.detokenizer import Detokenizer
from paceline.models.tokenizer.tokenizer import Pieces, Tokenizer

__all__ = ["Detokenizer", "Pieces", "Tokenizer"]
