"""`paceline models`: the models that have a short name, and what is there of them."""

import json
from typing import Any

import typer

from paceline.cli.failures import EXIT_FAILURE, complain
from paceline.models import CachedModel, list_cached


def models(*, verify: bool, is_json: bool) -> None:
    """List. Raises typer.Exit with status 1 where a checked file is not what it should be."""
    listed = list_cached(verify=verify)
    if is_json:
        typer.echo(json.dumps([_as_json(model) for model in listed]))
    else:
        for model in listed:
            typer.echo(_as_text(model))
    damaged = [model for model in listed if model.is_verified is False]
    for model in damaged:
        complain(f"{model.path} is not the expected file; it will be fetched again on next use")
    if damaged:
        raise typer.Exit(EXIT_FAILURE)


def _as_json(model: CachedModel) -> dict[str, Any]:
    return {
        "name": model.alias,
        "description": model.description,
        "path": str(model.path),
        "num_bytes": model.num_bytes,
        "is_present": model.is_present,
        "is_verified": model.is_verified,
    }


def _as_text(model: CachedModel) -> str:
    state = f"in {model.path}" if model.is_present else "not fetched yet, will be on first use"
    verified = {True: ", hash verified", False: ", WRONG HASH", None: ""}[model.is_verified]
    return f"{model.alias}  {model.description}\n  {model.num_bytes / 2**20:.0f} MiB, {state}{verified}"
