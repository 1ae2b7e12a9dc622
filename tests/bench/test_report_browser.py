"""The page of a report in a headless browser, where there is one; `test_report_page` does without."""

import shutil
import subprocess
from pathlib import Path

import pytest
from report_pages import written
from report_results import full_result, hostile_result, minimal_result

from paceline.bench import report
from paceline.bench.result import Result

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome here")


@pytest.mark.parametrize("result", [full_result(concurrencies=(1, 2)), hostile_result()], ids=["full", "hostile"])
def test_page_opens_in_a_browser_without_an_error(tmp_path: Path, result: Result) -> None:
    dom, messages = browse(report.write(result, tmp_path)[0], tmp_path)
    assert messages == []
    assert "Setup</h2>" in dom and "<script" not in dom


def test_a_planted_error_is_seen_by_the_browser(tmp_path: Path) -> None:
    text = written(minimal_result(), tmp_path)
    planted = ("<script>throw 1</script>", '<img src="x.png">', '<svg onload="throw 1"></svg>')
    (tmp_path / "planted.html").write_text(text.replace("<main>", "<main>" + "".join(planted)), "utf-8")
    messages = browse(tmp_path / "planted.html", tmp_path)[1]
    assert len(messages) == len(planted)
    assert all("Content Security Policy" in message for message in messages)


def browse(page: Path, folder: Path) -> tuple[str, list[str]]:
    """The document as the browser understood it, and what it wrote to its console: the page's policy forbids every
    script and every resource, so that each that is tried is an error there."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom")
    command = [str(BROWSER), *flags, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "</html>" in done.stdout
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
