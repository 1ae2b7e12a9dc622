"""Certificates: whether speculation left the text, or its distribution, as it is. Tokens and laws only, no engine."""

from paceline.certificate.comparison import Comparison, ComparisonTally, Difference, first_difference
from paceline.certificate.goodness import (
    MIN_TOKENS,
    FitTally,
    GoodnessOfFit,
    ImpossibleToken,
    UniformityTest,
    uniformity_test,
)
from paceline.certificate.tail import chi_square_tail
from paceline.certificate.verdict import Certificate, DraftCounts, FailedAnswer, Verdict

__all__ = [
    "MIN_TOKENS",
    "Certificate",
    "Comparison",
    "ComparisonTally",
    "Difference",
    "DraftCounts",
    "FailedAnswer",
    "FitTally",
    "GoodnessOfFit",
    "ImpossibleToken",
    "UniformityTest",
    "Verdict",
    "chi_square_tail",
    "first_difference",
    "uniformity_test",
]
