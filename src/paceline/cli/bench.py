"""`paceline bench`: from options to a measurement, and from that to tables, files and an exit status."""

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from paceline.bench.advice_config import config_toml
from paceline.bench.base import Workload
from paceline.bench.experiment import Judging
from paceline.bench.report import check_plots, live_view, print_result, write
from paceline.bench.requirements import (
    Condition,
    find_shortfalls,
    parse_requirements,
    parse_slo,
    slo_conditions,
    with_failures,
)
from paceline.bench.result import Result
from paceline.bench.result_file import check_writable, write_result, write_text
from paceline.bench.settings import Settings, mode_words, parse_ks, parse_loads, parse_modes, trace_load
from paceline.bench.workloads import BUILTIN, load_workload, select
from paceline.cli.bench_endpoint import measure_endpoints, modes_of
from paceline.cli.bench_local import measure_local
from paceline.cli.bench_options import BenchOptions
from paceline.cli.bench_shown import Shown
from paceline.cli.failures import EXIT_FAILURE, complain, explanation
from paceline.cli.interrupts import interrupts_later
from paceline.controller import OFF
from paceline.errors import PacelineError, UsageError
from paceline.models.quoting import quoted
from paceline.sampling_params import SamplingParams

DEFAULT_MODES = "off,ngram"
MAX_PRICE = 1e9


def bench(options: BenchOptions) -> None:
    """Measure, print and write. Raises typer.Exit where the exit status is not 0."""
    _check_outputs(options)
    _check_used(options)
    slo = parse_slo(options.slo) if options.slo is not None else {}
    conditions = [*(parse_requirements(options.require) if options.require is not None else ()), *slo_conditions(slo)]
    workload = _workload(options)
    settings = _settings(options, workload)
    judging = Judging(slo, options.price_per_hour)
    measure = measure_local if options.endpoint is None else measure_endpoints
    with live_view() as view:
        measured = measure(options, settings, workload, judging, Shown(view, judging))
    failures = [measured.experiment.failure] if measured.experiment.failure is not None else []
    try:
        with interrupts_later():  # another Ctrl-C must not lose what the first one kept
            result = measured.result()
            failures += _attempt(*_files(result, settings, options))
        if options.report is not None:
            failures += _attempt(*_report(result, options.report))
    except KeyboardInterrupt as error:
        failures.insert(0, error)
    print_result(result)
    if not any(run.num_answers for run in result.runs):
        failures.append(PacelineError("every answer failed, so there is no figure"))
    _raise_first(failures)
    exit_where_short(result, conditions)


def _workload(options: BenchOptions) -> Workload:
    whole = load_workload(options.workload, on_problem="skip" if options.skip_bad_lines else "refuse")
    for problem in whole.problems[:10]:
        complain(f"line {problem.line} of {quoted(options.workload)} is left out: {problem.message}")
    return select(whole, options.num_prompts, options.task_class or None)


def _check_used(options: BenchOptions) -> None:
    """What would change nothing was hardly meant to."""
    if options.burstiness != 1 and options.request_rate is None:
        raise UsageError("--burstiness is about arrivals of an open loop; give --request-rate too, or leave it out")
    words = mode_words(_modes(options))
    if options.num_speculative_tokens is not None and all(word == OFF or ":" in word for word in words):
        raise UsageError("--num-speculative-tokens is of proposers without :K; name one in --modes, or leave it out")
    if options.advise is not None and options.endpoint is None and OFF not in words:
        raise UsageError("--advise compares with off; name off in --modes too")


def _modes(options: BenchOptions) -> str:
    return DEFAULT_MODES if options.modes is None else options.modes


def _settings(options: BenchOptions, workload: Workload) -> Settings:
    is_trace = all(item.arrival is not None for item in workload.items)
    follows_trace = is_trace and options.concurrency is None and options.request_rate is None
    if options.endpoint is None:
        modes = parse_modes(_modes(options), parse_ks(options.num_speculative_tokens))
    else:
        modes = modes_of(options)
    return Settings(
        modes=modes,
        loads=(trace_load(workload),)
        if follows_trace
        else parse_loads(options.concurrency, options.request_rate, options.burstiness),
        params=SamplingParams(
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            top_p=options.top_p,
            top_k=options.top_k,
            min_p=options.min_p,
            ignore_eos=options.ignore_eos,
        ),
        rule=options.rule.value,
        num_prompts=options.num_prompts,
        task_classes=tuple(options.task_class),
        rounds=1 if options.rounds is None and options.duration is None else options.rounds,
        seconds=options.duration,
        follows_trace=follows_trace,
        seed=options.seed,
        prefix_caching=options.prefix_caching,
    )


def _check_outputs(options: BenchOptions) -> None:
    """What would be in vain after a long measurement is said before it."""
    taken = {} if options.workload == BUILTIN else {Path(options.workload).resolve(): "--workload"}
    files = {"--json": options.json, "--advise": options.advise, "--report": options.report, "--record": options.record}
    for name, path in files.items():
        if path is None:
            continue
        if not path.parent.is_dir():
            raise UsageError(f"{name} is {quoted(str(path))}; there is no such folder, make it first")
        if path.resolve() in taken and (path.is_file() or not path.exists()):
            raise UsageError(f"{name} is {quoted(str(path))}, and so is {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = name
        if name != "--report":
            check_writable(path)
    if options.report is not None:
        check_plots()
        if options.report.exists() and not options.report.is_dir():
            raise UsageError(f"--report is {quoted(str(options.report))}, which is no folder; name another")
        check_writable(options.report / "report.html" if options.report.exists() else options.report)
    price = options.price_per_hour
    if price is not None and not 0 < price <= MAX_PRICE:
        raise UsageError(f"--price-per-hour is {price:g}; expected a number above 0, at most {MAX_PRICE:g}")


def _files(result: Result, settings: Settings, options: BenchOptions) -> list[Callable[[], object]]:
    """What writes them. They come before the tables: whoever reads those may go away."""
    json, advise = options.json, options.advise
    writers = list[Callable[[], object]]()
    if json is not None:
        writers.append(lambda: write_result(result, json))
    if advise is not None:
        writers.append(lambda: write_text(config_toml(result, settings.modes, settings.rule), advise))
    return writers


def _report(result: Result, folder: Path) -> list[Callable[[], object]]:
    return [lambda: folder.mkdir(exist_ok=True), lambda: write(result, folder)]


def _attempt(*writers: Callable[[], object]) -> list[BaseException]:
    """Their failures: one file that cannot be written must not cost another one, nor the tables."""
    failures = list[BaseException]()
    for write_one in writers:
        try:
            write_one()
        except (OSError, ValueError, PacelineError, KeyboardInterrupt) as error:
            failures.append(error)
    return failures


def _raise_first(failures: Sequence[BaseException]) -> None:
    """What the others were is said."""
    for failure in failures[1:]:
        if isinstance(failure, Exception):
            complain(explanation(failure))
    if failures:
        raise failures[0]


def exit_where_short(result: Result, conditions: Sequence[Condition]) -> None:
    """Say what falls short, and exit with 1 where something does."""
    shortfalls = find_shortfalls(result.runs, with_failures(conditions))
    for shortfall in shortfalls:
        complain(str(shortfall))
    if shortfalls:
        raise typer.Exit(EXIT_FAILURE)
