"""Make architectures.json beside this file: what transformers says of tiny random models of every architecture.

    PYTHONPATH=src:tests python tests/golden/make_architectures.py

Needs torch (a CPU build is enough), transformers 5, gguf, and Paceline's own package for writing the files. The models
are those of architecture_cases.py; their weights go to transformers as they are, only named and ordered its way. The
numbers are transformers' in float32 with eager attention. It takes some seconds.
"""

import json
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from architecture_cases import CASES, IDS, LLAMA3, POSITIONS, WINDOW, YARN, case_tokens, write_case
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

OUT = Path(__file__).with_name("architectures.json")
DIGITS = 5
SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "rms_norm_eps": float(torch.tensor(1e-5)),
    "pad_token_id": None,
    "tie_word_embeddings": True,
}
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
GEMMA_ROPES = {
    "sliding_attention": PLAIN,
    "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GEMMA_LAYER_NAMES = LAYER_NAMES | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def config_of(name: str) -> tuple[type[PreTrainedModel], PreTrainedConfig]:
    """Written out here once more, so that a mistake in reading a GGUF file cannot cancel itself."""

    def sizes(**changes: Any) -> dict[str, Any]:
        return SIZES | {"rope_parameters": PLAIN} | changes

    match name:
        case "llama":
            return LlamaForCausalLM, LlamaConfig(**sizes())
        case "llama-linear":
            rope = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
            return LlamaForCausalLM, LlamaConfig(**sizes(rope_parameters=rope))
        case "llama-3":
            rope = {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3}
            return LlamaForCausalLM, LlamaConfig(**sizes(rope_parameters=rope))
        case "llama-yarn":
            rope = {"rope_type": "yarn", "rope_theta": 1e4, **YARN}
            return LlamaForCausalLM, LlamaConfig(**sizes(rope_parameters=rope))
        case "mistral":
            return MistralForCausalLM, MistralConfig(**sizes(sliding_window=WINDOW, tie_word_embeddings=False))
        case "qwen2":
            return Qwen2ForCausalLM, Qwen2Config(**sizes(tie_word_embeddings=False))
        case "qwen2-yarn":
            rope = {"rope_type": "yarn", "rope_theta": 1e6, **YARN}
            return Qwen2ForCausalLM, Qwen2Config(**sizes(rope_parameters=rope))
        case "qwen3":
            return Qwen3ForCausalLM, Qwen3Config(**sizes(head_dim=32, rms_norm_eps=float(torch.tensor(1e-6))))
        case "gemma3":
            changes = {
                "num_hidden_layers": 7,
                "num_key_value_heads": 1,
                "head_dim": 32,
                "query_pre_attn_scalar": 32,
                "rms_norm_eps": float(torch.tensor(1e-6)),
                "sliding_window": WINDOW,
                "rope_parameters": GEMMA_ROPES,
            }
            return Gemma3ForCausalLM, Gemma3TextConfig(**sizes(**changes))
    raise ValueError(name)


def hf_name(name: str, layer_names: dict[str, str]) -> str:
    parts = name.split(".")
    if parts[0] != "blk":
        return f"{OUTER_NAMES[parts[0]]}.{parts[1]}"
    return f"model.layers.{parts[1]}.{layer_names[parts[2]]}.{parts[3]}"


def split_rotary_halves(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Rotary pairs are rows 2i and 2i+1 of a head in a llama-architecture GGUF, rows i and i + head_dim/2 in HF."""
    heads = weight.shape[0] // head_dim
    return weight.view(heads, head_dim // 2, 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()


def hf_weights(name: str, folder: Path) -> dict[str, torch.Tensor]:
    architecture = CASES[name]["architecture"]
    layer_names = GEMMA_LAYER_NAMES if architecture == "gemma3" else LAYER_NAMES
    weights = {}
    for gguf_name, values in write_case(folder / "m.gguf", name).items():
        weight = torch.from_numpy(values.copy())
        if architecture == "llama" and gguf_name.split(".")[-2] in ("attn_q", "attn_k"):
            weight = split_rotary_halves(weight, SIZES["head_dim"])
        if architecture == "gemma3" and gguf_name.endswith("norm.weight"):
            weight = weight - 1  # its norms multiply by 1 + weight; a GGUF file holds the sum
        weights[hf_name(gguf_name, layer_names)] = weight
    return weights


def logits_of(name: str, folder: Path) -> torch.Tensor:
    """[tokens, vocabulary], float32."""
    kind, config = config_of(name)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    missing, unexpected = model.load_state_dict(hf_weights(name, folder), strict=False)
    if unexpected or any(key != "lm_head.weight" or not config.tie_word_embeddings for key in missing):
        raise SystemExit(f"{name}: weights do not fit: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model(input_ids=torch.tensor([case_tokens(name)]), use_cache=False).logits[0]


def entry(name: str, folder: Path) -> dict[str, Any]:
    logits = logits_of(name, folder)[list(POSITIONS)]
    return {
        "name": name,
        "tokens": case_tokens(name),
        "logits": [[round(value, DIGITS) for value in row] for row in logits[:, list(IDS)].tolist()],
        "logsumexp": [round(value, DIGITS) for value in torch.logsumexp(logits.double(), -1).tolist()],
    }


def main() -> None:
    torch.set_num_threads(1)
    with torch.inference_mode(), tempfile.TemporaryDirectory() as folder:
        entries = [entry(name, Path(folder)) for name in CASES]
    packages = {name: version(name) for name in ("torch", "transformers", "gguf", "numpy")}
    source = {"python": platform.python_version(), "machine": platform.machine(), "packages": packages}
    lines = ",\n".join(json.dumps(case) for case in entries)
    OUT.write_text(f'{{\n"provenance": {json.dumps(source)},\n"cases": [\n{lines}\n]\n}}\n', encoding="ascii")


if __name__ == "__main__":
    main()
