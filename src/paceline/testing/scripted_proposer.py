"""A proposer that says what it is told to, for tests of everything around proposers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from paceline.proposers.base import Ask, Capabilities, Draft, Evidence, Proposer


@dataclass(frozen=True, slots=True)
class ScriptedDraft:
    """Tokens, and parents as in `Draft` for a tree."""

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()

    def cut(self, num_tokens: int) -> "ScriptedDraft":
        """The first `num_tokens` tokens; a parent precedes its child, so what is left is whole."""
        return ScriptedDraft(self.tokens[:num_tokens], self.parents[:num_tokens])


# From the committed tokens and the number of tokens asked for to a draft; longer ones are cut.
Script = Callable[[tuple[int, ...], int], ScriptedDraft]


class ScriptedProposer(Proposer):
    """`script` is a function, or a list whose entry i is the draft after the i-th `extend`, none past its end."""

    name: ClassVar[str] = "scripted"
    capabilities: ClassVar[Capabilities] = Capabilities(can_tree=True)

    def __init__(self, script: Script | Sequence[ScriptedDraft]) -> None:
        self._script = script
        self._contexts: dict[int, list[int]] = {}
        self._num_extends: dict[int, int] = {}

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:  # noqa: ARG002
        if sequence in self._contexts:
            raise ValueError(f"sequence {sequence} was started and not finished")
        self._contexts[sequence] = list(context)
        self._num_extends[sequence] = 0

    def extend(self, sequence: int, tokens: Sequence[int], evidence: Evidence | None = None) -> None:  # noqa: ARG002
        self._contexts[sequence].extend(tokens)
        self._num_extends[sequence] += 1

    def propose(self, asks: Sequence[Ask]) -> list[Draft]:
        drafts = []
        for ask in asks:
            scripted = self._scripted(ask).cut(ask.num_tokens)
            drafts.append(Draft(ask.sequence, scripted.tokens, scripted.parents, proposer=self.name))
        return drafts

    def finish(self, sequence: int) -> None:
        self._contexts.pop(sequence, None)
        self._num_extends.pop(sequence, None)

    def reset(self) -> None:
        self._contexts.clear()
        self._num_extends.clear()

    def context(self, sequence: int) -> tuple[int, ...]:
        """The committed tokens as this proposer was told them."""
        return tuple(self._contexts[sequence])

    def _scripted(self, ask: Ask) -> ScriptedDraft:
        if callable(self._script):
            return self._script(self.context(ask.sequence), ask.num_tokens)
        step = self._num_extends[ask.sequence]
        return self._script[step] if step < len(self._script) else ScriptedDraft()
