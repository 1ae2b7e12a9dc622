"""The product's sampler at temperature 0, for tests that need any, and threads for the compiled one."""

from collections.abc import Iterable

from paceline import _native
from paceline.acceptance.base import Sampler
from paceline.acceptance.canonical import create_sampler
from paceline.sampling_params import SamplingParams


def greedy_sampler(vocab_size: int, banned: Iterable[int] = ()) -> Sampler:
    return create_sampler(
        SamplingParams(temperature=0), seed=0, prompt=(0,), vocab_size=vocab_size, banned_ids=list(banned)
    )


def make_decoder(num_threads: int) -> _native.Decoder:
    """A decoder of one tiny layer, for its threads."""
    config = _native.DecoderConfig()
    sizes = {"num_layers": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 1, "num_kv_heads": 1}
    sizes |= {"head_dim": 32, "vocab_size": 32, "rope_dim": 32, "max_length": 16, "max_rows": 1, "max_logits_rows": 1}
    for name, number in {**sizes, "num_pages": 1, "num_threads": num_threads}.items():
        setattr(config, name, number)
    config.rope_frequencies, config.rope_magnitudes = [[1.0] * 16], [1.0]
    config.layer_ropes, config.layer_windows = [0], [0]
    config.attention_scale, config.embedding_scale, config.rms_norm_eps, config.isa = 1.0, 1.0, 1e-5, "auto"
    return _native.Decoder(config)
