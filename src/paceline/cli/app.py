"""The commands and their options. Each imports what it runs only when it runs, so that `--help` is immediate."""

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import options as opt
from paceline.cli.answers_app import chat, generate
from paceline.cli.bench_app import bench_app
from paceline.cli.failures import reported_failures
from paceline.cli.interrupts import interrupts_at_once
from paceline.cli.models_app import models_app
from paceline.cli.verify_app import verify

DEFAULT_ROUNDS = 20
DEFAULT_DEMO_DRAFT = 5
DEFAULT_CONTEXTS = (32, 1000)

app = typer.Typer(
    help="Run a large language model on this machine's processors; drafted tokens make it faster, never different.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: rich alone would take a third of the time that `--help` may take
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models_app, name="models")
app.add_typer(bench_app, name="bench")


def _print_version(value: bool) -> None:
    if value:
        from paceline import __version__

        typer.echo(f"paceline {__version__}")
        raise typer.Exit


@app.callback()
def root(
    debug: opt.Debug = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command()(generate)
app.command()(chat)


@app.command()
def profile(
    model: opt.Model = opt.DEFAULT_MODEL,
    quantization: opt.Quantization = None,
    threads: opt.Threads = None,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", help="How often to measure each point; medians are printed.")
    ] = DEFAULT_ROUNDS,
    context: Annotated[
        list[int] | None,
        typer.Option(
            "--context",
            metavar="N",
            help="Measure behind so many cached tokens; may be repeated. 32 and 1000 if not given.",
            show_default=False,
        ),
    ] = None,
    roofline: Annotated[
        bool,
        typer.Option(
            "--roofline",
            help="Take steps apart too, of 1, 4, 8 and 16 rows at the shortest context, of one row at the others: the "
            "bytes, multiply-adds and time of each part, and its share of what bandwidth and arithmetic allow.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw the roofline into FILE, .png or .svg. Only with --roofline, and with paceline[plot] installed.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Measure the cost of a forward over n rows.

    Against one row it tells what speculation can gain at best, against the memory's bandwidth how good the forward is.
    """
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.profile import profile as run

        run(
            model,
            quantization=quantization,
            threads=threads,
            contexts=context or DEFAULT_CONTEXTS,
            rounds=rounds,
            is_json=json,
            is_roofline=roofline,
            plot=plot,
        )


@app.command()
def inspect(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="What --model takes elsewhere: a short name, a file or a folder.")
    ],
    draft: Annotated[
        str | None,
        typer.Option(
            "--draft",
            metavar="DRAFT",
            help="A second model: whether its vocabulary is the same, so that it could draft for the first.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            help="Tokens of each sequence, for the memory of the cache; the model's context if not given.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", help="Sequences at once, for the memory of the cache.")
    ] = 1,
    quantization: opt.Quantization = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Tell what a model is and what memory it takes.

    Of a pair, tell too whether the vocabularies agree. Only headers and tokenizers are read, no weights.
    """
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.inspect import inspect as run

        run(
            model,
            draft=draft,
            quantization=quantization,
            context=context,
            concurrency=concurrency,
            is_json=json,
        )


@app.command()
def demo(
    model: opt.Model = opt.DEFAULT_MODEL,
    num_speculative_tokens: Annotated[
        int,
        typer.Option("-k", "--num-speculative-tokens", metavar="K", help="The most draft tokens in one step, 1 to 15."),
    ] = DEFAULT_DEMO_DRAFT,
    threads: opt.Threads = None,
    debug: opt.Debug = False,
) -> None:
    """Show one answer without and with drafts.

    Compares text and speed; the exit status is 1 if the texts differ.
    """
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.demo import demo as run

        run(model, num_speculative_tokens=num_speculative_tokens, threads=threads)


app.command()(verify)
