"""From a reference to an opened model, whatever kind of files it leads to."""

from pathlib import Path

from paceline.errors import UnsupportedModelError, UsageError
from paceline.models.base import Model
from paceline.models.gguf.model import GGUFModel
from paceline.models.quoting import quoted
from paceline.models.references import Progress, SilentProgress, resolve


def open_model(
    reference: Path | str,
    *,
    quantization: str | None = None,
    revision: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """Resolve a reference, fetching what is not here yet, and open what it leads to.

    `quantization` says how to pack the weights of a safetensors model. Raises as `resolve` does, and
    `ModelFormatError`, `UnsupportedModelError`, or `UsageError` for a quantization of a GGUF file, which is packed.
    """
    path = resolve(reference, revision=revision, progress=progress if progress is not None else SilentProgress())
    if path.is_dir():
        raise UnsupportedModelError(f"{quoted(path)} holds a safetensors model, only GGUF files are read; convert it")
    if quantization is not None:
        raise UsageError(f"{quoted(path)} is packed already: a quantization is for safetensors models; leave it out")
    return GGUFModel(path)
