"""The commands under `paceline models` and their options."""

from typing import Annotated

import typer

from paceline.cli import options as opt
from paceline.cli.failures import reported_failures
from paceline.cli.interrupts import interrupts_at_once
from paceline.errors import UsageError

models_app = typer.Typer(
    help="List what is cached.\n\nModels with a short name, models of the Hugging Face hub, and built tokenizers.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

Json = Annotated[bool, typer.Option("--json", help="Print a JSON list, one object for each model.")]


@models_app.callback()
def models(
    context: typer.Context,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check everything, as `paceline models verify` does.")
    ] = False,
    json: Json = False,
    debug: opt.Debug = False,
) -> None:
    with reported_failures(debug):
        if context.invoked_subcommand is not None:
            if verify or json:
                raise UsageError(f"options of `models {context.invoked_subcommand}` go behind it")
            return
        with interrupts_at_once():
            from paceline.cli.models import show

        show(None, verify=verify, is_json=json)


@models_app.command()
def verify(
    reference: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="What to check, as it is listed; everything if not given.")
    ] = None,
    json: Json = False,
    debug: opt.Debug = False,
) -> None:
    """Read cached files and check their hashes. The exit status is 1 where one is wrong."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.models import show

        show(reference, verify=True, is_json=json)


@models_app.command()
def remove(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="What to remove, as it is listed, or org/repo for every model of a repository."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Remove a model from the cache."""
    with reported_failures(debug):
        with interrupts_at_once():
            from paceline.cli.models import remove as run

        run(reference, is_confirmed=yes)
