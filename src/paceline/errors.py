"""The errors that a user can cause. Each message names what was given, what was expected and what to do.

The command line prints them as one line and exits with `exit_status`; a traceback appears only under `--debug`.
"""


class PacelineError(Exception):
    """Base of every error that is the environment's or the input's doing, not a defect of this package."""

    exit_status = 1


class PacelineWarning(UserWarning):
    """Something works, but perhaps not as intended: the message says what was assumed."""


class UsageError(PacelineError):
    """The request itself cannot be served: an option, a prompt or a parameter is out of range."""

    exit_status = 2


class ModelNotFoundError(PacelineError):
    """A model reference names nothing that exists."""


class ModelFormatError(PacelineError):
    """A model file is not what it claims to be: wrong magic, truncated, or its numbers contradict each other."""


class UnsupportedModelError(PacelineError):
    """A model file is sound, but holds an architecture, tensor type or tokenizer that this version cannot run."""


class FetchError(PacelineError):
    """A download failed: no network, no space, or content with the wrong hash."""


class UnsoundEngineError(PacelineError):
    """An engine found its own books in disorder and serves no more, rather than serve wrong text."""


class EngineDeadError(PacelineError):
    """An engine answers nothing more: something failed in it, which is the `__cause__`, or it was closed."""
