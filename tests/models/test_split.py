"""Split GGUF files: any part opens all of them, and what does not belong together is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama

from paceline.errors import ModelFormatError, ModelNotFoundError, PacelineError
from paceline.models import GGUFFile, open_model

Parts = Callable[..., list[Path]]


@pytest.fixture(scope="session")
def split_llama(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("split")
    write_tiny_llama(folder / "tiny.gguf", split_max_tensors=7)
    return sorted(folder.iterdir())


@pytest.fixture
def parts(split_llama: list[Path], tmp_path: Path) -> list[Path]:
    """Copies to be tampered with."""
    return [Path(shutil.copy(part, tmp_path)) for part in split_llama]


def failure(path: Path, kind: type[PacelineError] = ModelFormatError) -> str:
    with pytest.raises(kind) as caught, open_model(path):
        pass
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("index", [0, 1, 2])
def test_any_part_opens_the_whole(split_llama: list[Path], tiny_llama_path: Path, index: int) -> None:
    assert [part.name for part in split_llama] == [f"tiny-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    with open_model(split_llama[index]) as split, open_model(tiny_llama_path) as whole:
        assert split.path == split_llama[0]
        assert split.config == whole.config
        assert split.tensors.keys() == whole.tensors.keys()
        for role in whole.tensors:
            np.testing.assert_array_equal(split.data(role), whole.data(role))
            split.release(role)
            np.testing.assert_array_equal(split.data(role), whole.data(role))
        assert split.tokenizer().encode("hello") == whole.tokenizer().encode("hello")
        assert split.chat_template() is not None
        role = next(iter(split.tensors))
        view = split.data(role)
        expected = view.copy()
    np.testing.assert_array_equal(view, expected)
    with pytest.raises(ValueError, match="is closed"):
        split.data(role)


def test_the_folder_opens_the_whole(split_llama: list[Path], tiny_llama_path: Path) -> None:
    with open_model(split_llama[0].parent) as split, open_model(tiny_llama_path) as whole:
        assert split.config == whole.config


@pytest.mark.parametrize("opened", [0, 2])
def test_a_missing_part_is_named(parts: list[Path], opened: int) -> None:
    parts[1].unlink()
    assert "'tiny-00002-of-00003.gguf' is not beside it; fetch all parts" in failure(parts[opened], ModelNotFoundError)
    parts[0].unlink()
    message = failure(parts[2], ModelNotFoundError)
    assert "'tiny-00001-of-00003.gguf' and 1 more are not beside it" in message


def test_swapped_parts_are_noticed(parts: list[Path]) -> None:
    shutil.copy(parts[1], parts[2])
    assert f"{parts[2]} has split.no 1, expected 2: the parts are not those of one model" in failure(parts[0])


def test_parts_of_a_model_with_other_tensors_are_noticed(parts: list[Path], tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "other.gguf", is_head_tied=False, split_max_tensors=7)
    shutil.move(tmp_path / "other-00002-of-00003.gguf", parts[1])
    assert f"{parts[1]} has split.tensors.count 21, expected 20" in failure(parts[0])


def test_a_set_of_another_length_is_noticed(parts: list[Path], tmp_path: Path) -> None:
    for part in parts[:2]:
        part.rename(tmp_path / part.name.replace("of-00003", "of-00002"))
    assert "has split.count 3, expected 2" in failure(tmp_path / "tiny-00001-of-00002.gguf")


def tamper(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    assert len(old) == len(new)
    path.write_bytes(content.replace(old, new))


def test_a_tensor_in_two_parts_is_noticed(parts: list[Path]) -> None:
    with GGUFFile.open(parts[0]) as first, GGUFFile.open(parts[1]) as second:
        name = next(name for name in second.tensors if name.startswith("blk.0.ffn"))
        twin = next(other for other in first.tensors if len(other) == len(name))
    tamper(parts[1], name.encode(), twin.encode())
    assert f"holds tensor '{twin}', which 'tiny-00001-of-00003.gguf' holds too" in failure(parts[0])


def test_missing_tensors_are_noticed(parts: list[Path]) -> None:
    number = (20).to_bytes(4, "little")
    key, int32 = b"split.tensors.count", (5).to_bytes(4, "little")
    for part in parts:
        tamper(part, key + int32 + number, key + int32 + (21).to_bytes(4, "little"))
    assert "promises 21 tensors, but all parts together hold 20" in failure(parts[0])


def test_whole_files_named_as_parts_are_refused(tiny_llama_path: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        shutil.copy(tiny_llama_path, tmp_path / f"tiny-0000{number}-of-00002.gguf")
    assert "has no split.count" in failure(tmp_path / "tiny-00001-of-00002.gguf")


def test_a_part_under_another_name_is_refused(parts: list[Path], tmp_path: Path) -> None:
    parts[1].rename(tmp_path / "second.gguf")
    assert "is a part of a split model, but not named so" in failure(tmp_path / "second.gguf")


def test_one_part_of_one_is_a_whole_file(tiny_llama_path: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(tiny_llama_path, tmp_path / "tiny-00001-of-00001.gguf"))
    with open_model(path) as model:
        assert model.path == path
