"""Files with holes: a hole is one damaged line that is not read; all that is written is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.ledger import event_search, holes, journal
from engine.ledger.event_search import Needle
from engine.ledger.files import Folder
from engine.model.records import TaskEvent

NAME = "events.jsonl"
KIB, MIB, TIB = 1024, 1024**2, 1024**4
HOLE = 2 * TIB  # reading it would take ten minutes
WHOLE = 10**15

sparse = pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="no support for holes")


def line(number: int) -> bytes:
    return json.dumps({"ts": number, "kind": "log", "data": {"note": f"n{number}"}}).encode()


def ts(event: TaskEvent, place: int = 0) -> float:
    return event.ts


def laid_out(folder: Path, *parts: bytes | int) -> Folder:
    """A file of these parts; a number is a hole of so many bytes."""
    with (folder / NAME).open("wb") as file:
        for part in parts:
            if isinstance(part, int):
                file.seek(part, os.SEEK_CUR)
            else:
                file.write(part)
        file.truncate()
    return Folder.at(str(folder))


def torn_in_the_middle(folder: Path) -> Folder:
    """Events 0 to 99, half an event, 2 TiB of nothing, events 100 to 199, 2 TiB of nothing."""
    before = b"".join(line(n) + b"\n" for n in range(100))
    behind = b"".join(line(n) + b"\n" for n in range(100, 200))
    return laid_out(folder, before, b'{"ts":', HOLE, behind, HOLE)


@sparse
def test_every_event_around_holes_is_read_and_each_hole_is_one_damaged_line(tmp_path: Path):
    with torn_in_the_middle(tmp_path) as folder:
        found = journal.read_events(folder, NAME, 0, WHOLE, whole=False)
        assert [event.ts for event in found.events] == [*range(200)]
        assert found.skipped == 2
        assert found.next_offset == (tmp_path / NAME).stat().st_size
        again = journal.read_events(folder, NAME, found.next_offset, WHOLE, whole=True)
        assert (again.events, again.skipped) == ((), 0)


@sparse
def test_what_is_appended_behind_a_hole_is_read_from_where_reading_ended(tmp_path: Path):
    with laid_out(tmp_path, line(1) + b"\n", HOLE) as folder:
        first = journal.read_events(folder, NAME, 0, WHOLE, whole=False)
        folder.append(NAME, line(2) + b"\n", heal=False)
        second = journal.read_events(folder, NAME, first.next_offset, WHOLE, whole=False)
    assert [event.ts for event in (*first.events, *second.events)] == [1, 2]


@sparse
def test_history_search_time_and_copy_pass_over_holes(tmp_path: Path):
    with torn_in_the_middle(tmp_path) as folder:
        newest = event_search.newest(folder, NAME, ts, most=50)
        assert newest.events == (*range(150, 200),)
        assert newest.skipped == 1
        older = event_search.earlier(folder, NAME, newest.start, ts, most=100)
        assert older.events == (*range(50, 150),)
        assert older.skipped == 1
        later = event_search.later(folder, NAME, 0, ts)
        rest = event_search.later(folder, NAME, later.next_offset, ts)
        assert (*later.events, *rest.events) == (*range(200),)
        assert later.skipped + rest.skipped == 2
        found = event_search.find(folder, NAME, Needle("n150"))
        assert [places_event(tmp_path, at) for at in found.places] == [150]
        assert places_event(tmp_path, event_search.place_of(folder, NAME, 120.0)) == 120
        copied = b"".join(block for block, _ in event_search.blocks(folder, NAME))
    events = [journal.event_of(one.strip(b"\0")) for one in copied.split(b"\n")]
    assert [event.ts for event in events if event is not None] == [*range(200)]


def places_event(folder: Path, at: int) -> int:
    with (folder / NAME).open("rb") as file:
        file.seek(at)
        return int(json.loads(file.readline())["ts"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(1, 30),  # so many lines
            st.integers(600 * KIB, 900 * KIB),  # a hole of so many bytes
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_wherever_holes_are_no_written_event_is_lost(
    tmp_path_factory: pytest.TempPathFactory, parts: list[int], known: bool
):
    """Also where the system knows no holes, so that they are read as NULs."""
    laid: list[bytes | int] = []
    number = 0
    for part in parts:
        if part > 30:
            laid.append(part)
        else:
            laid.append(b"".join(line(n) + b"\n" for n in range(number, number + part)))
            number += part
    with pytest.MonkeyPatch.context() as system:
        if not known:
            system.setattr(holes, "_DATA", None)
        with laid_out(tmp_path_factory.mktemp("holes"), *laid) as folder:
            found = journal.read_events(folder, NAME, 0, WHOLE, whole=True)
            assert [event.ts for event in found.events] == [*range(number)]
            assert event_search.later(folder, NAME, 0, ts, most=WHOLE).events == (*range(number),)
            newest = event_search.newest(folder, NAME, ts, most=WHOLE)
            assert newest.events == (*range(number),)


def test_a_hole_that_the_system_reports_falsely_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Some file systems report a hole where recent writes are."""
    seek = os.lseek

    def nothing_but_holes(fd: int, at: int, whence: int) -> int:
        if whence == getattr(os, "SEEK_DATA", -1):
            return seek(fd, 0, os.SEEK_END)
        return seek(fd, at, whence)

    monkeypatch.setattr(os, "lseek", nothing_but_holes)
    lines = b"".join(line(n) + b"\n" for n in range(20_000))
    with laid_out(tmp_path, lines) as folder:
        found = journal.read_events(folder, NAME, 0, WHOLE, whole=True)
    assert len(found.events) == 20_000
