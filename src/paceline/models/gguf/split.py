"""A model that is split into several GGUF files, opened as one."""

from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ModelFormatError, ModelNotFoundError
from paceline.models.gguf.file import GGUFFile
from paceline.models.gguf.metadata import Metadata
from paceline.models.gguf.parts import parse_part, part_names
from paceline.models.quoting import quoted

_COUNT, _NUMBER, _NUM_TENSORS = "split.count", "split.no", "split.tensors.count"


def open_gguf(path: Path | str) -> GGUFFile:
    """Open a model whole: the file, or all the parts where it is one of several. Raises as `GGUFFile.open` does."""
    part = parse_part(Path(path).name)
    if part is not None and part.total > 1:
        return SplitGGUFFile.open(path)
    file = GGUFFile.open(path)
    if file.metadata.integer(_COUNT, 1) > 1:
        file.close()
        raise ModelFormatError(
            f"{path} is a part of a split model, but not named so; name the parts NAME-00001-of-0000N.gguf and so on"
        )
    return file


class SplitGGUFFile(GGUFFile):
    """All parts of one model: the metadata of the first, without what it says of parts, and the tensors of all.

    `path` is the first part. A tensor's offset counts in its own part.
    """

    def __init__(self, parts: list[GGUFFile]) -> None:
        """Takes the opened parts, in order, and checks that they belong together; `ModelFormatError` if not."""
        first = parts[0]
        values = {key: value for key, value in first.metadata.items() if not key.startswith("split.")}
        self.path = first.path
        self.metadata = Metadata(values, first.path)
        self._homes = _place_tensors(parts)
        self.tensors = MappingProxyType({name: part.tensors[name] for name, part in self._homes.items()})
        self._parts = parts

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the parts that belong together with the one at `path`."""
        path = Path(path)
        paths = [path.with_name(name) for name in part_names(path.name)]
        missing = [part.name for part in paths if not part.exists()]
        if missing:
            raise ModelNotFoundError(
                f"{path} is a part of a split model, but {quoted(missing[0])}"
                f"{f' and {len(missing) - 1} more are' if len(missing) > 1 else ' is'} not beside it; fetch all parts"
            )
        with ExitStack() as stack:
            parts = [stack.enter_context(GGUFFile.open(part)) for part in paths]
            _check_numbers(parts)
            whole = cls(parts)
            stack.pop_all()
        return whole

    def data(self, name: str) -> NDArray[np.uint8]:
        return self._homes[name].data(name)

    def release(self, name: str) -> None:
        self._homes[name].release(name)

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _check_numbers(parts: list[GGUFFile]) -> None:
    num_tensors = parts[0].metadata.integer(_NUM_TENSORS, -1)
    for index, part in enumerate(parts):
        expected = {_COUNT: len(parts), _NUMBER: index, _NUM_TENSORS: num_tensors}
        for key, value in expected.items():
            found = part.metadata.integer(key, -1)  # no part is without them
            if found != value or found < 0:
                says = f"has {key} {found}" if found >= 0 else f"has no {key}"
                raise _mixed(part, f"{says}, expected {value}" if value >= 0 else says)


def _place_tensors(parts: list[GGUFFile]) -> dict[str, GGUFFile]:
    homes: dict[str, GGUFFile] = {}
    for part in parts:
        for name in part.tensors:
            if name in homes:
                raise _mixed(part, f"holds tensor {quoted(name)}, which {quoted(homes[name].path.name)} holds too")
            homes[name] = part
    expected = parts[0].metadata.integer(_NUM_TENSORS)
    if len(homes) != expected:
        raise _mixed(parts[0], f"promises {expected} tensors, but all parts together hold {len(homes)}")
    return homes


def _mixed(part: GGUFFile, problem: str) -> ModelFormatError:
    return ModelFormatError(f"{part.path} {problem}: the parts are not those of one model; fetch them all again")
