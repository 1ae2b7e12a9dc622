"""The options of `paceline bench`: names, help and types. Ranges are checked by what the values are for."""

from pathlib import Path
from typing import Annotated

import typer

Slo = Annotated[
    str | None,
    typer.Option(
        "--slo",
        metavar="NAME=MS,…",
        help="Latency targets: ttft, tpot and e2e, in milliseconds. Answers that meet all of them are goodput. Exit "
        "with status 1 where the 99th percentile of a mode misses one.",
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
    bool,
    typer.Option(
        "--force",
        help="Compare although machine, model, workload, sampling, version, rule, prefix reuse or burstiness are not "
        "the same.",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result, with everything it was made from.", show_default=False
    ),
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="builtin|FILE",
        help="What to ask: the built-in suite, or a file: Spec-Bench jsonl, ShareGPT JSON, jsonl with a prompt or "
        "messages in each line, or a recorded trace (jsonl with an arrival in each line).",
    ),
]
SkipBadLines = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Leave lines out that hold no item, and say so; else refuse.")
]
NumPrompts = Annotated[
    int | None,
    typer.Option(
        "--num-prompts",
        metavar="N",
        help="Take so many, evenly over the classes; all if not given.",
        show_default=False,
    ),
]
TaskClass = Annotated[
    list[str] | None,
    typer.Option("--task-class", metavar="NAME", help="Only this class; may be repeated.", show_default=False),
]
Modes = Annotated[
    str | None,
    typer.Option(
        "--modes",
        metavar="NAME,…",
        help="off and proposers, each with :K for its number of draft tokens if wanted, or all; off,ngram if not "
        "given. Speedups are against off.",
        show_default=False,
    ),
]
NumSpeculativeTokens = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--num-speculative-tokens",
        metavar="K,…",
        help="Run each proposer without :K at each of these; 4 if not given.",
        show_default=False,
    ),
]
MaxTokens = Annotated[
    int, typer.Option("--max-tokens", metavar="N", help="The most tokens of an answer; an item can ask for fewer.")
]
IgnoreEos = Annotated[
    bool, typer.Option("--ignore-eos", help="Let answers go on to their most tokens, as other tools measure.")
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        "--concurrency",
        metavar="N,…",
        help="So many conversations at a time (closed loop); 1 if nothing is given.",
        show_default=False,
    ),
]
RequestRate = Annotated[
    str | None,
    typer.Option(
        "--request-rate",
        metavar="R,…",
        help="So many conversations a second, keeping up or not (open loop).",
        show_default=False,
    ),
]
Burstiness = Annotated[
    float,
    typer.Option("--burstiness", metavar="B", help="Of an open loop's arrivals: 1 is Poisson, less comes in bursts."),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        metavar="N",
        help="How often to go through the workload at each load; once if neither this nor a duration is given.",
        show_default=False,
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(
        "--duration",
        metavar="SECONDS",
        help="Go through it again until so long, at each load, and end there.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the order of modes, of arrivals and of noise.")]
PrefixCaching = Annotated[
    bool,
    typer.Option(
        "--prefix-caching",
        help="Let conversations of one block and mode reuse equal beginnings. Off otherwise, so that no prompt is "
        "cheap because it was seen before.",
    ),
]
Replay = Annotated[
    bool,
    typer.Option(
        "--replay",
        help="Score text-only proposers at every K against the recorded answers too, without the model.",
    ),
]
PricePerHour = Annotated[
    float | None,
    typer.Option(
        "--price-per-hour",
        metavar="X",
        help="Of this machine, for the cost of a million tokens.",
        show_default=False,
    ),
]
Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help='Ask an OpenAI-compatible server instead, as the mode "endpoint".',
        show_default=False,
    ),
]
BaselineEndpoint = Annotated[
    str | None,
    typer.Option(
        "--baseline-endpoint",
        metavar="URL",
        help='The same without speculation: mode "off".',
        show_default=False,
    ),
]
EndpointModel = Annotated[
    str | None,
    typer.Option(
        "--endpoint-model",
        metavar="NAME",
        help="The model to ask servers for; the first that they list if not given.",
        show_default=False,
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable that holds the servers' key.",
        show_default=False,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FOLDER",
        help="Write report.html and its plots; needs paceline[plot].",
        show_default=False,
    ),
]
Advise = Annotated[
    Path | None,
    typer.Option("--advise", metavar="FILE", help="Write the recommended configuration, TOML.", show_default=False),
]
Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Write the answers and T(n), for `paceline bench replay`.",
        show_default=False,
    ),
]
ReplayedK = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--num-speculative-tokens",
        metavar="K,…",
        help="The numbers of draft tokens to score; all if not given.",
        show_default=False,
    ),
]
