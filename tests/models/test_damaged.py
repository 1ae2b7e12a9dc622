"""A corpus of damaged model files: whatever is wrong with one, the answer is a `PacelineError` of one line, or a model.

What is damaged is chosen by hand or by fixed seeds, so that every run has the same files. `make fuzz` looks for more.
"""

import json
import struct
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from gguf_files import VARIANTS, write_tiny_model
from gguf_surgery import ARRAY, STRING, Pair, Parts, Row, array, take_apart, text
from hf_files import config_of, random_tensors, write_folder, write_tokenizer
from tokenizer_folders import byte_level
from tokenizer_folders import write_folder as write_tokenizer_folder

from paceline.errors import ModelFormatError, PacelineError, PacelineWarning, UnsupportedModelError
from paceline.models import ChatTemplate, GGUFFile, GGUFModel, HFModel, Tokenizer, read_config
from paceline.runtime.base import Segment
from paceline.runtime.native import NativeOptions, NativeRuntime

ARCHITECTURES = {"llama": {"architecture": "llama"}, **{name: VARIANTS[name] for name in ("qwen2", "qwen3", "gemma3")}}
ABSURD = [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
NUM_FLIPS = 60
MAX_MESSAGE = 400  # characters
MAX_BYTES = 24 << 20  # at once; readers of settings ask for 16 MiB, whatever the file has


def write(path: Path, **options: Any) -> Parts:
    write_tiny_model(path, **{**options, "num_layers": 1, "vocab_size": 262})
    return take_apart(path.read_bytes())


@pytest.fixture(scope="module", params=ARCHITECTURES)
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return write(tmp_path_factory.mktemp("sound") / "m.gguf", **ARCHITECTURES[request.param])


@pytest.fixture(autouse=True)
def warned() -> Iterator[None]:
    """A guess at what a damaged setting meant is as good as a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        yield


@contextmanager
def bounded() -> Iterator[None]:
    """What is done takes no more memory than a small multiple of the files; slow, so for what could take a lot."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_BYTES


def failure(action: Callable[[], object]) -> PacelineError | None:
    try:
        action()
    except PacelineError as error:
        assert str(error).isprintable()  # no line end, and nothing that a terminal obeys
        assert len(str(error)) < MAX_MESSAGE
        return error
    return None


def use_gguf(path: Path) -> None:
    """Everything that reads a header, one after the other, whatever the others say."""
    with GGUFFile.open(path) as file:
        errors = [
            failure(lambda: read_config(file)),
            failure(lambda: Tokenizer.from_gguf(file).encode("Hi <|im_end|>")),
        ]
        errors.append(failure(lambda: render(ChatTemplate.from_gguf(file))))
        for name in file.tensors:
            file.data(name)
    for error in filter(None, errors):
        raise error


def render(template: ChatTemplate | None) -> None:
    if template is not None:
        template.render([{"role": "user", "content": "Hi"}])


def test_the_corpus_is_damaged_from_a_sound_file(sound: Parts, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(sound.encoded())
    use_gguf(tmp_path / "m.gguf")


def test_cut_off_at_each_border(sound: Parts, tmp_path: Path) -> None:
    path, content = tmp_path / "m.gguf", sound.encoded()
    for border in sound.borders():
        for size in (border - 1, border, border + 1):
            path.write_bytes(content[:size])
            assert isinstance(failure(lambda: use_gguf(path)), ModelFormatError), size


def test_keys_that_are_missing_or_of_another_type(sound: Parts, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    is_first = sound.pairs[0].value == text(b"llama")
    for pair in sound.pairs:
        if pair.key.startswith(b"tokenizer.") and not is_first:  # the same in all of them
            continue
        others = [
            Pair(pair.key, 11, struct.pack("<q", -1)),
            Pair(pair.key, 6, struct.pack("<f", float("nan"))),
            Pair(pair.key, 7, b"\1"),
            Pair(pair.key, 12, struct.pack("<d", 1e308)),
            Pair(pair.key, STRING, text(b"a\nb\x1b[2J" * 200)),
            Pair(pair.key, ARRAY, array(STRING, 1, text(b"x\ny"))),
            Pair(pair.key, ARRAY, array(12, 2, struct.pack("<dd", float("inf"), -1.0))),
        ]
        for parts in [sound.without(pair.key), *map(sound.with_pair, others)]:
            path.write_bytes(parts.encoded())
            failure(lambda: use_gguf(path))


def test_absurd_counts(sound: Parts, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for count in ABSURD:
        cases = [replace(sound, num_pairs=count), replace(sound, num_rows=count)]
        for kind in (0, 4, STRING):
            cases.append(sound.with_pair(Pair(b"tokenizer.ggml.tokens", ARRAY, array(kind, count, bytes(64)))))
        cases.append(sound.with_pair(Pair(b"general.name", STRING, struct.pack("<Q", count) + b"name")))
        for row in (
            Row(b"t", (count,), 0, 0),
            Row(b"t", (32, count), 3, 0),
            Row(b"t", (4,), 0, count),
        ):
            cases.append(replace(sound, rows=(*sound.rows, row)))
        for parts in cases:
            path.write_bytes(parts.encoded())
            with bounded():
                error = failure(lambda: use_gguf(path))
            assert isinstance(error, ModelFormatError), count


def test_absurd_sizes(sound: Parts, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    numbers = [pair.key for pair in sound.pairs if pair.kind == 4]
    for key in numbers:
        for size in ABSURD[:2]:
            path.write_bytes(sound.with_pair(Pair(key, 10, struct.pack("<Q", size))).encoded())
            with bounded():
                failure(lambda: use_gguf(path))


def test_tensors_that_are_displaced(sound: Parts, tmp_path: Path) -> None:
    path, rows = tmp_path / "m.gguf", sound.rows
    aligned = [replace(sound, rows=(*rows, row)) for row in rows]
    aligned += [sound.with_pair(Pair(b"general.alignment", 4, struct.pack("<I", value))) for value in (0, 3, 1 << 31)]
    for index, row in enumerate(rows):
        moved = [replace(row, offset=row.offset + 1), replace(row, offset=len(sound.data)), replace(row, dims=())]
        aligned += [replace(sound, rows=(*rows[:index], other, *rows[index + 1 :])) for other in moved]
    for parts in aligned:
        path.write_bytes(parts.encoded())
        assert isinstance(failure(lambda: use_gguf(path)), ModelFormatError)


def test_bits_that_flipped(sound: Parts, tmp_path: Path) -> None:
    path, content, random = tmp_path / "m.gguf", sound.encoded(), Random(7)
    for _ in range(NUM_FLIPS):
        flipped = bytearray(content)
        for _ in range(random.choice([1, 1, 3])):
            flipped[random.randrange(sound.borders()[-1])] ^= 1 << random.randrange(8)
        path.write_bytes(flipped)
        failure(lambda: use_gguf(path))


@pytest.mark.parametrize("key", ["factor", "yarn_beta_fast", "yarn_beta_slow", "attn_factor"])
@pytest.mark.parametrize("number", [1e-320, 1e-45, 1e-12, 1e30, 1e308, float("inf"), float("nan"), -1.0])
def test_absurd_scaling_of_positions(key: str, number: float, tmp_path: Path) -> None:
    parts = write(tmp_path / "m.gguf", **VARIANTS["yarn"])
    parts = parts.with_pair(Pair(f"llama.rope.scaling.{key}".encode(), 12, struct.pack("<d", number)))
    (tmp_path / "m.gguf").write_bytes(parts.encoded())
    assert isinstance(failure(lambda: GGUFModel(tmp_path / "m.gguf")), ModelFormatError)


@pytest.mark.parametrize("key", ["llama.rope.scaling.x\ny", "tokenizer.chat_template.\x1b[2J", "k" * 5000])
def test_names_in_messages_are_short_and_printable(key: str, tmp_path: Path) -> None:
    parts = write(tmp_path / "m.gguf")
    path = tmp_path / "m.gguf"
    for copies in (1, 2):
        pairs = (*parts.pairs, *[Pair(key.encode(), 4, bytes(4))] * copies)
        path.write_bytes(replace(parts, pairs=pairs).encoded())
        error = failure(lambda: use_gguf(path))
    assert error is not None


def run(path: Path) -> None:
    with GGUFModel(path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=16, num_threads=1, max_rows=4))
    runtime.forward([Segment(0, 0, (0,), (0, 1, 2), logits_rows=(2,))])


@pytest.mark.parametrize("tensor_type", ["F32", "F16", "BF16", "Q4_0", "Q8_0", "Q6_K", "Q3_K", "IQ4_XS", "MXFP4"])
def test_weights_of_any_bits_run(tensor_type: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    parts = write(path, tensor_type=tensor_type, vector_type="F16", intermediate_size=256, hidden_size=256)
    random = Random(1)
    fills = [b"\xff", b"\x7c", b"\x80", b"\x7f"]
    for data in [*(fill * len(parts.data) for fill in fills), random.randbytes(len(parts.data))]:
        path.write_bytes(replace(parts, data=data).encoded())
        assert failure(lambda: run(path)) is None


# Folders.


def use_folder(path: Path) -> None:
    errors = [failure(lambda: Tokenizer.from_folder(path).encode("Hi <|im_end|>"))]
    with HFModel(path, "q4") as model:
        for role in model.tensors:
            model.data(role)
        errors += [failure(model.tokenizer), failure(lambda: render(model.chat_template()))]
    for error in filter(None, errors):
        raise error


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path, config_of(num_hidden_layers=1))
    write_tokenizer(tmp_path)
    use_folder(tmp_path)
    return tmp_path


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys; of a long one, such as a vocabulary, the first three."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys if len(keys) < 30 else keys[:3]:
        yield value, key
        yield from places(value[key])


def use_tokenizer(path: Path) -> None:
    Tokenizer.from_folder(path).encode("Hi <|im_end|>")


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("config.json", lambda path: HFModel(path, "q8").close()),
        ("tokenizer_config.json", use_folder),
        ("tokenizer.json", use_tokenizer),
    ],
)
def test_settings_that_are_missing_or_of_another_type(name: str, use: Callable[[Path], None], folder: Path) -> None:
    original = (folder / name).read_text()
    values = [None, -1, 0.5, 10**400, "a\nb\x1b" * 200, [[]], {"a": 1}]
    for index in range(len(list(places(json.loads(original))))):
        for value in [*values, ...]:
            content = json.loads(original)
            container, key = list(places(content))[index]
            if value is ...:
                del container[key]
            else:
                container[key] = value
            (folder / name).write_text(json.dumps(content))
            failure(lambda: use(folder))


def test_tensor_tables_of_nonsense(folder: Path) -> None:
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    table, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    cases = [struct.pack("<Q", count) + raw[8:] for count in (0, 1, length - 1, length + 1, *ABSURD)]
    cases += [raw[:size] for size in (0, 7, 8, 9, 8 + length - 1, 8 + length, 8 + length + 1, len(raw) - 1)]
    cases.append(raw + b"\0")
    values = [None, -1, "F32", "a\nb", [1 << 62, 1 << 62], [0, (1 << 63) - 1], [-1, 0], [0.5, 1], 10**400, [], {}]
    for key in ("dtype", "shape", "data_offsets"):
        for value in values:
            changed = json.dumps({**table, "model.norm.weight": {**table["model.norm.weight"], key: value}}).encode()
            cases.append(struct.pack("<Q", len(changed)) + changed + data)
    doubled = json.dumps(table)[:-1].encode() + b', "model.norm.weight": {}}'
    cases.append(struct.pack("<Q", len(doubled)) + doubled + data)
    for case in cases:
        path.write_bytes(case)
        with bounded():
            error = failure(lambda: HFModel(folder, "q8"))
        assert error is not None


@pytest.mark.parametrize("name", ["a\nb.safetensors", "\x1b[2J.safetensors", "n" * 5000 + ".safetensors", "../x"])
def test_an_index_of_names_that_are_none(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, num_shards=2)
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"]["model.norm.weight"] = name
    index.write_text(json.dumps(content))
    assert failure(lambda: HFModel(tmp_path, "q8")) is not None


@pytest.mark.parametrize("quantization", ["q8", "q4", "none"])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_weights_that_are_signalling_nan_are_loaded_without_a_warning(
    dtype: str, quantization: Any, tmp_path: Path
) -> None:
    config = config_of("gemma3_text", num_hidden_layers=1, hidden_size=64)
    write_folder(tmp_path, config, random_tensors(config, dtype), dtype=dtype)
    path = tmp_path / "model.safetensors"
    raw = path.read_bytes()
    start = 8 + struct.unpack_from("<Q", raw)[0]
    signalling = {"F32": b"\1\0\x80\x7f", "F16": b"\1\x7c", "BF16": b"\xa0\x7f"}[dtype]
    path.write_bytes(raw[:start] + signalling * ((len(raw) - start) // len(signalling)))
    with HFModel(tmp_path, quantization) as model:
        for role in model.tensors:
            model.data(role)


def test_a_tokenizer_that_decodes_bytes_but_makes_none_is_refused(tmp_path: Path) -> None:
    content = byte_level()
    content["pre_tokenizer"] = None
    write_tokenizer_folder(tmp_path, content)
    assert isinstance(failure(lambda: Tokenizer.from_folder(tmp_path)), UnsupportedModelError)


@pytest.mark.parametrize(
    "source",
    ["{{ raise_exception('a\n\x1b[2J\u2028') }}", "{{ 'a' | \x1b }}", "{{ messages['\x1b']() }}", "{% \x1b[2J"],
)
def test_what_a_template_makes_messages_say_is_printable(source: str) -> None:
    assert failure(lambda: render(ChatTemplate(source))) is not None
