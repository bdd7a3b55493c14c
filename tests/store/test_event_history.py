"""A task's events from their end: the newest first, the rest on demand, whatever the file holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger import event_search
from engine.ledger.event_search import CLIPPED, LINE_CAP, earlier, later, newest
from engine.ledger.event_search import EVENTS_AT_ONCE as AT_ONCE
from engine.ledger.files import Folder
from engine.model.records import TaskEvent

NAME = "events.jsonl"
MIB = 1024 * 1024


def line(number: float) -> bytes:
    return json.dumps({"ts": number, "kind": "log", "data": {"note": str(number)}}).encode()


def kept(folder: Path, data: bytes) -> Folder:
    (folder / NAME).write_bytes(data)
    return Folder.at(str(folder))


def ts(event: TaskEvent, place: int = 0) -> float:
    return event.ts


@pytest.mark.case("R39")
def test_the_newest_thousand_events_come_first(tmp_path: Path) -> None:
    with kept(tmp_path, b"".join(line(n) + b"\n" for n in range(200_000))) as folder:
        found = newest(folder, NAME, ts)
        assert found.events == tuple(range(199_000, 200_000))
        assert found.earlier == 199_000
        before = earlier(folder, NAME, found.start, ts)
        assert before.events == tuple(range(198_000, 199_000))
        assert before.next_offset == found.start


@pytest.mark.case("R39")
def test_of_an_endless_line_its_head_and_its_size_are_told(tmp_path: Path) -> None:
    long = line(2)[:-3] + b"x" * (20 * MIB) + b'"}}'
    with kept(tmp_path, line(1) + b"\n" + long + b"\n" + line(3) + b"\n") as folder:
        _, clipped, last = newest(folder, NAME, lambda event, _: event).events
        assert (clipped.ts, clipped.kind, last.ts) == (2, "log", 3)
        assert clipped.data is not None
        assert clipped.data["_bytes"] == len(long)
        assert clipped.data[CLIPPED].startswith('{"ts": 2')
        assert len(clipped.data[CLIPPED]) < 1000


LINES = st.lists(
    st.sampled_from([line(1), b"", b"torn {", b"[]", b"\xff\xfe", b'{"ts":1,"kind":"a"}'])
    | st.integers(0, 9).map(lambda n: b'{"ts":7,"kind":"long","data":{"' + b"x" * n * 9000),
    max_size=40,
)


@given(lines=LINES, most=st.integers(1, 7), torn=st.booleans())
def test_back_and_forth_tell_the_same_and_leave_nothing_out(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], most: int, torn: bool
) -> None:
    data = b"".join(one + b"\n" for one in lines) + (b'{"ts":1,"ki' if torn else b"")
    with kept(tmp_path_factory.mktemp("events"), data) as folder:
        part = newest(folder, NAME, ts, most)
        assert part.earlier == data[: part.start].count(b"\n")
        back, skipped, end = list(part.events), part.skipped, part.next_offset
        while part.start:
            part = earlier(folder, NAME, part.start, ts, most)
            back[:0], skipped = part.events, skipped + part.skipped
        forth: list[float] = []
        at, missed = 0, 0
        while (found := later(folder, NAME, at, ts, most)).next_offset > at:
            forth += found.events
            at, missed = found.next_offset, missed + found.skipped
    assert (back, skipped) == (forth, missed)
    assert at == end == data.rfind(b"\n") + 1


def test_an_endless_line_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_search, "FAR", 4 * LINE_CAP)
    monkeypatch.setattr(event_search, "_BLOCK", LINE_CAP)
    with kept(tmp_path, bytes(20 * LINE_CAP)) as folder:
        found = newest(folder, NAME, ts)
        assert (found.events, found.skipped, found.next_offset) == ((), 1, 20 * LINE_CAP)
        assert found.earlier is None
        with (tmp_path / NAME).open("ab") as file:
            file.write(b"\n" + line(5) + b"\n")
        assert later(folder, NAME, found.next_offset, ts).events == (5,)


def test_each_event_is_told_with_the_byte_at_which_its_line_begins(tmp_path: Path) -> None:
    data = b"".join(line(n) + b"\n" for n in range(20)) + b"torn\n" + line(20) + b"\n"
    with kept(tmp_path, data) as folder:
        told = newest(folder, NAME, lambda event, place: (event.ts, place), 5).events
    assert [number for number, _ in told] == [17, 18, 19, 20]
    assert all(data[place:].startswith(line(number)) for number, place in told)


def test_no_file_has_no_history(tmp_path: Path) -> None:
    with Folder.at(str(tmp_path)) as folder:
        assert newest(folder, NAME, ts).events == ()
        assert later(folder, NAME, 0, ts).next_offset == 0
    assert AT_ONCE == 1000
