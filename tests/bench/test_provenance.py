"""What a result says of where it was made, and what of that makes figures comparable."""

import getpass
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from gguf_files import write_tiny_llama
from hf_files import write_folder

from paceline.bench.base import Item, Workload
from paceline.bench.provenance import (
    answers_fingerprint,
    command_line,
    fingerprint,
    machine_of,
    model_of,
    model_sha256,
    provenance,
    workload_sha256,
)
from paceline.models import open_model
from paceline.runtime.native import NativeOptions, NativeRuntime
from paceline.sampling_params import SamplingParams

WORKLOAD = Workload("mine", (Item("a", "chat", ("Hello",)), Item("b", "code", ("Write.", "Test it."), prediction="x")))
MACHINE = {"cpu": "A processor", "num_cpus": 2, "threads": 2, "isa": "avx2"}
MODEL = {"name": "tiny.gguf", "sha256": "0123", "weight_bytes": {"Q8_0": 5}}


def test_it_tells_versions_and_the_machine() -> None:
    told = provenance("paceline bench")
    assert told["command"] == "paceline bench"
    assert set(told) >= {"date", "cpu", "num_cpus", "memory_bytes", "system", "python", "numpy", "paceline", "native"}
    assert told["kernels"][-1] == "portable"
    assert told["num_cpus"] >= 1
    assert len(told["native"]) == 12
    assert json.loads(json.dumps(told)) == told


def test_commands_name_no_folder() -> None:
    home = f"/home/{getpass.getuser()}"
    given = ["bench", "-m", f"{home}/models/tiny.gguf", f"--json={home}/out.json", "--modes", "off,ngram:5"]
    assert command_line("paceline", given) == "paceline bench -m tiny.gguf --json=out.json --modes off,ngram:5"
    asked = ["bench", "-m", "some-org/some-repo:Q4_0", "--endpoint", "http://host:80/v1?a=b", "--json=../out.json"]
    assert command_line("paceline", asked) == (
        "paceline bench -m some-org/some-repo:Q4_0 --endpoint http://host:80/v1?a=b --json=out.json"
    )


def test_a_file_has_its_own_hash(tiny_llama_path: Path) -> None:
    expected = hashlib.sha256(tiny_llama_path.read_bytes()).hexdigest()
    assert model_sha256(tiny_llama_path) == expected
    with open_model(tiny_llama_path) as model:
        told = model_of(model)
        num_bytes = sum(info.num_bytes for info in model.tensors.values())
    assert told["name"] == tiny_llama_path.name
    assert told["sha256"] == expected
    assert sum(told["weight_bytes"].values()) == num_bytes


def test_a_model_of_several_files_has_one_hash_of_all(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "tiny.gguf", split_max_tensors=7)
    parts = sorted(tmp_path.iterdir())
    assert len(parts) == 3
    first = model_sha256(parts[0])
    assert model_sha256(parts[2]) == first
    parts[1].write_bytes(parts[1].read_bytes() + b"\0")
    assert model_sha256(parts[0]) != first


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_the_hash_of_a_folder_is_of_what_is_loaded(tmp_path: Path, name: str) -> None:
    write_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    first = model_sha256(tmp_path)
    (tmp_path / "README.md").write_text("of no matter")
    assert model_sha256(tmp_path) == first
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
    assert model_sha256(tmp_path) != first


def test_the_hash_of_a_workload_is_of_its_items() -> None:
    first = workload_sha256(WORKLOAD)
    assert workload_sha256(replace(WORKLOAD, name="other")) == first
    for items in (WORKLOAD.items[:1], WORKLOAD.items[::-1], (replace(WORKLOAD.items[0], max_tokens=5),)):
        assert workload_sha256(replace(WORKLOAD, items=items)) != first


def test_a_fingerprint_is_plain_json_and_differs_with_what_it_is_of() -> None:
    params = SamplingParams(64, temperature=0.5, seed=3, stop=["\n"], logit_bias={3: 1.0})
    first = fingerprint(MACHINE, MODEL, WORKLOAD, params)
    assert json.loads(json.dumps(first)) == first
    assert first["machine"] == MACHINE
    assert first["params"]["logit_bias"] == [[3, 1.0]]
    others = [
        fingerprint({**MACHINE, "threads": 1}, MODEL, WORKLOAD, params),
        fingerprint(MACHINE, {**MODEL, "sha256": "4567"}, WORKLOAD, params),
        fingerprint(MACHINE, {**MODEL, "weight_bytes": {"Q4_0": 3}}, WORKLOAD, params),
        fingerprint(MACHINE, MODEL, replace(WORKLOAD, items=WORKLOAD.items[1:]), params),
        fingerprint(MACHINE, MODEL, WORKLOAD, replace(params, max_tokens=65)),
        fingerprint(MACHINE, MODEL, WORKLOAD, replace(params, seed=4)),
    ]
    assert all(other != first for other in others)
    renamed = fingerprint(MACHINE, {**MODEL, "name": "copy.gguf"}, replace(WORKLOAD, name="copy"), params)
    assert renamed == first


def test_answers_depend_on_kernels_and_not_on_threads() -> None:
    first = answers_fingerprint(fingerprint(MACHINE, MODEL, WORKLOAD, SamplingParams(8)))
    for changes, is_equal in (({"threads": 1, "cpu": "Another"}, True), ({"isa": "portable"}, False)):
        other = fingerprint({**MACHINE, **changes}, MODEL, WORKLOAD, SamplingParams(8))
        assert (answers_fingerprint(other) == first) is is_equal


def test_the_machine_of_a_runtime(tiny_llama_path: Path) -> None:
    with open_model(tiny_llama_path) as model:
        runtime = NativeRuntime.load(model, NativeOptions(max_length=64, num_threads=1, isa="portable"))
    told = machine_of(runtime)
    assert (told["threads"], told["isa"]) == (1, "portable")
    assert told["cpu"]
