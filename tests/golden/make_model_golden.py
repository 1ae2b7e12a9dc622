"""Make logits and perplexity of a Qwen2 or Gemma 3 GGUF file: `models/NAME.json` beside this file.

    python make_model_golden.py MODEL.gguf NAME [--llama-python PYTHON]

The numbers come from transformers in float32 with eager attention on the file's weights, dequantised; the token ids
from llama.cpp's tokenizer. Needs what make_golden.py needs, and memory for the weights in float32.
"""

import argparse
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from inputs import PERPLEXITY_TEXT
from make_golden import field, perplexity, provenance, top_logits, write_json
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

TEXTS = {
    "prose": "The history of the bicycle begins in the early nineteenth century, when Karl von Drais built a",
    "code": "def fibonacci(n: int) -> int:\n    if n < 2:\n        return n\n    return",
    "numbers": "2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41,",
}
COMMAND = "python make_model_golden.py MODEL.gguf NAME --llama-python PYTHON"
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
FFN_NORM = {"qwen2": "post_attention_layernorm", "gemma3": "pre_feedforward_layernorm"}
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LLAMA_TOKENIZE = """
import json, sys
import llama_cpp
model = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)
print(json.dumps([model.tokenize(text.encode(), add_bos=True, special=False) for text in json.load(sys.stdin)]))
"""


def sizes(reader: GGUFReader, architecture: str) -> dict[str, Any]:
    return {
        "hidden_size": field(reader, f"{architecture}.embedding_length"),
        "intermediate_size": field(reader, f"{architecture}.feed_forward_length"),
        "num_hidden_layers": field(reader, f"{architecture}.block_count"),
        "num_attention_heads": field(reader, f"{architecture}.attention.head_count"),
        "num_key_value_heads": field(reader, f"{architecture}.attention.head_count_kv"),
        "max_position_embeddings": field(reader, f"{architecture}.context_length"),
        "rms_norm_eps": field(reader, f"{architecture}.attention.layer_norm_rms_epsilon"),
        "vocab_size": len(field(reader, "tokenizer.ggml.tokens")),
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
    }


def make_model(reader: GGUFReader, architecture: str) -> PreTrainedModel:
    theta = field(reader, f"{architecture}.rope.freq_base")
    if architecture == "qwen2":
        rope = {"rope_type": "default", "rope_theta": theta}
        return Qwen2ForCausalLM(Qwen2Config(**sizes(reader, architecture), rope_parameters=rope))
    head_dim = field(reader, "gemma3.attention.key_length")
    rope = {
        "full_attention": {"rope_type": "default", "rope_theta": theta},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
    }
    config = Gemma3TextConfig(
        **sizes(reader, architecture),
        head_dim=head_dim,
        query_pre_attn_scalar=head_dim,
        sliding_window=field(reader, "gemma3.attention.sliding_window"),
        rope_parameters=rope,
    )
    return Gemma3ForCausalLM(config)


def hf_name(name: str, architecture: str) -> str:
    parts = name.split(".")
    if parts[0] != "blk":
        return f"{OUTER_NAMES[parts[0]]}.{parts[1]}"
    inner = FFN_NORM[architecture] if parts[2] == "ffn_norm" else LAYER_NAMES[parts[2]]
    return f"model.layers.{parts[1]}.{inner}.{parts[3]}"


def load_weights(model: PreTrainedModel, reader: GGUFReader, architecture: str) -> None:
    weights = {}
    for tensor in reader.tensors:
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).astype("float32"))
        is_gemma_norm = architecture == "gemma3" and tensor.name.endswith("norm.weight")
        weights[hf_name(tensor.name, architecture)] = weight - 1 if is_gemma_norm else weight
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or any(name != "lm_head.weight" for name in missing):
        raise SystemExit(f"make_model_golden: weights do not fit: missing {missing}, unexpected {unexpected}")
    model.tie_weights()


def llama_ids(python: str, gguf: Path, texts: list[str]) -> list[list[int]]:
    command = [python, "-c", LLAMA_TOKENIZE, str(gguf)]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    ids: list[list[int]] = json.loads(done.stdout)
    return ids


def entry(model: PreTrainedModel, name: str, text: str, ids: list[int]) -> dict[str, Any]:
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    positions = [top_logits(logits, position) for position in (len(ids) // 2, len(ids) - 1)]
    return {"name": name, "text": text, "ids": ids, "positions": positions}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the golden reference data of one Qwen2 or Gemma 3 GGUF file.")
    parser.add_argument("gguf", type=Path, metavar="MODEL.gguf")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--llama-python", default=sys.executable, help="an interpreter that can import llama_cpp")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    reader = GGUFReader(arguments.gguf)
    architecture = field(reader, "general.architecture")
    model = make_model(reader, architecture).float().eval()
    model.set_attn_implementation("eager")
    load_weights(model, reader, architecture)
    *ids, scored = llama_ids(arguments.llama_python, arguments.gguf, [*TEXTS.values(), PERPLEXITY_TEXT])
    with torch.inference_mode():
        prompts = [entry(model, name, text, i) for (name, text), i in zip(TEXTS.items(), ids, strict=True)]
        score = {"ids": scored, **perplexity(model, scored)}
    del score["nll"]
    folder = Path(__file__).parent / "models"
    folder.mkdir(exist_ok=True)
    source = provenance(arguments.gguf) | {"command": COMMAND}
    write_json(folder / f"{arguments.name}.json", {"provenance": source, "perplexity": score, "prompts": prompts})


if __name__ == "__main__":
    main()
