"""Memory and energy: sizes of objects by what they hold, and counters in a folder like the system's."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paceline.bench.machine import EnergyMeter, deep_size, model_memory
from paceline.models import TensorRole, open_model
from paceline.proposers import NgramProposer
from paceline.runtime.native import NativeOptions, NativeRuntime


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first: object, second: object) -> None:
        self.first, self.second = first, second


class Holder:
    def __init__(self, held: object) -> None:
        self.held = held
        self.itself = self  # a cycle

    def method(self) -> None: ...


def test_each_object_counts_once() -> None:
    text = "x" * 10_000
    one = deep_size([text])
    assert one == sys.getsizeof([text]) + sys.getsizeof(text)
    assert deep_size([text, text]) - one < 100
    assert deep_size(Slotted(text, text)) == deep_size(Slotted(text, None)) - sys.getsizeof(None)
    assert deep_size(Holder({text: [text]})) > 10_000
    assert deep_size(Holder(text)) < 11_000


def test_arrays_count_what_lies_behind_them() -> None:
    whole = np.zeros((1000, 10), np.float32)
    views = [whole[:5], whole[7:], whole.T]
    assert 40_000 <= deep_size(views) < 41_000
    assert 40_000 <= deep_size([whole, *views]) < 41_000
    texts = np.array(["x" * 5000, "y" * 5000], dtype=object)
    assert 10_000 < deep_size(texts) < 11_000


def test_what_is_shared_and_what_is_program_does_not_count() -> None:
    big = Holder("x" * 10_000)
    assert deep_size(Slotted(big, [1]), shared=[big]) < 500
    assert deep_size([big.method, Holder, np, deep_size, len]) < 500


def test_a_proposer_grows_with_what_it_remembers() -> None:
    proposer = NgramProposer()
    empty = deep_size(proposer)
    proposer.start(0, [1, 2, 3, 4, 5] * 10, "")
    short = deep_size(proposer)
    proposer.extend(0, range(1000))
    long = deep_size(proposer)
    assert empty < short
    assert long > short + 1000 * sys.getsizeof((1, 2, 3))
    proposer.finish(0)
    assert deep_size(proposer) < short


def test_a_runtime_counts_with_weights_and_pages(tiny_llama_path: Path) -> None:
    with open_model(tiny_llama_path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=64))
        embedding, is_tied = model.tensors[TensorRole("embedding")].num_bytes, model.config.is_head_tied
    memory = model_memory(runtime)
    assert memory["target"] == runtime.weight_bytes + (0 if is_tied else embedding)
    assert memory["caches"] == runtime.cache_bytes > 0
    assert sum(memory.values()) <= deep_size([runtime]) < sum(memory.values()) + 100_000
    assert deep_size([runtime], shared=[runtime]) < 100


@pytest.mark.parametrize("is_tied", [True, False])
def test_an_embedding_of_its_own_is_memory_too(tmp_path: Path, is_tied: bool) -> None:
    from hf_files import config_of, write_folder

    write_folder(tmp_path, config_of(tie_word_embeddings=is_tied))
    with open_model(tmp_path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=64))
        embedding = model.tensors[TensorRole("embedding")].num_bytes
    assert runtime.embedding_bytes == (0 if is_tied else embedding)


PEAKS = """
from paceline.bench.machine import peak_rss_bytes
before = peak_rss_bytes()
block = b"x" * (before + 50_000_000)  # more than there ever was
after = peak_rss_bytes()
del block
print(before, after, peak_rss_bytes())
"""


def test_the_peak_never_falls() -> None:
    """In a process of its own: nobody knows how high this one's has been."""
    result = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True)
    before, after, later = map(int, result.stdout.split())
    assert before > 10_000_000
    assert after >= before + 50_000_000
    assert later >= after


def write_zone(root: Path, name: str, kind: str, energy: int, most: int = 999_999) -> Path:
    zone = root / "sys" / "class" / "powercap" / name
    zone.mkdir(parents=True, exist_ok=True)
    for file, content in (("name", kind), ("energy_uj", energy), ("max_energy_range_uj", most)):
        (zone / file).write_text(f"{content}\n")
    return zone


def test_energy_of_packages_and_their_memory(tmp_path: Path) -> None:
    kinds = {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core",
        "intel-rapl:0:1": "dram",
        "intel-rapl:1": "package-1",
        "intel-rapl:2": "psys",
    }
    for name, kind in kinds.items():
        write_zone(tmp_path, name, kind, 100)
    meter = EnergyMeter(tmp_path)
    begin = meter.read()
    assert begin is not None
    for name, kind in kinds.items():
        write_zone(tmp_path, name, kind, 100 + 2_000 * (1 + list(kinds).index(name)))
    assert meter.joules(begin, meter.read()) == pytest.approx((1 + 3 + 4) * 2_000 / 1e6)
    assert meter.joules(begin, begin) == 0.0


def test_a_counter_that_begins_anew(tmp_path: Path) -> None:
    write_zone(tmp_path, "intel-rapl:0", "package-0", 999_990)
    meter = EnergyMeter(tmp_path)
    begin = meter.read()
    write_zone(tmp_path, "intel-rapl:0", "package-0", 10)
    assert meter.joules(begin, meter.read()) == pytest.approx(20 / 1e6)


def test_no_counters_no_energy(tmp_path: Path) -> None:
    zone = write_zone(tmp_path, "intel-rapl:0", "package-0", 5)
    (zone / "energy_uj").write_text("no number")
    other = write_zone(tmp_path, "intel-rapl:1", "package-1", 5)
    (other / "max_energy_range_uj").unlink()
    for root in (tmp_path, tmp_path / "nothing"):
        meter = EnergyMeter(root)
        assert meter.read() is None
        assert meter.joules(meter.read(), meter.read()) is None
