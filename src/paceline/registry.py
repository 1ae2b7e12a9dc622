"""Names to implementations, for every subsystem that a user chooses by name. Knows nothing of what it holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Generic, TypeVar

from paceline.errors import UsageError

T = TypeVar("T")


class Registry(Mapping[str, Callable[..., T]], Generic[T]):
    """A read-only map from name to factory. `kind` is the word that error messages use, such as "proposer"."""

    def __init__(self, kind: str, factories: Mapping[str, Callable[..., T]]) -> None:
        self._kind = kind
        self._factories = dict(factories)

    def __getitem__(self, name: str) -> Callable[..., T]:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def create(self, name: str, options: Mapping[str, object]) -> T:
        """The implementation called `name`, built with `options`. Raises UsageError for an unknown or missing one."""
        if name not in self._factories:
            raise UsageError(f"unknown {self._kind} {name!r}{_hint(name, self._factories)}")
        factory = self._factories[name]
        parameters = signature(factory).parameters
        for option in options:
            if option not in parameters:
                raise UsageError(f"{self._kind} {name!r} has no option {option!r}{_hint(option, parameters)}")
        for parameter in parameters.values():
            if parameter.default is parameter.empty and parameter.name not in options:
                raise UsageError(f"{self._kind} {name!r} needs the option {parameter.name!r}")
        return factory(**options)


def _hint(given: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = get_close_matches(given, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; choose from {', '.join(names)}" if names else "; it has none"
