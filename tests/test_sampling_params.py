"""Stop strings and the least number of tokens, as a request may ask for them."""

import pytest

from paceline.errors import UsageError
from paceline.sampling_params import SamplingParams


def test_stop_strings_are_kept_as_a_tuple() -> None:
    assert SamplingParams().stop == ()
    assert SamplingParams(stop="ab").stop == ("ab",)
    assert SamplingParams(stop=["a", "\n\n", "é"]).stop == ("a", "\n\n", "é")
    assert SamplingParams(stop=["a"]) == SamplingParams(stop="a")
    assert len({SamplingParams(stop=["a"]), SamplingParams(stop=("a",)), SamplingParams()}) == 2
    assert len(SamplingParams(stop=[str(i) for i in range(64)]).stop) == 64
    assert SamplingParams(stop="é" * 1024).stop == ("é" * 1024,)


def test_the_least_number_of_tokens_may_be_the_most() -> None:
    assert SamplingParams(max_tokens=5, min_tokens=5).min_tokens == 5
    assert SamplingParams(max_tokens=None, min_tokens=10**9).min_tokens == 10**9


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stop": ""}, r"^stop holds ''; expected texts of 1 to 1,024 characters"),
        ({"stop": ["a", ""]}, r"^stop holds ''"),
        ({"stop": ["a", 3]}, r"^stop holds 3; expected texts"),
        ({"stop": [b"a"]}, r"^stop holds b'a'; expected texts"),
        ({"stop": b"ab"}, r"^stop is b'ab'; expected a text or a sequence"),
        ({"stop": None}, r"^stop is None; expected a text or a sequence"),
        ({"stop": {"a"}}, r"^stop is \{'a'\}; expected a text or a sequence"),
        ({"stop": "a\ud800"}, r"^stop holds 'a\\ud800', with a lone surrogate; expected valid"),
        ({"stop": ["b", "\udfff"]}, r"^stop holds '\\udfff', with a lone surrogate"),
        ({"stop": ["a"] * 65}, r"^stop holds 65 texts; expected at most 64"),
        ({"stop": "x" * 1025}, r"^stop holds a text of 1,025 characters, 'x{20}'\.\.\.; expected 1 to 1,024"),
        ({"min_tokens": -1}, r"^min_tokens is -1; expected an integer of at least 0"),
        ({"min_tokens": True}, r"^min_tokens is True"),
        ({"min_tokens": 1.0}, r"^min_tokens is 1\.0"),
        ({"min_tokens": 9, "max_tokens": 8}, r"^min_tokens is 9, more than max_tokens; expected 0 to 8"),
        ({"min_tokens": 257}, r"^min_tokens is 257, more than max_tokens; expected 0 to 256"),
    ],
)
def test_values_out_of_range_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SamplingParams(**fields)  # type: ignore[arg-type]
