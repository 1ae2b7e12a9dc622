"""Ways to damage files that know their structure; bytes at random seldom get past the first count."""

import struct
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import atheris
from gguf_surgery import ARRAY, STRING, WIDTHS, Pair, Parts, Row, array, take_apart, text

INTEGERS = [0, 1, 2, 3, 7, 8, 16, 31, 32, 33, 64, 127, 255, 256, 262, 1 << 15, 1 << 16, 1 << 24, (1 << 24) + 1]
INTEGERS += [(1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e-30, 1e-7, 1e5, 1e7, 1e12, 1e30, 3e38, 1e300, 5e-324, 1e308]
NUMBERS += [float("inf"), float("-inf"), float("nan"), 1.0000001, 0.9999999, 4.0, 32.0]
TEXTS = ["", " ", "a", "\n", "\r\n", "x\ny", "\x1b[2J", "\u2028", "\0", "x" * 3000, "é", "\U0010ffff", "🙂", "None"]
TEXTS += ["llama", "qwen2", "qwen3", "gemma3", "mamba", "model", "adapter", "gpt2", "t5", "bert", "default", "qwen35"]
TEXTS += ["none", "linear", "yarn", "longrope", "llama3", "dynamic", "smollm", "llama-bpe", "tekken", "gpt-4o", "▁"]
TEXTS += ["{{ messages }}", "{% for m in messages %}{{ m.content }}{% endfor %}", "{{", "{% if x %}", "{{ 1 / 0 }}"]
TEXTS += ["{{ raise_exception('a\\nb') }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ 9 ** 99 }}"]
KEYS = ["general.alignment", "general.type", "split.count", "split.no", "split.tensors.count", "general.architecture"]
KEYS += [f"tokenizer.ggml.{name}" for name in ("scores", "token_type", "merges", "tokens", "model", "pre")]
KEYS += [f"tokenizer.ggml.{name}" for name in ("add_bos_token", "add_eos_token", "add_space_prefix", "eot_token_id")]
KEYS += [f"tokenizer.ggml.{name}" for name in ("precompiled_charsmap", "remove_extra_whitespaces", "eom_token_id")]
KEYS += ["tokenizer.chat_template.tool_use", "tokenizer.chat_templates", "tokenizer.chat_template", "a\nb"]
_OF_ARCHITECTURE = """
rope.scaling.type rope.scaling.factor rope.scaling.original_context_length rope.scaling.attn_factor
rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow rope.scale_linear rope.freq_base
rope.freq_base_swa attention.sliding_window attention.sliding_window_pattern attention.key_length
attention.value_length rope.dimension_count vocab_size expert_count attention.layer_norm_rms_epsilon
""".split()  # noqa: SIM905 (longer, and harder to read, as a list)
_PACK = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}


def damaged_gguf(content: bytes, max_size: int, random: Random) -> bytes:
    """One to a few changes, mostly of whole parts."""
    if random.random() < 0.25:
        return atheris.Mutate(content, max_size)
    try:
        parts = take_apart(content)
    except (struct.error, KeyError, ValueError, MemoryError, OverflowError):
        return atheris.Mutate(content, max_size)
    for _ in range(random.choice([1, 1, 1, 2, 2, 4])):
        parts = random.choice(_CHANGES)(parts, random)
    try:
        return parts.encoded()[:max_size]
    except struct.error:  # a size that no field holds
        return atheris.Mutate(content, max_size)


def _change_value(parts: Parts, random: Random) -> Parts:
    key = random.choice([*(pair.key for pair in parts.pairs), *map(str.encode, _known_keys(parts))])
    return parts.with_pair(Pair(key, *_value(random)))


def _known_keys(parts: Parts) -> list[str]:
    names = [pair.value[8:].decode(errors="replace") for pair in parts.pairs if pair.key == b"general.architecture"]
    return [*KEYS, *(f"{name}.{key}" for name in names for key in [*_OF_ARCHITECTURE, "rope.scaling.x\ny"])]


def _same_kind(parts: Parts, random: Random) -> Parts:
    """Another value of the type that a pair has."""
    if not parts.pairs:
        return parts
    pair = random.choice(parts.pairs)
    if pair.kind == ARRAY:
        (kind,), size = struct.unpack_from("<I", pair.value), len(pair.value) - 12
        if kind == STRING or size < WIDTHS[kind]:
            return parts.with_pair(Pair(pair.key, *_value(random)))
        items = bytearray(pair.value[12:])
        width = WIDTHS[kind]
        for _ in range(random.randint(1, 4)):
            at = random.randrange(size // width) * width
            items[at : at + width] = scalar(kind, random)
        return parts.with_pair(replace(pair, value=pair.value[:12] + items))
    value = text(random.choice(TEXTS).encode()) if pair.kind == STRING else scalar(pair.kind, random)
    return parts.with_pair(replace(pair, value=value))


def _value(random: Random) -> tuple[int, bytes]:
    kind = random.choice([*WIDTHS, STRING, STRING, ARRAY, ARRAY])
    if kind == STRING:
        return kind, text(random.choice(TEXTS).encode())
    if kind != ARRAY:
        return kind, scalar(kind, random)
    inner, count = random.choice([*WIDTHS, STRING, STRING]), random.choice([0, 1, 2, 3, 5, 259, 262])
    items = [text(random.choice(TEXTS).encode()) if inner == STRING else scalar(inner, random) for _ in range(count)]
    claimed = random.choice(INTEGERS) if random.random() < 0.1 else count
    return kind, array(inner, claimed, b"".join(items))


def scalar(kind: int, random: Random) -> bytes:
    """A value of a scalar type, of those that break things."""
    if kind == 7:
        return bytes([random.choice([0, 0, 1, 1, 2])])
    if kind in (6, 12):
        number = random.choice(NUMBERS)
        return struct.pack("<" + _PACK[kind], number if kind == 12 or abs(number) < 3.4e38 else float("inf"))
    return struct.pack("<Q", random.choice(INTEGERS))[: WIDTHS[kind]]


def _drop_pair(parts: Parts, random: Random) -> Parts:
    return parts.without(random.choice(parts.pairs).key) if parts.pairs else parts


def _repeat_pair(parts: Parts, random: Random) -> Parts:
    return replace(parts, pairs=(*parts.pairs, random.choice(parts.pairs))) if parts.pairs else parts


def _change_row(parts: Parts, random: Random) -> Parts:
    if not parts.rows:
        return parts
    index = random.randrange(len(parts.rows))
    row = parts.rows[index]
    dims = list(row.dims) or [1]
    dims[random.randrange(len(dims))] = random.choice([*INTEGERS, dims[0] + 1, dims[0] - 1]) & ((1 << 64) - 1)
    other = random.choice(parts.rows)
    changed = random.choice(
        [
            replace(row, dims=tuple(dims)),
            replace(row, dims=row.dims[::-1]),
            replace(row, dims=(row.dims * 3)[: random.randint(0, 5)]),
            replace(row, kind=random.choice([*range(42), *INTEGERS]) & 0xFFFFFFFF),
            replace(row, offset=random.choice([*INTEGERS, other.offset, row.offset + 32])),
            replace(row, name=random.choice([other.name, *(each.encode() for each in TEXTS)])),
        ]
    )
    return replace(parts, rows=(*parts.rows[:index], changed, *parts.rows[index + 1 :]))


def _drop_row(parts: Parts, random: Random) -> Parts:
    index = random.randrange(len(parts.rows) or 1)
    return replace(parts, rows=parts.rows[:index] + parts.rows[index + 1 :])


def _repeat_row(parts: Parts, random: Random) -> Parts:
    extra = random.choice(parts.rows) if parts.rows else Row(b"t", (4,), 0, 0)
    return replace(parts, rows=(*parts.rows, random.choice([extra, replace(extra, name=b"rope_freqs.weight")])))


def _change_counts(parts: Parts, random: Random) -> Parts:
    key = random.choice(["num_pairs", "num_rows", "version"])
    value = random.choice([*INTEGERS, len(parts.pairs) + 1, len(parts.rows) - 1]) & ((1 << 64) - 1)
    return replace(parts, **{key: value & 0xFFFFFFFF if key == "version" else value})  # type: ignore[arg-type]


def _change_data(parts: Parts, random: Random) -> Parts:
    """Scales that are infinite, blocks of ones, an end that is missing."""
    data = bytearray(parts.data)
    if not data:
        return parts
    if random.random() < 0.2:
        return replace(parts, data=bytes(data[: random.randrange(len(data))]))
    for _ in range(random.choice([1, 8, 64])):
        at = random.randrange(len(data))
        size = random.choice([1, 2, 4, 32, 256])
        fill = random.choice([b"\xff", b"\0", b"\x7c", b"\xfc", b"\x7f", b"\x80", bytes([random.randrange(256)])])
        data[at : at + size] = (fill * size)[: len(data) - at]
    return replace(parts, data=bytes(data))


_CHANGES: list[Callable[[Parts, Random], Parts]] = [
    *(_change_value, _change_value, _same_kind, _same_kind, _same_kind, _drop_pair, _repeat_pair),
    *(_change_row, _change_row, _drop_row, _repeat_row, _change_counts, _change_data, _change_data),
]


def noisy(raw: bytes, random: Random) -> bytes:
    """A few bytes changed, inserted or taken away."""
    noise = bytearray(raw)
    for _ in range(random.choice([1, 1, 2, 8])):
        at, kind = random.randrange(len(noise) + 1), random.randrange(4)
        byte = random.choice([0, 0x22, 0x5C, 0x7B, 0x7F, 0x80, 0xFF, random.randrange(256)])
        noise[at : at + random.choice([0, 1, 1, 1, 16])] = bytes([byte] * (kind > 0))
    return bytes(noise)


def damaged_json(value: Any, random: Random) -> Any:
    """A copy with one place somewhere in it changed."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        copy, key = dict(value), random.choice(list(value))
        match random.randrange(8):
            case 0:
                del copy[key]
            case 1:
                copy[random.choice([*TEXTS, *value])] = copy[key]
            case _:
                copy[key] = damaged_json(value[key], random)
        return copy
    if isinstance(value, list) and value and random.random() < 0.9:
        items, index = list(value), random.randrange(len(value))
        match random.randrange(8):
            case 0:
                del items[index]
            case 1:
                items.insert(index, items[random.randrange(len(items))])
            case _:
                items[index] = damaged_json(items[index], random)
        return items
    if isinstance(value, int) and random.random() < 0.5:
        return random.choice([*INTEGERS, value + 1, value - 1, -value, 10**400])
    simple = [None, True, False, {}, [], [[]], {"a": None}, *INTEGERS, *NUMBERS, *TEXTS, "\ud800"]
    return random.choice(simple)
