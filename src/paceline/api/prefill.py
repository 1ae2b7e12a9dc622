"""Shows the reading of a long prompt."""

from paceline.models import Progress

MIN_TOKENS = 1024  # a shorter prompt is read before a bar could be


class PrefillProgress:
    """Turns prefill rows into a stage of a `Progress`, for one prompt at a time: the first that is long enough."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._sequence: int | None = None  # whose prompt the stage shows; None while there is no stage
        self._done = self._total = 0

    def advance(self, sequence: int, num_prompt_tokens: int, num_rows: int, is_last: bool) -> None:
        """`num_rows` more of the tokens of `sequence`'s prompt have been read, with `is_last` all that were left.

        Only that says when to end: what was in the cache is read by nobody, so the rows may be fewer than the tokens.
        """
        if self._sequence not in (None, sequence):
            return
        if self._sequence is None:
            if is_last or num_prompt_tokens < MIN_TOKENS:
                return  # there is nothing to wait for
            self._sequence, self._done = sequence, 0
            self._progress.begin("Reading the prompt", num_prompt_tokens)
            self._total = num_prompt_tokens
        self._done = self._total if is_last else min(self._done + num_rows, self._total)
        self._progress.update(self._done)
        if is_last:
            self.end(sequence)

    def end(self, sequence: int) -> None:
        """The prompt of `sequence` has been read, or nobody waits for it any more."""
        if self._sequence == sequence:
            self._sequence = None
            self._progress.end()
