"""Ids in command lines of bounded length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm.argv import ROOM_FOR_IDS, chunk_ids


def test_few_ids_are_one_command() -> None:
    """A thousand ids of nine digits go into one command; none goes into none."""
    ids = [str(100_000_000 + number) for number in range(1000)]
    assert chunk_ids(ids) == [ids]
    assert chunk_ids([]) == []


def test_each_id_counts_with_its_quotes_and_blank() -> None:
    """Two ids of two bytes need ten, each with two quotes and a blank."""
    assert chunk_ids(["11", "22", "33"], room=10) == [["11", "22"], ["33"]]
    assert chunk_ids(["11", "22", "33"], room=9) == [["11"], ["22"], ["33"]]
    assert chunk_ids(["11", "22", "11"], room=99) == [["11", "22"]]


@given(st.lists(st.text("0123456789[].", min_size=1, max_size=30)), st.integers(1, 200))
def test_chunks(ids: "list[str]", room: int) -> None:
    """Nothing is lost, nothing twice, the order stays, and only a single long id is too long."""
    chunks = chunk_ids(ids, room)
    assert [i for chunk in chunks for i in chunk] == list(dict.fromkeys(ids))
    for chunk in chunks:
        assert len(chunk) == 1 or sum(len(i) + 3 for i in chunk) <= room
    assert ROOM_FOR_IDS < 128 * 1024
