"""Blocks made from plain weights: laid out as the `gguf` package reads them, and as near as their steps allow."""

from collections.abc import Callable

import gguf
import numpy as np
import pytest

from paceline.models.hf.quantize import to_q4_1, to_q8_0

QUANTIZERS = {"Q8_0": to_q8_0, "Q4_1": to_q4_1}
Quantize = Callable[[np.ndarray], np.ndarray]


def restored(packed: np.ndarray, name: str) -> np.ndarray:
    return gguf.quants.dequantize(packed, gguf.GGMLQuantizationType[name])


def weights(rows: int = 40, columns: int = 96, seed: int = 0) -> np.ndarray:
    return (0.05 * np.random.default_rng(seed).standard_normal((rows, columns))).astype(np.float32)


@pytest.mark.parametrize("name", QUANTIZERS)
def test_no_further_from_the_weights_than_plain_rounding(name: str) -> None:
    x = weights()
    kind = gguf.GGMLQuantizationType[name]
    packed = QUANTIZERS[name](x)
    plain = gguf.quants.quantize(x, kind)
    assert (packed.dtype, packed.shape) == (plain.dtype, plain.shape)
    error = np.square(restored(packed, name) - x).mean()
    assert error <= 1.001 * np.square(restored(plain, name) - x).mean()


def test_8_bits_are_off_by_half_a_step_at_most() -> None:
    for scale in (1e-6, 1e-3, 1.0, 1e4):
        x = scale * weights(seed=1)
        step = to_q8_0(x).reshape(-1, 34)[:, :2].copy().view(np.float16).astype(np.float32)
        error = np.abs(restored(to_q8_0(x), "Q8_0") - x).reshape(-1, 32)
        assert (error <= 0.5001 * step).all()


@pytest.mark.parametrize("name", QUANTIZERS)
def test_what_is_on_the_grid_stays(name: str) -> None:
    codes = np.random.default_rng(2).integers(*{"Q8_0": (-127, 128), "Q4_1": (0, 16)}[name], (9, 64))
    codes[:, ::32], codes[:, 1::32] = {"Q8_0": (-127, 127), "Q4_1": (0, 15)}[name]
    x = codes.astype(np.float32) * np.float32(2**-7) + np.float32(name == "Q4_1") * np.float32(-0.25)
    np.testing.assert_array_equal(restored(QUANTIZERS[name](x), name), x)


@pytest.mark.parametrize("quantize", QUANTIZERS.values())
def test_rows_stand_for_themselves(quantize: Quantize) -> None:
    x = weights(seed=3)
    before = x.copy()
    together = quantize(x)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(together, np.concatenate([quantize(x[i : i + 1]) for i in range(len(x))]))


@pytest.mark.parametrize("name", QUANTIZERS)
def test_blocks_without_differences(name: str) -> None:
    x = np.zeros((3, 32), np.float32)
    x[1], x[2, 5] = 0.5, -1e-30
    expected = x.copy()
    expected[2, 5] = 0  # below everything that a scale can express
    np.testing.assert_allclose(restored(QUANTIZERS[name](x), name), expected, rtol=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("name", QUANTIZERS)
def test_faulty_weights_are_not_hidden(name: str, value: float) -> None:
    x = weights(2, 64)
    x[1, 40] = value
    found = restored(QUANTIZERS[name](x), name)
    assert np.isnan(found[1, 32:]).all()
    assert np.isfinite(np.delete(found.reshape(-1, 32), 3, axis=0)).all()
