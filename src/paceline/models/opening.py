"""From a reference to an opened model, whatever kind of files it leads to."""

from pathlib import Path

from paceline.models.base import Model
from paceline.models.gguf.model import GGUFModel
from paceline.models.references import Progress, SilentProgress, resolve


def open_model(reference: Path | str, *, progress: Progress | None = None) -> Model:
    """Resolve a reference, fetching what is not here yet, and open what it leads to.

    Raises `ModelNotFoundError`, `FetchError`, `ModelFormatError` or `UnsupportedModelError`.
    """
    return GGUFModel(resolve(reference, progress=progress if progress is not None else SilentProgress()))
