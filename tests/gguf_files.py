"""Tiny random model files in GGUF, written with the `gguf` package: small enough for every test, whole enough to run.

The reader under test never takes part in writing, so both sides are checked against an independent implementation.
"""

from itertools import product
from pathlib import Path
from string import ascii_letters
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from random_blocks import pack, unpack

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
_MERGED_WORDS = (" the", " and", " of", " to", " in", "ing", "ed", "er", "ion", " hello", " world", "user", "assistant")

FloatTensors = dict[str, NDArray[np.float32]]

# Options of `write_tiny_model` that together have all that sets architectures apart; windows cross pages of 16.
VARIANTS: dict[str, dict[str, Any]] = {
    "mistral": {"architecture": "llama", "sliding_window": 20},
    "yarn": {
        "architecture": "llama",
        "extra_metadata": {
            "llama.rope.scaling.type": "yarn",
            "llama.rope.scaling.factor": 4.0,
            "llama.rope.scaling.original_context_length": 64,
        },
    },
    "qwen2": {"architecture": "qwen2", "num_heads": 6, "num_kv_heads": 1, "head_dim": 128},
    "qwen3": {"architecture": "qwen3", "head_dim": 128},
    "gemma3": {
        "architecture": "gemma3",
        "num_layers": 3,
        "num_kv_heads": 1,
        "head_dim": 256,
        "rope_theta": 1e6,
        "sliding_window": 20,
        "extra_metadata": {"gemma3.attention.sliding_window_pattern": 2, "gemma3.rope.scaling.factor": 8.0},
    },
}


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


def write_tiny_llama(path: Path | str, **options: Any) -> FloatTensors:
    """`write_tiny_model` for the architecture that most tests are content with."""
    return write_tiny_model(path, **options)


def write_tiny_model(
    path: Path | str,
    *,
    architecture: str = "llama",
    tensor_type: str = "Q4_1",
    head_type: str | None = None,
    vector_type: str = "F32",
    is_head_tied: bool = True,
    num_layers: int = 2,
    hidden_size: int | None = None,
    intermediate_size: int | None = None,
    num_heads: int = 4,
    num_kv_heads: int = 2,
    head_dim: int | None = None,
    vocab_size: int = 320,
    context_length: int = 256,
    seed: int = 0,
    rope_theta: float = 10000.0,
    rope_divisors: list[float] | None = None,
    rms_norm_eps: float = 1e-5,
    sliding_window: int | None = None,
    extra_metadata: dict[str, Any] | None = None,
    split_max_tensors: int = 0,
) -> FloatTensors:
    """Write a model of random weights and return its tensors by GGUF name, dequantised to float32, rows first.

    `tensor_type` is the type of every matrix; `head_type`, where given, that of the output head alone (with a tied
    head: of `token_embd.weight`); `vector_type`, F32, F16 or BF16, that of norms and biases. Sizes not given suit the
    types: 64 and 96, or 256 and 256. `head_dim` None means the hidden size shared among the heads. The same arguments
    give the same bytes. `extra_metadata` adds or replaces strings, bools, ints (as uint32), floats and arrays; None
    removes a key. With `split_max_tensors`, 0 for one file, parts of at most so many tensors are written beside
    `path`.
    """
    types_used = [gguf.GGMLQuantizationType[name] for name in (tensor_type, head_type) if name]
    is_wide = any(gguf.GGML_QUANT_SIZES[kind][0] == 256 for kind in types_used)
    hidden_size = hidden_size or (256 if is_wide else 64)
    intermediate_size = intermediate_size or (256 if is_wide else 96)
    writer = gguf.GGUFWriter(Path(path), architecture, split_max_tensors=split_max_tensors)
    writer.add_name(f"tiny random {architecture}")
    writer.add_block_count(num_layers)
    writer.add_context_length(context_length)
    writer.add_embedding_length(hidden_size)
    writer.add_feed_forward_length(intermediate_size)
    writer.add_head_count(num_heads)
    writer.add_head_count_kv(num_kv_heads)
    if head_dim is not None:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    head_dim = head_dim or hidden_size // num_heads
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(rope_theta)
    if sliding_window is not None:
        writer.add_sliding_window(sliding_window)
    writer.add_layer_norm_rms_eps(rms_norm_eps)
    writer.add_vocab_size(vocab_size)
    _add_tokenizer(writer, vocab_size)
    for key, value in (extra_metadata or {}).items():
        _add_value(writer, key, value)
    query_size, kv_size = num_heads * head_dim, num_kv_heads * head_dim
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab_size, hidden_size)}
    for layer in range(num_layers):
        of_layer = _layer_shapes(architecture, hidden_size, intermediate_size, query_size, kv_size, head_dim)
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in of_layer.items()}
    shapes["output_norm.weight"] = (hidden_size,)
    if not is_head_tied:
        shapes["output.weight"] = (vocab_size, hidden_size)
    head_name = "token_embd.weight" if is_head_tied else "output.weight"
    types = {name: tensor_type if len(shape) == 2 else vector_type for name, shape in shapes.items()}
    types[head_name] = head_type or tensor_type
    tensors = _add_tensors(writer, shapes, types, np.random.default_rng(seed))
    if rope_divisors is not None:
        writer.add_tensor("rope_freqs.weight", np.array(rope_divisors, np.float32))
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


def _layer_shapes(
    architecture: str, hidden_size: int, intermediate_size: int, query_size: int, kv_size: int, head_dim: int
) -> dict[str, tuple[int, ...]]:
    """The tensors of a layer in a fixed order; what only some architectures have comes last."""
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (hidden_size,),
        "attn_q.weight": (query_size, hidden_size),
        "attn_k.weight": (kv_size, hidden_size),
        "attn_v.weight": (kv_size, hidden_size),
        "attn_output.weight": (hidden_size, query_size),
        "ffn_norm.weight": (hidden_size,),
        "ffn_gate.weight": (intermediate_size, hidden_size),
        "ffn_up.weight": (intermediate_size, hidden_size),
        "ffn_down.weight": (hidden_size, intermediate_size),
    }
    if architecture == "qwen2":
        shapes |= {"attn_q.bias": (query_size,), "attn_k.bias": (kv_size,), "attn_v.bias": (kv_size,)}
    if architecture in ("qwen3", "gemma3"):
        shapes |= {"attn_q_norm.weight": (head_dim,), "attn_k_norm.weight": (head_dim,)}
    if architecture == "gemma3":
        shapes |= {"post_attention_norm.weight": (hidden_size,), "post_ffw_norm.weight": (hidden_size,)}
    return shapes


def _add_tensors(
    writer: gguf.GGUFWriter, shapes: dict[str, tuple[int, ...]], types: dict[str, str], random: np.random.Generator
) -> FloatTensors:
    tensors: FloatTensors = {}
    for name, shape in shapes.items():
        if len(shape) == 1:
            middle, spread = (0.0, 0.5) if name.endswith(".bias") else (1.0, 0.1)
            weights = (middle + spread * random.standard_normal(shape)).astype(np.float32)
        else:
            scale = 1.0 if name == "token_embd.weight" else shape[-1] ** -0.5
            weights = (scale * random.standard_normal(shape)).astype(np.float32)
        packed = pack(weights, types[name], random)
        writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType[types[name]])
        tensors[name] = unpack(packed, types[name])
    return tensors
