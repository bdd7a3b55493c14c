"""events.jsonl and pages.jsonl: read by offset, tolerant of every line, bounded in memory."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger import journal
from engine.ledger.ledger import Ledger
from engine.model.errors import TaskUnreadable
from engine.model.records import TaskEvent, Units


def events_file(ledger: Ledger, task_id: str) -> Path:
    return ledger.root / task_id / "events.jsonl"


def test_reading_goes_on_where_it_ended(ledger: Ledger, task_id: str):
    for number in range(5):
        ledger.append_event(task_id, "progress", {"unitsDone": number, "unitsTotal": 5})
    first = ledger.read_events(task_id)
    assert [event.kind for event in first.events] == ["started", *["progress"] * 5]
    assert ledger.read_events(task_id, first.next_offset).events == ()
    ledger.append_event(task_id, "log", {"phase": "p", "note": "n"})
    second = ledger.read_events(task_id, first.next_offset)
    assert [event.kind for event in second.events] == ["log"]


def test_small_bites_give_the_same_events(ledger: Ledger, task_id: str):
    ledger.append_events(task_id, [("log", {"note": "x" * n}) for n in range(50)])
    whole, offset = ledger.read_events(task_id).events, 0
    bites: list[TaskEvent] = []
    while bite := ledger.read_events(task_id, offset, limit_bytes=100):
        if not bite.events:
            break
        bites.extend(bite.events)
        offset = bite.next_offset
    assert tuple(bites) == whole


def test_lines_that_are_no_events_are_counted_and_passed_over(ledger: Ledger, task_id: str):
    with events_file(ledger, task_id).open("ab") as file:
        file.write(b"[1]\nnull\n{broken\n\xff\xfe\n{}\n" + b'{"ts":1}\n{"ts":"x","kind":"log"}\n')
        file.write(b'{"ts":2,"kind":"new_kind","data":[1]}\n\n')
        file.write('{"ts":3,"kind":"log","data":{"note":"a\u2028b"}}\n'.encode())
        file.write(b'{"ts":4,"kind":"log","data":{"note":"\\ud83d"}}\n')
    found = ledger.read_events(task_id)
    assert [event.kind for event in found.events] == ["started", "new_kind", "log", "log"]
    assert found.events[2].data == {"note": "a\u2028b"}
    assert found.events[3].data == {"note": "\ufffd"}
    assert found.skipped == 7


def test_a_line_over_one_mebibyte_is_skipped_in_bounded_memory(ledger: Ledger, task_id: str):
    with events_file(ledger, task_id).open("ab") as file:
        file.write(b'{"ts":1,"kind":"log","data":{"note":"')
        for _ in range(20):
            file.write(b"x" * 1024 * 1024)
        file.write(b'"}}\n{"ts":2,"kind":"log"}\n')
    tracemalloc.start()
    found = ledger.read_events(task_id, limit_bytes=30 * 1024 * 1024)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [event.ts for event in found.events[1:]] == [2]
    assert found.skipped == 1
    assert peak < 4 * 1024 * 1024


def test_our_own_large_event_is_replaced_by_its_size(ledger: Ledger, task_id: str):
    ledger.append_event(task_id, "log", {"note": "x" * 2 * 1024 * 1024})
    data = ledger.read_events(task_id).events[-1].data
    assert data is not None
    assert data["_truncated"] is True


def test_a_line_that_is_still_being_written_is_left_for_later(ledger: Ledger, task_id: str):
    with events_file(ledger, task_id).open("ab") as file:
        file.write(b'{"ts":1,"kin')
    found = ledger.read_events(task_id)
    assert (len(found.events), found.skipped) == (1, 0)
    with events_file(ledger, task_id).open("ab") as file:
        file.write(b'd":"log"}\n')
    assert [event.ts for event in ledger.read_events(task_id, found.next_offset).events] == [1]


def test_the_tail_reads_at_most_64_kib(ledger: Ledger, task_id: str, monkeypatch):
    for number in range(2_000):
        ledger.append_event(task_id, "progress", {"unitsDone": number, "unitsTotal": 9_999})
    ledger.append_event(task_id, "log", {"note": "last"})
    read, sizes = os.read, []

    def counted(fd: int, size: int) -> bytes:
        data = read(fd, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counted)
    units, last_ts, offset = ledger.tail_units(task_id)
    assert units == Units(done=1_999, total=9_999)
    assert sum(sizes) <= journal.TAIL_BYTES
    assert last_ts == ledger.read_events(task_id).events[-1].ts
    assert ledger.tail_units(task_id, offset) == (None, None, offset)
    ledger.append_event(task_id, "progress", {"unitsDone": 2_000, "unitsTotal": 9_999})
    sizes.clear()
    assert ledger.tail_units(task_id, offset)[0] == Units(done=2_000, total=9_999)
    assert sum(sizes) < 200


@pytest.mark.parametrize("call", ["open", "read"])
def test_delayed_events_break_nothing(ledger: Ledger, task_id: str, monkeypatch, call: str):
    place, real = os.stat(events_file(ledger, task_id)), getattr(os, call)

    def kept_back(what, *rest, **named):
        there = os.fstat(what) if isinstance(what, int) else None
        if what == "events.jsonl" or (there and os.path.samestat(there, place)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(what, *rest, **named)

    monkeypatch.setattr(os, call, kept_back)
    assert ledger.tail_units(task_id, 7) == (None, None, 7)
    with pytest.raises(TaskUnreadable, match=os.strerror(errno.EACCES)):
        ledger.read_events(task_id)


def test_numbers_nobody_can_use_are_no_progress(ledger: Ledger, task_id: str):
    ledger.append_event(task_id, "progress", {"unitsDone": "many", "unitsTotal": -3})
    assert ledger.tail_units(task_id)[0] == Units(done=0, total=None)


def test_pages_come_back_in_order_and_without_the_torn_one(ledger: Ledger, task_id: str):
    pages = [{"url": f"http://site.test/{n}", "content": "é\u2028\n" * n} for n in range(20)]
    for page in pages:
        ledger.append_page(task_id, page)
    with (ledger.root / task_id / "pages.jsonl").open("ab") as file:
        file.write(b'{"url": "torn')
    again = Ledger(ledger.root, lease=ledger.lease)
    again.append_page(task_id, {"url": "after"})
    assert list(again.read_pages(task_id)) == [*pages, {"url": "after"}]


def test_a_page_keeps_no_secret_of_its_address(ledger: Ledger, task_id: str):
    ledger.append_page(task_id, {"url": "http://u:pw@site.test/?token=abc123", "title": "t"})
    assert list(ledger.read_pages(task_id)) == [
        {"url": "http://site.test/?token=[redacted]", "title": "t"}
    ]


def test_a_task_without_events_has_none(ledger: Ledger):
    task_id = ledger.create("crawl", {"url": "http://site.test/"}).task_id
    assert ledger.read_events(task_id).events == ()
    assert ledger.tail_units(task_id) == (None, None, 0)
    assert list(ledger.read_pages(task_id)) == []


@given(st.lists(st.binary(max_size=300).filter(lambda b: b"\n" not in b), max_size=20), st.data())
def test_every_split_of_the_bytes_gives_the_same_lines(tmp_path_factory, found, data):
    place = tmp_path_factory.mktemp("lines") / "file"
    place.write_bytes(b"".join(line + b"\n" for line in found))
    block = data.draw(st.integers(1, 64))
    fd = os.open(place, os.O_RDONLY)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(journal, "_BLOCK", block)
        lines = list(journal._split(fd, 0, cap=100, whole=False))
    os.close(fd)
    assert [line for line, _ in lines] == [line if len(line) <= 100 else None for line in found]
    ends, at = [], 0
    for line in found:
        at += len(line) + 1
        ends.append(at)
    assert [end for _, end in lines] == ends


@given(st.dictionaries(st.text(st.characters(codec=None)), st.text(st.characters(codec=None))))
def test_any_data_becomes_one_line_that_can_be_read(data):
    line = journal.event_line("log", 1, data)
    assert line.count(b"\n") == 1
    assert json.loads(line)["kind"] == "log"
