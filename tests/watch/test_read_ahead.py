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
from typing import Any

import msgspec
import psutil
import pytest

from engine.ledger import listing, read_ahead
from engine.ledger.files import Folder
from engine.ledger.listing import SMALL_BYTES
from engine.ledger.read_ahead import ReadAhead, _Child, packed_block, send
from engine.ledger.reader import LedgerReader
from engine.ledger.snapshot import LedgerSnapshot
from engine.ledger.watch import Watch
from engine.model.errors import LedgerUnusable
from engine.model.records import TaskId, TaskRecord, Unreadable
from engine.service.feed import Batch, Feed
from tests.support.processes import until
from tests.support.task_folders import task_id, write_meta
from tests.watch.readers import reading

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows reads by paths")

TASKS = 3 * read_ahead.SENT_AT_ONCE + 5
IDS = sorted(TaskId(task_id(number)) for number in range(TASKS))
LOWEST = IDS[0]


@pytest.fixture(autouse=True)
def _help_for_small_ledgers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(read_ahead, "processors", lambda: 2.0)
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


class Helped:
    """A first read with the ledger that it is of."""

    def __init__(self, root: Path, ids: Sequence[TaskId] = IDS) -> None:
        self.folder = Folder.at(str(root))
        self.ahead = ReadAhead(ids)
        self.ahead.start(self.folder)

    @property
    def child(self) -> _Child:
        assert self.ahead._child is not None
        return self.ahead._child

    def take(self, most: int = 10) -> tuple[dict[TaskId, bytes], list[TaskId]]:
        return self.ahead.take(self.folder, most)

    def all(self) -> list[tuple[dict[TaskId, bytes], list[TaskId]]]:
        """All parts, where this process reads nothing before the child has ended."""
        found: list[tuple[dict[TaskId, bytes], list[TaskId]]] = []
        left = self.ahead.left
        while True:
            assert self.ahead.left == left - sum(len(part) + len(rest) for part, rest in found)
            until(lambda: arrived(self.ahead))
            if (part := self.take()) == ({}, []):
                return found
            found.append(part)

    def close(self) -> None:
        self.ahead.close()
        self.folder.close()


def arrived(ahead: ReadAhead | None) -> bool:
    """Return whether the child has sent a whole block, or has ended."""
    assert ahead is not None
    child = ahead._child
    assert child is not None
    if child._process is None:
        return True
    size = int.from_bytes(child._arrived[:4], "little")
    is_whole = 4 < len(child._arrived) >= size + 20
    return is_whole or (child._read() and False) or child._process is None


def views(snapshot: LedgerSnapshot, *, waits: bool = False) -> list[bytes]:
    """All of a first load; with `waits` this process reads nothing that the child sends."""
    snapshot.begin_load(snapshot.list_ids())
    found: list[bytes] = []
    assert snapshot._ahead is not None
    while True:
        if waits:
            until(lambda: arrived(snapshot._ahead))
        if not (more := snapshot.load_next(1).views):
            snapshot.close()
            return sorted(found)
        found += map(msgspec.json.encode, more)


def test_the_records_come_from_the_last_id_down(root: Path) -> None:
    with closing(Helped(root)) as helped:
        parts = helped.all()
    ids = [sorted(one) for one, rest in parts]
    assert not any(rest for _, rest in parts)
    assert [one for part in ids[::-1] for one in part] == IDS
    assert all(data == text(root, one) for part, _ in parts for one, data in part.items())
    assert {len(part) for part in ids} == {read_ahead.SENT_AT_ONCE, 5}


def test_ids_are_sorted(root: Path) -> None:
    ids = [TaskId(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}") for number in range(500)]
    assert ReadAhead(ids).take(Folder(str(root), None), 500) == ({}, sorted(ids))


def test_blocks_that_no_pipe_holds_arrive_in_parts(long_root: Path) -> None:
    ids = sorted(TaskId(one.name) for one in long_root.iterdir())
    with closing(Helped(long_root, ids)) as helped:
        found = {one: data for part, _ in helped.all() for one, data in part.items()}
    assert found == {one: text(long_root, one) for one in ids}


def test_both_read_until_they_meet(long_root: Path) -> None:
    ids = sorted(TaskId(one.name) for one in long_root.iterdir())
    ahead = ReadAhead(ids)
    with Folder.at(str(long_root)) as folder, closing(ahead):
        here = ahead.take(folder, 100)[1] + ahead.take(folder, 60)[1]
        assert here == ids[:160]
        ahead.start(folder)
        until(lambda: arrived(ahead))
        found, rest = ahead.take(folder, 10)
        assert (sorted(found), rest) == (ids[-read_ahead.SENT_AT_ONCE :], [])
        there = list(found)
        while found or rest:
            until(lambda: arrived(ahead))
            found, rest = ahead.take(folder, 10)
            there += (*found, *rest)
    assert sorted([*here, *there]) == ids, "each of them once"


def test_tasks_that_are_newer_than_the_list_end_nothing(root: Path) -> None:
    for number in range(16**8, 16**8 + 2 * read_ahead.SENT_AT_ONCE):
        write_meta(root, number, "COMPLETED")
    with closing(Helped(root)) as helped:
        until(lambda: arrived(helped.ahead))
        assert helped.take(10) == ({}, IDS[:10])
        parts = helped.all()
    assert sorted(one for part, rest in parts for one in (*part, *rest)) == IDS[10:]


def test_a_missing_task_is_read_here(root: Path) -> None:
    for one in (IDS[0], IDS[100], IDS[-1]):
        (root / one / "meta.json").unlink()
    with closing(Helped(root)) as helped:
        parts = helped.all()
    assert sorted(one for _, rest in parts for one in rest) == [IDS[0], IDS[100], IDS[-1]]
    assert sum(len(part) for part, _ in parts) == TASKS - 3


def test_many_missing_tasks_are_read_in_small_parts(root: Path) -> None:
    for one in IDS[5:-5]:
        (root / one).rename(root / f"removed-{one}")
    with closing(Helped(root)) as helped:
        parts = helped.all()
    assert max(len(rest) for _, rest in parts) == 10
    assert sorted(one for part, rest in parts for one in (*part, *rest)) == IDS


def test_no_link_is_followed_and_no_long_record_is_sent(tmp_path: Path) -> None:
    ledger, other = tmp_path / "tasks", tmp_path / "other"
    write_meta(other, 1, "COMPLETED")
    write_meta(ledger, 2, "COMPLETED", note="x" * 2 * SMALL_BYTES)
    write_meta(ledger, 3, "COMPLETED")
    (ledger / task_id(4)).mkdir()
    (ledger / task_id(1)).symlink_to(other / task_id(1))
    (ledger / task_id(4) / "meta.json").symlink_to(other / task_id(1) / "meta.json")
    with closing(Helped(ledger, IDS[1:5])) as helped:
        parts = helped.all()
    assert parts[0] == ({IDS[3]: text(ledger, IDS[3])}, [])
    assert sorted(one for part, rest in parts[1:] for one in (*part, *rest)) == [
        IDS[1],
        *IDS[2:5:2],
    ]
    assert not any(part for part, _ in parts[1:])
    snapshot = LedgerSnapshot(LedgerReader(ledger), lambda _: False)
    snapshot.begin_load(snapshot.list_ids())
    entries = {view.task_id: view.entry for view in snapshot.load_next(9).views}
    snapshot.close()
    assert isinstance(entries.pop(IDS[4]), Unreadable)
    reader = LedgerReader(ledger)
    assert entries == {one: reader.read(one) for one in IDS[2:4]}


def test_records_of_several_kilobytes_are_not_sent(tmp_path: Path) -> None:
    for number in range(TASKS):
        write_meta(tmp_path, number, "COMPLETED", note="x" * 8_000)
    with Folder.at(str(tmp_path)) as folder, (tmp_path / "sent").open("wb") as sent:
        send(folder, sent.fileno())
    assert not (tmp_path / "sent").stat().st_size


@pytest.mark.parametrize(
    ("slow_s", "several"), [(0.0, [False, True, True, False]), (1_000.0, [False] * 4)]
)
def test_a_slow_disk_is_read_several_times_at_once(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    slow_s: float,
    several: list[bool],
) -> None:
    """Between two of such times one block shows whether it is still slow."""
    monkeypatch.setattr(read_ahead, "SLOW_S", slow_s)
    monkeypatch.setattr(read_ahead, "READ_AT_ONCE", 2)
    here, read, in_pool = threading.get_ident(), read_ahead._read, dict[str, bool]()

    def noted(root: Folder, ids: list[TaskId]) -> bytes:
        in_pool[ids[0]] = threading.get_ident() != here
        return read(root, ids)

    monkeypatch.setattr(read_ahead, "_read", noted)
    file = tmp_path_factory.mktemp("sent") / "blocks"
    parts = [IDS[::-1][at : at + read_ahead.SENT_AT_ONCE] for at in range(0, TASKS, 64)]
    with Folder.at(str(root)) as folder, file.open("wb") as sent:
        send(folder, sent.fileno())
        assert file.read_bytes() == b"".join(read(folder, part) for part in parts)
    assert [in_pool[part[0]] for part in parts] == several


def test_a_list_with_a_child_is_the_same_as_one_without(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, texts = list[str](), listing.texts

    def count(fd: int, ids: Sequence[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
        read.extend(ids)
        return texts(fd, ids)

    monkeypatch.setattr(listing, "texts", count)
    helped = views(LedgerSnapshot(LedgerReader(root), lambda _: False), waits=True)
    assert not read, "the child has read all"
    until(lambda: not children())
    monkeypatch.setattr(read_ahead, "processors", lambda: 1.5)
    alone = views(LedgerSnapshot(LedgerReader(root), lambda _: False))
    assert sorted(read) == IDS, "one processor reads faster without a child"
    assert helped == alone
    assert len(alone) == TASKS


def test_the_record_of_another_task_is_read_again(root: Path) -> None:
    with Folder.at(str(root)) as folder:
        ahead = dict.fromkeys(IDS[:3], text(root, IDS[1]))
        ended, others = listing.ended(folder, (), ahead=ahead)
    assert [one.task_id for one in ended] == IDS[1:2]
    assert others == [IDS[0], IDS[2]]


def test_a_root_that_was_replaced_is_read_itself(tmp_path: Path) -> None:
    root, other, link = tmp_path / "first", tmp_path / "second", tmp_path / "tasks"
    for number in range(TASKS):
        write_meta(root, number, "COMPLETED")
        write_meta(other, number, "FAILED")
    link.symlink_to(root)
    snapshot = LedgerSnapshot(LedgerReader(link), lambda _: False)
    snapshot.begin_load(IDS)
    assert snapshot._ahead is not None
    until(lambda: arrived(snapshot._ahead))
    link.unlink()
    link.symlink_to(other)
    loaded = snapshot.load_next(TASKS).views
    found = {view.entry.status for view in loaded if isinstance(view.entry, TaskRecord)}
    assert (found, len(loaded)) == ({"FAILED"}, TASKS)
    snapshot.close()
    until(lambda: not children())


def block(texts: dict[str, bytes], lowest: str = LOWEST) -> bytes:
    return packed_block(lowest, texts.items())


SHORT = block({LOWEST: b"{}"})
FAULTS: dict[str, bytes | None] = {
    "is missing": None,
    "ends at once": b"",
    "sends something else": b"Traceback (most recent call last): no module named engine" * 9,
    "sends too large a block": (read_ahead.MOST_BYTES + 1).to_bytes(4, "little") + SHORT[4:],
    "ends within a block": SHORT[:-1],
    "sends an invalid block": (3).to_bytes(4, "little") + LOWEST.encode() + b"abc",
    "sends a block twice": SHORT + SHORT,
    "sends invalid records": block(dict.fromkeys(IDS, b"{")),
    "sends no records": block({}),
    "sends blocks upwards": block({}, IDS[64]) + block({}, IDS[128]),
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
    monkeypatch.setattr(read_ahead, "processors", lambda: 1.0)
    expected = views(LedgerSnapshot(LedgerReader(root), lambda _: False))
    monkeypatch.setattr(read_ahead, "processors", lambda: 2.0)
    sends(fault, tmp_path_factory.mktemp("sent"), monkeypatch)
    waits = FAULTS[fault] is not None
    assert views(LedgerSnapshot(LedgerReader(root), lambda _: False), waits=waits) == expected


@pytest.mark.parametrize("fault", NO_BLOCKS)
def test_a_child_that_sends_no_blocks_is_ended(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sends(fault, tmp_path_factory.mktemp("sent"), monkeypatch, "; exec sleep 600")
    with closing(Helped(root)) as helped:
        found: list[TaskId] = []

        def has_ended() -> bool:
            arrived, ids = helped.take(1)
            found.extend((*arrived, *ids))
            return helped.child._process is None

        until(has_ended)
        while rest := helped.take(TASKS)[1]:
            found += rest
        assert sorted(found) == IDS


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
async def test_the_list_is_complete_when_the_child_is_killed_or_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    start, pids = _Child.__init__, list[int]()

    def stop_it(child: _Child, root: Folder) -> None:
        start(child, root)
        assert child._process is not None
        pids.append(child._process.pid)
        os.kill(pids[-1], getattr(signal, name))

    monkeypatch.setattr(_Child, "__init__", stop_it)
    async with reading(root) as reader:
        assert sorted(reader.views) == IDS
        await asyncio.to_thread(until, lambda: not psutil.pid_exists(pids[0]))
    assert len(pids) == 1


def follow(root: Path) -> Feed:
    return Feed(LedgerReader(root), Watch(root), ours=lambda _: False)


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read nothing here before the child has sent a block."""
    take = ReadAhead.take

    def wait(ahead: ReadAhead, root: Folder, most: int) -> tuple[dict[TaskId, bytes], list[TaskId]]:
        until(lambda: arrived(ahead))
        return take(ahead, root, most)

    monkeypatch.setattr(ReadAhead, "take", wait)


@pytest.mark.usefixtures("many", "prompt")
async def test_the_numbers_of_a_first_list_are_right(long_root: Path) -> None:
    total = len(list(long_root.iterdir()))
    shown = 0
    async with aclosing(follow(long_root).batches()) as batches:
        async for batch in batches:
            shown += len(batch.views)
            assert (batch.loaded, batch.total) == (shown, total)
            if batch.complete:
                break
    assert shown == total


@pytest.mark.usefixtures("many")
async def test_a_first_list_whose_tasks_were_all_removed_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reading(tmp_path) as reader:
        known = len(reader.batches)
        monkeypatch.setattr(LedgerSnapshot, "list_ids", lambda _: [*IDS])
        reader.feed.rescan()
        await reader.until(lambda: len(reader.batches) > known)
        assert reader.batches[-1] == Batch(complete=True)


@pytest.mark.usefixtures("many")
async def test_what_was_read_before_a_lack_of_descriptors_is_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "processors", lambda: 1.0)
    monkeypatch.setattr("engine.ledger.snapshot.LOAD_AT_ONCE", 50)
    next_ended, calls = LedgerReader.next_ended, list[int]()

    def lack(reader: LedgerReader, ahead: ReadAhead, most: int, make: listing.Make) -> Any:
        calls.append(most)
        if len(calls) in (2, 3):
            raise LedgerUnusable(path=str(root), reason="too many open files")
        return next_ended(reader, ahead, most, make)

    monkeypatch.setattr(LedgerReader, "next_ended", lack)
    feed = Feed(LedgerReader(root), Watch(root, scan_s=0.1), ours=lambda _: False)
    found: set[TaskId] = set()
    async with aclosing(feed.batches()) as batches:
        async for batch in batches:
            found |= {view.task_id for view in batch.views}
            if len(found) == TASKS:
                break
        await feed.close()
    assert sorted(found) == IDS
    assert len(calls) == 3, "the next scan has named the others"


def test_a_close_does_not_wait_for_the_start_of_a_child(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting, closed, start = threading.Event(), threading.Event(), _Child.__init__

    def start_late(child: _Child, root: Folder) -> None:
        starting.set()
        assert closed.wait(60)
        start(child, root)

    monkeypatch.setattr(_Child, "__init__", start_late)
    snapshot = LedgerSnapshot(LedgerReader(root), lambda _: False)
    thread = threading.Thread(target=snapshot.begin_load, args=(IDS,))
    thread.start()
    assert starting.wait(60)
    snapshot.close()
    closed.set()
    thread.join(60)
    assert snapshot.left == 0
    until(lambda: not children())


@pytest.mark.usefixtures("many")
async def test_a_feed_that_is_closed_while_it_loads_ends_the_child(long_root: Path) -> None:
    feed = follow(long_root)
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
    start, began = LedgerSnapshot.begin_load, threading.Event()

    def list_slowly(snapshot: LedgerSnapshot) -> list[TaskId]:
        found = list_ids(snapshot)
        listed.set()
        assert ended.wait(60)
        return found

    def begin(snapshot: LedgerSnapshot, ids: list[TaskId]) -> None:
        start(snapshot, ids)
        began.set()

    monkeypatch.setattr(LedgerSnapshot, "list_ids", list_slowly)
    monkeypatch.setattr(LedgerSnapshot, "begin_load", begin)
    feed = follow(long_root)

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
    assert await asyncio.to_thread(began.wait, 60)
    await asyncio.to_thread(until, lambda: not children())


def test_the_child_ends_with_the_program_that_started_it(long_root: Path) -> None:
    code = (
        "import sys, time; from engine.ledger.files import Folder\n"
        "from engine.ledger import read_ahead\n"
        "child = read_ahead._Child(Folder.at(sys.argv[1]))\n"
        "print(child._process.pid, flush=True); time.sleep(600)\n"
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
        send(folder, write)
    os.close(write)


def test_one_processor_has_no_child(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "processors", lambda: 1.5)
    with closing(Helped(root)) as helped:
        assert helped.ahead._child is None


def test_a_root_that_is_removed_ends_the_load(root: Path) -> None:
    snapshot = LedgerSnapshot(LedgerReader(root), lambda _: False)
    snapshot.begin_load(IDS)
    until(lambda: arrived(snapshot._ahead))
    assert snapshot.load_next(1).views
    root.rename(root.with_name("removed"))
    assert snapshot.load_next(TASKS).views == ()
    assert snapshot.left == 0
    until(lambda: not children())


def test_a_root_that_is_gone_has_no_child(root: Path, tmp_path: Path) -> None:
    snapshot = LedgerSnapshot(LedgerReader(tmp_path / "none"), lambda _: False)
    snapshot.begin_load(IDS)
    assert not children()
    assert snapshot.load_next(TASKS).views == ()
    assert snapshot.load_next(TASKS).views == ()
    snapshot.close()


async def test_a_small_ledger_starts_no_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Folder] = []
    monkeypatch.setattr(_Child, "__init__", lambda _, root: started.append(root))
    async with reading(root) as reader:
        assert sorted(reader.views) == IDS
    assert not started
