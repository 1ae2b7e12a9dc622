"""Grammars: which tokens the form of an answer allows. `base` holds the contract."""

from paceline.acceptance.grammar.base import Grammar, GrammarError, GrammarMask
from paceline.acceptance.grammar.compiler import CompiledGrammar, GrammarCompiler

__all__ = ["CompiledGrammar", "Grammar", "GrammarCompiler", "GrammarError", "GrammarMask"]
