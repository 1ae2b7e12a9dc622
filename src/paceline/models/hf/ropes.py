"""Rotary frequencies from a model folder's config.json, in the spellings of transformers 4 and 5."""

import math

from paceline.models.architectures.rope import LEAST, MOST, linear_rope, llama3_rope, plain_rope, yarn_rope
from paceline.models.base import Rope
from paceline.models.hf.settings import Settings
from paceline.models.quoting import quoted

_DEFAULT_THETA = 10000.0
_GEMMA3_THETA, _GEMMA3_LOCAL_THETA = 1e6, 10000.0
_FULL, _SLIDING = "full_attention", "sliding_attention"


def read_rope(config: Settings, head_dim: int) -> Rope:
    """The frequencies that all layers share. Raises `UnsupportedModelError` for a scaling that cannot be run and
    `ModelFormatError` for numbers that make no sense."""
    parameters = _parameters(config)
    return _rope(config, parameters, head_dim, _theta(config, parameters, "rope_theta", _DEFAULT_THETA))


def read_gemma3_ropes(config: Settings, head_dim: int) -> tuple[Rope, Rope]:
    """The frequencies of layers that see everything, then those of layers with a window. Raises like `read_rope`."""
    parameters = _parameters(config)
    if _FULL in parameters or _SLIDING in parameters:
        full, sliding = parameters.section(_FULL), parameters.section(_SLIDING)
    else:  # transformers 4: what is scaled is the full layers
        full, sliding = parameters, Settings({}, config.path)
    return (
        _rope(config, full, head_dim, _theta(config, full, "rope_theta", _GEMMA3_THETA)),
        _rope(config, sliding, head_dim, _theta(config, sliding, "rope_local_base_freq", _GEMMA3_LOCAL_THETA)),
    )


def read_context_length(config: Settings) -> int:
    """The positions that the model was made for: those that it was trained on, stretched where YaRN stretches them
    without saying so in `max_position_embeddings`."""
    length, parameters = config.integer("max_position_embeddings"), _parameters(config)
    if _rope_type(parameters) != "yarn" or "factor" not in parameters:
        return length
    stretched = _positive(parameters, "factor", least=1.0) * _original_context(config, parameters)
    return max(length, int(stretched))


def _parameters(config: Settings) -> Settings:
    scaling = config.section("rope_scaling")
    return scaling if scaling.keys() else config.section("rope_parameters")


def _rope_type(parameters: Settings) -> str:
    return parameters.string("rope_type", parameters.string("type", "default"))


def _theta(config: Settings, parameters: Settings, old_key: str, default: float) -> float:
    """Transformers 5 keeps the base among the parameters, transformers 4 beside them."""
    if "rope_theta" in parameters:
        return _positive(parameters, "rope_theta", least=1.0)
    return _positive(config, old_key, least=1.0, default=default)


def _rope(config: Settings, parameters: Settings, head_dim: int, theta: float) -> Rope:
    for settings in (config, parameters):
        if settings.number("partial_rotary_factor", 1.0) != 1:
            raise settings.unsupported("rotation of a part of each head (partial_rotary_factor) is not supported")
    match _rope_type(parameters):
        case "default":
            return plain_rope(theta, head_dim)
        case "linear":
            return linear_rope(theta, head_dim, _positive(parameters, "factor", least=1.0))
        case "llama3":
            low, high = _positive(parameters, "low_freq_factor"), _positive(parameters, "high_freq_factor")
            if low >= high:
                raise parameters.malformed(f"low_freq_factor {low} is not below high_freq_factor {high}")
            factor = _positive(parameters, "factor", least=1.0)
            return llama3_rope(theta, head_dim, factor, low, high, _original_context(config, parameters))
        case "yarn":
            return _yarn(config, parameters, head_dim, theta)
        case other:
            raise parameters.unsupported(f"rope scaling {quoted(other)} is not supported")


def _yarn(config: Settings, parameters: Settings, head_dim: int, theta: float) -> Rope:
    if theta <= 1:
        raise parameters.malformed(f"a rope_theta of {theta} leaves YaRN nothing to stretch")
    if not parameters.flag("truncate", True):
        raise parameters.unsupported("YaRN without rounded borders (truncate) is not supported")
    original = _original_context(config, parameters)
    is_given = "factor" in parameters
    factor = _positive(parameters, "factor", least=1.0) if is_given else _stretch(config, original)
    return yarn_rope(
        theta,
        head_dim,
        factor,
        original,
        beta_fast=_positive(parameters, "beta_fast", default=32.0),
        beta_slow=_positive(parameters, "beta_slow", default=1.0),
        magnitude=_yarn_magnitude(parameters, factor),
    )


def _stretch(config: Settings, original: int) -> float:
    return max(config.integer("max_position_embeddings") / original, 1.0)


def _yarn_magnitude(parameters: Settings, factor: float) -> float | None:
    """The attention temperature where the file sets it: by itself, or as DeepSeek's ratio of two."""
    if "attention_factor" in parameters:
        return _positive(parameters, "attention_factor")
    if "mscale" not in parameters or "mscale_all_dim" not in parameters:
        return None
    above, below = parameters.number("mscale"), parameters.number("mscale_all_dim")
    if above == 0 or below == 0:  # stands for "not set"
        return None
    logarithm = 0.1 * math.log(factor)
    ratio = (above * logarithm + 1) / (below * logarithm + 1) if below * logarithm + 1 else math.nan
    if not LEAST <= ratio <= MOST:
        raise parameters.malformed(f"mscale {above} and mscale_all_dim {below} are no attention temperature")
    return ratio


def _original_context(config: Settings, parameters: Settings) -> int:
    key = "original_max_position_embeddings"
    source = parameters if key in parameters else config
    original = source.integer(key, config.integer("max_position_embeddings"))
    if not 1 <= original < 1 << 31:
        raise source.malformed(f"{key} is {original}, expected 1 to {(1 << 31) - 1}")
    return original


def _positive(settings: Settings, key: str, *, least: float = LEAST, default: float | None = None) -> float:
    value = settings.number(key, default)
    if not least <= value <= MOST:
        raise settings.malformed(f"{settings.name(key)} is {value}, expected a number from {least:g} to {MOST:g}")
    return value
