"""What a certificate says: all evidence together, and the verdict that follows from it."""

from dataclasses import dataclass
from typing import Literal

from paceline.certificate.comparison import Comparison
from paceline.certificate.goodness import MIN_DRAFTED, MIN_TOKENS, GoodnessOfFit

Verdict = Literal["certified", "failed", "inconclusive"]


@dataclass(frozen=True, slots=True)
class DraftCounts:
    """Of the answers with speculation, as `paceline.telemetry.SpeculationStats` defines them."""

    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    mean_acceptance_length: float | None


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An answer that ended in an error, with speculation or without. `answer` as it was counted."""

    answer: int
    error: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """One of `comparison` and `fit`: the tokens of plain decoding were asked for, or their distribution. `failed` has
    answers that could not be judged. `numerics`: the margin up to which a different token is put down to rounding.
    """

    drafts: DraftCounts
    comparison: Comparison | None
    fit: GoodnessOfFit | None
    failed: tuple[FailedAnswer, ...] = ()
    numerics: float = 0.0
    is_interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        if self.faults:
            return "failed"
        return "inconclusive" if self.gaps else "certified"

    @property
    def faults(self) -> list[str]:
        """What speaks against speculation, a sentence each."""
        faults = []
        if self.failed:
            faults.append(f"{_count(len(self.failed), 'answer')} ended in an error: {self.failed[0].error}")
        if self.comparison is not None and self.comparison.num_faults:
            number = self.comparison.num_faults
            faults.append(f"{_count(number, 'answer')} {'differs' if number == 1 else 'differ'} from plain decoding")
        if self.fit is not None:
            if self.fit.num_impossible:
                faults.append(f"{_count(self.fit.num_impossible, 'token')} came that the target gives no probability")
            faults += [
                f"the {test.name} test fails: p is {test.p_value:.2g}, less than {test.threshold:.2g}"
                for test in self.fit.tests
                if test.has_failed
            ]
        return faults

    @property
    def gaps(self) -> list[str]:
        """What is missing for a verdict, a sentence each."""
        if self.is_interrupted:
            return ["it was interrupted"]  # whatever else is missing might have come
        gaps = []
        if not self.drafts.num_draft_tokens:
            gaps.append(
                "no draft was ever tried, so nothing of speculation was seen; try longer answers or other prompts"
            )
        elif self.fit is not None and (self.fit.num_tokens < MIN_TOKENS or self.fit.num_drafted < MIN_DRAFTED):
            gaps.append(
                f"{_count(self.fit.num_tokens, 'token')} came to a test, {self.fit.num_drafted:,} of them drafted, and "
                f"it takes {MIN_TOKENS} and {MIN_DRAFTED}; ask for more samples or longer ones"
            )
        return gaps

    @property
    def statement(self) -> str:
        """What was found, a sentence."""
        if self.verdict != "certified":
            return "; ".join(self.faults or self.gaps)
        if self.fit is not None:
            return (
                "the samples are distributed as the target's own, as far as these tests see; "
                f"they blame correct speculation about once in {1 / self.fit.false_alarm_rate:,.0f} times at most"
            )
        if self.comparison is not None and self.comparison.num_excused:
            return (
                f"every token is that of plain decoding up to numerics: where one differs, the two best choices lie no "
                f"further apart than {self.numerics:g}"
            )
        return "every token is that of plain decoding"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
