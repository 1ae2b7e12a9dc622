"""The proposers of an engine as one: everything that concerns all of them, and the checks of what they hand over."""

from collections.abc import Iterable, Sequence

from paceline.acceptance.base import check_parents
from paceline.cache.coordinator import CacheCoordinator, DraftCache
from paceline.cache.paged import PagedCache
from paceline.controller.base import BatchView, Plan
from paceline.controller.fixed import OFF
from paceline.errors import UsageError
from paceline.proposers.base import Ask, CachingProposer, Draft, Proposer


class ProposerGroup:
    """All proposers follow every sequence that decodes, so that the controller may choose anew in each step."""

    def __init__(self, proposers: Iterable[Proposer]) -> None:
        self._proposers: dict[str, Proposer] = {}
        for proposer in proposers:
            _check_is_served(proposer)
            if proposer.name in self._proposers or proposer.name == OFF:
                raise UsageError(f"the proposer name {proposer.name!r} is taken")
            self._proposers[proposer.name] = proposer

    def __len__(self) -> int:
        return len(self._proposers)

    def make_caches(self) -> dict[str, DraftCache]:
        """A cache for every proposer that keeps one, handed to it."""
        caches: dict[str, DraftCache] = {}
        for name, proposer in self._proposers.items():
            if isinstance(proposer, CachingProposer):
                spec = proposer.cache_spec
                cache = PagedCache(spec.store, spec.num_pages, spec.page_size)
                proposer.attach(cache)
                caches[name] = DraftCache(cache, spec.max_length)
        return caches

    def start(self, sequence: int, context: Sequence[int], namespace: str) -> None:
        for proposer in self._proposers.values():
            proposer.start(sequence, context, namespace)

    def extend(self, sequence: int, tokens: Sequence[int]) -> None:
        for proposer in self._proposers.values():
            proposer.extend(sequence, tokens)

    def finish(self, sequence: int) -> None:
        for proposer in self._proposers.values():
            proposer.finish(sequence)

    def propose(self, plan: Plan, batch: BatchView, cache: CacheCoordinator) -> dict[int, Draft]:
        """A draft for every entry of the plan that wants tokens, be it one without any."""
        drafts: dict[int, Draft] = {}
        asks: dict[str, list[Ask]] = {}
        for entry, view in zip(plan.entries, batch.sequences, strict=True):
            if not entry.num_tokens:
                continue
            if entry.proposer not in self._proposers:
                known = ", ".join(self._proposers) or "none"
                raise UsageError(f"the controller chose the proposer {entry.proposer!r}; this engine has {known}")
            room = cache.draft_room(entry.proposer, view.length + 1)
            num_tokens = entry.num_tokens if room is None else min(entry.num_tokens, room)
            if num_tokens > 0:
                asks.setdefault(entry.proposer, []).append(Ask(entry.sequence, num_tokens))
            else:  # the proposer's own context has ended; the target's goes on
                drafts[entry.sequence] = Draft(entry.sequence, proposer=entry.proposer)
        for name, wanted in asks.items():
            for ask, draft in zip(wanted, self._proposers[name].propose(wanted), strict=True):
                check_draft(draft, ask)
                drafts[ask.sequence] = draft
        return drafts


def check_plan(plan: Plan, batch: BatchView) -> Plan:
    """The plan itself. Raises RuntimeError for one that breaks the controller's contract."""
    num_tokens = 0
    for entry, view in zip(plan.entries, batch.sequences, strict=True):
        if entry.sequence != view.sequence or not 0 <= entry.num_tokens <= view.room:
            raise RuntimeError(f"{entry} does not answer {view}")
        num_tokens += entry.num_tokens
    if num_tokens > batch.max_draft_rows:
        raise RuntimeError(f"the plan has {num_tokens} draft tokens; expected at most {batch.max_draft_rows}")
    return plan


def _check_is_served(proposer: Proposer) -> None:
    """This version's verification step hands no evidence to proposers."""
    needs = proposer.capabilities
    if needs.hidden_layers or needs.top_k:
        raise UsageError(f"the proposer {proposer.name!r} needs evidence, which this version does not give")
    if needs.has_cache != isinstance(proposer, CachingProposer):
        raise UsageError(f"the proposer {proposer.name!r} must say has_cache exactly if it is a CachingProposer")


def check_draft(draft: Draft, ask: Ask) -> None:
    """Raise RuntimeError for a draft that does not answer `ask`, ValueError for parents that make no tree."""
    if draft.sequence != ask.sequence or len(draft.tokens) > ask.num_tokens:
        raise RuntimeError(f"{draft.proposer!r} answered {ask} with {len(draft.tokens)} tokens for {draft.sequence}")
    if draft.parents:
        if len(draft.parents) != len(draft.tokens):
            raise RuntimeError(f"{draft.proposer!r} gave {len(draft.parents)} parents for {len(draft.tokens)} tokens")
        check_parents(draft.parents)
