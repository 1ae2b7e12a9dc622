"""Which files of a repository make up the model that a reference means. Pure: names in, names out."""

import re
from collections.abc import Sequence
from fnmatch import fnmatch

from paceline.errors import ModelNotFoundError, UnsupportedModelError
from paceline.models.gguf.parts import model_files, part_names
from paceline.models.quoting import quoted
from paceline.models.references.base import HubReference

PREFERRED = "Q4_K_M"
"""Taken where a repository has several quantisations and the reference names none: small, and close to the original."""
_MAX_LISTED = 20
_LABEL = re.compile(r"(?<![A-Z0-9])(?:UD-)?(?:I?Q\d\w*|TQ\d_\d|MXFP4\w*|BF16|F16|FP16|F32)(?![A-Z0-9])", re.IGNORECASE)
_SMALL = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template.*",
    "additional_chat_templates/*.jinja",
)  # of a safetensors model, beside its weights


def choose_files(reference: HubReference, names: Sequence[str], *, is_offline: bool = False) -> list[str]:
    """The files to fetch, all parts of a split one; `config.json` first where it is a safetensors model.

    `is_offline`: the names are only what is cached of the repository. Raises `ModelNotFoundError`, which lists what
    there is, where nothing or more than one model fits, and `UnsupportedModelError` where no file can be read.
    """
    where = f"{quoted(reference.repository)}{' in the cache (the hub cannot be reached)' if is_offline else ''}"
    if reference.file is not None:
        chosen = reference.file
        if chosen not in names:
            raise ModelNotFoundError(f"{where} has no file {quoted(chosen)}; {_listed(names)}")
    else:
        models = model_files(names)
        if not models and reference.quantization is None:
            return _safetensors_files(where, names)
        chosen = _choose_model(where, models, reference.quantization)
    return _whole(where, names, [chosen])


def safetensors_weights(names: Sequence[str]) -> list[str]:
    """The safetensors files of a Hugging Face model, sorted."""
    weights = sorted(name for name in names if name.endswith(".safetensors") and "/" not in name)
    return [name for name in weights if name.startswith("model")] or weights


def safetensors_files(names: Sequence[str]) -> list[str]:
    """What belongs to a Hugging Face model, of what is there: `config.json`, other small files, and its weights."""
    small = [name for name in names if name != "config.json" and any(fnmatch(name, pattern) for pattern in _SMALL)]
    indexes = [name for name in names if name == "model.safetensors.index.json"]
    return ["config.json", *sorted(small), *indexes, *safetensors_weights(names)]


def has_label(name: str, label: str) -> bool:
    """Whether a file, by its own name or its folder's, is of the quantisation `label`; `UD-` is part of a label."""
    before = "[-._/ ]" if _LABEL.fullmatch(label) else "[-./ ]"  # `K_M` is none of its own in `Q4_K_M`
    pattern = rf"(?:^|(?<!\bUD-)(?<={before})){re.escape(label)}(?=[-./ ]|$)"
    return re.search(pattern, name, re.IGNORECASE) is not None


def _whole(where: str, names: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """All parts of what is chosen, each once."""
    parts = dict.fromkeys(part for name in chosen for part in part_names(name))
    missing = [name for name in parts if name not in names]
    if missing:
        raise ModelNotFoundError(f"{where} has not all parts of a split model: {quoted(missing[0])} is missing")
    return list(parts)


def _choose_model(where: str, models: list[str], quantization: str | None) -> str:
    fitting = [name for name in models if has_label(name, quantization or PREFERRED)]
    if not fitting and quantization is None and len(models) == 1:
        return models[0]
    if len(fitting) == 1:
        return fitting[0]
    wanted = f"{quantization} model" if quantization else f"{PREFERRED} model to take by default"
    if fitting:
        raise ModelNotFoundError(f"{where} has more than one {wanted}; give the file: {_shown(fitting)}")
    raise ModelNotFoundError(f"{where} has no {wanted}; {_listed(models)}")


def _listed(names: Sequence[str]) -> str:
    models = model_files(names)
    labels = [found[-1].upper() if (found := _LABEL.findall(name)) else "" for name in models]
    is_clear = all(labels) and len(set(labels)) == len(labels)
    return f"there is {_shown(labels if is_clear else models)}" if models else "it has no .gguf files"


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(quoted(name) for name in names[:_MAX_LISTED]) + more


def _safetensors_files(where: str, names: Sequence[str]) -> list[str]:
    """A Hugging Face model's own files; never pickles, nor the same weights in other formats."""
    weights = safetensors_weights(names)
    if "config.json" not in names or not weights:
        pickled = any(name.endswith((".bin", ".pt", ".pth")) for name in names)
        found = "only weights in pickle files, which can run code and are not read" if pickled else "neither"
        raise UnsupportedModelError(
            f"{where} has no model: .gguf files, or config.json and .safetensors files, are needed, it has {found}"
        )
    _whole(where, names, weights)
    return safetensors_files(names)
