"""The architectures that run, and what is said of those that do not."""

import re

from paceline.models.architectures.base import Architecture
from paceline.models.quoting import quoted

ARCHITECTURES = (
    Architecture("llama", is_rope_split=False, windows="all"),
    Architecture("qwen2", has_qkv_bias=True),
    Architecture("qwen3", has_qk_norm=True),
    Architecture(
        "gemma3",
        has_qk_norm=True,
        has_post_norms=True,
        has_embedding_scale=True,
        activation="gelu_tanh",
        windows="alternating",
    ),
)

# What is in a name, the most telling first.
_KINDS = {
    r"bert|embedding|llama-embed": "embedding models",
    r"clip|vl|mllama|chameleon|siglip|ocr|paligemma": "vision models",
    r"mamba|rwkv|jamba|qwen3_?next|qwen3_?5|hybrid|falcon.?h1|nemotron_h|lfm2|kimi.linear|plamo2|griffin": (
        "recurrent and state-space models"
    ),
    r"moe|mixtral|deepseek|gpt.oss|dbrx|arctic|grok|llama4|dots1|minimax|smallthinker": "mixtures of experts",
    r"diffusion|dream|llada|rnd1": "diffusion models",
    r"^u?m?t5|bart$": "encoder-decoder models",
}


def architecture_named(name: str) -> Architecture | None:
    """The architecture that GGUF files call `name`, if it runs."""
    return next((known for known in ARCHITECTURES if known.name == name), None)


def refusal(name: str) -> str:
    """Why an architecture that is not in the registry does not run, and which ones do."""
    kind = next((kind for pattern, kind in _KINDS.items() if re.search(pattern, name.lower())), None)
    reason = f" ({kind} are not)" if kind is not None else ""
    supported = ", ".join(sorted(known.name for known in ARCHITECTURES))
    return f"architecture {quoted(name)} is not supported{reason}; supported: {supported}"
