"""The page of a report: whole, self-contained and harmless, whatever the result holds."""

import re
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from report_pages import Page, written
from report_results import HOSTILE, figure_names, full_result, hostile_result, minimal_result, plain_run, without

from paceline.bench import report
from paceline.bench.report.plots import PLOTS
from paceline.bench.result import Difference, Result, Run, Spread
from paceline.errors import PacelineError, UsageError

SMALL = {"classes": ("chat", "code"), "modes": ("ngram-4", "auto"), "concurrencies": (1, 2), "rates": (0.5,)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder with the report of the result of this name, made once."""

    @cache
    def folder(name: str) -> Path:
        path = tmp_path_factory.mktemp("report")
        report.write(RESULTS[name], path)
        return path

    return folder


RESULTS = {
    "full": full_result(**SMALL),
    "minimal": minimal_result(),
    "nothing": replace(minimal_result(), runs=[]),
    "one class": full_result(("chat",), ("ngram-4",), (1,), ()),
    "only off": full_result(modes=(), concurrencies=(1, 2), rates=()),
    "only open loops": full_result(("chat",), ("ngram-4",), (), (0.5, 1.0)),
    "many modes": full_result(("chat",), tuple(f"mode-{i}" for i in range(11)), (1,), ()),
    "hostile": hostile_result(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_page_is_well_formed_and_self_contained(pages: Callable[[str], Path], name: str) -> None:
    text = (pages(name) / "report.html").read_text("utf-8")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert not page.tags & {"script", "iframe", "object", "embed", "base", "form", "img"}
    for link in page.links:
        assert link == "data:," or (link[0] == "#" and link[1:] in page.ids)
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    for _, key, value in page.attributes:
        references = value.split() if key in ("aria-labelledby", "aria-describedby") else []
        references += re.findall(r"url\(#(.*?)\)", value) if key != "content" else []
        assert set(references) <= set(page.ids)
        assert "url(" not in value.replace("url(#", "")
    assert "@import" not in text and "url(" not in text.split("</style>")[0]


def test_foreign_strings_are_shown_not_obeyed(pages: Callable[[str], Path]) -> None:
    text = (pages("hostile") / "report.html").read_text("utf-8")
    assert "<script" not in text
    page = Page(text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    shown = "<script>alert('x')</script>&\"$x_2$|`*[[a](javascript:b)\ufffd[31m\ufffd\\ud800\ufffd日本語"
    assert page.cells.count(shown) > 8  # the difference's six strings, the advice's reason, settings and provenance
    assert "</td></table></main></html>" in page.cells
    assert "a\ufffd⏎b\ufffdc" in page.cells


def test_every_figure_of_every_run_is_on_the_page(tmp_path: Path) -> None:
    run = replace(
        full_result(("chat",), ("ngram-4",), (1,), ()).runs[1],
        num_blocks=1001,
        num_answers=1002,
        num_errors=1003,
        num_output_tokens=1004,
        output_tokens_per_second=1005.0,
        macro_tokens_per_second=1006.0,
        speedup=2.01,
        speedup_ci=(2.02, 2.03),
        verdict="faster",
        request_speedup=2.04,
        request_speedup_ci=(2.05, 2.06),
        macro_speedup=2.07,
        mean_acceptance_length=2.08,
        draft_acceptance_rate=0.211,
        acceptance_by_position=(0.212, 0.213),
        num_draft_tokens_chosen={"0": 0.214, "7": 0.215},
        identical_fraction=0.216,
        ttft_ms=Spread(2001, 2002, 2003, 2004),
        tpot_ms=Spread(2005, 2006, 2007, 2008),
        chunk_gap_ms=Spread(2009, 2010, 2011, 2012),
        e2e_ms=Spread(2013, 2014, 2015, 2016),
        goodput=2.17,
        time_share={"draft": 0.218, "verify": 0.219, "host": 0.221},
        memory_bytes={"target": 222_000_000, "proposer": 2_230_000},
        ceiling=2.24,
        looping_fraction=0.225,
        speedup_without_loops=2.26,
        energy_joules_per_token=2.27,
        cost_per_million_tokens=2.28,
    )
    cells = "\n".join(Page(written(Result({}, {}, {}, [run]), tmp_path)).cells)
    expected = [f"{figure:,}" for figure in (*range(1001, 1007), *range(2001, 2017))]
    expected += ["2.01 (2.02 to 2.03)", "faster", "2.04 (2.05 to 2.06)", "2.07", "2.08", "21.1 %", "21.2 % 21.3 %"]
    expected += ["0: 21.4 %, 7: 21.5 %", "21.6 %", "2.17", "draft 21.8 %, verify 21.9 %, host 22.1 %"]
    expected += ["target 222 MB, proposer 2.23 MB", "2.24", "22.5 %", "2.26", "2.27", "2.28"]
    assert [figure for figure in expected if figure not in cells] == []


def test_any_figure_can_be_missing(tmp_path: Path) -> None:
    """Each in a mode of its own; what plain decoding has none of is missing there in every test."""
    off, ngram = RESULTS["one class"].runs[:2]
    runs = [off, *(without(replace(ngram, mode=name), name) for name in figure_names())]
    page = Page(written(Result({}, {}, {}, runs), tmp_path))
    assert "None" not in page.text and "nan" not in page.cells
    assert set(figure_names()) <= set(page.cells)


def test_files_are_those_that_have_something_to_show(tmp_path: Path) -> None:
    everything = report.write(RESULTS["one class"], tmp_path)
    assert [path.name for path in everything] == ["report.html", *(f"{plot.name}.png" for plot in PLOTS)]
    assert sorted(tmp_path.iterdir()) == sorted(everything)
    for path in everything[1:]:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        assert width > 1000 and height > 200
    assert [path.name for path in report.write(minimal_result(), tmp_path)] == ["report.html"]
    plain = report.write(replace(RESULTS["only off"], forward_ms={}), tmp_path)
    assert [path.name for path in plain] == ["report.html", "throughput.png", "p99.png", "time_share.png"]


def test_plots_are_described_and_follow_the_page_s_colours(pages: Callable[[str], Path]) -> None:
    text = (pages("full") / "report.html").read_text("utf-8")
    page = Page(text)
    plots = [plot.name for plot in PLOTS]
    assert page.attributes.count(("svg", "role", "img")) == len(plots)
    labels = [value for tag, key, value in page.attributes if (tag, key) == ("svg", "aria-labelledby")]
    assert labels == [f"{name}-title {name}-description" for name in plots]
    styles = [value for _, key, value in page.attributes if key == "style"]
    assert any("var(--series-1)" in style for style in styles) and any("var(--ink)" in style for style in styles)
    assert not [style for style in styles if re.search("#[0-9a-f]{6}", style)]
    for name in ("chat", "ngram-4", "auto"):
        assert re.search(rf"<text[^>]*>{name}</text>", text)


@pytest.mark.parametrize(
    ("speedup", "ends", "verdict", "told"),
    [
        (1.34, (1.21, 1.48), "faster", "Faster than plain decoding"),
        (0.9, (0.85, 0.95), "slower", "Slower than plain decoding"),
        (1.05, (0.97, 1.12), "undecided", "Undecided"),
    ],
)
def test_headline_says_the_verdict_plainly(speedup: float, ends: tuple[float, float], verdict: str, told: str) -> None:
    result = Result({}, {}, {}, full_result(("chat",), ("ngram-4",), (1,), ()).runs)
    runs = [
        replace(run, speedup=speedup, speedup_ci=ends, verdict=verdict) if run.speedup is not None else run
        for run in result.runs
    ]
    found = report.headline(replace(result, runs=runs))
    spread = f"Speedup {speedup:.2f} ({ends[0]:.2f} to {ends[1]:.2f})"
    assert found.title.startswith(told) and found.verdict == verdict
    assert found.sentence == f"{spread} over all classes at c=1 with ngram-4, ceiling 3.20, identical text 100 %"


def test_a_text_that_differs_and_an_interruption_are_alarming(tmp_path: Path) -> None:
    same = replace(plain_run(mode="ngram-4"), speedup=1.2, identical_fraction=1.0)
    result = replace(minimal_result(), runs=[plain_run(), same], differences=RESULTS["full"].differences)
    other = replace(result, runs=[plain_run(), replace(same, identical_fraction=0.9999)], is_complete=False)
    text = Page(written(other, tmp_path)).text
    assert "identical text > 99.9 %" in text
    assert "The text is not that of plain decoding everywhere. See where it differs." in text
    assert "Interrupted" in text
    harmless = Page(written(result, tmp_path)).text
    assert "not that of plain decoding" not in harmless and "Interrupted" not in harmless


def test_headline_is_of_auto_or_of_the_best_mode() -> None:
    """At the least load, and it says among how many the best was chosen."""
    off, ngram = replace(plain_run(), output_tokens_per_second=61.3), replace(plain_run(mode="ngram"), speedup=1.1)
    suffix, auto = replace(ngram, mode="suffix", speedup=1.3), replace(ngram, mode="auto", speedup=1.2)
    busy = replace(auto, concurrency=8, speedup=1.5)

    def sentence(*runs: Run) -> str:
        return report.headline(Result({}, {}, {}, runs)).sentence

    assert sentence(busy, off, ngram, suffix).startswith(
        "Speedup 1.30 over all classes at c=1 with suffix, the best of 2"
    )
    assert sentence(busy, off, ngram, suffix, auto).startswith(
        "Speedup 1.20 over all classes at c=1 with auto, text not"
    )
    assert sentence(replace(suffix, task_class="chat")).startswith("Speedup 1.30 in chat at c=1 with suffix, text not")
    assert sentence(off) == "61.3 tokens a second at c=1, no other mode to set against it"
    assert sentence(replace(ngram, speedup=None)) == "No mode was run beside plain decoding"


def test_tokens_of_differences(tmp_path: Path) -> None:
    differences = [Difference("m", "item", 2, 7, 11, None, "so far"), Difference("m", "item", 3, 0, "x", "y", "")]
    cells = Page(written(replace(minimal_result(), differences=differences), tmp_path)).cells
    place = cells.index("item") + 1
    assert cells[cells.index("2", place) : cells.index("2", place) + 5] == ["2", "7", "11", "(end)", "so far"]


def test_a_missing_folder_or_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        report.write(minimal_result(), tmp_path / "nowhere")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PacelineError, match=r"pip install 'paceline\[plot\]'"):
        report.write(minimal_result(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_plot_needs_no_matplotlib() -> None:
    code = "import sys, paceline.bench.report; print(sorted({'matplotlib', 'jinja2', 'rich'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_hostile_strings_are_hostile() -> None:
    assert {"<", ">", "&", '"', "'", "$", "\x1b", "\ud800"} <= set(HOSTILE)


def test_every_mode_is_in_the_legend_by_a_label_of_its_own(tmp_path: Path) -> None:
    modes = ("a-name-that-is-long-enough-to-be-cut", "a-name-that-is-long-enough-to-be-cut-too", "_hidden")
    text = written(full_result(("chat",), modes, (1,), ()), tmp_path)
    assert ">a-name-that-is-long-eno…</text>" in text
    assert ">a-name-that-is-long-eno… (2)</text>" in text
    assert text.split('id="speedup-title"')[1].split("</svg>")[0].count("_hidden</text>") == 1


def test_no_plot_of_an_earlier_report_stays(tmp_path: Path) -> None:
    mine = tmp_path / "mine.png"
    mine.touch()
    stale = [tmp_path / f"{plot.name}.png" for plot in PLOTS]
    for path in stale:
        path.touch()
    written_paths = report.write(replace(minimal_result(), runs=[]), tmp_path)
    assert mine.exists()
    assert [path for path in stale if path.exists() and path not in written_paths] == []
