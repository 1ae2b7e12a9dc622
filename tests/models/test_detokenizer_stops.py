"""Detokenisation with stop strings: what one may take back is held back, and not a byte more nor a step longer."""

import codecs
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import BYTE, CONTROL, NORMAL, UNKNOWN, sentencepiece_settings, write_vocabulary

from paceline.engine.stops import StopStrings
from paceline.models import Detokenizer, GGUFFile, Tokenizer

WORDS = ["".join(letters) for length in (1, 2, 3, 4) for letters in product("ab", repeat=length)]
SHORT = [word for word in WORDS if len(word) < 4]
FIRST_BYTE = 3
FIRST_WORD = FIRST_BYTE + 256
IDS = {word: FIRST_WORD + i for i, word in enumerate(WORDS)}
WORLD = FIRST_WORD + len(WORDS)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Three special tokens, every byte, every short word of a and b, and a word with a space before it."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    pieces += [(word, -float(i), NORMAL) for i, word in enumerate([*WORDS, "\u2581world"])]
    path = tmp_path_factory.mktemp("stops") / "stops.gguf"
    write_vocabulary(path, sentencepiece_settings(pieces))
    with GGUFFile.open(path) as file:
        return Tokenizer.from_gguf(file)


def open_text(text: bytes, stops: Sequence[str], last: int) -> str:
    """The definition of what may be shown when the newest token's bytes begin at `last`: all before the first byte that
    a stop string may take back, be it complete with that token or not yet complete."""
    encoded = [stop.encode() for stop in stops]
    end = len(text)
    for begin in range(len(text)):
        rest = text[begin:]
        is_open = any(len(rest) < len(stop) and stop.startswith(rest) for stop in encoded)
        is_complete = any(rest.startswith(stop) and begin + len(stop) > last for stop in encoded)
        if is_open or is_complete:
            end = begin
            break
    return codecs.getincrementaldecoder("utf-8")(errors="replace").decode(text[:end])


def check(tokenizer: Tokenizer, pushes: Sequence[Sequence[int]], stops: Sequence[str], num_early: int = 0) -> bool:
    """Push until a stop string ends the text, as an engine does; returns whether one did."""
    detokenizer = Detokenizer(tokenizer, stops=stops)
    scan = StopStrings(stops, tokenizer.text_bytes)
    shown, text, num_tokens, num_cut = "", b"", 0, 0
    for push in pushes:
        match = scan.find(push, num_early - num_tokens)
        taken = push if match is None else push[: match.num_tokens]
        scan.extend(taken)
        num_tokens += len(taken)
        text += b"".join(map(tokenizer.text_bytes, taken))
        shown += detokenizer.push(taken)
        if taken:
            assert shown == open_text(text, stops, len(text) - len(tokenizer.text_bytes(taken[-1]))), (pushes, stops)
        if match is not None:
            num_cut = match.num_bytes
            break
    shown += detokenizer.flush(num_cut)
    assert shown == text[: len(text) - num_cut].decode(errors="replace"), (pushes, stops)
    return num_cut > 0


@pytest.mark.parametrize("num_early", [0, 2])
def test_every_short_text_in_every_split(tokenizer: Tokenizer, num_early: int) -> None:
    stop_sets = [*combinations(SHORT, 1), *combinations(SHORT, 2)]
    ends = set()
    for word in WORDS[-8:]:
        for cuts in product(("", "token", "push"), repeat=len(word) - 1):
            pushes, begin = [list[int]()], 0
            for place, cut in enumerate((*cuts, "token"), start=1):
                if cut:
                    pushes[-1].append(IDS[word[begin:place]])
                    begin = place
                if cut == "push":
                    pushes.append([])
            ends |= {check(tokenizer, pushes, stops, num_early) for stops in stop_sets}
    assert ends == {True, False}


@settings(deadline=None, max_examples=120)
@given(
    pushes=st.lists(st.lists(st.integers(0, WORLD) | st.sampled_from([0xC3, 0xA9, 0x61]), max_size=5), max_size=12),
    stops=st.lists(st.text("ab\u00e9 w", min_size=1, max_size=5), min_size=1, max_size=5),
    num_early=st.integers(0, 10),
)
def test_any_tokens_and_stops(tokenizer: Tokenizer, pushes: list[list[int]], stops: list[str], num_early: int) -> None:
    check(tokenizer, pushes, stops, num_early)


@settings(deadline=None, max_examples=100)
@given(
    text=st.text("ab\u00e9\u00e8\U0001f642", max_size=30),
    stops=st.lists(st.text("ab\u00e9\U0001f642", min_size=1, max_size=4), min_size=1, max_size=4),
    sizes=st.lists(st.integers(0, 9), max_size=20),
)
def test_a_token_a_byte(tokenizer: Tokenizer, text: str, stops: list[str], sizes: list[int]) -> None:
    ids = [FIRST_BYTE + byte for byte in text.encode()]
    pushes = []
    for size in [*sizes, len(ids)]:
        pushes.append(ids[:size])
        ids = ids[size:]
    check(tokenizer, pushes, stops)


def test_what_may_become_a_stop_string_waits_until_it_does_not(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(tokenizer, stops=["aab"])
    pushed = [detokenizer.push([IDS[word]]) for word in ("b", "a", "a", "a", "b")]
    assert pushed == ["b", "", "", "a", ""]
    assert detokenizer.flush(3) == ""
    assert [detokenizer.push([IDS["a"]]), detokenizer.push([IDS["ba"]]), detokenizer.flush()] == ["", "ab", "a"]


def test_a_stop_string_that_does_not_end_the_text_is_released_by_the_next_token(tokenizer: Tokenizer) -> None:
    special = 2
    for stops, follower, released, rest in (
        (["aa"], IDS["b"], "aab", ""),
        (["aa"], special, "a", "a"),  # the second a may begin another one
        (["aa", "bbbb"], special, "a", "a"),
        (["ab", "abba"], special, "", "ab"),
        (["ba", "bbbb"], special, "ba", ""),
    ):
        detokenizer = Detokenizer(tokenizer, stops=stops)
        assert detokenizer.push([IDS[stops[0]]]) == ""
        assert detokenizer.push([]) == ""  # nothing has come
        assert (detokenizer.push([follower]), detokenizer.flush()) == (released, rest)


def test_a_space_that_is_not_shown_counts_as_it_does_for_the_engine(tokenizer: Tokenizer) -> None:
    for stop, is_continuation, text in (
        (" w", True, ""),
        (" w", False, ""),
        ("or", True, " w"),
        ("or", False, "w"),
        ("x", False, "world"),
    ):
        detokenizer = Detokenizer(tokenizer, is_continuation=is_continuation, stops=[stop])
        match = StopStrings([stop], tokenizer.text_bytes).find([WORLD], 0)
        shown = detokenizer.push([WORLD])
        assert shown + detokenizer.flush(0 if match is None else match.num_bytes) == text


def test_no_more_can_be_cut_than_is_held_back(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(tokenizer, stops=["ab"])
    assert detokenizer.push([IDS["bba"]]) == "bb"
    for num_cut in (2, -1):
        with pytest.raises(ValueError, match="expected 0 to 1"):
            detokenizer.flush(num_cut)
    assert detokenizer.flush(1) == ""
    with pytest.raises(ValueError, match="expected 0 to 0"):
        Detokenizer(tokenizer).flush(1)


def test_text_bytes_are_those_of_the_text(tokenizer: Tokenizer) -> None:
    for _ in range(2):
        for token in range(tokenizer.vocab_size):
            expected = b"" if tokenizer.is_special(token) else tokenizer.token_bytes(token)
            assert tokenizer.text_bytes(token) == expected
