"""The commands under `paceline bench` and their options."""

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import bench_flags as flag
from paceline.cli import options as opt
from paceline.cli.failures import reported_failures
from paceline.cli.interrupts import interrupts_at_once, termination_as_interrupt
from paceline.errors import UsageError

DEFAULT_BENCH_TOKENS = 128

bench_app = typer.Typer(
    help="Measure what speculation is worth: for a model, a workload and a load, on this machine, and whether the text "
    "is the same.\n\nModes run in turns, block by block, in one process on the same weights; nothing that one has left "
    "in the cache serves another. Ctrl-C ends the measurement and keeps what was measured.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@bench_app.callback()
def bench(
    context: typer.Context,
    model: opt.Model = opt.DEFAULT_MODEL,
    workload: flag.Workload = "builtin",
    skip_bad_lines: flag.SkipBadLines = False,
    num_prompts: flag.NumPrompts = None,
    task_class: flag.TaskClass = None,
    modes: flag.Modes = None,
    num_speculative_tokens: flag.NumSpeculativeTokens = None,
    rule: opt.Rule = opt.RuleName.MATCH,
    max_tokens: flag.MaxTokens = DEFAULT_BENCH_TOKENS,
    temperature: opt.Temperature = 0.0,
    top_p: opt.TopP = 1.0,
    top_k: opt.TopK = 0,
    min_p: opt.MinP = 0.0,
    ignore_eos: flag.IgnoreEos = False,
    concurrency: flag.Concurrency = None,
    request_rate: flag.RequestRate = None,
    burstiness: flag.Burstiness = 1.0,
    rounds: flag.Rounds = None,
    duration: flag.Duration = None,
    seed: flag.Seed = 0,
    prefix_caching: flag.PrefixCaching = False,
    replay: flag.Replay = False,
    record: flag.Record = None,
    slo: flag.Slo = None,
    require: flag.Require = None,
    price_per_hour: flag.PricePerHour = None,
    endpoint: flag.Endpoint = None,
    baseline_endpoint: flag.BaselineEndpoint = None,
    endpoint_model: flag.EndpointModel = None,
    api_key_env: flag.ApiKeyEnv = None,
    json: flag.Json = None,
    report: flag.Report = None,
    advise: flag.Advise = None,
    quantization: opt.Quantization = None,
    max_model_len: opt.MaxModelLen = None,
    threads: opt.Threads = None,
    debug: opt.Debug = False,
) -> None:
    with reported_failures(debug):
        if context.invoked_subcommand is not None:
            _refuse_options(context)
            return
        with interrupts_at_once():
            from paceline.cli.bench import bench as run
            from paceline.cli.bench_options import BenchOptions

        options = BenchOptions(
            model=model,
            workload=workload,
            skip_bad_lines=skip_bad_lines,
            num_prompts=num_prompts,
            task_class=task_class or [],
            modes=modes,
            num_speculative_tokens=num_speculative_tokens,
            rule=rule,
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            min_p=min_p,
            ignore_eos=ignore_eos,
            concurrency=concurrency,
            request_rate=request_rate,
            burstiness=burstiness,
            rounds=rounds,
            duration=duration,
            seed=seed,
            prefix_caching=prefix_caching,
            replay=replay,
            record=record,
            slo=slo,
            require=require,
            price_per_hour=price_per_hour,
            endpoint=endpoint,
            baseline_endpoint=baseline_endpoint,
            endpoint_model=endpoint_model,
            api_key_env=api_key_env,
            json=json,
            report=report,
            advise=advise,
            quantization=quantization,
            max_model_len=max_model_len,
            threads=threads,
        )
        with termination_as_interrupt():
            run(options)


@bench_app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="A result of `paceline bench --json`.")],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="Another one.")],
    force: flag.Force = False,
    debug: opt.Debug = False,
) -> None:
    """Show what changed between two results, and whether it is more than noise."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.bench_results import compare as run

        run(before, after, is_forced=force)


@bench_app.command()
def check(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json", help="A result of `paceline bench --json`.")],
    require: flag.Require = None,
    debug: opt.Debug = False,
) -> None:
    """Check a stored result against requirements. The exit status is 1 where one does not hold."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.bench_results import check as run

        if require is None:
            raise UsageError("nothing is required; give --require, such as --require speedup>=1.0,identical=1.0")
        run(result, require)


@bench_app.command("replay")
def replay_recordings(
    recordings: Annotated[Path, typer.Argument(metavar="FILE", help="What `paceline bench --record` wrote.")],
    proposers: Annotated[
        str | None,
        typer.Option(
            "--proposers", metavar="NAME,…", help="All that need nothing but text if not given.", show_default=False
        ),
    ] = None,
    num_speculative_tokens: flag.ReplayedK = None,
    debug: opt.Debug = False,
) -> None:
    """Score proposers against recorded answers, without the model."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.bench_results import replay_recordings as run

        run(recordings, proposers=proposers, ks=num_speculative_tokens)


def _refuse_options(context: typer.Context) -> None:
    """What stands before a command of the group would be parsed and ignored."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name != "debug" and source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP"):
            raise UsageError(f"options of `bench {context.invoked_subcommand}` go behind it")
