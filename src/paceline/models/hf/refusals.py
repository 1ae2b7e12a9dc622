"""What a model folder may hold that cannot be run, told by name before its numbers are read."""

from pathlib import Path

from paceline.errors import ModelNotFoundError, UnsupportedModelError
from paceline.models.architectures.registry import ARCHITECTURES
from paceline.models.hf.settings import Settings
from paceline.models.quoting import quoted

_NAMES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma3_text": "gemma3"}
_BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}
MODEL_TYPES = {model_type: _BY_NAME[name] for model_type, name in _NAMES.items()}
"""The values of `model_type` that can be run, each with its architecture. Mistral's differs from Llama's in nothing but
its window."""

_MARKS = {  # keys that only such a model has
    "vision_config": "a vision model",
    "audio_config": "an audio model",
    "ssm_cfg": "a recurrent model",
    "state_size": "a recurrent model",
}
_EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts")
_KINDS = {
    "a recurrent model": "mamba mamba2 falcon_mamba rwkv recurrent_gemma xlstm zamba zamba2 jamba bamba lfm2",
    "a vision model": "gemma3 llava mllama paligemma idefics3 smolvlm pixtral",
    "an audio model": "whisper wav2vec2 parler_tts",
    "an encoder or embedding model": "bert roberta xlm-roberta distilbert modernbert nomic_bert mpnet deberta-v2 "
    "electra albert clip",
}


def check_folder(folder: Path) -> None:
    """Raise `ModelNotFoundError` for what is no folder with a config.json, `UnsupportedModelError` for an adapter."""
    if not folder.is_dir():
        raise ModelNotFoundError(f"{folder} is not a folder; give the path of a model folder or a .gguf file")
    if (folder / "adapter_config.json").exists():
        raise UnsupportedModelError(
            f"{folder} is a LoRA adapter (adapter_config.json), not a model; merge it into its base model"
        )
    if (folder / "config.json").exists():
        return
    files = sorted(folder.glob("*.gguf"))
    hint = f"give one of its files, such as {quoted(files[0].name)}" if files else "give a folder that holds a model"
    raise ModelNotFoundError(f"{folder} has no config.json; {hint}")


def check_kind(config: Settings) -> str:
    """The model type, which can be run. Raises `UnsupportedModelError` naming what else it is."""
    model_type = config.string("model_type")
    kind = _kind(config, model_type)
    if kind:
        raise config.unsupported(f"it is {kind} ({quoted(model_type)}), which is not supported")
    if model_type not in MODEL_TYPES:
        raise config.unsupported(f"model type {quoted(model_type)} is not supported, only {', '.join(MODEL_TYPES)} are")
    _check_purpose(config)
    _check_features(config, model_type)
    return model_type


def _kind(config: Settings, model_type: str) -> str:
    for key, kind in _MARKS.items():
        if key in config:
            return kind
    if any(config.integer(key, 0) > 1 for key in _EXPERT_COUNTS):
        return "a mixture of experts"
    if config.flag("is_encoder_decoder", False):
        return "an encoder-decoder model"
    return next((kind for kind, names in _KINDS.items() if model_type in names.split()), "")


def _check_purpose(config: Settings) -> None:
    """Classifiers and embedding models have the same types as the language models that they were made from."""
    for name in config.strings("architectures") if "architectures" in config else ():
        if not name.endswith("ForCausalLM"):
            raise config.unsupported(f"it is a {quoted(name)}, only language models (…ForCausalLM) are supported")


def _check_features(config: Settings, model_type: str) -> None:
    for key in ("quantization_config", "compression_config"):
        if key in config:
            method = config.section(key).string("quant_method", "an unnamed method")
            raise config.unsupported(f"its weights are quantised already, by {quoted(method)}, which is not supported")
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if key in config:
            raise config.unsupported(f"softcapping ({key}) is not supported")
    if config.flag("mlp_bias", False):
        raise config.unsupported("biases of the feed-forward layers (mlp_bias) are not supported")
    # A bias there comes with those that can be run; Qwen2 never has it, whatever its file says.
    if model_type != "qwen2" and config.flag("attention_bias", False):
        raise config.unsupported("a bias of attention's output projection (attention_bias) is not supported")
    if config.flag("use_bidirectional_attention", False):
        raise config.unsupported("it is an embedding model (use_bidirectional_attention), which is not supported")
