"""`paceline models`: what is cached, whether it is intact, and room for more."""

import json
import sys
from typing import Any

import typer

from paceline.cli.failures import EXIT_FAILURE, complain
from paceline.errors import ModelNotFoundError, UsageError
from paceline.models import CachedModel, list_cached, remove_cached

_MIB = 2**20


def show(reference: str | None, *, verify: bool, is_json: bool) -> None:
    """List. Raises typer.Exit with status 1 where a checked file is not what it should be."""
    listed = list_cached(reference, verify=verify)
    if is_json:
        typer.echo(json.dumps([_as_json(model) for model in listed]))
    else:
        for model in listed:
            typer.echo(_as_text(model))
    damaged = [model for model in listed if model.is_verified is False]
    for model in damaged:
        again = f"remove it with `paceline models remove {model.reference}` to fetch it again"
        again = "it will be fetched again on next use" if model.source == "alias" else again
        complain(f"{model.path} is not the expected file; {again}")
    if damaged:
        raise typer.Exit(EXIT_FAILURE)


def remove(reference: str, *, is_confirmed: bool) -> None:
    """Remove from the caches what a reference names. Asks before, on a terminal."""
    found = [model for model in list_cached(reference) if model.files]
    if not found:
        raise ModelNotFoundError(f"{reference} is not in the cache; there is nothing to remove")
    for model in found:
        typer.echo(_as_text(model), err=True)
    if not is_confirmed:
        _ask(found)
    freed = remove_cached(found)
    typer.echo(f"{freed / _MIB:.0f} MiB are free again")


def _ask(found: list[CachedModel]) -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked, standard input is not a terminal; give --yes to remove this")
    shared = ", from a cache that other programs share" if any(model.source == "hub" for model in found) else ""
    size = sum(model.num_bytes for model in found) / _MIB
    typer.confirm(f"Remove this, {size:.0f} MiB{shared}?", abort=True, err=True)


def _as_json(model: CachedModel) -> dict[str, Any]:
    return {
        "name": model.reference,
        "source": model.source,
        "description": model.description,
        "path": str(model.path),
        "num_bytes": model.num_bytes,
        "is_present": model.is_present,
        "is_verified": model.is_verified,
    }


def _as_text(model: CachedModel) -> str:
    state = f"in {model.path}" if model.files else "not fetched yet, will be on first use"
    verified = {True: ", hash verified", False: ", WRONG HASH", None: ""}[model.is_verified]
    return f"{model.reference}  {model.description}\n  {model.num_bytes / _MIB:.0f} MiB, {state}{verified}"
