"""Random weights in every packed type, also those that the `gguf` package cannot make from floats."""

import gguf
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

# Bytes of a block, where its float16 numbers lie, what each is for a weight of 1, so that weights are centred.
# fmt: off
_RANDOM_TYPES = {
    "Q2_K": (84, {80: 1 / 12, 82: 1 / 8}), "Q3_K": (110, {108: 1 / 42}), "Q4_K": (144, {0: 1 / 180, 2: 1 / 24}),
    "Q5_K": (176, {0: 1 / 360, 2: 1 / 23}), "Q6_K": (210, {208: 1 / 1360}), "IQ4_NL": (18, {0: 1 / 69}),
    "IQ4_XS": (136, {0: 1 / 1270}),
}
# fmt: on


def pack(weights: Floats, type_name: str, random: np.random.Generator) -> Bytes:
    """Rows of weights like `weights` in a type: themselves, rounded, or random ones of the same size."""
    if type_name in _RANDOM_TYPES:
        return _random_blocks(weights, type_name, random)
    if type_name == "MXFP4":
        return _mxfp4(weights, random)
    if type_name == "Q8_K":
        return _q8_k(weights)
    return gguf.quants.quantize(weights, gguf.GGMLQuantizationType[type_name])


def unpack(packed: Bytes, type_name: str) -> Floats:
    """What the blocks stand for, in float32."""
    if type_name == "Q8_K":
        blocks = packed.reshape(-1, 292)
        scales = blocks[:, :4].copy().view(np.float32)
        return (scales * blocks[:, 4:260].view(np.int8)).reshape(packed.shape[0], -1)
    return gguf.quants.dequantize(packed, gguf.GGMLQuantizationType[type_name]).astype(np.float32)


def _random_blocks(weights: Floats, type_name: str, random: np.random.Generator) -> Bytes:
    block_bytes, halves = _RANDOM_TYPES[type_name]
    block_size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[type_name]][0]
    rows, columns = weights.shape
    blocks = random.integers(0, 256, (rows * columns // block_size, block_bytes), np.uint8)
    for place, size in halves.items():
        scales = (weights.std() * size * random.uniform(0.5, 1.5, len(blocks))).astype(np.float16)
        blocks[:, place : place + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def _mxfp4(weights: Floats, random: np.random.Generator) -> Bytes:
    rows, columns = weights.shape
    blocks = random.integers(0, 256, (rows * columns // 32, 17), np.uint8)
    exponent = round(np.log2(float(weights.std()) / 3)) + 127
    blocks[:, 0] = random.integers(exponent - 1, exponent + 2, len(blocks), np.uint8)
    return blocks.reshape(rows, -1)


def _q8_k(weights: Floats) -> Bytes:
    groups = weights.reshape(-1, 256)
    scales = (np.abs(groups).max(1, keepdims=True) / 127).astype(np.float32)
    codes = np.rint(groups / scales).astype(np.int8)
    sums = codes.reshape(-1, 16, 16).sum(-1).astype(np.int16)
    blocks = np.concatenate([scales.view(np.uint8), codes.view(np.uint8), sums.view(np.uint8)], 1)
    return blocks.reshape(len(weights), -1)
