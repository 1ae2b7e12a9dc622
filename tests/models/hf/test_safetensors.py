"""Safetensors files and folders of them: read exactly what another writer wrote, and refuse what is damaged."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hf_files import config_of, encoded, random_tensors, write_folder, write_safetensors

from paceline.errors import ModelFormatError, ModelNotFoundError, PacelineError, UnsupportedModelError
from paceline.models.hf.safetensors import SafetensorsFile
from paceline.models.hf.shards import Shards


def test_reads_what_was_written(tmp_path: Path) -> None:
    tensors = random_tensors(config_of(), "BF16")
    write_safetensors(tmp_path / "m.safetensors", tensors, "BF16")
    file = SafetensorsFile.open(tmp_path / "m.safetensors")
    assert set(file.tensors) == set(tensors)
    for name, values in tensors.items():
        info = file.tensors[name]
        assert (info.dtype, info.shape, info.num_bytes) == ("BF16", values.shape, 2 * values.size)
        assert file.data(name).tobytes() == encoded(values, "BF16")
    view = file.data("model.norm.weight")
    file.release("model.norm.weight")
    file.close()
    assert view.tobytes() == encoded(tensors["model.norm.weight"], "BF16")
    with pytest.raises(ValueError, match="is closed"):
        file.data("model.norm.weight")


def row(shape: list[int], begin: int, end: int, dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def sealed(header: object, data: bytes = bytes(16), length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(raw) if length is None else length).to_bytes(8, "little") + raw + data


T = row([4], 0, 16)
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "truncated"),
    "half a length": (bytes(5), "truncated"),
    "a length alone": (sealed(b"", b""), "truncated"),
    "header of 2^60 bytes": (sealed({"t": T}, length=1 << 60), "a header of 1152921504606846976 bytes"),
    "header longer than the file": (sealed({"t": T}, length=4096), "a header of 4096 bytes"),
    "header of everything": (b"\xff" * 64, "a header of"),
    "header cut": (sealed(json.dumps({"t": T}).encode()[:-3]), "no sound JSON"),
    "header not utf-8": (sealed(b'{"\xff": 1}'), "no sound JSON"),
    "header too deep": (sealed(b"[" * 100_000), "no sound JSON"),
    "header is a list": (sealed([T]), "should hold a JSON object"),
    "number of 5000 digits": (sealed(b'{"t": ' + b"9" * 5000 + b"}"), "no sound JSON"),
    "tensor twice": (sealed(b'{"t": %s, "t": %s}' % ((json.dumps(T).encode(),) * 2)), "'t' stands twice"),
    "tensor is a number": (sealed({"t": 3}), "'t' is described by '3'"),
    "no dtype": (sealed({"t": {"shape": [4], "data_offsets": [0, 16]}}), "needs a dtype"),
    "dtype is a number": (sealed({"t": row([4], 0, 16, 3)}), "needs a dtype"),
    "unknown dtype": (sealed({"t": row([4], 0, 16, "Q9")}), "unknown dtype 'Q9'"),
    "no shape": (sealed({"t": {"dtype": "F32", "data_offsets": [0, 16]}}), "a shape"),
    "negative size": (sealed({"t": row([-4], 0, 16)}), "a shape"),
    "size is no whole number": (sealed({"t": {**T, "shape": [4.0]}}), "a shape"),
    "size is true": (sealed({"t": {**T, "shape": [True, 4]}}), "a shape"),
    "nine dimensions": (sealed({"t": row([1] * 8 + [4], 0, 16)}), "a shape"),
    "one offset": (sealed({"t": {**T, "data_offsets": [0]}}), "two data_offsets"),
    "negative offset": (sealed({"t": row([4], -16, 0)}), "two data_offsets"),
    "ends before it begins": (sealed({"t": row([4], 16, 0)}), "ends before it begins"),
    "wrong dtype": (sealed({"t": row([4], 0, 16, "F16")}), "which shape '(4,)' in F16 does not take"),
    "sizes that wrap": (sealed({"t": row([1 << 62, 4], 0, 0)}), "does not take"),
    "past the end": (sealed({"t": row([5], 0, 20)}), "the tensors end at byte"),
    "far past the end": (sealed({"t": row([4], 1 << 40, (1 << 40) + 16)}), "begins at byte"),
    "overlap": (sealed({"a": row([3], 0, 12), "b": row([2], 8, 16)}), "'b' begins at byte"),
    "the same bytes twice": (sealed({"a": T, "b": T}), "'b' begins at byte"),
    "gap": (sealed({"a": row([1], 0, 4), "b": row([2], 8, 16)}), "'b' begins at byte"),
    "bytes to spare": (sealed({"t": row([3], 0, 12)}), "the tensors end at byte"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused_with_one_line(case: str, tmp_path: Path) -> None:
    content, expected = BROKEN[case]
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError) as caught:
        SafetensorsFile.open(path)
    message = str(caught.value)
    assert expected in message
    assert str(path) in message
    assert "\n" not in message


def test_what_the_format_allows(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, "none": row([0, 7], 0, 0), "one": row([], 0, 4), "b": row([3], 4, 16)}
    path = tmp_path / "sound.safetensors"
    path.write_bytes(sealed(json.dumps(header).encode() + b"   "))
    file = SafetensorsFile.open(path)
    assert [(info.name, info.shape, info.num_bytes) for info in file.tensors.values()] == [
        ("none", (0, 7), 0),
        ("one", (), 4),
        ("b", (3,), 12),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_any_flipped_byte_is_an_error_or_another_sound_file(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    write_safetensors(path, {"a": np.ones((3, 4), np.float32), "b": np.ones(5, np.float32)}, "F32")
    sound = path.read_bytes()
    random = np.random.default_rng(seed)
    num_refused = 0
    for _ in range(200):
        damaged = bytearray(sound)
        damaged[random.integers(len(sound) - 68)] ^= 1 << random.integers(8)
        path.write_bytes(damaged)
        try:
            SafetensorsFile.open(path)
        except PacelineError as error:
            num_refused += 1
            assert "\n" not in str(error)
    assert num_refused > 100


def test_shards_are_one_table(tmp_path: Path) -> None:
    tensors = write_folder(tmp_path / "three", num_shards=3)
    shards = Shards(tmp_path / "three")
    assert set(shards.tensors) == set(tensors)
    for name, values in tensors.items():
        assert shards.data(name).tobytes() == encoded(values, "BF16")
        shards.release(name)
    shards.close()


Change = Callable[[Path, dict[str, Any]], None]
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def placed(file_name: object) -> Change:
    def change(_: Path, index: dict[str, Any]) -> None:
        index["weight_map"]["model.norm.weight"] = file_name

    return change


def with_a_copy(folder: Path, _: dict[str, Any]) -> None:
    shutil.copy(folder / FIRST, folder / SECOND)


def without_the_second(folder: Path, _: dict[str, Any]) -> None:
    (folder / SECOND).unlink()


def with_a_promise(_: Path, index: dict[str, Any]) -> None:
    index["weight_map"]["model.extra.weight"] = FIRST


def without_a_map(_: Path, index: dict[str, Any]) -> None:
    del index["weight_map"]


@pytest.mark.parametrize(
    ("change", "kind", "expected"),
    [
        (placed("../../etc/passwd"), ModelFormatError, "is not the name of a .safetensors file in this folder"),
        (placed("../other/model.safetensors"), ModelFormatError, "is not the name of a .safetensors file"),
        (placed("/tmp/model.safetensors"), ModelFormatError, "is not the name of a .safetensors file"),
        (placed("a\0.safetensors"), ModelFormatError, "is not the name of a .safetensors file"),
        (placed(""), ModelFormatError, "is not the name of a .safetensors file"),
        (placed(7), ModelFormatError, "should be a string"),
        (placed("other.safetensors"), ModelFormatError, "its index says 'other.safetensors'"),
        (without_the_second, ModelNotFoundError, f"{SECOND}: No such file"),
        (with_a_copy, ModelFormatError, "and in another file"),
        (with_a_promise, ModelFormatError, f"'{FIRST}' lacks tensor 'model.extra.weight'"),
        (without_a_map, ModelFormatError, "names no tensor"),
    ],
)
def test_an_index_that_lies(change: Change, kind: type[PacelineError], expected: str, tmp_path: Path) -> None:
    write_folder(tmp_path, num_shards=2)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(tmp_path, index)
    path.write_text(json.dumps(index))
    with pytest.raises(kind) as caught:
        Shards(tmp_path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_index_that_misplaces(tmp_path: Path) -> None:
    write_folder(tmp_path, num_shards=2)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    place = index["weight_map"]["model.norm.weight"]
    index["weight_map"]["model.norm.weight"] = FIRST if place == SECOND else SECOND
    path.write_text(json.dumps(index))
    with pytest.raises(ModelFormatError, match="its index says"):
        Shards(tmp_path)


def test_folders_without_safetensors(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"neither model\.safetensors nor"):
        Shards(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UnsupportedModelError, match=r"holds 'pytorch_model\.bin'.*convert it to safetensors"):
        Shards(tmp_path)
