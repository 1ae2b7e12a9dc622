"""Whether an engine may still be trusted: checked whenever it is idle, and final once it is not."""

import logging
from collections.abc import Callable

from paceline.cache.base import IntegrityError
from paceline.errors import UnsoundEngineError

_LOG = logging.getLogger(__name__)


class Health:
    """`num_failures`: checks that found something wrong."""

    def __init__(self) -> None:
        self._finding: str | None = None
        self.num_failures = 0

    @property
    def is_sound(self) -> bool:
        return self._finding is None

    def require(self) -> None:
        """Raise UnsoundEngineError after a check that failed."""
        if self._finding is not None:
            raise UnsoundEngineError(
                f"the engine's books do not agree ({self._finding}), so it takes no more requests: its answers could "
                "be wrong. Restart it, and please report this"
            )

    def examine(self, check: Callable[[], None]) -> None:
        """Look whether everything is where it should be. A failure is logged, counted and kept."""
        try:
            check()
        except IntegrityError as error:
            self.fail(error)

    def fail(self, error: IntegrityError) -> None:
        self.num_failures += 1
        self._finding = str(error)
        _LOG.error("integrity check failed, no more requests are taken: %s", error)
