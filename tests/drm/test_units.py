"""Durations and memory sizes, in every form that a DRM prints."""

from __future__ import annotations

from typing import Optional

import pytest

from pulsar_failure_reasons.drm.units import (
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)
from pulsar_failure_reasons.errors import OutputParseError

DURATIONS = [
    pytest.param("00:01:00", 60, id="slurm_one_minute"),
    pytest.param("1-02:03:04", 93784, id="slurm_days"),
    pytest.param("365-00:00:00", 31536000, id="slurm_a_year"),
    pytest.param("1-02:03", 93780, id="slurm_days_hours_minutes"),
    pytest.param("1-02", 93600, id="slurm_days_hours"),
    pytest.param("0:05", 5, id="squeue_seconds"),
    pytest.param("02:03", 123, id="squeue_minutes_seconds"),
    pytest.param("1:02:03", 3723, id="squeue_hours"),
    pytest.param("00:00.168", 0, id="sacct_milliseconds"),
    pytest.param("26:00:00", 93600, id="pbs_hours_above_a_day"),
    pytest.param("1:02:03:04", 93784, id="grid_engine_days_first"),
    pytest.param("62", 62, id="bare_seconds"),
    pytest.param("62.9", 62, id="fraction_is_cut"),
    pytest.param("62s", 62, id="unit_seconds"),
    pytest.param("60.0 min", 3600, id="lsf_minutes"),
    pytest.param("1.5 hours", 5400, id="hours"),
    pytest.param(" 00:01:00 ", 60, id="blanks_around"),
    pytest.param("UNLIMITED", None, id="unlimited"),
    pytest.param("INVALID", None, id="invalid"),
    pytest.param("NOT_SET", None, id="not_set"),
    pytest.param("N/A", None, id="not_available"),
    pytest.param("Partition_Limit", None, id="partition_limit"),
    pytest.param("", None, id="empty"),
]


@pytest.mark.parametrize("text, seconds", DURATIONS)
def test_durations(text: str, seconds: Optional[int]) -> None:
    """Each form of a duration is read as seconds, each word for none as None."""
    assert parse_duration(text) == seconds


def test_units_of_short_forms_can_be_chosen() -> None:
    """A bare number may be minutes (Slurm's TimelimitRaw), two parts hours (LSF's -W)."""
    assert parse_duration("10", bare_number_s=60) == 600
    assert parse_duration("02:03", two_parts_s=3600) == 7380


@pytest.mark.parametrize("text", ["-1:00", "soon", "1:2:3:4:5", "9" * 5000, "٣:٠٠", "1 fortnight"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Anything else is an OutputParseError, not a guess."""
    with pytest.raises(OutputParseError):
        parse_duration(text)


MEMORY = [
    pytest.param("100M", 104857600, id="slurm"),
    pytest.param("4Gn", 4294967296, id="slurm_per_node"),
    pytest.param("2Gc", 2147483648, id="slurm_per_cpu"),
    pytest.param("0.98G", 1052266987, id="fraction"),
    pytest.param("22212K", 22745088, id="maxrss"),
    pytest.param("67032kb", 68640768, id="pbs"),
    pytest.param("1.5GiB", 1610612736, id="iec"),
    pytest.param("4096 megabytes", 4294967296, id="words"),
    pytest.param("1T", 1099511627776, id="terabyte"),
    pytest.param("512", 512, id="bare_bytes"),
    pytest.param("0", 0, id="zero_is_a_number"),
    pytest.param("N/A", None, id="not_available"),
    pytest.param("", None, id="empty"),
]


@pytest.mark.parametrize("text, size", MEMORY)
def test_memory(text: str, size: Optional[int]) -> None:
    """Each form of a size is read as bytes, with binary units."""
    assert parse_memory(text) == size


def test_bare_memory_unit_can_be_chosen() -> None:
    """A number without unit takes the caller's, also before Slurm's per-node letter."""
    assert parse_memory("512", bare_unit="m") == 536870912
    assert parse_memory("512n", bare_unit="m") == 536870912


def test_small_letters_of_grid_engine() -> None:
    """In Grid Engine 4g is decimal and 4G is binary; elsewhere both are binary."""
    assert parse_memory("4g", lower_is_decimal=True) == 4_000_000_000
    assert parse_memory("4G", lower_is_decimal=True) == 4_294_967_296
    assert parse_memory("4g") == 4_294_967_296
    assert parse_memory("7", lower_is_decimal=True) == 7


@pytest.mark.parametrize("text", ["16?", "-5M", "M", "lots", "1e9", "5X", "9" * 5000])
def test_what_is_no_memory_is_refused(text: str) -> None:
    """Anything else is an OutputParseError (16? is what sacct prints before it knows)."""
    with pytest.raises(OutputParseError):
        parse_memory(text)


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 s"), (62, "62 s"), (90, "90 s"), (91, "1 min 31 s"), (120, "2 min"),
        (7500, "2 h 5 min"), (7200, "2 h"), (90000, "1 d 1 h"), (86400, "1 d"),
    ],
)
def test_duration_for_people(seconds: int, text: str) -> None:
    """At most two units, and seconds as long as a short limit is compared with."""
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    "size, text",
    [
        (0, "0 bytes"), (1023, "1023 bytes"), (52428800, "50 MB"), (1610612736, "1.5 GB"),
        (1024, "1 KB"), (5 * 1024**5, "5120 TB"),
    ],
)
def test_memory_for_people(size: int, text: str) -> None:
    """One decimal at most, in the largest unit that is not below one."""
    assert format_memory(size) == text
