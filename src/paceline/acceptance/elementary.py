"""The committed logarithm and exponential: the same bits from NumPy, torch and the compiled core.

Library functions differ between libraries, versions and processors in the last bit, and one bit is another token. These
are bit operations and float64 additions, subtractions, multiplications and divisions in the order written here, none of
them fused; IEEE 754 fixes each result. `native/sampling/elementary.hpp` holds the same operations.

Arrays may be of any library that array-api-compat knows and whose arrays have `view(dtype)`, as those of NumPy, CuPy
and torch do.
"""

import math
from typing import Any

from array_api_compat import array_namespace

Array = Any  # of one library or another; there is no common type

# ln 2 in two parts: the first ends in 20 zero bits, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LOG2_E = float.fromhex("0x1.71547652b82fep+0")
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_EXPONENT_BIAS = 1023
_MANTISSA_BITS = 52
_LOG_TERMS = 10
_EXP_DEGREE = 13
EXP_LOWEST = -700.0  # exp of less is 0


def log(x: Array) -> Array:
    """The natural logarithm of normal positive finite float64 numbers, an array; within 1 unit in the last place.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)); with f = m - 1 and s = f / (2 + f), log m = 2 atanh(s), summed as
    f - s (f - 2/3 s^2 - 2/5 s^4 - ...), where f is exact and the rest small.
    """
    xp = array_namespace(x)
    bits = x.view(xp.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> _MANTISSA_BITS
    f = (bits - (exponent << _MANTISSA_BITS)).view(xp.float64) - 1.0
    e = xp.astype(exponent, xp.float64)
    s = f / (2.0 + f)
    w = s * s
    series = 2.0 / (2 * _LOG_TERMS + 1) + 0.0 * w
    for k in range(_LOG_TERMS - 1, 0, -1):
        series = series * w + 2.0 / (2 * k + 1)
    return e * _LN2_HIGH - ((s * (f - w * series) - e * _LN2_LOW) - f)


def exp(x: Array) -> Array:
    """e^x of float64 numbers up to 700, -inf included, an array; within 2 units in the last place, and 0 below -700.

    x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor polynomial of degree 13, even and odd powers apart.
    """
    xp = array_namespace(x)
    is_low = x < EXP_LOWEST
    x = xp.where(is_low, xp.zeros_like(x), x)
    n = xp.round(x * _LOG2_E)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    w = r * r
    y = _taylor(w, range(_EXP_DEGREE - 1, -1, -2)) + r * _taylor(w, range(_EXP_DEGREE, 0, -2))
    power = ((xp.astype(n, xp.int64) + _EXPONENT_BIAS) << _MANTISSA_BITS).view(xp.float64)
    return xp.where(is_low, xp.zeros_like(y), y * power)


def _taylor(w: Array, powers: range) -> Array:
    """The terms 1 / power! of descending powers, by Horner's rule in w."""
    y = 1.0 / math.factorial(powers[0]) + 0.0 * w
    for power in powers[1:]:
        y = y * w + 1.0 / math.factorial(power)
    return y
