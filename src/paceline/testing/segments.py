"""The checks that every runtime owes its callers before it writes anything, for runtimes written in Python."""

from collections.abc import Sequence

from paceline.runtime.base import RuntimeInfo, Segment


def check_segments(segments: Sequence[Segment], info: RuntimeInfo) -> None:
    """Raise ValueError for what `Runtime.forward` refuses."""
    if len({segment.sequence for segment in segments}) != len(segments):
        raise ValueError("a sequence appears twice in one forward")
    num_rows = sum(len(segment.tokens) for segment in segments)
    if num_rows > info.max_rows:
        raise ValueError(f"{num_rows} rows; expected at most {info.max_rows}")
    num_logits_rows = sum(len(segment.logits_rows) for segment in segments)
    if num_logits_rows > info.max_logits_rows:
        raise ValueError(f"{num_logits_rows} rows want logits; expected at most {info.max_logits_rows}")
    if len({segment.hidden_layers for segment in segments if segment.hidden_layers}) > 1:
        raise ValueError("segments ask for the hidden states of different layers")
    for segment in segments:
        _check_segment(segment, info)


def check_pages(pages: Sequence[int], info: RuntimeInfo) -> None:
    for page in pages:
        if not 0 <= page < info.num_pages:
            raise ValueError(f"page {page}; expected 0 to {info.num_pages - 1}")


def _check_segment(segment: Segment, info: RuntimeInfo) -> None:
    num_rows = len(segment.tokens)
    if segment.num_run < 1:
        raise ValueError(f"sequence {segment.sequence} has no run of rows")
    for token in segment.tokens:
        if not 0 <= token < info.padded_vocab_size:
            raise ValueError(f"token {token}; expected 0 to {info.padded_vocab_size - 1}")
    check_pages(segment.pages, info)
    if segment.length < 0 or segment.length + num_rows > len(segment.pages) * info.page_size:
        raise ValueError(f"{num_rows} rows behind {segment.length} do not fit {len(segment.pages)} pages")
    for node, parent in enumerate(segment.parents, start=segment.num_run):
        if not segment.num_run - 1 <= parent < node:
            raise ValueError(f"row {node} names parent {parent}; expected {segment.num_run - 1} to {node - 1}")
    _check_wanted("logits_rows", segment.logits_rows, num_rows)
    _check_wanted("hidden_layers", segment.hidden_layers, info.num_layers + 1)


def _check_wanted(what: str, wanted: Sequence[int], end: int) -> None:
    if list(wanted) != sorted(set(wanted)) or (wanted and not 0 <= wanted[0] <= wanted[-1] < end):
        raise ValueError(f"{what} is {tuple(wanted)}; expected ascending indices below {end}")
