"""Measures this package's own engine for `paceline bench`."""

import asyncio
from dataclasses import replace
from typing import Any

from paceline.acceptance import MatchRule
from paceline.api.loading import ModelOptions, ModelParts, load_parts
from paceline.bench.base import Workload
from paceline.bench.experiment import Experiment, Judging
from paceline.bench.forwards import measure_forwards
from paceline.bench.provenance import answers_fingerprint, command_line, fingerprint, machine_of, model_of, provenance
from paceline.bench.recordings import save_recordings
from paceline.bench.replay import replay, replayable_ks, text_only_proposers
from paceline.bench.result import ReplayRun
from paceline.bench.settings import Settings
from paceline.bench.targets.local import LocalTarget
from paceline.cli.bench_measured import Measured
from paceline.cli.bench_options import BenchOptions
from paceline.cli.bench_shown import Shown
from paceline.cli.loading import quantization_of
from paceline.cli.progress import terminal_progress
from paceline.engine import DEFAULT_MAX_NUM_SEQS, EngineOptions
from paceline.engine.options import Limits
from paceline.errors import UsageError
from paceline.models import open_model


def measure_local(
    options: BenchOptions, settings: Settings, workload: Workload, judging: Judging, shown: Shown
) -> Measured:
    """Everything that there is to tell, of what was measured until Ctrl-C or a failure if one comes."""
    _check(options)
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
    machine = machine_of(parts.runtime)
    prints = fingerprint(machine, model, workload, settings.params)
    origin = {**provenance(command_line("paceline")), "machine": machine, "model": model}
    replayed = list[ReplayRun]()
    with experiment.kept():
        asyncio.run(_run(experiment, target, settings, shown))
    with experiment.kept():
        if experiment.is_complete:
            shown.say("Measuring forwards ...")
            judging = _with_forwards(judging, parts)
        replayed = _replayed(options, experiment, parts, judging, prints)
    return Measured(experiment, judging, origin, prints, replayed)


def _check(options: BenchOptions) -> None:
    for option, value in (("--endpoint-model", options.endpoint_model), ("--api-key-env", options.api_key_env)):
        if value is not None:
            raise UsageError(f"{option} is about a server; give --endpoint too, or leave it out")
    if options.baseline_endpoint is not None:
        raise UsageError("--baseline-endpoint is what --endpoint is compared with; give both, or neither")
    if options.replay and options.rule.value != MatchRule.name:
        raise UsageError(
            f"--replay judges drafts by {MatchRule.name}, under which the text does not depend on them; leave --rule "
            f"{options.rule.value} out"
        )


async def _run(experiment: Experiment, target: LocalTarget, settings: Settings, shown: Shown) -> None:
    await experiment.run(shown.show)
    longest = experiment.longest()
    if longest is not None:
        shown.say("Measuring the memory of proposers ...")
        await target.measure_memory([mode for mode in settings.modes if not mode.is_off], longest)


def _model(options: BenchOptions) -> dict[str, Any]:
    with open_model(
        options.model, quantization=quantization_of(options.quantization), progress=terminal_progress()
    ) as opened:
        return model_of(opened)


def _with_forwards(judging: Judging, parts: ModelParts) -> Judging:
    """Behind all answers: it takes memory, which would count as theirs, and overwrites pages."""
    forwards = measure_forwards(parts.runtime, parts.step_weight_bytes)
    return replace(
        judging, forward_ms=forwards.forward_ms, floor_ms=forwards.floor_ms, forward_context=forwards.context
    )


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
