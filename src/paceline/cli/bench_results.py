"""`paceline bench compare`, `check` and `replay`: what was stored, looked at again."""

from pathlib import Path

import typer

from paceline.bench.compare import compare as compare_results
from paceline.bench.recordings import load_recordings
from paceline.bench.replay import replay, replayable_ks, text_only_proposers
from paceline.bench.report import print_comparison, print_replay
from paceline.bench.requirements import parse_requirements
from paceline.bench.result_file import read_result
from paceline.bench.settings import parse_ks
from paceline.cli.bench import exit_where_short
from paceline.cli.failures import complain


def compare(before: Path, after: Path, *, is_forced: bool) -> None:
    """Print a table of both."""
    print_comparison(compare_results(read_result(before), read_result(after), is_forced=is_forced))


def replay_recordings(path: Path, *, proposers: str | None, ks: str | None) -> None:
    """Print what proposers would have made of the recorded answers."""
    recordings = load_recordings(path)
    names = text_only_proposers() if proposers is None else proposers.split(",")
    print_replay(replay(recordings, names, replayable_ks(recordings) if ks is None else parse_ks(ks)))


def check(path: Path, require: str) -> None:
    """Exit with 1 where the result falls short of a requirement."""
    conditions = parse_requirements(require)
    result = read_result(path)
    if not result.is_complete:
        complain("the measurement was interrupted: what is checked is what was measured until then")
    exit_where_short(result, conditions)
    typer.echo(f"{len(conditions)} of {len(conditions)} requirements hold")
