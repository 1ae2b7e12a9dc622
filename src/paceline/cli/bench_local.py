"""Measures this package's own engine for `paceline bench`."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import typer

from paceline.api.loading import ModelOptions, ModelParts, load_parts
from paceline.bench.base import Workload
from paceline.bench.experiment import Experiment, Judging, Show
from paceline.bench.forwards import measure_forwards
from paceline.bench.provenance import answers_fingerprint, command_line, fingerprint, machine_of, model_of, provenance
from paceline.bench.recordings import save_recordings
from paceline.bench.replay import replay, replayable_ks, text_only_proposers
from paceline.bench.result import ReplayRun, Result
from paceline.bench.settings import Settings
from paceline.bench.targets.local import LocalTarget
from paceline.cli.bench_options import BenchOptions
from paceline.cli.interrupts import EXIT_INTERRUPTED
from paceline.cli.loading import quantization_of
from paceline.cli.progress import terminal_progress
from paceline.engine import DEFAULT_MAX_NUM_SEQS, EngineOptions
from paceline.engine.options import Limits
from paceline.errors import UsageError
from paceline.models import open_model


def measure_local(
    options: BenchOptions, settings: Settings, workload: Workload, judging: Judging, show: Show
) -> Result:
    """Everything that there is to tell, of what was measured until Ctrl-C if that comes. Raises typer.Exit where it
    comes before anything was."""
    if options.baseline_endpoint is not None:
        raise UsageError("--baseline-endpoint is what --endpoint is compared with; give both, or neither")
    model_options = ModelOptions.of(
        quantization=quantization_of(options.quantization),
        speculation=None,
        max_model_len=options.max_model_len,
        max_num_seqs=max(DEFAULT_MAX_NUM_SEQS, settings.most_at_once),
        prefix_caching=settings.prefix_caching,
        num_threads=options.threads,
        progress=terminal_progress(),
    )
    parts = load_parts(options.model, model_options)
    model = _model(options)
    target = LocalTarget(parts, model_options, settings.rule, {"kind": "local"})
    experiment = Experiment(target, workload, settings)
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(experiment, target, settings, show))
    if not experiment.blocks:
        raise typer.Exit(EXIT_INTERRUPTED)
    if experiment.is_complete:
        with suppress(KeyboardInterrupt):
            judging = _with_forwards(judging, parts)
    prints = fingerprint(machine_of(parts.runtime), model, workload, settings.params)
    return experiment.result(
        judging,
        {**provenance(command_line("paceline")), "machine": machine_of(parts.runtime), "model": model},
        prints,
        _replayed(options, experiment, parts, judging, prints),
    )


async def _run(experiment: Experiment, target: LocalTarget, settings: Settings, show: Show) -> None:
    await experiment.run(show)
    await target.measure_memory([mode for mode in settings.modes if not mode.is_off], experiment.longest())


def _model(options: BenchOptions) -> dict[str, Any]:
    with open_model(
        options.model, quantization=quantization_of(options.quantization), progress=terminal_progress()
    ) as opened:
        return model_of(opened)


def _with_forwards(judging: Judging, parts: ModelParts) -> Judging:
    """Behind all answers: it takes memory, which would count as theirs, and overwrites pages."""
    forwards = measure_forwards(parts.runtime, parts.step_weight_bytes)
    return replace(judging, forward_ms=forwards.forward_ms, floor_ms=forwards.floor_ms)


def _replayed(
    options: BenchOptions, experiment: Experiment, parts: ModelParts, judging: Judging, prints: dict[str, Any]
) -> list[ReplayRun]:
    """Writes the recordings too, where they are wanted."""
    if not options.replay and options.record is None:
        return []
    info = parts.runtime.info
    most = Limits.of(EngineOptions(), info, is_drafting=True).max_draft_tokens
    recordings = experiment.recordings(judging, answers_fingerprint(prints), info.max_length, most)
    if options.record is not None:
        save_recordings(options.record, recordings)
    return replay(recordings, text_only_proposers(), replayable_ks(recordings)) if options.replay else []
