"""The words of a user, and what is said where they make no sense."""

import pytest

from paceline import SamplingParams
from paceline.bench.base import Load, Mode
from paceline.bench.settings import Settings, parse_ks, parse_loads, parse_modes
from paceline.errors import UsageError
from paceline.proposers import PROPOSERS


def test_modes() -> None:
    assert parse_modes("off, ngram", (4,)) == (Mode("off"), Mode("ngram", "ngram", 4))
    assert parse_modes("ngram", (2, 8)) == (Mode("ngram:2", "ngram", 2), Mode("ngram:8", "ngram", 8))
    assert parse_modes("all", (4,))[0] == Mode("off")
    assert {mode.proposer for mode in parse_modes("all", (4,))[1:]} == set(PROPOSERS)
    assert parse_modes("ngram:15,off", (4,)) == (Mode("ngram:15", "ngram", 15), Mode("off"))


@pytest.mark.parametrize("text", ["", "of", "off,", "ngram:0", "ngram:16", "ngram:x", "off:3", "auto", "ngram:²"])
def test_modes_that_do_not_exist(text: str) -> None:
    with pytest.raises(UsageError, match="modes"):
        parse_modes(text, (4,))


def test_an_unknown_proposer_is_told_which_there_are() -> None:
    with pytest.raises(UsageError, match="'eagle'; choose from off, ngram"):
        parse_modes("off,eagle", (4,))


def test_ks() -> None:
    assert parse_ks(None) == (4,)
    assert parse_ks("2,4, 8") == (2, 4, 8)
    with pytest.raises(UsageError, match="num_speculative_tokens holds '16'; expected integers from 1 to 15"):
        parse_ks("4,16")


def test_loads() -> None:
    assert parse_loads(None, None, 1.0) == (Load(concurrency=1),)
    assert parse_loads("1,4", None, 1.0) == (Load(concurrency=1), Load(concurrency=4))
    assert parse_loads(None, "0.5,2", 0.3) == (
        Load(request_rate=0.5, burstiness=0.3),
        Load(request_rate=2.0, burstiness=0.3),
    )
    assert [load.label for load in parse_loads("2", "1.5", 1.0)] == ["c=2", "1.5/s"]


@pytest.mark.parametrize("concurrency", ["0", "-1", "1.5", "", "1,,2", "2000", "x"])
def test_concurrencies_that_cannot_be(concurrency: str) -> None:
    with pytest.raises(UsageError, match="concurrency"):
        parse_loads(concurrency, None, 1.0)


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "fast", "1e9"])
def test_rates_that_cannot_be(rate: str) -> None:
    with pytest.raises(UsageError, match="request_rate"):
        parse_loads(None, rate, 1.0)


@pytest.mark.parametrize("burstiness", [0.0, -1.0, float("nan")])
def test_burstiness_that_cannot_be(burstiness: float) -> None:
    with pytest.raises(UsageError, match="burstiness"):
        parse_loads(None, "1", burstiness)


def test_what_is_named_twice() -> None:
    one = (Load(concurrency=1),)
    with pytest.raises(UsageError, match="the mode 'off' is named twice"):
        Settings((Mode("off"), Mode("off")), one, SamplingParams())
    with pytest.raises(UsageError, match="the load 'c=1' is named twice"):
        Settings((Mode("off"),), (*one, *one), SamplingParams())
    with pytest.raises(UsageError, match="no mode"):
        Settings((), one, SamplingParams())
