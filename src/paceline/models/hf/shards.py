"""The weights of a model folder: one safetensors file, or several under an index that says what is where."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError, UnsupportedModelError
from paceline.models.hf.safetensors import SafetensorsFile, StoredTensor
from paceline.models.hf.settings import read_settings
from paceline.models.quoting import quoted

_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class Shards:
    """The tensors of all files as one table. Views from `data` stay valid after `close`."""

    def __init__(self, folder: Path) -> None:
        """Raises `ModelNotFoundError`, `ModelFormatError` or `UnsupportedModelError`."""
        names, places = _file_names(folder)
        self._files: dict[str, SafetensorsFile] = {}
        tensors: dict[str, StoredTensor] = {}
        for file_name in names:
            file = SafetensorsFile.open(folder / file_name)
            for name, info in file.tensors.items():
                if name in tensors:
                    raise _malformed(folder, f"tensor {quoted(name)} is in {quoted(file_name)} and in another file")
                if places.get(name, file_name) != file_name:
                    raise _malformed(
                        folder,
                        f"tensor {quoted(name)} is in {quoted(file_name)}, its index says {quoted(places[name])}",
                    )
                tensors[name] = info
                self._files[name] = file
        missing = next((name for name in places if name not in tensors), None)
        if missing is not None:
            raise _malformed(
                folder, f"{quoted(places[missing])} lacks tensor {quoted(missing)}, which its index promises"
            )
        self.tensors: Mapping[str, StoredTensor] = MappingProxyType(tensors)

    def data(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor: a read-only view of its file, aligned to nothing."""
        return self._files[name].data(name)

    def release(self, name: str) -> None:
        self._files[name].release(name)

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _file_names(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The files to read, and where the index, if there is one, places each tensor."""
    if (folder / _WHOLE).exists():
        return [_WHOLE], {}
    if not (folder / _INDEX).exists():
        raise _without_weights(folder)
    weight_map = read_settings(folder / _INDEX).section("weight_map")
    places = {name: weight_map.string(name) for name in weight_map.keys()}  # noqa: SIM118 (no mapping)
    for file_name in places.values():
        if Path(file_name).name != file_name or not file_name.endswith(".safetensors") or not file_name.isprintable():
            raise weight_map.malformed(f"{quoted(file_name)} is not the name of a .safetensors file in this folder")
    if not places:
        raise weight_map.malformed("the index names no tensor")
    return sorted(set(places.values())), places


def _without_weights(folder: Path) -> ModelFormatError | UnsupportedModelError:
    others = sorted(path.name for path in folder.iterdir() if path.suffix in (".safetensors", ".bin", ".pt", ".pth"))
    if others:
        is_misnamed = others[0].endswith(".safetensors")
        advice = f"name it {_WHOLE}, or fetch the index of its shards" if is_misnamed else "convert it to safetensors"
        return UnsupportedModelError(f"{folder} holds {quoted(others[0])}, but neither {_WHOLE} nor {_INDEX}; {advice}")
    return _malformed(folder, f"there is neither {_WHOLE} nor {_INDEX}")


def _malformed(folder: Path, what: str) -> ModelFormatError:
    return ModelFormatError(f"{folder}: {what}; fetch it again")
