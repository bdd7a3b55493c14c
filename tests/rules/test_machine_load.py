"""The load of a machine or of a container, and the room that it has for tabs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, NamedTuple

import psutil
import pytest

from engine.model import control_groups, machine_load
from engine.model.config import Settings
from engine.model.machine_load import MachineMeter, TabRoom


def test_the_meter_goes_on_after_a_system_that_told_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise psutil.AccessDenied

    with monkeypatch.context() as patch:
        patch.setattr(psutil, "cpu_times", refuse)
        meter = MachineMeter()
        assert meter.read(3) == machine_load.BUSY_MACHINE
        meter.restart()
    assert meter.read(3) == machine_load.BUSY_MACHINE, "the first reading"
    assert meter.read(3).total_bytes == machine_load._memory()[0]


def test_this_process_counts_where_the_others_are_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("/proc")

    monkeypatch.setattr(psutil.Process, "children", refuse)
    used = machine_load._Used.read()
    assert [one.pid for one in used.own_s] == [psutil.Process().pid]
    assert used.own_bytes > 0


# Elsewhere no shared files are known, and they count for each process, as `bytes_together` says.
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the files in a process")
def test_the_files_that_processes_share_count_once() -> None:
    words = [sys.executable, "-c", "import asyncio, email.message; print('up'); input()"]
    with ExitStack() as stack:
        children = [
            stack.enter_context(Popen(words, stdin=PIPE, stdout=PIPE, text=True)) for _ in range(4)
        ]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "up\n"
        used = machine_load._Used.read()
        pids = [os.getpid(), *(child.pid for child in children)]
        assert {one.pid for one in used.own_s} >= set(pids)
        resident = sum(psutil.Process(pid).memory_info().rss for pid in pids)
        for child in children:
            child.kill()
    assert used.own_bytes < resident - 4 * 4e6, "each has more than 4 MB of files"


def test_the_meter_sees_the_work_of_this_process_and_the_memory() -> None:
    meter = MachineMeter()
    until_s = time.process_time() + 0.2
    while time.process_time() < until_s:
        pass
    machine = meter.read(4)
    assert 0 < machine.own_cpu <= 1
    assert 0 < machine.cpu <= 1
    assert 0 < machine.free_bytes < machine.total_bytes
    assert machine_load.LEAST_TAB_BYTES <= machine.tab_bytes <= machine_load.MOST_TAB_BYTES
    meter.restart()


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_a_container_is_the_memory_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    folder, limit, usage, cached = machine_load._GROUP_FILES[2 - version]
    group = tmp_path / folder
    group.mkdir(exist_ok=True)
    (group / limit).write_text("400000000\n")
    (group / usage).write_text("300000000\n")
    (group / "memory.stat").write_text(f"anon 5\n{cached} 50000000\n")
    monkeypatch.setattr(control_groups, "GROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "OWN_GROUPS", tmp_path / "none")
    assert machine_load._memory() == (400e6, 150e6)
    (group / limit).write_text("max\n" if version == 2 else f"{2**63 - 4096}\n")
    assert machine_load._memory()[0] == float(psutil.virtual_memory().total)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("lowest", ["", "jobs", "jobs/crawls"])
def test_the_narrowest_limit_of_the_own_group_and_those_around_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, lowest: str
) -> None:
    folder, limit, usage, _ = machine_load._GROUP_FILES[2 - version]
    for group in ("", "jobs", "jobs/crawls", "others"):
        path = tmp_path / folder / group
        path.mkdir(parents=True, exist_ok=True)
        most = 200_000_000 if group == lowest else 900_000_000
        (path / limit).write_text(f"{10 if group == 'others' else most}\n")
        (path / usage).write_text("150000000\n")
        (path / "memory.stat").write_text("anon 5\n")
        (path / "cpu.max").write_text("50000 100000\n" if group == lowest else "max 100000\n")
    own = tmp_path / "own"
    own.write_text(f"3:cpu,cpuacct:/\n2:{folder}:/jobs/crawls\n" + "0::/jobs/crawls\n")
    monkeypatch.setattr(control_groups, "GROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "OWN_GROUPS", own)
    assert machine_load._memory() == (200e6, 50e6)
    if version == 2:
        assert machine_load._Spent.read().processors == 0.5
    own.write_text("0::/../../elsewhere\n")  # outside of the container
    assert machine_load._memory()[0] == (200e6 if lowest == "" else 900e6)


# The processors of a container.


class Times(NamedTuple):
    """Seconds of one processor, or of all of them, as psutil reports them."""

    user: float
    idle: float
    iowait: float
    guest: float  # part of `user`


class Container:
    """The groups `pod`, and `own` in it (version 2), of 16 processors; with a clock of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, monkeypatch
        self._now_s, self._busy_s = 1_000.0, [100.0] * 16
        self._used_s = {"pod": 50.0, "own": 40.0}
        self._groups = {"pod": folder / "pod", "own": folder / "pod/own"}
        own = folder / "cgroup"
        own.write_text("1:name=systemd:/elsewhere\n0::/pod/own\n")
        monkeypatch.setattr(control_groups, "GROUPS", folder)
        monkeypatch.setattr(control_groups, "OWN_GROUPS", own)
        monkeypatch.setattr("engine.model.machine_load.time.monotonic", lambda: self._now_s)
        monkeypatch.setattr(psutil, "cpu_times", self._times)
        monkeypatch.setattr(os, "cpu_count", lambda: 16)
        self.allow(*range(16))
        self._groups["own"].mkdir(parents=True)
        for group in self._groups:
            self.limit(group, "max 100000")

    def allow(self, *numbers: int) -> None:
        """Let the process use only these processors."""
        self._patch.setattr(os, "sched_getaffinity", lambda _: set(numbers), raising=False)

    def limit(self, group: str, quota: str) -> None:
        (self._groups[group] / "cpu.max").write_text(f"{quota}\n")
        self.work()

    def work(self, busy_s: dict[int, float] | None = None, **used_s: float) -> None:
        """Let a second pass, with work of processors by their number, and of the groups."""
        self._now_s += 1
        for number, seconds in (busy_s or {}).items():
            self._busy_s[number] += seconds
        for group, folder in self._groups.items():
            self._used_s[group] += used_s.get(group, 0.0)
            used_usec, file = round(self._used_s[group] * 1e6), folder / "cpu.stat"
            if not file.is_dir():
                file.write_text(f"user_usec 5\nusage_usec {used_usec}\nnr_periods 7\n")

    def hide(self, name: str) -> None:
        """Make the files of this name unreadable: put folders in their places."""
        for file in [*self._folder.rglob(name)]:
            file.unlink()
            file.mkdir()

    def _times(self, percpu: bool = False) -> Any:
        each = [Times(one_s, self._now_s - one_s - 9, 9, one_s / 2) for one_s in self._busy_s]
        return each if percpu else Times(*map(sum, zip(*each, strict=True)))


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Container:
    return Container(tmp_path, monkeypatch)


@pytest.fixture
def opens_tabs(container: Container, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Return whether further tabs open, by what happened since the last call."""
    monkeypatch.setattr(machine_load, "ROOM_S", 0.0)
    monkeypatch.setattr(machine_load, "_memory", lambda: (64e9, 64e9))
    room = TabRoom()

    def look() -> bool:
        room.look(3, time.monotonic())
        return room.most > 3

    return look


@pytest.mark.parametrize("group", ["pod", "own"])
def test_a_container_without_processor_time_left_opens_no_further_tabs(
    container: Container, opens_tabs: Callable[[], bool], group: str
) -> None:
    container.limit(group, "150000 100000")
    opens_tabs()
    for used_s, has_room in ((1.33, True), (1.37, False), (0.2, True)):
        container.work({0: used_s / 2, 1: used_s / 2}, **{group: used_s})
        assert opens_tabs() is has_room
    assert not opens_tabs(), "no time passed to measure"


@pytest.mark.parametrize(
    ("pod_s", "own_s", "machine_s", "has_room"),
    [
        *((3.5, 0.8, 0.5, True), (3.7, 0.8, 0.5, False)),  # the pod has 4 processors
        *((1.0, 0.95, 0.5, False), (1.0, 0.8, 0.95, False)),
    ],
)
def test_the_pod_or_the_machine_may_be_busy_before_an_own_quota_is_used_up(
    container: Container,
    opens_tabs: Callable[[], bool],
    pod_s: float,
    own_s: float,
    machine_s: float,
    has_room: bool,
) -> None:
    container.limit("pod", "400000 100000")
    container.limit("own", "100000 100000")
    opens_tabs()
    container.work(dict.fromkeys(range(16), machine_s), pod=pod_s, own=own_s)
    assert opens_tabs() is has_room
    assert machine_load._Spent.read().processors == 1


@pytest.mark.parametrize("hidden", ["cpu.stat", "cpu.max", "cgroup"])
def test_without_readable_quotas_the_machine_decides_about_further_tabs(
    container: Container, opens_tabs: Callable[[], bool], hidden: str
) -> None:
    container.limit("pod", "100000 100000")
    container.hide(hidden)
    opens_tabs()
    for machine_s, has_room in ((0.89, True), (0.91, False)):
        container.work(dict.fromkeys(range(16), machine_s), pod=machine_s * 16, own=machine_s * 16)
        assert opens_tabs() is has_room


def test_only_the_processors_that_this_process_may_use_count(
    container: Container, opens_tabs: Callable[[], bool]
) -> None:
    container.allow(3, 4)
    assert machine_load._Spent.read().processors == 2
    opens_tabs()
    for busy_s, has_room in (
        *(({3: 0.91, 4: 0.91}, False), ({3: 0.95, 4: 0.8}, True)),
        *((dict.fromkeys({*range(16)} - {3, 4}, 1.0), True), ({3: 1.0, 4: 1.0}, False)),
    ):
        container.work(busy_s)
        assert opens_tabs() is has_room
    container.allow(30)  # a system that numbers them in another way
    assert machine_load._system_s({30}) == machine_load._system_s(set(range(16)))


def test_half_of_the_processors_of_a_container_are_slots(container: Container) -> None:
    assert Settings().slots == 8
    container.limit("pod", "850000 100000")
    assert Settings().slots == 4
    container.allow(3, 4, 5, 6, 7, 8)
    assert Settings().slots == 3
    container.limit("own", "50000 100000")
    assert Settings().slots == 2, "one task never waits for another one alone"
    container.limit("own", "max 100000")
    container.hide("cpu.max")
    assert Settings().slots == 3


@pytest.mark.parametrize(
    ("quota", "period", "slots"),
    [("400000", "100000", 2), ("1200000", "100000", 6), ("-1", "100000", 8), ("nan", "1", 8)],
)
def test_quotas_of_the_first_version_of_groups_limit_the_slots(
    container: Container, tmp_path: Path, quota: str, period: str, slots: int
) -> None:
    (tmp_path / "cgroup").write_text("4:cpu,cpuacct:/pod\n")
    group = tmp_path / "cpu" / "pod"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (group / "cpu.cfs_period_us").write_text(f"{period}\n")
    assert Settings().slots == slots
    container.limit("pod", "max 100000")


@pytest.mark.parametrize("line", [b"0::/\xff\xfe\n", b"of another system\n"])
def test_groups_that_cannot_be_read_do_not_limit_the_slots(
    container: Container, tmp_path: Path, line: bytes
) -> None:
    container.limit("pod", "100000 100000")
    (tmp_path / "cgroup").write_bytes(line)
    assert Settings().slots == 8


def test_the_automatic_number_is_decided_by_the_same_share(container: Container) -> None:
    container.limit("pod", "200000 100000")
    meter = MachineMeter()
    container.work({0: 0.8, 1: 0.8}, pod=1.5)
    assert meter.read(3).cpu == pytest.approx(0.75)
    container.work({0: 1.0, 1: 1.0}, pod=1.9)
    assert meter.read(3).cpu == pytest.approx(0.85), "of both seconds"
    meter.restart()
    container.work({0: 1.0, 1: 1.0}, pod=2.0)
    assert meter.read(3).cpu == pytest.approx(1.0)
