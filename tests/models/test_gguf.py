"""The GGUF reader: the same answers as the `gguf` package on sound files, one clear error on every unsound one."""

import math
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf_files import write_tiny_llama
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.errors import ModelFormatError, ModelNotFoundError, PacelineError, UnsupportedModelError
from paceline.models import GGUFFile, TensorType, read_config

UINT32, STRING, ARRAY = 4, 8, 9


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, dims: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def header(
    pairs: list[bytes],
    tensors: list[bytes],
    *,
    version: int = 3,
    num_pairs: int | None = None,
    num_tensors: int | None = None,
) -> bytes:
    num_pairs = len(pairs) if num_pairs is None else num_pairs
    num_tensors = len(tensors) if num_tensors is None else num_tensors
    return struct.pack("<4sIQQ", b"GGUF", version, num_tensors, num_pairs) + b"".join(pairs + tensors)


def sealed(head: bytes, data: bytes = bytes(128)) -> bytes:
    return head + bytes(-len(head) % 32) + data


ALIGN = "general.alignment"
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "not a gguf": (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
    "three bytes": (b"GGU", "not a GGUF file"),
    "magic only": (b"GGUF", "truncated"),
    "version 1": (sealed(header([], [], version=1)), "version 1"),
    "version 9": (sealed(header([], [], version=9)), "version 9"),
    "big endian": (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0) + bytes(64), "big-endian"),
    "more tensors than bytes": (sealed(header([], [], num_tensors=1 << 60)), "number of tensors"),
    "more pairs than bytes": (sealed(header([], [], num_pairs=1 << 63)), "number of metadata pairs"),
    "key longer than the file": (sealed(header([struct.pack("<Q", 1 << 62) + bytes(32)], [])), "truncated"),
    "empty key": (sealed(header([pair("", UINT32, bytes(4))], [])), "empty"),
    "key twice": (sealed(header([pair("a", UINT32, bytes(4))] * 2, [])), "twice"),
    "key not utf-8": (sealed(header([text(b"\xff") + struct.pack("<II", UINT32, 0)], [])), "UTF-8"),
    "value not utf-8": (sealed(header([pair("name", STRING, text(b"\xc3("))], [])), "'name' is not valid UTF-8"),
    "item not utf-8": (
        sealed(header([pair("list", ARRAY, struct.pack("<IQ", STRING, 2) + text("a") + text(b"\x80"))], [])),
        "'list', item 1 is not valid UTF-8",
    ),
    "unknown value type": (sealed(header([pair("a", 13, bytes(8))], [])), "unknown value type 13"),
    "array of unknown type": (sealed(header([pair("a", ARRAY, struct.pack("<IQ", 77, 1))], [])), "unknown type 77"),
    "nested array": (sealed(header([pair("a", ARRAY, struct.pack("<IQ", ARRAY, 1))], [])), "array of arrays"),
    "array longer than the file": (
        sealed(header([pair("a", ARRAY, struct.pack("<IQ", UINT32, 1 << 61))], [])),
        "length of",
    ),
    "strings longer than the file": (
        sealed(header([pair("a", ARRAY, struct.pack("<IQ", STRING, 1 << 61))], [])),
        "length of",
    ),
    "item longer than the file": (
        sealed(header([pair("a", ARRAY, struct.pack("<IQ", STRING, 2) + struct.pack("<Q", (1 << 64) - 1))], [])),
        "truncated inside",
    ),
    "neither true nor false": (sealed(header([pair("a", 7, b"\x02")], [])), "truth value"),
    "alignment 0": (sealed(header([pair(ALIGN, UINT32, struct.pack("<I", 0))], [])), "general.alignment"),
    "alignment 24": (sealed(header([pair(ALIGN, UINT32, struct.pack("<I", 24))], [])), "power of two"),
    "alignment is text": (sealed(header([pair(ALIGN, STRING, text("32"))], [])), "whole number"),
    "no dimensions": (sealed(header([], [tensor("t", ())])), "0 dimensions"),
    "five dimensions": (sealed(header([], [tensor("t", (1, 1, 1, 1, 1))])), "5 dimensions"),
    "dimension 0": (sealed(header([], [tensor("t", (4, 0))])), "dimension of 0"),
    "sizes that wrap": (sealed(header([], [tensor("t", (1 << 32, 1 << 32))])), "ends past"),
    "sizes that wrap to the right one": (sealed(header([], [tensor("t", ((1 << 62) + 4, 4))])), "ends past"),
    "offset past the end": (sealed(header([], [tensor("t", (4,), offset=1 << 40)])), "ends past"),
    "offset that wraps": (sealed(header([], [tensor("t", (4,), offset=(1 << 64) - 32)])), "ends past"),
    "end past the end": (sealed(header([], [tensor("t", (33,))])), "ends past"),
    "offset not aligned": (sealed(header([], [tensor("t", (4,), offset=8)])), "alignment"),
    "broken block": (sealed(header([], [tensor("t", (48,), kind=3)])), "multiple of Q4_1's 32"),
    "tensor twice": (sealed(header([], [tensor("t", (4,))] * 2)), "listed twice"),
    "tensor name not utf-8": (
        sealed(header([], [text(b"\xfe") + struct.pack("<IQIQ", 1, 4, 0, 0)])),
        "name of tensor 0 is not valid UTF-8",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused_with_one_line(case: str, tmp_path: Path) -> None:
    content, expected = BROKEN[case]
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError) as caught:
        GGUFFile.open(path)
    message = str(caught.value)
    assert expected in message
    assert str(path) in message
    assert "\n" not in message


@pytest.mark.parametrize(("number", "name"), [(16, "IQ2_XXS"), (34, "TQ1_0"), (24, "I8"), (99, "number 99")])
def test_unsupported_tensor_types_are_named(number: int, name: str, tmp_path: Path) -> None:
    path = tmp_path / "k.gguf"
    path.write_bytes(sealed(header([], [tensor("blk.0.attn_q.weight", (256,), kind=number)]), bytes(4096)))
    with pytest.raises(UnsupportedModelError, match=rf"'blk\.0\.attn_q\.weight' has type {name};.*Q4_1"):
        GGUFFile.open(path)


def test_what_cannot_be_read_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="No such file"):
        GGUFFile.open(tmp_path / "absent.gguf")
    with pytest.raises(ModelNotFoundError, match="not a file"):
        GGUFFile.open(tmp_path)
    with pytest.raises(ModelNotFoundError, match="null byte"):
        GGUFFile.open("a\0b")


def test_version_2_is_read(tmp_path: Path) -> None:
    path = tmp_path / "v2.gguf"
    path.write_bytes(sealed(header([pair("a", UINT32, struct.pack("<I", 7))], [tensor("t", (4, 2))], version=2)))
    with GGUFFile.open(path) as file:
        assert file.metadata.integer("a") == 7
        assert file.tensors["t"].shape == (2, 4)


def _reference(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    reader = gguf.GGUFReader(path)
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    return fields, {tensor.name: tensor for tensor in reader.tensors}


@pytest.mark.parametrize("tensor_type", [kind.name for kind in TensorType])
@pytest.mark.parametrize("is_head_tied", [True, False])
def test_agrees_with_the_reference_reader(tensor_type: str, is_head_tied: bool, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    extra: dict[str, Any] = {"x.flag": True, "x.float": 0.5, "x.text": "äöü", "x.ints": [3, -1], "x.words": ["a", ""]}
    weights = write_tiny_llama(path, tensor_type=tensor_type, is_head_tied=is_head_tied, extra_metadata=extra)
    fields, tensors = _reference(path)
    with GGUFFile.open(path) as file:
        values = {key: v.tolist() if isinstance(v, np.ndarray) else v for key, v in file.metadata.items()}
        assert values == fields
        assert list(file.tensors) == list(tensors)
        for name, info in file.tensors.items():
            theirs = tensors[name]
            assert (info.offset, info.num_bytes) == (theirs.data_offset, theirs.n_bytes)
            assert info.shape == tuple(theirs.shape.tolist())[::-1] == weights[name].shape
            assert info.type.name == theirs.tensor_type.name
            data = file.data(name)
            assert not data.flags.writeable
            np.testing.assert_array_equal(data, theirs.data.reshape(-1).view(np.uint8))


def test_block_sizes_are_the_reference_ones() -> None:
    for kind in TensorType:
        assert (kind.block_size, kind.block_bytes) == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind.value)]


def test_views_outlive_the_file(tiny_llama_path: Path) -> None:
    with GGUFFile.open(tiny_llama_path) as file:
        view = file.data("output_norm.weight")
        copy = view.copy()
    file.close()
    np.testing.assert_array_equal(view, copy)
    with pytest.raises(ValueError, match="closed"):
        file.data("output_norm.weight")


def test_getters_name_key_and_expectation(tiny_llama_path: Path) -> None:
    with GGUFFile.open(tiny_llama_path) as file:
        metadata = file.metadata
        assert metadata.integer("absent", 3) == 3
        assert math.isclose(metadata.number("llama.block_count"), 2)
        for getter, key, expected in [
            (metadata.integer, "general.architecture", "a whole number"),
            (metadata.number, "general.architecture", "a number"),
            (metadata.integer, "tokenizer.ggml.add_bos_token", "a whole number"),
            (metadata.flag, "llama.block_count", "true or false"),
            (metadata.string, "tokenizer.ggml.tokens", "a string, not an array"),
            (metadata.strings, "tokenizer.ggml.token_type", "an array of strings"),
            (metadata.integers, "tokenizer.ggml.tokens", "an array of whole numbers"),
        ]:
            with pytest.raises(ModelFormatError, match=f"'{key}' should be {expected}"):
                getter(key)
        with pytest.raises(ModelFormatError, match="'absent' is missing"):
            metadata.string("absent")


def test_every_truncation_is_noticed(tiny_llama_path: Path, tmp_path: Path) -> None:
    content = tiny_llama_path.read_bytes()
    path = tmp_path / "cut.gguf"
    for size in [*range(1, 400), *range(400, len(content), 997), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(ModelFormatError):
            GGUFFile.open(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 255)), min_size=1, max_size=8))
def test_damage_never_escapes_as_another_error(
    tiny_llama_path: Path, tmp_path: Path, edits: list[tuple[int, int]]
) -> None:
    content = bytearray(tiny_llama_path.read_bytes())
    for position, value in edits:
        content[position] = value
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    try:
        with GGUFFile.open(path) as file:
            read_config(file)
            for name in file.tensors:
                file.data(name)
    except PacelineError as error:
        assert "\n" not in str(error)
