"""Tokenizers: text to token ids and back, at once or as it comes."""

from paceline.models.tokenizer.detokenizer import Detokenizer
from paceline.models.tokenizer.tokenizer import Pieces, TextModel, Tokenizer
from paceline.models.tokenizer.vocabulary import TokenKind, Vocabulary

__all__ = ["Detokenizer", "Pieces", "TextModel", "TokenKind", "Tokenizer", "Vocabulary"]
