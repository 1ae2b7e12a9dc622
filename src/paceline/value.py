"""The values that a step is made of: frozen to the type checker, and cheap to make.

`dataclass(frozen=True)` stores every field through `object.__setattr__`. A step makes a dozen values of up to ten
fields each, and those calls were a tenth of its Python time or more.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """A dataclass with slots that nobody assigns to: the type checker refuses it, the interpreter does not look."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
