"""The rotary frequencies of a GGUF file: base, scaling and the tensor of divisors, read as llama.cpp reads them.

Differences to know: llama.cpp ignores `yarn_beta_fast` and `yarn_beta_slow` for these architectures, here they count.
Its `attn_factor` multiplies YaRN's own magnitude, where the `attention_factor` of a Hugging Face configuration
replaces it.
"""

from paceline.models.architectures.base import Architecture
from paceline.models.architectures.gguf_settings import GGUFSettings
from paceline.models.architectures.rope import LEAST, MOST, divided_rope, linear_rope, plain_rope, yarn_rope
from paceline.models.base import Rope
from paceline.models.quoting import quoted

ROPE_DIVISORS = "rope_freqs.weight"
_LOCAL_THETA = 10000.0  # of layers with a window, where layers alternate
_SCALING_KEYS = {
    "type",
    "factor",
    "original_context_length",
    "finetuned",  # tells whether the scaling was trained, changes nothing
    "attn_factor",
    "yarn_beta_fast",
    "yarn_beta_slow",
}


def read_ropes(settings: GGUFSettings, architecture: Architecture, dim: int, context_length: int) -> tuple[Rope, ...]:
    """The frequencies of layers without a window and, where layers alternate, of those with one."""
    rope = _read_scaled(settings, _theta(settings, "rope.freq_base", 10000.0), dim, context_length)
    if architecture.windows != "alternating":
        return (rope,)
    return rope, plain_rope(_theta(settings, "rope.freq_base_swa", _LOCAL_THETA), dim)


def _theta(settings: GGUFSettings, key: str, default: float) -> float:
    theta = settings.number(key, default)
    if not 1 < theta <= MOST:
        raise settings.malformed(f"{key} {theta} is not a number above 1, up to {MOST:g}")
    return theta


def _read_scaled(settings: GGUFSettings, theta: float, dim: int, context_length: int) -> Rope:
    scaling, factor = _read_scaling(settings)
    if ROPE_DIVISORS in settings.file.tensors:
        if scaling != "none":
            raise settings.unsupported(f"rope scaling {quoted(scaling)} on top of {ROPE_DIVISORS} is not supported")
        return divided_rope(theta, dim, _read_divisors(settings, dim))
    match scaling:
        case "none":
            return plain_rope(theta, dim)
        case "linear":
            return linear_rope(theta, dim, factor)
        case _:
            return _read_yarn(settings, theta, dim, factor, context_length)


def _read_scaling(settings: GGUFSettings) -> tuple[str, float]:
    """The kind of scaling that has an effect, "none", "linear" or "yarn", and its factor."""
    factor = settings.number("rope.scaling.factor", settings.number("rope.scale_linear", 1.0))
    scaling = settings.string("rope.scaling.type", "linear")
    if scaling not in ("none", "linear", "yarn"):
        raise settings.unsupported(f"rope scaling {quoted(scaling)} is not supported")
    unknown = [key for key in settings.keys_under("rope.scaling.") if key not in _SCALING_KEYS]
    if unknown:
        raise settings.unsupported(f"{quoted(f'{settings.prefix}.rope.scaling.{unknown[0]}')} is not supported")
    if scaling != "yarn" and settings.number("rope.scaling.attn_factor", 1.0) != 1.0:
        raise settings.unsupported("rope.scaling.attn_factor is supported with YaRN only")
    if factor == 0.0:  # how files say that there is none
        factor = 1.0
    _check_range(settings, "rope.scaling.factor", factor)
    return (scaling if factor != 1.0 or scaling == "yarn" else "none"), factor


def _read_yarn(settings: GGUFSettings, theta: float, dim: int, factor: float, context_length: int) -> Rope:
    beta_fast = settings.number("rope.scaling.yarn_beta_fast", 32.0)
    beta_slow = settings.number("rope.scaling.yarn_beta_slow", 1.0)
    attention_factor = settings.number("rope.scaling.attn_factor", 1.0)
    _check_range(settings, "rope.scaling.yarn_beta_fast", beta_fast)
    _check_range(settings, "rope.scaling.yarn_beta_slow", beta_slow)
    _check_range(settings, "rope.scaling.attn_factor", attention_factor)
    if beta_fast <= beta_slow:
        raise settings.malformed(f"rope.scaling.yarn_beta_fast {beta_fast} is not above yarn_beta_slow {beta_slow}")
    original = settings.size("rope.scaling.original_context_length", context_length)
    rope = yarn_rope(theta, dim, factor, original, beta_fast=beta_fast, beta_slow=beta_slow)
    return Rope(rope.frequencies, rope.magnitude * attention_factor)


def _read_divisors(settings: GGUFSettings, dim: int) -> list[float]:
    info = settings.file.tensors[ROPE_DIVISORS]
    if info.shape != (dim // 2,):
        raise settings.malformed(f"tensor {ROPE_DIVISORS!r} has shape {info.shape}, expected {(dim // 2,)}")
    if not info.type.is_float:
        raise settings.unsupported(f"tensor {ROPE_DIVISORS!r} has type {info.type.name}, only floats are supported")
    divisors: list[float] = settings.file.floats(ROPE_DIVISORS).tolist()
    if not all(LEAST <= divisor <= MOST for divisor in divisors):
        raise settings.malformed(
            f"tensor {ROPE_DIVISORS!r} holds something that is not a number from {LEAST:g} to {MOST:g}"
        )
    return divisors


def _check_range(settings: GGUFSettings, key: str, value: float) -> None:
    if not LEAST <= value <= MOST:
        raise settings.malformed(f"{key} {value} is not a number from {LEAST:g} to {MOST:g}")
