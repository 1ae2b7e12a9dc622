"""What `paceline bench` was given."""

from dataclasses import dataclass
from pathlib import Path

from paceline.cli.options import QuantizationName, RuleName


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """A field for each option; `paceline bench --help` says what they mean."""

    model: str
    workload: str
    skip_bad_lines: bool
    num_prompts: int | None
    task_class: list[str]
    modes: str | None
    num_speculative_tokens: str | None
    rule: RuleName
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    ignore_eos: bool
    concurrency: str | None
    request_rate: str | None
    burstiness: float
    rounds: int | None
    duration: float | None
    seed: int
    prefix_caching: bool
    replay: bool
    record: Path | None
    slo: str | None
    require: str | None
    price_per_hour: float | None
    endpoint: str | None
    baseline_endpoint: str | None
    endpoint_model: str | None
    api_key_env: str | None
    json: Path | None
    report: Path | None
    advise: Path | None
    quantization: QuantizationName | None
    max_model_len: int | None
    threads: int | None
