"""The proposers of an engine as one: everything that concerns all of them, and the checks of what they hand over."""

from collections.abc import Iterable, Sequence

from paceline.acceptance.base import check_parents
from paceline.controller.base import Plan, SequenceView
from paceline.controller.fixed import OFF
from paceline.errors import UsageError
from paceline.proposers.base import Ask, Draft, Proposer


class ProposerGroup:
    """All proposers follow every sequence that decodes, so that the controller may choose anew in each step."""

    def __init__(self, proposers: Iterable[Proposer]) -> None:
        self._proposers: dict[str, Proposer] = {}
        for proposer in proposers:
            _check_is_served(proposer)
            if proposer.name in self._proposers or proposer.name == OFF:
                raise UsageError(f"the proposer name {proposer.name!r} is taken")
            self._proposers[proposer.name] = proposer

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:
        for proposer in self._proposers.values():
            proposer.start(sequence, context, namespace)

    def extend(self, sequence: int, tokens: Sequence[int]) -> None:
        for proposer in self._proposers.values():
            proposer.extend(sequence, tokens)

    def finish(self, sequence: int) -> None:
        for proposer in self._proposers.values():
            proposer.finish(sequence)

    def propose(self, plan: Plan) -> dict[int, Draft]:
        """A draft for every entry of the plan that wants tokens, be it one without any."""
        drafts: dict[int, Draft] = {}
        asks: dict[str, list[Ask]] = {}
        for entry in plan.entries:
            if entry.num_tokens:
                asks.setdefault(entry.proposer, []).append(Ask(entry.sequence, entry.num_tokens))
        for name, wanted in asks.items():
            if name not in self._proposers:
                known = ", ".join(self._proposers) or "none"
                raise UsageError(f"the controller chose the proposer {name!r}; this engine has {known}")
            for ask, draft in zip(wanted, self._proposers[name].propose(wanted), strict=True):
                _check_draft(draft, ask)
                drafts[ask.sequence] = draft
        return drafts


def check_plan(plan: Plan, views: Sequence[SequenceView]) -> Plan:
    """The plan itself. Raises RuntimeError for one that breaks the controller's contract."""
    for entry, view in zip(plan.entries, views, strict=True):
        if entry.sequence != view.sequence or not 0 <= entry.num_tokens <= view.room:
            raise RuntimeError(f"{entry} does not answer {view}")
    return plan


def _check_is_served(proposer: Proposer) -> None:
    """This version's verification step hands no evidence to proposers and runs no model of theirs."""
    needs = proposer.capabilities
    if needs.has_cache or needs.hidden_layers or needs.top_k:
        raise UsageError(f"the proposer {proposer.name!r} needs a cache or evidence, which this version does not give")


def _check_draft(draft: Draft, ask: Ask) -> None:
    if draft.sequence != ask.sequence or len(draft.tokens) > ask.num_tokens:
        raise RuntimeError(f"{draft.proposer!r} answered {ask} with {len(draft.tokens)} tokens for {draft.sequence}")
    if draft.parents:
        if len(draft.parents) != len(draft.tokens):
            raise RuntimeError(f"{draft.proposer!r} gave {len(draft.parents)} parents for {len(draft.tokens)} tokens")
        check_parents(draft.parents)
