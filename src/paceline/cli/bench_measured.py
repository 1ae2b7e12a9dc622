"""What a measurement hands over, whatever ended it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.bench.experiment import Experiment, Judging
from paceline.bench.result import ReplayRun, Result


@dataclass(frozen=True, slots=True)
class Measured:
    """`experiment` has at least one block; its `failure` is what ended it early."""

    experiment: Experiment
    judging: Judging
    provenance: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    replay: Sequence[ReplayRun] = ()

    def result(self) -> Result:
        return self.experiment.result(self.judging, self.provenance, self.fingerprint, self.replay)
