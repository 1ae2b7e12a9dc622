"""Speculation of one answer, where a server tells it there: vLLM, SGLang and llama.cpp each in its own way."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from paceline.bench.base import Counts
from paceline.bench.targets.counters import derived_counts
from paceline.bench.targets.json_fields import checked_count, checked_index, fields, number


def detailed_counts(event: Mapping[str, Any], num_tokens: int) -> Counts | None:
    """From vLLM's `metrics.speculative_decoding` (`--per-request-spec-decode-metrics`) or SGLang's
    `sglext.spec_tokens_details` (`return_spec_tokens_details`) in an event; None where it holds neither.
    """
    emitted = max(num_tokens - 1, 0)
    vllm = fields(fields(event, "metrics"), "speculative_decoding")
    if vllm:
        return derived_counts(
            emitted,
            _count(vllm, "num_spec_steps"),
            _count(vllm, "num_draft_tokens"),
            _count(vllm, "num_accepted_draft_tokens"),
            _per_position(_histogram(vllm, "acceptance_histogram")),
            _drafted(vllm),
        )
    sglang = fields(_first(fields(event, "sglext")), "spec_tokens_details")
    if sglang:
        return derived_counts(
            emitted,
            _count(sglang, "spec_verify_ct"),
            _count(sglang, "spec_num_proposed_drafts"),
            _count(sglang, "spec_num_correct_drafts"),
            _per_position(_histogram(sglang, "spec_correct_drafts_histogram")),
        )
    return None


def timing_counts(event: Mapping[str, Any]) -> Counts | None:
    """From llama.cpp's `timings`, which tell no number of drafts: `num_drafts` stays 0. Without a draft it leaves
    `draft_n` out. None without timings.
    """
    timings = fields(event, "timings")
    predicted = number(timings, "predicted_n")
    if predicted is None:
        return None
    return derived_counts(max(predicted - 1, 0), 0, _count(timings, "draft_n"), _count(timings, "draft_n_accepted"))


def _first(extension: Mapping[str, Any]) -> Mapping[str, Any]:
    """SGLang tells of several choices in an array: the first is ours."""
    details = extension.get("spec_tokens_details")
    return {"spec_tokens_details": details[0]} if isinstance(details, list) and details else extension


def _count(parent: Mapping[str, Any], name: str) -> int:
    return number(parent, name) or 0


def _histogram(parent: Mapping[str, Any], name: str) -> Mapping[int, int]:
    """From j to the number of drafts of which j tokens stood: an array, or an object with j as its names."""
    given = parent.get(name)
    if isinstance(given, list):
        checked_index(name, str(len(given)))
        return {j: checked_count(name, count) for j, count in enumerate(given)}
    found = fields(parent, name)
    return {checked_index(name, j): checked_count(name, count) for j, count in found.items() if j.isdecimal()}


def _per_position(histogram: Mapping[int, int]) -> tuple[int, ...]:
    """Entry i: the drafts of which more than i tokens stood."""
    most = max((j for j, count in histogram.items() if count), default=0)
    return tuple(accumulate(histogram.get(j, 0) for j in range(most, 0, -1)))[::-1]


def _drafted(vllm: Mapping[str, Any]) -> dict[int, int]:
    """From draft lengths to the steps that checked as many."""
    by_length = fields(vllm, "acceptance_histogram_by_draft_length")
    name = "acceptance_histogram_by_draft_length"
    lengths = sorted(checked_index(name, length) for length in by_length if length.isdecimal())
    return {length: sum(_histogram(by_length, str(length)).values()) for length in lengths}
