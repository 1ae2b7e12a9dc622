"""The model in a folder: its one GGUF file, or the folder itself where it is a Hugging Face model."""

from pathlib import Path

from paceline.errors import ModelNotFoundError
from paceline.models.gguf.parts import model_files
from paceline.models.quoting import quoted

_MAX_LISTED = 20


def model_in_folder(folder: Path) -> Path:
    """The GGUF file, the first part of a split one, or the folder where it holds config.json and safetensors.

    Raises `ModelNotFoundError` for a folder that holds no model, or several.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {quoted(folder)}: {error.strerror}; give another folder") from error
    models = model_files(names)
    if len(models) == 1:
        return folder / models[0]
    if models:
        listed = ", ".join(quoted(name) for name in models[:_MAX_LISTED])
        raise ModelNotFoundError(f"{quoted(folder)} holds {len(models)} models; give the path of one: {listed}")
    if "config.json" in names and any(name.endswith(".safetensors") for name in names):
        return folder
    raise ModelNotFoundError(
        f"{quoted(folder)} is a folder without a model: a .gguf file, or config.json and .safetensors files, are needed"
    )
