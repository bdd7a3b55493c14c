"""A child process reads the files of a large ledger first; without its help nothing is missing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing, suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from engine.ledger import listing, read_ahead
from engine.ledger.files import Folder
from engine.ledger.listing import SMALL_BYTES
from engine.ledger.read_ahead import ReadAhead, packed_block, send
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
FIRST = IDS[0]


@pytest.fixture(autouse=True)
def _help_for_small_ledgers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("engine.ledger.reader.processors", lambda: 2.0)
    monkeypatch.setattr("engine.ledger.snapshot.LEAD", 0)
    yield
    for one in children():
        one.kill()  # a stopped one would stay for ever


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.service.feed.MANY", 100)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(TASKS):
        write_meta(tmp_path, number, "COMPLETED" if number % 3 else "RUNNING")
    return tmp_path


@pytest.fixture
def long_root(tmp_path: Path) -> Path:
    """More than a pipe holds: the child cannot end before its receiver."""
    for number in range(3 * read_ahead.PIPE_BYTES // 3_000):
        write_meta(tmp_path, number, "COMPLETED", note="x" * 3_000)
    return tmp_path


def text(root: Path, one: str) -> bytes:
    return (root / one / "meta.json").read_bytes()


def children() -> list[psutil.Process]:
    found = []
    for one in psutil.Process().children():
        with suppress(psutil.Error):  # it has just ended
            if one.status() != psutil.STATUS_ZOMBIE and read_ahead.HIDDEN_VERB in one.cmdline():
                found.append(one)
    return found


class Ahead:
    """A child with the ledger that it reads."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder.at(str(root))
        self.ahead = ReadAhead(self.folder, FIRST)

    def take(self, ids: Sequence[str]) -> dict[str, bytes]:
        return self.ahead.take(self.folder, ids)

    def all_of(self, ids: Sequence[str]) -> dict[str, bytes]:
        """What arrives for `ids`, when all of it has."""
        found: dict[str, bytes] = {}

        def has_all() -> bool:
            found.update(self.take(ids))
            return set(found) == set(ids)

        until(has_all)
        return found

    @property
    def is_alive(self) -> bool:
        return self.ahead._child is not None

    def close(self) -> None:
        self.ahead.close()
        self.folder.close()


def waited(ahead: ReadAhead | None, last: str = IDS[-1]) -> None:
    """Wait until the child has sent all, so that a list has only to take it."""
    assert ahead is not None
    until(lambda: (ahead._receive(FIRST) and False) or ahead._last >= last or not ahead._child)


def views(snapshot: LedgerSnapshot, ids: Sequence[TaskId]) -> list[bytes]:
    return sorted(map(msgspec.json.encode, snapshot.load_new(ids).views))


def test_the_bytes_of_each_record_arrive_by_ascending_id(root: Path) -> None:
    with closing(Ahead(root)) as ahead:
        for first in range(0, TASKS, 50):
            ids = IDS[first : first + 50]
            assert ahead.all_of(ids) == {one: text(root, one) for one in ids}


def test_blocks_that_no_pipe_holds_arrive_in_parts(long_root: Path) -> None:
    ids = sorted(one.name for one in long_root.iterdir())
    with closing(Ahead(long_root)) as ahead:
        for first in range(0, len(ids), 50):
            some = ids[first : first + 50]
            assert ahead.all_of(some) == {one: text(long_root, one) for one in some}


def test_only_records_from_the_first_id_on_are_sent(root: Path) -> None:
    folder = Folder.at(str(root))
    with closing(ReadAhead(folder, IDS[100])) as ahead, folder:
        waited(ahead)
        assert sorted(ahead._texts) == IDS[100:]


def test_what_was_not_asked_for_in_time_is_dropped(root: Path) -> None:
    with closing(Ahead(root)) as ahead:
        until(lambda: ahead.take(IDS[-1:]))
        assert ahead.take(IDS[:10]) == {}
        assert ahead.ahead._texts == {}


def test_what_arrives_too_late_is_not_decoded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decode, decoded = read_ahead._decode, list[bytes]()

    def count(data: bytes) -> dict[str, bytes]:
        decoded.append(data)
        return decode(data)

    monkeypatch.setattr(read_ahead, "_decode", count)
    with closing(Ahead(root)) as ahead:
        assert ahead.all_of(IDS[-1:])
    assert len(decoded) == 1


def test_no_link_is_followed_and_no_long_record_is_sent(tmp_path: Path) -> None:
    ledger, other = tmp_path / "tasks", tmp_path / "other"
    write_meta(other, 1, "COMPLETED")
    write_meta(ledger, 2, "COMPLETED", note="x" * 2 * SMALL_BYTES)
    write_meta(ledger, 3, "COMPLETED")
    (ledger / task_id(4)).mkdir()
    (ledger / task_id(1)).symlink_to(other / task_id(1))
    (ledger / task_id(4) / "meta.json").symlink_to(other / task_id(1) / "meta.json")
    snapshot = LedgerSnapshot(LedgerReader(ledger), lambda _: False)
    ids = snapshot.list_ids()
    snapshot.read_ahead(ids)
    waited(snapshot._ahead, ids[-1])
    assert snapshot._ahead is not None
    assert snapshot._ahead._texts == {task_id(3): text(ledger, task_id(3))}
    entries = {view.task_id: view.entry for view in snapshot.load_new(ids).views}
    snapshot.close()
    refused = entries.pop(TaskId(task_id(4)))
    assert isinstance(refused, Unreadable)
    reader = LedgerReader(ledger)
    assert entries == {one: reader.read(one) for one in map(task_id, (2, 3))}


def test_records_of_several_kilobytes_are_not_sent(tmp_path: Path) -> None:
    for number in range(TASKS):
        write_meta(tmp_path, number, "COMPLETED", note="x" * 8_000)
    with Folder.at(str(tmp_path)) as folder, (tmp_path / "sent").open("wb") as sent:
        send(folder, FIRST, sent.fileno())
    assert not (tmp_path / "sent").stat().st_size


def test_a_list_with_a_child_is_the_same_as_one_without(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, helped = (LedgerSnapshot(LedgerReader(root), lambda _: False) for _ in range(2))
    expected = views(alone, IDS[:100]) + views(alone, IDS[100:])
    helped.read_ahead([*IDS])
    waited(helped._ahead)
    read, texts = list[str](), listing.texts

    def count(fd: int, ids: Sequence[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
        read.extend(ids)
        return texts(fd, ids)

    monkeypatch.setattr(listing, "texts", count)
    assert views(helped, IDS[:100]) + views(helped, IDS[100:]) == expected
    assert not read, "what had arrived was read again"
    helped.close()
    until(lambda: not children())


def test_the_record_of_another_task_is_read_again(root: Path) -> None:
    with Folder.at(str(root)) as folder:
        ahead: dict[str, bytes] = {one: text(root, IDS[1]) for one in IDS[:3]}
        ended, others = listing.ended(folder, IDS[:3], ahead=ahead)
    assert [one.task_id for one in ended] == IDS[1:2]
    assert others == [IDS[0], IDS[2]]


def test_a_root_that_was_replaced_is_read_itself(tmp_path: Path) -> None:
    root, other, link = tmp_path / "first", tmp_path / "second", tmp_path / "tasks"
    for number in range(TASKS):
        write_meta(root, number, "COMPLETED")
        write_meta(other, number, "FAILED")
    link.symlink_to(root)
    snapshot = LedgerSnapshot(LedgerReader(link), lambda _: False)
    snapshot.read_ahead([*IDS])
    waited(snapshot._ahead)
    link.unlink()
    link.symlink_to(other)
    loaded = snapshot.load_new(IDS).views
    assert {view.entry.status for view in loaded if isinstance(view.entry, TaskRecord)} == {
        "FAILED"
    }
    assert len(loaded) == TASKS
    snapshot.close()
    until(lambda: not children())


def block(texts: dict[str, bytes], last: str = IDS[-1]) -> bytes:
    return packed_block(last, texts.items())


SHORT = block({FIRST: b"{}"})
FAULTS: dict[str, bytes | None] = {
    "is missing": None,
    "ends at once": b"",
    "sends something else": b"Traceback (most recent call last): no module named engine" * 9,
    "sends too large a block": (read_ahead.MOST_BYTES + 1).to_bytes(4, "little") + SHORT[4:],
    "ends within a block": SHORT[:-1],
    "sends an invalid block": (3).to_bytes(4, "little") + FIRST.encode() + b"abc",
    "sends a block twice": SHORT + SHORT,
    "sends invalid records": block(dict.fromkeys(IDS, b"{")),
    "sends no records": block({}),
}
NO_BLOCKS = [one for one in FAULTS if one.startswith("sends") and "record" not in one]


def sends(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch, then: str = "") -> None:
    """Let another program take the child's place."""
    command, sent = ["/nowhere/octask"], FAULTS[fault]
    if sent is not None:
        file = folder / "blocks"
        file.write_bytes(sent)
        command = ["/bin/sh", "-c", f'cat "{file}"{then}']
    monkeypatch.setattr(read_ahead, "program_command", lambda: command)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_child_that_fails_costs_no_task(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sends(fault, tmp_path_factory.mktemp("sent"), monkeypatch)
    expected = views(LedgerSnapshot(LedgerReader(root), lambda _: False), IDS)
    snapshot = LedgerSnapshot(LedgerReader(root), lambda _: False)
    snapshot.read_ahead([*IDS])
    assert (snapshot._ahead is None) is (FAULTS[fault] is None)
    if snapshot._ahead is not None:
        waited(snapshot._ahead)
    assert views(snapshot, IDS) == expected
    snapshot.close()


@pytest.mark.parametrize("fault", NO_BLOCKS)
def test_a_child_that_sends_no_blocks_is_ended(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends(fault, tmp_path, monkeypatch, "; exec sleep 600")
    with closing(Ahead(tmp_path)) as ahead:
        until(lambda: not (ahead.take(IDS) and False) and not ahead.is_alive)


def test_a_child_that_sends_without_end_does_not_delay_the_list(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []

    def receive(ahead: ReadAhead, wanted: str) -> bool:
        ahead._last = f"{len(received):016x}"
        received.append(wanted)
        return True

    monkeypatch.setattr(ReadAhead, "_receive", receive)
    with closing(Ahead(root)) as ahead:
        assert ahead.take(["e" * 16, "f" * 16]) == {}
        assert received == ["e" * 16] * read_ahead.MOST_READS
        assert ahead.take([f"{1:016x}"]) == {}
        assert len(received) == read_ahead.MOST_READS, "the child had read that one already"


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
async def test_the_list_is_complete_when_the_child_is_killed_or_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    start, pids = ReadAhead.__init__, list[int]()

    def stop_it(ahead: ReadAhead, root: Folder, first: str) -> None:
        start(ahead, root, first)
        assert ahead._child is not None
        pids.append(ahead._child.pid)
        os.kill(pids[-1], getattr(signal, name))

    monkeypatch.setattr(ReadAhead, "__init__", stop_it)
    async with reading(root) as reader:
        assert sorted(reader.views) == IDS
        await asyncio.to_thread(until, lambda: not psutil.pid_exists(pids[0]))
    assert len(pids) == 1


@pytest.mark.usefixtures("many")
async def test_a_feed_that_is_closed_while_it_loads_ends_the_child(long_root: Path) -> None:
    feed = Feed(LedgerReader(long_root), Watch(long_root), ours=lambda _: False)
    async with aclosing(feed.batches()) as batches:
        async for batch in batches:
            if batch.views:
                break
        assert not batch.complete
        assert children()
        await feed.close()
    await asyncio.to_thread(until, lambda: not children())


@pytest.mark.usefixtures("many")
async def test_a_reader_that_is_cancelled_before_the_child_starts_has_none(
    long_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a thread does cannot be cancelled: it goes on behind the end of its reader."""
    listed, ended, list_ids = threading.Event(), threading.Event(), LedgerSnapshot.list_ids
    start, ahead = LedgerSnapshot.read_ahead, threading.Event()

    def list_slowly(snapshot: LedgerSnapshot) -> list[TaskId]:
        found = list_ids(snapshot)
        listed.set()
        assert ended.wait(60)
        return found

    def started(snapshot: LedgerSnapshot, ids: list[TaskId]) -> None:
        start(snapshot, ids)
        assert snapshot._ahead is None
        ahead.set()

    monkeypatch.setattr(LedgerSnapshot, "list_ids", list_slowly)
    monkeypatch.setattr(LedgerSnapshot, "read_ahead", started)
    feed = Feed(LedgerReader(long_root), Watch(long_root), ours=lambda _: False)

    async def read() -> None:
        async with aclosing(feed.batches()) as batches:
            async for _ in batches:
                pass

    task = asyncio.create_task(read())
    await asyncio.to_thread(listed.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ended.set()
    assert await asyncio.to_thread(ahead.wait, 60)
    assert not children()


def test_the_child_ends_with_the_program_that_started_it(long_root: Path) -> None:
    code = (
        "import sys, time; from engine.ledger.files import Folder\n"
        "from engine.ledger import read_ahead\n"
        "ahead = read_ahead.ReadAhead(Folder.at(sys.argv[1]), '0')\n"
        "print(ahead._child.pid, flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code, str(long_root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        child = psutil.Process(int(program.stdout.readline()))
        program.kill()

    def has_ended() -> bool:
        with suppress(psutil.NoSuchProcess):
            return child.status() == psutil.STATUS_ZOMBIE
        return True

    until(has_ended)


def test_a_reader_that_is_gone_ends_what_is_sent(root: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with Folder.at(str(root)) as folder, pytest.raises(BrokenPipeError):
        send(folder, FIRST, write)
    os.close(write)


def test_one_processor_reads_faster_without_a_child(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.ledger.reader.processors", lambda: 1.5)
    assert LedgerReader(root).read_ahead(FIRST) is None


def test_a_missing_root_has_no_child(tmp_path: Path) -> None:
    assert LedgerReader(tmp_path / "none").read_ahead(FIRST) is None


async def test_a_small_ledger_starts_no_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Folder] = []
    monkeypatch.setattr(ReadAhead, "__init__", lambda _, root, __: started.append(root))
    async with reading(root) as reader:
        assert sorted(reader.views) == IDS
    assert not started
