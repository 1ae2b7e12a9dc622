"""Make the reference data beside this file: logits, perplexity, greedy continuations and token ids of one GGUF file.

    python make_golden.py MODEL.gguf HF_FOLDER OUT [--llama-python PYTHON]

MODEL.gguf   a Llama-family GGUF with a "smollm" byte-level BPE tokenizer; SmolLM2-135M-Instruct Q4_1 for the data here.
HF_FOLDER    the file's weights dequantised to float32, as a Hugging Face folder; made if it holds no config.json yet.
OUT          the folder that receives logits.json, perplexity.json, greedy.json and tokens.json.

Needs torch (a CPU build is enough), transformers 5, gguf and safetensors, and for tokens.json an interpreter that can
import llama_cpp (llama-cpp-python): this one, or the one that --llama-python names. The command and the versions that
made the committed files are under the key `provenance` in each of them; it takes about a minute on one processor.

The numbers come from the transformers model in float32 with eager attention, never from Paceline itself. Token ids come
from llama.cpp's own tokenizer; a string is kept only if the `tokenizers` library, given the same vocabulary and merges,
returns the same ids.
"""

import argparse
import hashlib
import json
import logging
import math
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from inputs import GREEDY_PROMPTS, LOGIT_PROMPTS, PERPLEXITY_TEXT, TOKEN_STRINGS, Prompt
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

log = logging.getLogger("make_golden")

TOP = 20
GREEDY_TOKENS = 48
DIGITS = 5
CONTROL_TOKEN = 3
COMMAND = "python make_golden.py MODEL.gguf HF_FOLDER OUT --llama-python PYTHON"

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

LLAMA_TOKENIZE = """
import json, sys
import llama_cpp
model = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False)
ids = [model.tokenize(text.encode(), add_bos=False, special=False) for text in json.load(sys.stdin)]
print(json.dumps({"version": llama_cpp.__version__, "ids": ids}))
"""


# ---- the GGUF as a Hugging Face folder ----


def field(reader: GGUFReader, key: str) -> Any:
    return reader.fields[key].contents()


def llama_config(reader: GGUFReader) -> LlamaConfig:
    heads = field(reader, "llama.attention.head_count")
    hidden = field(reader, "llama.embedding_length")
    return LlamaConfig(
        vocab_size=field(reader, "llama.vocab_size"),
        hidden_size=hidden,
        head_dim=hidden // heads,
        intermediate_size=field(reader, "llama.feed_forward_length"),
        num_hidden_layers=field(reader, "llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=field(reader, "llama.attention.head_count_kv"),
        max_position_embeddings=field(reader, "llama.context_length"),
        rms_norm_eps=field(reader, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": field(reader, "llama.rope.freq_base")},
        tie_word_embeddings=all(tensor.name != "output.weight" for tensor in reader.tensors),
        bos_token_id=field(reader, "tokenizer.ggml.bos_token_id"),
        eos_token_id=field(reader, "tokenizer.ggml.eos_token_id"),
        pad_token_id=None,
    )


def hf_name(name: str) -> str:
    parts = name.split(".")
    if parts[0] != "blk":
        return f"{OUTER_NAMES[parts[0]]}.{parts[1]}"
    return f"model.layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.{parts[3]}"


def split_rotary_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rotary pairs are rows 2i and 2i+1 of a head in a llama-architecture GGUF, rows i and i + head_dim/2 in HF."""
    pairs = weight.shape[0] // heads // 2
    return weight.view(heads, pairs, 2, -1).transpose(1, 2).reshape(weight.shape).contiguous()


def float32_weights(reader: GGUFReader, config: LlamaConfig) -> dict[str, torch.Tensor]:
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    weights = {}
    for tensor in reader.tensors:
        name = hf_name(tensor.name)
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).astype("float32"))
        projection = name.split(".")[-2]
        weights[name] = split_rotary_halves(weight, heads[projection]) if projection in heads else weight
    return weights


def plain_tokenizer(reader: GGUFReader) -> Tokenizer:
    """The file's byte-level BPE without special tokens: "<|im_end|>" in a text is text."""
    if field(reader, "tokenizer.ggml.pre") != "smollm":
        raise SystemExit("make_golden: only the 'smollm' pre-tokenizer is known here")
    vocab = {token: index for index, token in enumerate(field(reader, "tokenizer.ggml.tokens"))}
    merges = [(left, right) for left, right in (merge.split(" ") for merge in field(reader, "tokenizer.ggml.merges"))]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def chat_tokenizer(reader: GGUFReader) -> PreTrainedTokenizerFast:
    """The same with the file's control tokens recognised, and its chat template."""
    tokens, types = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.token_type")
    control = [token for token, kind in zip(tokens, types, strict=True) if kind == CONTROL_TOKEN]
    tokenizer = plain_tokenizer(reader)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    end = tokens[field(reader, "tokenizer.ggml.eos_token_id")]
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end)
    fast.chat_template = field(reader, "tokenizer.chat_template")
    return fast


def make_hf_folder(reader: GGUFReader, folder: Path) -> None:
    config = llama_config(reader)
    model = LlamaForCausalLM(config).float()
    missing, unexpected = model.load_state_dict(float32_weights(reader, config), strict=False)
    if unexpected or any(name != "lm_head.weight" for name in missing):
        raise SystemExit(f"make_golden: weights do not fit: missing {missing}, unexpected {unexpected}")
    model.save_pretrained(folder)
    chat_tokenizer(reader).save_pretrained(folder)


# ---- what the float32 model says ----


def render(tokenizer: PreTrainedTokenizerFast, prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    return str(tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True))


def encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False).input_ids)


def forward(model: LlamaForCausalLM, ids: list[int]) -> torch.Tensor:
    """Logits of every position, [len(ids), vocab], float32."""
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def top_logits(logits: torch.Tensor, position: int) -> dict[str, Any]:
    values, indices = torch.topk(logits[position], TOP)
    return {
        "position": position,
        "top_ids": indices.tolist(),
        "top_logits": [round(value, DIGITS) for value in values.tolist()],
        "logsumexp": round(torch.logsumexp(logits[position].double(), dim=0).item(), DIGITS),
    }


def logits_entry(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, name: str, prompt: Prompt
) -> dict[str, Any]:
    text = render(tokenizer, prompt)
    ids = encode(tokenizer, text)
    logits, count = forward(model, ids), len(ids)
    positions = [count // 4, count // 2, 3 * count // 4, count - 1]
    return {
        "name": name,
        "kind": "raw" if isinstance(prompt, str) else "chat",
        "messages": None if isinstance(prompt, str) else prompt,
        "text": text,
        "ids": ids,
        "positions": [top_logits(logits, position) for position in positions],
    }


def perplexity(model: LlamaForCausalLM, ids: list[int]) -> dict[str, Any]:
    """Mean negative log-likelihood of ids[1:], each given all before it."""
    log_probs = torch.log_softmax(forward(model, ids)[:-1].double(), dim=-1)
    nll = -log_probs.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    mean = nll.mean().item()
    return {
        "scored_tokens": len(ids) - 1,
        "mean_nll": round(mean, 6),
        "perplexity": round(math.exp(mean), 6),
        "nll": [round(value, DIGITS) for value in nll.tolist()],
    }


def greedy_entry(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, name: str, messages: Prompt
) -> dict[str, Any]:
    prompt_ids = encode(tokenizer, render(tokenizer, messages))
    output = model.generate(
        torch.tensor([prompt_ids]),
        do_sample=False,
        max_new_tokens=GREEDY_TOKENS,
        return_dict_in_generate=True,
        output_logits=True,
    )
    values, indices = torch.topk(torch.cat(output.logits), 2)
    ids = indices[:, 0].tolist()
    return {
        "name": name,
        "messages": messages,
        "prompt_ids": prompt_ids,
        "ids": ids,
        "second_ids": indices[:, 1].tolist(),
        "margins": [round(margin, DIGITS) for margin in (values[:, 0] - values[:, 1]).tolist()],
        "finish_reason": "stop" if ids[-1] == model.config.eos_token_id else "length",
        "text": tokenizer.decode(ids, skip_special_tokens=True),
    }


# ---- what the reference tokenizers say ----


def llama_cpp_ids(python: str, gguf: Path, texts: list[str]) -> tuple[str, list[list[int]]]:
    """The version of llama-cpp-python and its ids of every text, special strings being plain text."""
    done = subprocess.run(
        [python, "-c", LLAMA_TOKENIZE, str(gguf)], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    return answer["version"], answer["ids"]


def compare_tokenizers(
    tokenizer: Tokenizer, texts: list[str], reference: list[list[int]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The strings on which both agree, and those on which they do not."""
    agreed, disagreed = [], []
    for text, ids in zip(texts, reference, strict=True):
        other = tokenizer.encode(text, add_special_tokens=False).ids
        if other == ids:
            agreed.append({"text": text, "ids": ids})
        else:
            disagreed.append({"text": text, "llama_cpp": ids, "tokenizers": other})
    return agreed, disagreed


# ---- files ----


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def provenance(gguf: Path) -> dict[str, Any]:
    packages = ("torch", "transformers", "tokenizers", "gguf", "safetensors", "numpy")
    return {
        "command": COMMAND,
        "model_file": gguf.name,
        "model_sha256": file_sha256(gguf),
        "weights": "the file's weights dequantised to float32",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: version(name) for name in packages},
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Plain-ASCII JSON with one key, or one entry of a list of objects, a line."""
    sections = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            body = "[\n" + ",\n".join(json.dumps(entry) for entry in value) + "\n]"
        else:
            body = json.dumps(value)
        sections.append(f"{json.dumps(key)}: {body}")
    path.write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="ascii")
    log.info("%s: %d bytes", path.name, path.stat().st_size)


def write_model_files(folder: Path, out: Path, source: dict[str, Any]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    prompts = [logits_entry(model, tokenizer, name, prompt) for name, prompt in LOGIT_PROMPTS.items()]
    write_json(out / "logits.json", {"provenance": source, "prompts": prompts})
    ids = encode(tokenizer, PERPLEXITY_TEXT)
    scored = {"text": PERPLEXITY_TEXT, "ids": ids, **perplexity(model, ids)}
    write_json(out / "perplexity.json", {"provenance": source, **scored})
    log.info("perplexity %.6f over %d tokens", scored["perplexity"], scored["scored_tokens"])
    runs = [greedy_entry(model, tokenizer, name, messages) for name, messages in GREEDY_PROMPTS.items()]
    write_json(out / "greedy.json", {"provenance": source, "prompts": runs})


def write_tokens_file(reader: GGUFReader, gguf: Path, llama_python: str, out: Path, source: dict[str, Any]) -> None:
    llama_version, reference = llama_cpp_ids(llama_python, gguf, TOKEN_STRINGS)
    agreed, disagreed = compare_tokenizers(plain_tokenizer(reader), TOKEN_STRINGS, reference)
    packages = source["packages"] | {"llama-cpp-python": llama_version}
    content = {"provenance": source | {"packages": packages}, "strings": agreed, "disagreements": disagreed}
    write_json(out / "tokens.json", content)
    log.info("%d strings agree, %d do not", len(agreed), len(disagreed))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the golden reference data of one GGUF file.")
    parser.add_argument("gguf", type=Path, metavar="MODEL.gguf")
    parser.add_argument("hf_folder", type=Path, metavar="HF_FOLDER")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--llama-python", default=sys.executable, help="an interpreter that can import llama_cpp")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(arguments.threads)
    reader = GGUFReader(arguments.gguf)
    if not (arguments.hf_folder / "config.json").exists():
        make_hf_folder(reader, arguments.hf_folder)
    arguments.out.mkdir(parents=True, exist_ok=True)
    source = provenance(arguments.gguf)
    with torch.inference_mode():
        write_model_files(arguments.hf_folder, arguments.out, source)
    write_tokens_file(reader, arguments.gguf, arguments.llama_python, arguments.out, source)


if __name__ == "__main__":
    main()
