"""`paceline models`: what is cached, whether it is intact, and room for more."""

import json
import sys
from typing import Any

import typer

from paceline.cli.failures import EXIT_FAILURE, complain
from paceline.errors import ModelNotFoundError, UsageError
from paceline.models import CachedModel, bytes_to_free, list_cached, remove_cached

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
        typer.echo(f"{_as_text(model)}\n  {_files(model)}", err=True)
    num_bytes = bytes_to_free(found)
    if not is_confirmed:
        _ask(found, num_bytes)
    typer.echo(f"{_size(remove_cached(found))} are free again")


def _ask(found: list[CachedModel], num_bytes: int) -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked, standard input is not a terminal; give --yes to remove this")
    shared = ", from a cache that other programs share" if any(model.source == "hub" for model in found) else ""
    listed = sum(model.num_bytes for model in found)
    size = _size(num_bytes) if num_bytes == listed else f"freeing {_size(num_bytes)}, the rest is used elsewhere too"
    typer.confirm(f"Remove this, {size}{shared}?", abort=True, err=True)


def _files(model: CachedModel) -> str:
    folder = model.path if model.path not in model.files and model.path.is_dir() else model.path.parent
    names = [path.relative_to(folder).as_posix() for path in model.files]
    return f"{len(names)} file{'s' if len(names) > 1 else ''}: {', '.join(names)}"


def _size(num_bytes: int) -> str:
    return f"{num_bytes / _MIB:.0f} MiB" if num_bytes >= _MIB else f"{num_bytes} bytes"


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
    return f"{model.reference}  {model.description}\n  {_size(model.num_bytes)}, {state}{verified}"
