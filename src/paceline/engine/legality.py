"""What of a draft a grammar allows, so that no row is spent on a token that cannot stand."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.acceptance.grammar.base import GrammarError, GrammarMask
from paceline.proposers.base import Draft, DraftDistribution


def legal_part(draft: Draft, grammar: GrammarMask) -> Draft:
    """The draft without illegal tokens and whatever hangs from one, or from a token that ends the text. Of a chain that
    is its beginning. Siblings keep their order, and so do margins and rows of q.
    """
    kept, new_index = list[int](), {-1: -1}
    paths: dict[int, tuple[int, ...]] = {-1: ()}  # of the nodes behind which text may follow
    parents = draft.parents or range(-1, len(draft.tokens) - 1)
    for index, (token, parent) in enumerate(zip(draft.tokens, parents, strict=True)):
        path = paths.get(parent)
        if path is not None and _is_legal(token, path, grammar):
            new_index[index] = len(kept)
            kept.append(index)
            if not _is_end((*path, token), grammar):
                paths[index] = (*path, token)
    if len(kept) == len(draft.tokens):
        return draft
    return replace(
        draft,
        tokens=tuple(draft.tokens[i] for i in kept),
        parents=tuple(new_index[draft.parents[i]] for i in kept) if draft.parents else (),
        margins=tuple(draft.margins[i] for i in kept) if draft.margins else (),
        q=None if draft.q is None else DraftDistribution(draft.q.q[kept]),
    )


def _is_legal(token: int, path: Sequence[int], grammar: GrammarMask) -> bool:
    try:
        return grammar.allows(token, path)
    except GrammarError:
        return False  # if it comes to that, the row itself says so


def _is_end(path: Sequence[int], grammar: GrammarMask) -> bool:
    return not grammar.is_active(path) or grammar.num_until_complete(path) is not None
