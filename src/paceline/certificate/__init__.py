"""Certificates: whether speculation left the text, or its distribution, as it is. Tokens and laws only, no engine."""

from paceline.certificate.betting import AcceptanceTest, acceptance_test
from paceline.certificate.comparison import Comparison, ComparisonTally, Difference, first_difference
from paceline.certificate.goodness import (
    MIN_DRAFTED,
    FitTally,
    GoodnessOfFit,
    ImpossibleToken,
    UniformityTest,
    uniformity_test,
)
from paceline.certificate.places import DraftLaw
from paceline.certificate.tail import chi_square_tail
from paceline.certificate.verdict import Certificate, DraftCounts, FailedAnswer, Verdict

__all__ = [
    "MIN_DRAFTED",
    "AcceptanceTest",
    "Certificate",
    "Comparison",
    "ComparisonTally",
    "Difference",
    "DraftCounts",
    "DraftLaw",
    "FailedAnswer",
    "FitTally",
    "GoodnessOfFit",
    "ImpossibleToken",
    "UniformityTest",
    "Verdict",
    "acceptance_test",
    "chi_square_tail",
    "first_difference",
    "uniformity_test",
]
