"""The cache of tokenizer.json files: the same tokenizer from it, and never a failure because of it."""

import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizer_folders import byte_level, sentencepiece, write_folder

from paceline.models import Tokenizer


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A folder whose tokenizer.json is large enough to be cached, and the cache's folder."""
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    folder = write_folder(tmp_path / "model", sentencepiece(None))
    file = folder / "tokenizer.json"
    file.write_text(file.read_text() + " " * (1 << 20))
    return folder, tmp_path / "cache" / "tokenizers"


def entries(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.exists() else []


def test_a_cached_tokenizer_is_the_same(cached: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = cached
    built = Tokenizer.from_folder(folder)
    assert len(entries(cache)) == 1
    monkeypatch.setattr("paceline.models.tokenizer.cache._parse", lambda *_: pytest.fail("parsed again"))
    again = Tokenizer.from_folder(folder)
    for text in ("hello world", "<tool>the\u00e9", ""):
        assert again.encode(text) == built.encode(text)
    assert again.special_tokens == built.special_tokens


def test_tokens_of_control_characters_leave_merges_whole(cached: tuple[Path, Path]) -> None:
    """Every character below the space is taken: what parts the strings of an entry must not be the space of merges."""
    folder, cache = cached
    content = sentencepiece(None)
    every = "".join(map(chr, range(32)))
    content["added_tokens"].append(
        {
            **content["added_tokens"][-1],
            "id": 1
            + max(
                token["id"]
                for token in [*content["added_tokens"], *({"id": i} for i in content["model"]["vocab"].values())]
            ),
            "content": every,
        }
    )
    (folder / "tokenizer.json").write_text(json.dumps(content) + " " * (1 << 20))
    built, again = (Tokenizer.from_folder(folder) for _ in range(2))
    assert len(entries(cache)) == 1
    assert again.encode("hello world") == built.encode("hello world")


def test_another_file_is_another_entry(cached: tuple[Path, Path]) -> None:
    folder, cache = cached
    before = Tokenizer.from_folder(folder)
    content = sentencepiece(None)
    content["added_tokens"].pop()
    (folder / "tokenizer.json").write_text(json.dumps(content) + " " * (1 << 20))
    assert Tokenizer.from_folder(folder).vocab_size == before.vocab_size - 1
    assert len(entries(cache)) == 2


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda _: b"", lambda data: data[:70] + b"x" + data[71:]])
def test_damaged_entries_are_made_anew(cached: tuple[Path, Path], damage: Callable[[bytes], bytes]) -> None:
    folder, cache = cached
    ids = Tokenizer.from_folder(folder).encode("hello world")
    (entry,) = entries(cache)
    sound = entry.read_bytes()
    entry.write_bytes(damage(sound))
    assert Tokenizer.from_folder(folder).encode("hello world") == ids
    assert entry.read_bytes() == sound


def test_without_a_cache_all_still_works(cached: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = cached
    cache.parent.mkdir()
    cache.write_text("in the way")
    ids = Tokenizer.from_folder(folder).encode("hello")
    monkeypatch.setenv("PACELINE_CACHE", "~no-such-user-at-all/cache")
    assert Tokenizer.from_folder(folder).encode("hello") == ids


def test_several_writers_leave_one_sound_entry(cached: tuple[Path, Path]) -> None:
    folder, cache = cached
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(Tokenizer.from_folder(folder).encode("hello"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 4
    (entry,) = entries(cache)
    assert stat.S_ISREG(entry.stat().st_mode)


def test_small_files_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    Tokenizer.from_folder(write_folder(tmp_path / "model", byte_level()))
    assert entries(tmp_path / "cache" / "tokenizers") == []
