"""A manager's options: a bad value is one clear line with the allowed values."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.errors import ConfigurationError
from pulsar_failure_reasons.managers.options import Options


@pytest.mark.parametrize("given, value", [("auto", "auto"), ("SACCT", "sacct"), (None, "auto")])
def test_choice(given: object, value: str) -> None:
    """A word of the list is taken in any case; an absent option is its default."""
    options = Options("m", {} if given is None else {"accounting": given})
    assert options.choice("accounting", ("auto", "sacct"), "auto") == value


def test_choice_without_a_value_is_not_set() -> None:
    """YAML's "accounting:" is null: not the word none, which would switch accounting off."""
    options = Options("m", {"accounting": None})
    assert options.choice("accounting", ("auto", "sacct", "none"), "auto") == "auto"


def test_bad_choice_names_option_and_allowed_values() -> None:
    """The error says which manager, which option, what it was and what it may be."""
    with pytest.raises(ConfigurationError) as caught:
        Options("big", {"submit": "qsub"}).choice("submit", ("auto", "sbatch", "drmaa"), "auto")
    assert str(caught.value) == (
        "manager big: option submit is 'qsub'; it must be one of: auto, sbatch, drmaa"
    )


@pytest.mark.parametrize("given, seconds", [(15, 15.0), ("2.5", 2.5), (0.1, 0.1)])
def test_seconds(given: object, seconds: float) -> None:
    """YAML's numbers and an ini file's text are both numbers of seconds."""
    assert Options("m", {"x": given}).seconds("x", 1.0) == seconds


@pytest.mark.parametrize("given", ["soon", -1, 0, True, "nan", "inf", None, []])
def test_bad_seconds(given: object) -> None:
    """What is no positive number of seconds is refused."""
    with pytest.raises(ConfigurationError, match="option x .* number of seconds"):
        Options("m", {"x": given}).seconds("x", 1.0)


def test_zero_seconds_where_allowed() -> None:
    """A grace may be zero."""
    assert Options("m", {"x": 0}).seconds("x", 1.0, zero=True) == 0.0


@pytest.mark.parametrize("given, flag", [(True, True), ("yes", True), ("Off", False), (0, False)])
def test_flag(given: object, flag: bool) -> None:
    """All the usual spellings of yes and no."""
    assert Options("m", {"x": given}).flag("x") is flag


@pytest.mark.parametrize("given", ["maybe", 2, None])
def test_bad_flag(given: object) -> None:
    """What is neither yes nor no is refused."""
    with pytest.raises(ConfigurationError, match="true or false"):
        Options("m", {"x": given}).flag("x")


@pytest.mark.parametrize("given", ["", "a b", "-M", "a\nb", True, ["a"]])
def test_bad_word(given: object) -> None:
    """A word that a command could take for an option or for two is refused."""
    with pytest.raises(ConfigurationError, match="single word"):
        Options("m", {"cluster": given}).word("cluster")


def test_misspelled_option_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """An unknown option passes, as in stock; one that comes near ours is asked about."""
    given = {"hold_grase": 5, "env_FOO": 1, "submit_x": 2, "min_polling_interval": 3}
    Options("m", given).warn_of_misspellings(
        ("hold_grace", "status_poll_interval"), ("min_polling_interval",)
    )
    assert [record.getMessage() for record in caplog.records] == [
        "manager m: option 'hold_grase' is not known; is 'hold_grace' meant?"
    ]
