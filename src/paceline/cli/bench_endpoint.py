"""Measures servers with OpenAI's interface for `paceline bench`."""

import asyncio
from collections.abc import Mapping
from typing import Any

from paceline.bench.base import Mode, Workload
from paceline.bench.experiment import Experiment, Judging
from paceline.bench.provenance import command_line, plain_params, provenance, workload_sha256
from paceline.bench.settings import Settings
from paceline.bench.targets.endpoint import ENDPOINT, EndpointOptions, EndpointTarget, endpoint_modes
from paceline.cli.bench_measured import Measured
from paceline.cli.bench_options import BenchOptions
from paceline.cli.bench_shown import Shown
from paceline.cli.options import DEFAULT_MODEL, RuleName
from paceline.controller import OFF
from paceline.errors import UsageError

_OF_THE_ENGINE = {
    "modes": "--modes",
    "num_speculative_tokens": "--num-speculative-tokens",
    "replay": "--replay",
    "record": "--record",
    "advise": "--advise",
    "quantization": "--quantization",
    "max_model_len": "--max-model-len",
    "threads": "--threads",
    "rule": "--rule",
    "model": "--model",
}  # how a server loads and speculates is its own affair
_DEFAULTS = {"model": DEFAULT_MODEL, "rule": RuleName.MATCH}


def modes_of(options: BenchOptions) -> tuple[Mode, ...]:
    """Raises UsageError for options that say how this package's own engine is to run."""
    for name, option in _OF_THE_ENGINE.items():
        value = getattr(options, name)
        if not (value is None or value is False or value == _DEFAULTS.get(name)):
            raise UsageError(
                f"{option} is about this program's own engine; with --endpoint the server decides, leave it out"
                + (" (--endpoint-model names a server's model)" if name == "model" else "")
            )
    return endpoint_modes(_addresses(options))


def measure_endpoints(
    options: BenchOptions, settings: Settings, workload: Workload, judging: Judging, shown: Shown
) -> Measured:
    """As `measure_local`; T(n) and memory of a server are not known."""
    asking = EndpointOptions(
        model=options.endpoint_model, key_variable=options.api_key_env, prefix_caching=options.prefix_caching
    )
    target = asyncio.run(EndpointTarget.connect(_addresses(options), asking))
    experiment = Experiment(target, workload, settings)
    prints = _fingerprint(target.describe(), workload, settings)
    with experiment.kept():
        asyncio.run(experiment.run(shown.show))
    return Measured(experiment, judging, provenance(command_line("paceline")), prints)


def _addresses(options: BenchOptions) -> dict[str, str]:
    given = {OFF: options.baseline_endpoint, ENDPOINT: options.endpoint}
    return {mode: address for mode, address in given.items() if address is not None}


def _fingerprint(described: Mapping[str, Any], workload: Workload, settings: Settings) -> dict[str, Any]:
    """Whose machine it is, nobody tells: a server's address stands for it."""
    modes: Mapping[str, Mapping[str, Any]] = described["modes"]
    return {
        "machine": {mode: facts["address"] for mode, facts in modes.items()},
        "model": {mode: facts["model"] for mode, facts in modes.items()},
        "workload_sha256": workload_sha256(workload),
        "params": plain_params(settings.params),
    }
