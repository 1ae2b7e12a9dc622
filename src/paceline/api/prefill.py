"""Shows the reading of a long prompt."""

from paceline.models import Progress

MIN_TOKENS = 1024  # a shorter prompt is read before a bar could be


class PrefillProgress:
    """Turns prefill rows into a stage of a `Progress`, one prompt at a time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = 0

    def advance(self, num_prompt_tokens: int, num_rows: int) -> None:
        """`num_rows` more of a prompt's tokens have been read."""
        if num_prompt_tokens < MIN_TOKENS:
            return
        if self._done == 0:
            self._progress.begin("Reading the prompt", num_prompt_tokens)
        self._done += num_rows
        self._progress.update(self._done)
        if self._done >= num_prompt_tokens:
            self.end()

    def end(self) -> None:
        """The prompt has been read, or nobody waits for it any more."""
        if self._done > 0:
            self._done = 0
            self._progress.end()
