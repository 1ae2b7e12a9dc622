"""The commands under `paceline bench` and their options."""

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import options as opt
from paceline.cli.bench_options import DEFAULT_BENCH_MODEL
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

Slo = Annotated[
    str | None,
    typer.Option(
        "--slo",
        metavar="NAME=MS,…",
        help="Latency targets: ttft, tpot and e2e, in milliseconds. Answers that meet all of them are goodput.",
        show_default=False,
    ),
]
Require = Annotated[
    str | None,
    typer.Option(
        "--require",
        metavar="FIGURE>=X,…",
        help="Exit with status 1 unless this holds, such as speedup>=1.5,identical=1.0; CLASS:speedup>=2 for one task "
        "class. Without a class or mode it is asked of all classes together, of every mode but off and every load.",
        show_default=False,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Compare although machine, model, workload or version are not the same.")
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result, with everything it was made from.", show_default=False
    ),
]


@bench_app.callback()
def bench(
    context: typer.Context,
    model: opt.Model = DEFAULT_BENCH_MODEL,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            metavar="builtin|FILE",
            help="What to ask: the built-in suite, or a file: Spec-Bench jsonl, ShareGPT JSON, jsonl with a prompt or "
            "messages in each line, or a recorded trace (jsonl with an arrival in each line).",
        ),
    ] = "builtin",
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Leave lines out that hold no item, and say so; else refuse.")
    ] = False,
    num_prompts: Annotated[
        int | None,
        typer.Option(
            "--num-prompts",
            metavar="N",
            help="Take so many, evenly over the classes; all if not given.",
            show_default=False,
        ),
    ] = None,
    task_class: Annotated[
        list[str] | None,
        typer.Option("--task-class", metavar="NAME", help="Only this class; may be repeated.", show_default=False),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            metavar="NAME,…",
            help="off and proposers, each with :K for its number of draft tokens if wanted; off,ngram if not given. "
            "Speedups are against off.",
            show_default=False,
        ),
    ] = None,
    num_speculative_tokens: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--num-speculative-tokens",
            metavar="K,…",
            help="Run each proposer without :K at each of these; 4 if not given.",
            show_default=False,
        ),
    ] = None,
    rule: opt.Rule = opt.RuleName.MATCH,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", help="The most tokens of an answer; an item can ask for fewer.")
    ] = DEFAULT_BENCH_TOKENS,
    temperature: opt.Temperature = 0.0,
    top_p: opt.TopP = 1.0,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Let answers go on to their most tokens, as other tools measure.")
    ] = False,
    concurrency: Annotated[
        str | None,
        typer.Option(
            "--concurrency",
            metavar="N,…",
            help="So many conversations at a time (closed loop); 1 if nothing is given.",
            show_default=False,
        ),
    ] = None,
    request_rate: Annotated[
        str | None,
        typer.Option(
            "--request-rate",
            metavar="R,…",
            help="So many conversations a second, keeping up or not (open loop).",
            show_default=False,
        ),
    ] = None,
    burstiness: Annotated[
        float,
        typer.Option(
            "--burstiness", metavar="B", help="Of an open loop's arrivals: 1 is Poisson, less comes in bursts."
        ),
    ] = 1.0,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            metavar="N",
            help="How often to go through the workload at each load; once if neither this nor a duration is given.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="SECONDS",
            help="Go through it again until so long, at each load, and end there.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of the order of modes, of arrivals and of noise.")
    ] = 0,
    prefix_caching: Annotated[
        bool,
        typer.Option(
            "--prefix-caching",
            help="Let conversations of one block and mode reuse equal beginnings. Off otherwise, so that no prompt is "
            "cheap because it was seen before.",
        ),
    ] = False,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Score text-only proposers at every K against the recorded answers too, without the model.",
        ),
    ] = False,
    slo: Slo = None,
    require: Require = None,
    price_per_hour: Annotated[
        float | None,
        typer.Option(
            "--price-per-hour",
            metavar="X",
            help="Of this machine, for the cost of a million tokens.",
            show_default=False,
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            metavar="URL",
            help='Ask an OpenAI-compatible server instead, as the mode "endpoint".',
            show_default=False,
        ),
    ] = None,
    baseline_endpoint: Annotated[
        str | None,
        typer.Option(
            "--baseline-endpoint",
            metavar="URL",
            help='The same without speculation: mode "off".',
            show_default=False,
        ),
    ] = None,
    endpoint_model: Annotated[
        str | None,
        typer.Option(
            "--endpoint-model",
            metavar="NAME",
            help="The model to ask servers for; the first that they list if not given.",
            show_default=False,
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            metavar="NAME",
            help="The environment variable that holds the servers' key.",
            show_default=False,
        ),
    ] = None,
    json: Json = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            help="Write report.html and its plots; needs paceline[plot].",
            show_default=False,
        ),
    ] = None,
    advise: Annotated[
        Path | None,
        typer.Option("--advise", metavar="FILE", help="Write the recommended configuration, TOML.", show_default=False),
    ] = None,
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
            ignore_eos=ignore_eos,
            concurrency=concurrency,
            request_rate=request_rate,
            burstiness=burstiness,
            rounds=rounds,
            duration=duration,
            seed=seed,
            prefix_caching=prefix_caching,
            replay=replay,
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
    force: Force = False,
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
    require: Require = None,
    debug: opt.Debug = False,
) -> None:
    """Check a stored result against requirements. The exit status is 1 where one does not hold."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.bench_results import check as run

        if require is None:
            raise UsageError("nothing is required; give --require, such as --require speedup>=1.0,identical=1.0")
        run(result, require)


def _refuse_options(context: typer.Context) -> None:
    """What stands before a command of the group would be parsed and ignored."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name != "debug" and source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP"):
            raise UsageError(f"options of `bench {context.invoked_subcommand}` go behind it")
