"""A child process reads the files of a large ledger first; without its help nothing is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import aclosing, closing
from pathlib import Path

import msgspec
import psutil
import pytest

from engine.ledger import read_ahead
from engine.ledger.listing import SMALL_BYTES
from engine.ledger.read_ahead import ReadAhead, send
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import LedgerSnapshot
from engine.ledger.watch import Watch
from engine.model.records import TaskId, TaskRecord, Unreadable
from engine.service.feed import Feed
from tests.support.processes import until
from tests.support.task_folders import task_id, write_meta
from tests.watch.readers import reading

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows reads by paths")

TASKS = 3 * read_ahead.SENT_AT_ONCE + 5
IDS = sorted(TaskId(task_id(number)) for number in range(TASKS))


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ledger.reader.processors", lambda: 2.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(TASKS):
        write_meta(tmp_path, number, "COMPLETED" if number % 3 else "RUNNING")
    return tmp_path


@pytest.fixture
def long_root(tmp_path: Path) -> Path:
    """More than a pipe holds: the child cannot end before its receiver."""
    for number in range(3 * read_ahead.PIPE_BYTES // SMALL_BYTES):
        write_meta(tmp_path, number, "COMPLETED", note="x" * SMALL_BYTES)
    return tmp_path


def text(root: Path, one: str) -> bytes:
    return (root / one / "meta.json").read_bytes()


def children() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process().children()
        if one.status() != psutil.STATUS_ZOMBIE and read_ahead.HIDDEN_VERB in one.cmdline()
    ]


def taken(ahead: ReadAhead, ids: Sequence[str]) -> dict[str, bytes]:
    """What arrives for `ids`, when all of it has."""
    found: dict[str, bytes] = {}

    def has_all() -> bool:
        found.update(ahead.take(ids))
        return set(found) == set(ids)

    until(has_all)
    return found


def test_the_bytes_of_each_record_arrive_by_ascending_id(root: Path) -> None:
    with closing(ReadAhead(root)) as ahead:
        for first in range(0, TASKS, 50):
            ids = IDS[first : first + 50]
            assert taken(ahead, ids) == {one: text(root, one) for one in ids}


def test_blocks_that_no_pipe_holds_arrive_in_parts(long_root: Path) -> None:
    ids = LedgerSnapshot(LedgerReader(long_root), lambda _: False).list_ids()
    assert ids == sorted(one.name for one in long_root.iterdir())
    with closing(ReadAhead(long_root)) as ahead:
        for first in range(0, len(ids), 50):
            some = ids[first : first + 50]
            assert taken(ahead, some) == {one: text(long_root, one)[:SMALL_BYTES] for one in some}


def test_what_has_arrived_is_not_read_again(root: Path) -> None:
    reader = LedgerReader(root)
    ended, others = reader.ended(IDS[:9], ahead={one: text(root, one) for one in IDS[:6]})
    assert sorted([*others, *(one.task_id for one in ended)]) == IDS[:9]


def test_what_was_not_asked_for_in_time_is_dropped(root: Path) -> None:
    with closing(ReadAhead(root)) as ahead:
        until(lambda: ahead.take(IDS[-1:]))
        assert ahead.take(IDS[:10]) == {}
        assert ahead._texts == {}


def test_no_link_is_followed_and_no_long_record_is_sent_whole(tmp_path: Path) -> None:
    ledger, other = tmp_path / "tasks", tmp_path / "other"
    write_meta(other, 1, "COMPLETED")
    write_meta(ledger, 2, "COMPLETED", note="x" * 2 * SMALL_BYTES)
    write_meta(ledger, 3, "COMPLETED")
    (ledger / task_id(4)).mkdir()
    (ledger / task_id(1)).symlink_to(other / task_id(1))
    (ledger / task_id(4) / "meta.json").symlink_to(other / task_id(1) / "meta.json")
    with closing(ReadAhead(ledger)) as ahead:
        found: dict[str, bytes] = {}
        ids = sorted(map(task_id, range(1, 5)))
        until(lambda: found.update(ahead.take(ids)) or len(found) == 2)
        assert found == {one: text(ledger, one)[:SMALL_BYTES] for one in sorted(found)}
        assert set(found) == {task_id(2), task_id(3)}
    snapshot = LedgerSnapshot(LedgerReader(ledger), lambda _: False)
    snapshot.read_ahead()
    assert snapshot._ahead is not None
    until(snapshot._ahead._receive)
    views = snapshot.load_new(snapshot.list_ids()).views
    snapshot.end_read_ahead()
    entries = {view.task_id: view.entry for view in views}
    refused = entries.pop(TaskId(task_id(4)))
    assert isinstance(refused, Unreadable)
    assert entries == {one: LedgerReader(ledger).read(one) for one in found}


def test_a_list_with_a_child_is_the_same_as_one_without(root: Path) -> None:
    alone = LedgerSnapshot(LedgerReader(root), lambda _: False)
    helped = LedgerSnapshot(LedgerReader(root), lambda _: False)
    helped.read_ahead()
    assert helped._ahead is not None
    until(helped._ahead._receive)  # at least a part has arrived
    views = [helped.load_new(IDS[:100]).views, helped.load_new(IDS[100:]).views]
    helped.end_read_ahead()
    assert not children()
    expected = alone.load_new(alone.list_ids()).views
    assert sorted(map(msgspec.json.encode, sum(views, ()))) == sorted(
        map(msgspec.json.encode, expected)
    )


def block(texts: dict[str, bytes], size: int | None = None) -> bytes:
    data = msgspec.msgpack.encode(texts)
    return (len(data) if size is None else size).to_bytes(4, "little") + data


FAULTS = {
    "is missing": None,
    "ends at once": b"",
    "sends something else": b"Traceback (most recent call last): no module named engine" * 9,
    "sends too large a block": block({IDS[0]: b"{}"}, read_ahead.MOST_BYTES + 1),
    "ends within a block": block({IDS[0]: b"{}"})[:-1],
    "sends an invalid block": b"\x03\x00\x00\x00abc",
    "sends the record of another task": block(dict.fromkeys(IDS, b'{"taskId": "0"}')),
    "sends invalid records": block(dict.fromkeys(IDS, b"{")),
    "sends no blocks": block({}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_child_that_fails_costs_no_task(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = FAULTS[fault]
    command = ["/nowhere/octask"]
    if sent is not None:
        file = tmp_path_factory.mktemp("sent") / "blocks"
        file.write_bytes(sent)
        command = ["/bin/sh", "-c", f'cat "{file}"']
    monkeypatch.setattr(read_ahead, "program_command", lambda: command)
    snapshot = LedgerSnapshot(LedgerReader(root), lambda _: False)
    snapshot.read_ahead()
    if snapshot._ahead is not None and sent:
        until(snapshot._ahead._receive)
    assert (snapshot._ahead is None) is (sent is None)
    views = snapshot.load_new(IDS).views
    snapshot.end_read_ahead()
    assert sorted(view.task_id for view in views) == IDS
    assert all(isinstance(view.entry, TaskRecord) for view in views)


@pytest.mark.parametrize(
    "fault", ["sends something else", "sends too large a block", "sends an invalid block"]
)
def test_a_child_that_sends_no_blocks_is_ended(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "blocks"
    file.write_bytes(FAULTS[fault] or b"")
    command = ["/bin/sh", "-c", f'cat "{file}"; exec sleep 600']
    monkeypatch.setattr(read_ahead, "program_command", lambda: command)
    with closing(ReadAhead(tmp_path)) as ahead:
        until(ahead._receive)
        assert ahead._child is None
        assert not ahead._receive()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
async def test_the_list_is_complete_when_the_child_is_killed_or_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("engine.service.feed.MANY", 100)
    start = ReadAhead.__init__

    def stop_it(ahead: ReadAhead, root: Path) -> None:
        start(ahead, root)
        assert ahead._child is not None
        os.kill(ahead._child.pid, getattr(signal, name))

    monkeypatch.setattr(ReadAhead, "__init__", stop_it)
    async with reading(root) as reader:
        await reader.until(lambda: reader.batches and reader.batches[-1].complete)
        assert sorted(reader.views) == IDS
        await reader.until(lambda: not children())


async def test_a_feed_that_is_closed_while_it_loads_ends_the_child(
    long_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.service.feed.MANY", 100)
    feed = Feed(LedgerReader(long_root), Watch(long_root), ours=lambda _: False)
    async with aclosing(feed.batches()) as batches:
        async for batch in batches:
            if batch.views:
                break
        assert not batch.complete
        assert children()
        await feed.close()
    assert not children()


def test_the_child_ends_with_the_program_that_started_it(long_root: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path\n"
        "from engine.ledger import read_ahead\n"
        "ahead = read_ahead.ReadAhead(Path(sys.argv[1]))\n"
        "print(ahead._child.pid, flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code, str(long_root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        child = psutil.Process(int(program.stdout.readline()))
        program.kill()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_reader_that_is_gone_ends_what_is_sent(root: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        send(root, write)
    os.close(write)


def test_one_processor_reads_faster_without_a_child(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.ledger.reader.processors", lambda: 1.5)
    assert LedgerReader(root).read_ahead() is None


async def test_a_small_ledger_starts_no_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Path] = []
    monkeypatch.setattr(ReadAhead, "__init__", lambda _, root: started.append(root))
    async with reading(root) as reader:
        assert sorted(reader.views) == IDS
    assert not started
