"""Tiny random Llama files in GGUF, written with the `gguf` package: small enough for every test, whole enough to run.

The reader under test never takes part in writing, so both sides are checked against an independent implementation.
"""

from itertools import product
from pathlib import Path
from string import ascii_letters
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_MERGED_WORDS = (" the", " and", " of", " to", " in", "ing", "ed", "er", "ion", " hello", " world", "user", "assistant")

FloatTensors = dict[str, NDArray[np.float32]]


def byte_alphabet() -> list[str]:
    """The printable character that stands for each byte in a byte-level BPE vocabulary, in order of the bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    stand_ins = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(stand_ins)) for byte in range(0x100)]


def tiny_vocabulary(vocab_size: int) -> tuple[list[str], list[str]]:
    """Tokens (three special ones, 256 bytes, then merged ones) and their merges, of the size asked for."""
    tokens = [*SPECIAL_TOKENS, *byte_alphabet()]
    if vocab_size < len(tokens):
        raise ValueError(f"vocab_size is {vocab_size}, but special tokens and bytes alone are {len(tokens)}")
    merges: list[str] = []
    known = set(tokens)
    for left, right in _merge_candidates():
        if len(tokens) == vocab_size:
            return tokens, merges
        if left + right not in known:
            known.add(left + right)
            tokens.append(left + right)
            merges.append(f"{left} {right}")
    if len(tokens) < vocab_size:
        raise ValueError(f"vocab_size is {vocab_size}, the most that this helper can fill is {len(tokens)}")
    return tokens, merges


def _merge_candidates() -> list[tuple[str, str]]:
    prefixes = []
    for word in _MERGED_WORDS:
        letters = word.replace(" ", "Ġ")
        prefixes += [(letters[:end], letters[end]) for end in range(1, len(letters))]
    return prefixes + list(product(ascii_letters, ascii_letters))


def write_tiny_llama(
    path: Path | str,
    *,
    tensor_type: str = "Q4_1",
    head_type: str | None = None,
    is_head_tied: bool = True,
    num_layers: int = 2,
    hidden_size: int = 64,
    intermediate_size: int = 96,
    num_heads: int = 4,
    num_kv_heads: int = 2,
    vocab_size: int = 320,
    context_length: int = 256,
    seed: int = 0,
    rope_theta: float = 10000.0,
    rms_norm_eps: float = 1e-5,
    extra_metadata: dict[str, Any] | None = None,
    split_max_tensors: int = 0,
) -> FloatTensors:
    """Write a Llama of random weights and return its tensors by GGUF name, dequantised to float32, rows first.

    `tensor_type` is the type of every matrix; `head_type`, where given, that of the output head alone (with a tied
    head: of `token_embd.weight`). Norm weights are F32 always. The same arguments give the same bytes.
    `extra_metadata` adds or replaces strings, bools, ints (as uint32), floats and arrays; None removes a key.
    With `split_max_tensors`, which is 0 for one file, parts of at most so many tensors are written beside `path`.
    """
    writer = gguf.GGUFWriter(Path(path), "llama", split_max_tensors=split_max_tensors)
    writer.add_name("tiny random llama")
    writer.add_block_count(num_layers)
    writer.add_context_length(context_length)
    writer.add_embedding_length(hidden_size)
    writer.add_feed_forward_length(intermediate_size)
    writer.add_head_count(num_heads)
    writer.add_head_count_kv(num_kv_heads)
    writer.add_rope_dimension_count(hidden_size // num_heads)
    writer.add_rope_freq_base(rope_theta)
    writer.add_layer_norm_rms_eps(rms_norm_eps)
    writer.add_vocab_size(vocab_size)
    _add_tokenizer(writer, vocab_size)
    for key, value in (extra_metadata or {}).items():
        _add_value(writer, key, value)
    shapes = _shapes(num_layers, hidden_size, intermediate_size, num_heads, num_kv_heads, vocab_size, is_head_tied)
    head_name = "token_embd.weight" if is_head_tied else "output.weight"
    types = {name: (head_type or tensor_type) if name == head_name else tensor_type for name in shapes}
    tensors = _add_tensors(writer, shapes, types, np.random.default_rng(seed))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def _add_tokenizer(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    tokens, merges = tiny_vocabulary(vocab_size)
    num_special = len(SPECIAL_TOKENS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL] * num_special + [gguf.TokenType.NORMAL] * (len(tokens) - num_special)
    )
    if merges:  # the writer cannot express an empty array
        writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def _add_value(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    writer.kv_data[0].pop(key, None)  # the writer refuses a key that it has already
    match value:
        case None:
            return
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)


def _shapes(
    num_layers: int,
    hidden_size: int,
    intermediate_size: int,
    num_heads: int,
    num_kv_heads: int,
    vocab_size: int,
    is_head_tied: bool,
) -> dict[str, tuple[int, ...]]:
    kv_size = hidden_size // num_heads * num_kv_heads
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab_size, hidden_size)}
    for layer in range(num_layers):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (hidden_size,),
            f"blk.{layer}.attn_q.weight": (hidden_size, hidden_size),
            f"blk.{layer}.attn_k.weight": (kv_size, hidden_size),
            f"blk.{layer}.attn_v.weight": (kv_size, hidden_size),
            f"blk.{layer}.attn_output.weight": (hidden_size, hidden_size),
            f"blk.{layer}.ffn_norm.weight": (hidden_size,),
            f"blk.{layer}.ffn_gate.weight": (intermediate_size, hidden_size),
            f"blk.{layer}.ffn_up.weight": (intermediate_size, hidden_size),
            f"blk.{layer}.ffn_down.weight": (hidden_size, intermediate_size),
        }
    shapes["output_norm.weight"] = (hidden_size,)
    if not is_head_tied:
        shapes["output.weight"] = (vocab_size, hidden_size)
    return shapes


def _add_tensors(
    writer: gguf.GGUFWriter, shapes: dict[str, tuple[int, ...]], types: dict[str, str], random: np.random.Generator
) -> FloatTensors:
    tensors: FloatTensors = {}
    for name, shape in shapes.items():
        if len(shape) == 1:
            weights = (1 + 0.1 * random.standard_normal(shape)).astype(np.float32)
            writer.add_tensor(name, weights)
            tensors[name] = weights
            continue
        scale = 1.0 if name == "token_embd.weight" else shape[-1] ** -0.5
        weights = (scale * random.standard_normal(shape)).astype(np.float32)
        quant_type = gguf.GGMLQuantizationType[types[name]]
        packed = gguf.quants.quantize(weights, quant_type)
        writer.add_tensor(name, packed, raw_dtype=quant_type)
        tensors[name] = gguf.quants.dequantize(packed, quant_type).astype(np.float32)
    return tensors
