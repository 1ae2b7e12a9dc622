"""From a reference to an opened model, whatever kind of files it leads to."""

from pathlib import Path

from paceline.errors import UsageError
from paceline.models.base import Model
from paceline.models.gguf.model import GGUFModel
from paceline.models.hf import DEFAULT_QUANTIZATION, HFModel, Quantization, check_quantization
from paceline.models.quoting import quoted
from paceline.models.references import Progress, SilentProgress, resolve


def open_model(
    reference: Path | str,
    *,
    quantization: Quantization | None = None,
    revision: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """Resolve a reference, fetching what is not here yet, and open what it leads to.

    `quantization` says how to pack the weights of a safetensors model, by default in 8 bits. Raises as `resolve` does,
    and `ModelFormatError`, `UnsupportedModelError`, or `UsageError` for a quantization of a GGUF file, which has one.
    """
    path = resolve(reference, revision=revision, progress=progress if progress is not None else SilentProgress())
    if path.is_dir():
        return HFModel(path, DEFAULT_QUANTIZATION if quantization is None else quantization)
    if quantization is not None:
        check_quantization(quantization)
        raise UsageError(
            f"{quoted(path)} is a GGUF file and runs as it is packed; leave out quantization, which is for safetensors"
        )
    return GGUFModel(path)
