"""`paceline bench compare` and `paceline bench check`: stored results, looked at again."""

from pathlib import Path

import typer

from paceline.bench.compare import compare as compare_results
from paceline.bench.report import print_comparison
from paceline.bench.requirements import parse_requirements
from paceline.bench.result_file import read_result
from paceline.cli.bench import exit_where_short
from paceline.cli.failures import complain


def compare(before: Path, after: Path, *, is_forced: bool) -> None:
    """Print a table of both."""
    print_comparison(compare_results(read_result(before), read_result(after), is_forced=is_forced))


def check(path: Path, require: str) -> None:
    """Exit with 1 where the result falls short of a requirement."""
    conditions = parse_requirements(require)
    result = read_result(path)
    if not result.is_complete:
        complain("the measurement was interrupted: what is checked is what was measured until then")
    exit_where_short(result, conditions)
    typer.echo(f"{len(conditions)} of {len(conditions)} requirements hold")
