"""What a benchmark found, for people: on the terminal, as a page with plots, and in Markdown."""

from paceline.bench.report.headline import Headline, headline
from paceline.bench.report.markdown import markdown
from paceline.bench.report.page import write
from paceline.bench.report.plots import check_plots
from paceline.bench.report.terminal import (
    LineView,
    LiveView,
    Progress,
    TableView,
    live_view,
    print_comparison,
    print_replay,
    print_result,
)

__all__ = [
    "Headline",
    "LineView",
    "LiveView",
    "Progress",
    "TableView",
    "check_plots",
    "headline",
    "live_view",
    "markdown",
    "print_comparison",
    "print_replay",
    "print_result",
    "write",
]
