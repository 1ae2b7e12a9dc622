"""Files of prompts: three forms, and lines that are none."""

from pathlib import Path

import pytest

from paceline.errors import PacelineError, UsageError
from paceline.prompt_files import PromptLine, read_prompts

DATA = Path(__file__).parent / "data"


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "prompts"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_spec_bench() -> None:
    prompts = read_prompts(DATA / "spec_bench_subset.jsonl")
    assert [prompt.line for prompt in prompts] == list(range(1, 49))
    assert prompts[0].turns[1] == "Rewrite your previous response. Start every sentence with the letter A."


def test_json_lines(tmp_path: Path) -> None:
    path = write(tmp_path, '\n {"prompt": "a\\nb", "id": 1}\r\n\n{"turns": ["c", "d"]}')
    assert read_prompts(path) == [PromptLine(2, ("a\nb",)), PromptLine(4, ("c", "d"))]


def test_text(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffone two\r\n \n  {indented}\u2028\x0b\n")
    assert read_prompts(path) == [PromptLine(1, ("one two",)), PromptLine(3, ("  {indented}\u2028\x0b",))]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no prompt"),
        (" \n\n", "holds no prompt"),
        ('{"prompt": "a"}\nplain', "line 2 of .* is no JSON"),
        ('{"prompt": "a"}\n[1]', "line 2 of .* expected an object"),
        ('{"text": "a"}', "line 1 of .* expected an object"),
        ('{"prompt": "a", "turns": ["b"]}', "and not both"),
        ('{"prompt": 3}', "line 1"),
        ('{"prompt": ""}', "none of them empty"),
        ('\n{"turns": []}', "line 2"),
        ('{"turns": "abc"}', "line 1"),
        ('{"turns": ["a", null]}', "line 1"),
        ("{" * 100_000, "line 1 of .* is no JSON"),
        (b"fine\n\xff\n", "line 2 of .* is not valid UTF-8"),
    ],
)
def test_what_is_no_prompt(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_prompts(write(tmp_path, content))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PacelineError, match="cannot be read: No such file"):
        read_prompts(tmp_path / "none")
    with pytest.raises(PacelineError, match="cannot be read: Is a directory"):
        read_prompts(tmp_path)
