"""`paceline bench`: from options to a measurement, and from that to tables, files and an exit status."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import typer

from paceline.bench.advice import write_configuration
from paceline.bench.base import Target, Workload
from paceline.bench.experiment import Experiment, Judging
from paceline.bench.report import Progress, check_plots, live_view, print_result, write
from paceline.bench.requirements import parse_requirements, parse_slo, unmet
from paceline.bench.result import Result, write_result
from paceline.bench.settings import Settings, parse_ks, parse_loads, parse_modes, trace_load
from paceline.bench.workloads import load_workload, select
from paceline.cli.failures import EXIT_FAILURE, complain
from paceline.cli.interrupts import EXIT_INTERRUPTED
from paceline.cli.options import QuantizationName, RuleName
from paceline.errors import UsageError
from paceline.models.quoting import quoted
from paceline.sampling_params import SamplingParams
