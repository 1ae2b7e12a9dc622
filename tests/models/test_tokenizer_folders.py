"""Tokenizers of Hugging Face folders: ids equal the library's over the same file, settings honoured, faults named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_folders import added, byte_level, sentencepiece, template, unigram, write_folder

from paceline.errors import ModelFormatError, ModelNotFoundError, UnsupportedModelError
from paceline.models import Tokenizer

SPACE = "\u2581"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text("helo wrd<tool>\n '1", max_size=80)


KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "byte-level": byte_level,
    "composing": lambda: byte_level(normalizer={"type": "NFC"}),
    "prepending": lambda: sentencepiece(None),
    "metaspace": lambda: sentencepiece("first"),
    "unigram": unigram,
}


def ordinary(content: dict[str, Any]) -> tokenizers.Tokenizer:
    """The library's own, without control tokens: their names are text here."""
    kept = [token for token in content["added_tokens"] if not token["special"]]
    return tokenizers.Tokenizer.from_str(json.dumps({**content, "added_tokens": kept, "post_processor": None}))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_equal_those_of_the_library(kind: str, tmp_path: Path) -> None:
    content = KINDS[kind]()
    tokenizer = Tokenizer.from_folder(write_folder(tmp_path / "model", content))
    library = ordinary(content)

    @settings(deadline=None, max_examples=300)
    @given(text=TEXT)
    def check(text: str) -> None:
        ids = tokenizer.encode_pieces([text])[1:]
        assert ids == library.encode(text, add_special_tokens=False).ids
        assert not any(tokenizer.is_special(i) for i in ids)
        assert tokenizer.min_num_tokens(text) <= len(ids)
        if kind != "composing" and SPACE not in text and "<tool>" not in text:
            is_prefix_shared = kind in ("metaspace", "unigram")  # then a text's own first space counts as the prefix
            assert tokenizer.decode(ids) == (text.removeprefix(" ") if is_prefix_shared else text)

    check()


def test_only_the_first_text_gets_a_space_where_the_file_says_so(tmp_path: Path) -> None:
    first = Tokenizer.from_folder(write_folder(tmp_path / "first", sentencepiece("first")))
    every = Tokenizer.from_folder(write_folder(tmp_path / "every", sentencepiece("always")))
    tool = first.encode("<tool>")[1:-1]
    assert len(tool) == 1

    def spelt(tokenizer: Tokenizer) -> list[bytes]:
        return [tokenizer.token_bytes(i) for i in tokenizer.encode("hello<tool>world")]

    assert spelt(first) == [b"<s>", b" hello", b"<tool>", b"world", b"</s>"]
    assert spelt(every) == [b"<s>", b" hello", b"<tool>", b" world", b"</s>"]


def test_what_stands_around_a_text(tmp_path: Path) -> None:
    both = Tokenizer.from_folder(write_folder(tmp_path / "both", sentencepiece(None)))
    assert (both.add_bos, both.add_eos, both.bos_id, both.eos_id) == (True, True, 1, 2)
    config = {"add_bos_token": False, "add_eos_token": False, "eos_token": {"content": "</s>"}}
    neither = Tokenizer.from_folder(write_folder(tmp_path / "neither", sentencepiece(None), tokenizer_config=config))
    assert neither.encode("hello") == both.encode("hello")[1:-1]
    config = {"add_bos_token": True, "bos_token": "<|begin|>"}
    plain = byte_level(post_processor=None)
    told = Tokenizer.from_folder(write_folder(tmp_path / "told", plain, tokenizer_config=config))
    assert told.encode("a") == [told.special_tokens["<|begin|>"], *told.encode_pieces(["a"])[1:]]
    assert not Tokenizer.from_folder(write_folder(tmp_path / "silent", plain)).add_bos


def test_stops_come_from_all_files(tmp_path: Path) -> None:
    content = sentencepiece(None)
    size = len(content["model"]["vocab"]) + 1
    content["added_tokens"].append(added(size + 4, "<|im_end|>", special=True))
    folder = write_folder(
        tmp_path / "model",
        content,
        special_tokens_map={"eos_token": "</s>"},
        generation_config={"eos_token_id": [7, 10_000]},
        config={"eos_token_id": 8},
    )
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.stop_ids == {2, 7, size + 4}
    assert tokenizer.vocab_size == size + 5
    assert tokenizer.unproducible_ids == set(range(size, size + 4))  # ids without a token
    (folder / "generation_config.json").unlink()
    assert Tokenizer.from_folder(folder).stop_ids == {2, 8, size + 4}


def test_tokens_that_only_the_settings_name(tmp_path: Path) -> None:
    content = byte_level()
    size = len(content["model"]["vocab"])
    extra = {str(size + 4): {"content": "<late>", "special": True}, str(size): {"content": "<|begin|>"}}
    folder = write_folder(tmp_path / "model", content, tokenizer_config={"added_tokens_decoder": extra})
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.special_tokens["<late>"] == size + 4
    assert tokenizer.unproducible_ids == {size + 3}
    extra[str(1 << 40)] = {"content": "<far>"}
    write_folder(folder, content, tokenizer_config={"added_tokens_decoder": extra})
    with pytest.raises(ModelFormatError, match="<far>"):
        Tokenizer.from_folder(folder)


def test_the_bound_is_of_use(tmp_path: Path) -> None:
    for kind, make in KINDS.items():
        tokenizer = Tokenizer.from_folder(write_folder(tmp_path / kind, make()))
        assert tokenizer.min_num_tokens("x" * 100_000) > 1000


def test_names_that_look_special_are(tmp_path: Path) -> None:
    content = byte_level()
    size = len(content["model"]["vocab"])
    content["added_tokens"].append(added(size + 3, "<｜User｜>", special=False))
    tokenizer = Tokenizer.from_folder(write_folder(tmp_path / "model", content))
    assert tokenizer.special_tokens["<｜User｜>"] == size + 3
    assert size + 3 not in tokenizer.encode("<｜User｜>hello")
    assert tokenizer.encode("<tool>")[1:] == [size + 2]


def test_tokens_that_swallow_spaces(tmp_path: Path) -> None:
    content = byte_level()
    content["added_tokens"][1] |= {"lstrip": True}
    content["added_tokens"][2] |= {"rstrip": True}
    tokenizer = Tokenizer.from_folder(write_folder(tmp_path / "model", content))
    tool, end = content["added_tokens"][2]["id"], content["added_tokens"][1]["id"]
    assert tokenizer.encode("a<tool> \n b")[1:] == [*tokenizer.encode("a")[1:], tool, *tokenizer.encode("b")[1:]]
    assert tokenizer.split_special("a  <|end|> b") == ["a", end, " b"]


@pytest.mark.parametrize(
    ("changes", "error", "expected"),
    [
        ({"model": {"type": "WordPiece", "vocab": {"a": 0}}}, UnsupportedModelError, "of the kind 'WordPiece'"),
        ({"decoder": {"type": "CTC"}}, UnsupportedModelError, "decoder 'CTC'"),
        ({"post_processor": {"type": "Roberta"}}, UnsupportedModelError, "post-processor 'Roberta'"),
        ({"post_processor": template("<|begin|>", None) | {"single": [{"SpecialToken": {"id": "a"}}] * 2}},
         UnsupportedModelError, "more than one token"),
        ({"pre_tokenizer": {"type": "Unheard"}}, ModelFormatError, "the tokenizers library cannot read"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}, ModelFormatError, "does not give a token"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]}}, ModelFormatError, "two tokens"),
        ({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}, ModelFormatError, "token ids should be"),
        ({"model": {"type": "BPE", "vocab": {"a": 1 << 40}, "merges": []}}, ModelFormatError, "token ids should be"),
        ({"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}}, ModelFormatError, "TypeError"),
        ({"model": None}, ModelFormatError, "not a sound tokenizer.json"),
        ({"added_tokens": [{"id": 1}]}, ModelFormatError, "not a sound tokenizer.json"),
        ({"decoder": None}, UnsupportedModelError, "decoder ''"),
        ({"added_tokens": [added(0, "!", special=False, single_word=True)]}, UnsupportedModelError, "single words"),
    ],
)  # fmt: skip
def test_bad_files_are_named(changes: dict[str, Any], error: type[Exception], expected: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", byte_level(**changes))
    with pytest.raises(error, match=expected) as caught:
        Tokenizer.from_folder(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"has no tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.model").touch()
    with pytest.raises(
        UnsupportedModelError, match=r"tokenizer\.model but no tokenizer\.json; make one with transformers"
    ):
        Tokenizer.from_folder(tmp_path)
    for text in ("{", "[]", "[" * 100_000, '"\\ud800"'):
        (tmp_path / "tokenizer.json").write_text(text)
        with pytest.raises(ModelFormatError, match=r"not a sound tokenizer\.json"):
            Tokenizer.from_folder(tmp_path)
    folder = write_folder(tmp_path / "model", byte_level())
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(ModelFormatError, match=r"tokenizer_config\.json is not JSON"):
        Tokenizer.from_folder(folder)
    (folder / "tokenizer_config.json").write_text('{"add_bos_token": true, "bos_token": "<nowhere>"}')
    (folder / "tokenizer.json").write_text(json.dumps(byte_level(post_processor=None)))
    with pytest.raises(ModelFormatError, match="<nowhere>"):
        Tokenizer.from_folder(folder)
