"""`paceline inspect`: what a model is, what memory it takes, and whether another can draft for it."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import typer

from paceline.cli.loading import quantization_of
from paceline.cli.options import QuantizationName
from paceline.cli.progress import terminal_progress
from paceline.errors import UsageError
from paceline.models import Tokenizer, open_model
from paceline.models.inspection import Inspection, TypeShare, VocabularyComparison, compare_vocabularies, inspect_model
from paceline.models.quoting import quoted
from paceline.runtime.memory import available_memory
from paceline.runtime.native import runnable_isas

_MAX_CONCURRENCY = 1_000_000


@dataclass(frozen=True, slots=True)
class Demand:
    """The memory that a model takes, in bytes."""

    context: int
    concurrency: int
    weights: int
    cache: int


@dataclass(frozen=True, slots=True)
class Report:
    """One model or a pair."""

    models: tuple[Inspection, ...]
    demands: tuple[Demand, ...]
    available: int | None
    isas: tuple[str, ...]  # of the kernels that run here, the fastest first
    vocabularies: VocabularyComparison | None

    @property
    def demand(self) -> int:
        return sum(demand.weights + demand.cache for demand in self.demands)

    @property
    def is_fitting(self) -> bool | None:
        return None if self.available is None else self.demand <= self.available


def inspect(
    model: str,
    *,
    draft: str | None,
    quantization: QuantizationName | None,
    context: int | None,
    concurrency: int,
    is_json: bool,
) -> None:
    """Open, which reads no weights, and print."""
    target, tokenizer = _open(model, quantization)
    models, vocabularies = [target], None
    if draft is not None:
        drafting, its_tokenizer = _open(draft, None)
        models.append(drafting)
        vocabularies = compare_vocabularies(tokenizer, its_tokenizer)
    length = target.config.context_length if context is None else context
    _check(length, concurrency, target.config.context_length)
    demands = tuple(_demand(found, min(length, found.config.context_length), concurrency) for found in models)
    report = Report(tuple(models), demands, available_memory(), runnable_isas(), vocabularies)
    if is_json:
        typer.echo(json.dumps(as_json(report)))
    else:
        typer.echo(as_text(report))


def _check(context: int, concurrency: int, longest: int) -> None:
    if not 1 <= context <= longest:
        raise UsageError(f"--context is {context}; expected 1 to {longest}, the model's context")
    if not 1 <= concurrency <= _MAX_CONCURRENCY:
        raise UsageError(f"--concurrency is {concurrency}; expected 1 to {_MAX_CONCURRENCY}")


def _open(reference: str, quantization: QuantizationName | None) -> tuple[Inspection, Tokenizer]:
    with open_model(reference, quantization=quantization_of(quantization), progress=terminal_progress()) as opened:
        tokenizer = opened.tokenizer()
        return inspect_model(opened, tokenizer), tokenizer


def _demand(model: Inspection, context: int, concurrency: int) -> Demand:
    return Demand(context, concurrency, model.weight_bytes, model.cache_bytes(context, concurrency))


def as_json(report: Report) -> dict[str, Any]:
    """What `--json` prints; sizes in bytes, null where there is no value."""
    found: dict[str, Any] = {
        "model": _model_json(report.models[0], report.demands[0]),
        "draft": _model_json(report.models[1], report.demands[1]) if len(report.models) > 1 else None,
        "vocabularies": None,
        "memory": {"needed": report.demand, "available": report.available, "fits": report.is_fitting},
        "isas": list(report.isas),
    }
    compared = report.vocabularies
    if compared is not None:
        found["vocabularies"] = {
            "same": compared.is_same,
            "num_compared": compared.num_compared,
            "num_different": compared.num_different,
            "first_difference": None if compared.first_difference is None else asdict(compared.first_difference),
        }
    return found


def _model_json(model: Inspection, demand: Demand) -> dict[str, Any]:
    config = model.config
    sizes = ("num_layers", "hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim", "vocab_size")
    return {
        "path": str(model.path),
        "architecture": config.architecture,
        "num_parameters": model.num_parameters,
        "context_length": config.context_length,
        **{name: getattr(config, name) for name in sizes},
        "num_tokens": model.num_tokens,
        "types": [asdict(share) for share in model.types],
        "has_chat_template": model.has_chat_template,
        "stop_tokens": [{"id": token_id, "token": token} for token_id, token in model.stop_tokens],
        "memory": asdict(demand),
    }


def as_text(report: Report) -> str:
    parts = [_model_text(model, demand) for model, demand in zip(report.models, report.demands, strict=True)]
    if report.vocabularies is not None:
        parts.append(_vocabularies_text(report.vocabularies))
    parts.append(_memory_text(report))
    parts.append(f"Kernels that run here, the fastest first: {', '.join(report.isas)}.")
    return "\n\n".join(parts)


def _model_text(model: Inspection, demand: Demand) -> str:
    config = model.config
    stops = ", ".join(f"{token_id} {quoted(token)}" for token_id, token in model.stop_tokens)
    sequences = "1 sequence" if demand.concurrency == 1 else f"{demand.concurrency} sequences"
    lines = {
        "architecture": f"{config.architecture}, {config.num_layers} layers of width {config.hidden_size}, "
        f"{config.num_heads} heads of width {config.head_dim}, {config.num_kv_heads} for keys and values",
        "parameters": f"{model.num_parameters / 1e6:,.1f} million",
        "context": f"{config.context_length} tokens",
        "vocabulary": f"{model.num_tokens} tokens in {config.vocab_size} rows",
        "chat template": "yes" if model.has_chat_template else "none",
        "stop tokens": stops or "none",
        **{f"type {share.type}": _share_text(share, model.weight_bytes) for share in model.types},
        "weights": _megabytes(demand.weights),
        "cache": f"{_megabytes(demand.cache)} for {sequences} of {demand.context} tokens",
    }
    return "\n".join([str(model.path), *(f"  {name:<14} {text}" for name, text in lines.items())])


def _share_text(share: TypeShare, total: int) -> str:
    tensors = "1 tensor" if share.num_tensors == 1 else f"{share.num_tensors} tensors"
    return f"{tensors}, {_megabytes(share.num_bytes)}, {share.num_bytes / total:.1%}"


def _vocabularies_text(compared: VocabularyComparison) -> str:
    if compared.first_difference is None:
        return (
            f"The vocabularies agree in all {compared.num_compared} tokens: the second model can draft for the first."
        )
    first = compared.first_difference
    names = ["no token" if name is None else quoted(name) for name in (first.target, first.draft)]
    return (
        f"The vocabularies differ in {compared.num_different} of {compared.num_compared} tokens, first in "
        f"{first.token_id}: {names[0]} and {names[1]}. The second model cannot draft for the first."
    )


def _memory_text(report: Report) -> str:
    needed = f"Weights and cache take {_megabytes(report.demand)}"
    if report.available is None:
        return f"{needed}; this system does not tell what is available."
    verdict = "it fits" if report.is_fitting else "it does not fit; choose a smaller --context or --concurrency"
    return f"{needed}, {_megabytes(report.available)} are available: {verdict}."


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.1f} MB"
