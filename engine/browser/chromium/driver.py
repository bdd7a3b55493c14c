"""Playwright's driver, the Node.js process that is the parent of every browser; their processes.

psutil identifies a process by its number and its start time, so that no other process is ended
after a number was reused. Functions that read the whole process tree take some milliseconds:
call them on a thread, not on the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psutil
from playwright._impl._driver import compute_driver_executable
from playwright.async_api import Error, async_playwright

from engine.browser.page.failures import browser_failure
from engine.model.errors import BrowserFailed
from engine.model.process_memory import resident_bytes

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright


START_S = 30.0
CALL_OFF_S = 4.0
LOOK_S = 0.05
SETTLE_S = 3.0  # a busy machine needs longer
ANSWER_S = 2.0
ASKED_S = 5.0
_PROFILE = "playwright_chromiumdev_profile-"  # Playwright's temporary profiles
_DRIVER_MODULES = frozenset(
    {
        "playwright._impl.transport",
        "playwright._impl._transport",  # its name in older versions
        "playwright._impl.out_of_process",
    }
)
Tasks = frozenset[asyncio.Task[Any]]
Pairs = frozenset[tuple[int, int]]  # own and foreign port of connections
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class Driver:
    """The running driver, and through it Playwright."""

    def __init__(
        self, playwright: Playwright, process: psutil.Process | None, tasks: Tasks = frozenset()
    ) -> None:
        """Take a started driver; `tasks` read from it and end a moment after its process."""
        self.playwright = playwright
        self.pages = 0  # pages loaded through it, counted when their browsers are replaced
        self.held_bytes = 0
        self.profiles: set[str] = set()  # temporary folders of its browsers
        self._process = process
        self._tasks = tasks
        self._late: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, limit_s: float = START_S) -> Driver:
        """Start the driver (about 0.3 s); after a cancellation, end it first.

        An interrupted start would leave the driver's process and tasks behind.

        Raises:
            BrowserFailed: the driver did not start, or not within `limit_s`.
        """
        _check_node()
        async with _turns():
            return await cls._start(_Start(), limit_s)

    @classmethod
    async def _start(cls, start: _Start, limit_s: float) -> Driver:
        try:
            # Playwright may raise anything here; `wait` retrieves no exception.
            await asyncio.wait({start.task}, timeout=limit_s)
        except asyncio.CancelledError:
            await _finish(asyncio.create_task(cls._cancel(start)))
            raise
        if start.ready:
            return cls._of(start, start.process())
        cause = start.task.exception() if start.task.done() else None
        reason = _reason(start.task) if start.task.done() else f"no answer within {limit_s:.0f} s"
        await _finish(asyncio.create_task(cls._cancel(start)))
        reason = await asyncio.to_thread(_node_error) or reason
        raise browser_failure(f"its driver does not start: {reason}", cause)

    @classmethod
    def _of(cls, start: _Start, process: psutil.Process | None) -> Driver:
        playwright = start.task.result()
        _retrieve_end_error(playwright)
        return cls(playwright, process, start.tasks())

    @classmethod
    async def _cancel(cls, start: _Start) -> None:
        """End a start at any stage, at once, because nothing depends on it yet."""
        process = await start.cut_off()
        if start.ready:
            await cls._of(start, process).stop(0)
        await _settled(start.tasks())

    @property
    def alive(self) -> bool:
        """Whether the driver runs; Playwright itself does not report its end."""
        return self._process is None or alive(self._process)

    async def answers(self) -> bool:
        """Return whether the driver responds within 2 s, without involving a browser."""
        if not self.alive:
            return False
        try:
            async with asyncio.timeout(ANSWER_S):
                request = await self.playwright.request.new_context()
                await request.dispose()
        except (TimeoutError, Error):
            return False
        return True

    def take_back(self, launching: asyncio.Future[Browser]) -> None:
        """Close the browser of a cancelled launch as soon as it has started."""
        ending = asyncio.create_task(_close_when_there(launching), name="take a browser back")
        self._late.add(ending)
        ending.add_done_callback(self._late.discard)

    def weigh(self) -> None:
        """Measure the driver's memory and store it in `held_bytes`."""
        self.held_bytes = resident_bytes(self._process) if self._process is not None else 0

    async def stop(self, limit_s: float) -> None:
        """End the driver and its browsers, by force after `limit_s`."""
        before = tree(self._process)
        stopping = asyncio.create_task(self.playwright.stop(), name="stop the driver")
        stopping.add_done_callback(_retrieve_error)
        try:
            await asyncio.wait({stopping}, timeout=limit_s)
            ended = [*before, *tree(self._process)]  # also a browser that started meanwhile
            end(ended)
            # The pipe is closed now and only the loop's cleanup is left; a second `stop` of
            # Playwright does not wait for that, so it is awaited here.
            await _settled({stopping, *self._tasks, *self._late})
            await asyncio.to_thread(_remove_profiles, self.profiles, ended)
        finally:
            stopping.cancel()


def _remove_profiles(profiles: Iterable[str], ended: list[psutil.Process]) -> None:
    """Remove profiles that a driver left because it was ended by force."""
    left = [one for one in profiles if os.path.basename(one).startswith(_PROFILE)]
    left = [one for one in left if os.path.isdir(one)]
    if left:
        psutil.wait_procs(ended, timeout=SETTLE_S)  # a dying browser still writes
    for profile in left:
        shutil.rmtree(profile, ignore_errors=True)


async def _close_when_there(launching: asyncio.Future[Browser]) -> None:
    """Close the launched browser; both the launch and the closing have a limit."""
    with contextlib.suppress(Error, TimeoutError):
        browser = await launching
        async with asyncio.timeout(CALL_OFF_S):
            await browser.close()


class _Start:
    """A driver start in progress, with the process and tasks created so far."""

    def __init__(self) -> None:
        self._children = {child.pid for child in psutil.Process().children()}
        self._others = _playwright_tasks()
        self.task = asyncio.create_task(async_playwright().start(), name="start the driver")
        self.task.add_done_callback(_retrieve_error)

    @property
    def ready(self) -> bool:
        done = self.task.done() and not self.task.cancelled()
        return done and self.task.exception() is None

    def process(self) -> psutil.Process | None:
        return _driver_process(self._children)

    def tasks(self) -> Tasks:
        return _playwright_tasks() - self._others

    async def cut_off(self) -> psutil.Process | None:
        """End the process as soon as it exists; Playwright stops when its pipe closes."""
        process: psutil.Process | None = None
        until = asyncio.get_running_loop().time() + CALL_OFF_S
        while not self.task.done() and asyncio.get_running_loop().time() < until:
            process = process or self.process()
            end(tree(process))
            await asyncio.wait({self.task}, timeout=LOOK_S)
        self.task.cancel()
        return process or self.process()


def _turns() -> asyncio.Lock:
    """Return the lock that serializes driver starts of a loop.

    Playwright does not report which process and tasks belong to which start, so that all new ones
    are attributed to the only start in progress.
    """
    return _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _playwright_tasks() -> Tasks:
    """Return the tasks with which Playwright starts drivers and reads from them.

    Playwright exposes none of them, and reports its stop before they have ended.
    """
    return frozenset(one for one in asyncio.all_tasks() if _module_of(one) in _DRIVER_MODULES)


def _module_of(task: asyncio.Task[Any]) -> str:
    frame = getattr(task.get_coro(), "cr_frame", None)
    return str(frame.f_globals.get("__name__", "")) if frame is not None else ""


async def _settled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait until these tasks, which are about to end, have ended; cancel them after 3 s."""
    for _ in range(2):
        left = {one for one in tasks if not one.done()}
        if left:
            await asyncio.wait(left, timeout=SETTLE_S)
        for one in left:
            one.cancel()


async def _finish(ending: asyncio.Task[None]) -> None:
    """Wait for a task in spite of cancellation; it is bounded, and interrupted it leaks a process.

    Raises:
        CancelledError: the caller was cancelled meanwhile.
    """
    try:
        await asyncio.wait({ending})
    finally:
        if not ending.done():
            await _finish(ending)


def _check_node() -> None:
    """Check Node.js first, because Playwright's failing start leaves a traceback to the loop."""
    try:
        node = compute_driver_executable()[0]
    except Error as failed:
        raise BrowserFailed(reason=failed.message) from failed
    if shutil.which(node) is None:
        raise BrowserFailed(
            reason=f"its driver does not start: {node} is not a program that can be run"
        )


def _node_error() -> str:
    """Return why the driver's Node.js does not run, such as a missing library; "" if it runs.

    Playwright reports no more than a missing answer.
    """
    try:
        request = subprocess.run(
            [compute_driver_executable()[0], "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=ASKED_S,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows would open one
        )
    except OSError as failed:
        return str(failed)
    except subprocess.TimeoutExpired:
        return ""
    lines = request.stderr.decode("utf-8", "replace").split("\n") if request.returncode else []
    return next((line.strip()[:300] for line in lines if line.strip()), "")


def _reason(failed: asyncio.Task[Playwright]) -> str:
    lines = str(failed.exception()).splitlines()
    return lines[0][:200] if lines else type(failed.exception()).__name__


def _retrieve_end_error(playwright: Playwright) -> None:
    """Retrieve the error of a driver's sudden end, which Playwright keeps in a private future.

    Otherwise the loop reports it as never retrieved; there is no public access to it.
    """
    client = getattr(getattr(playwright.stop, "__self__", None), "_client", None)
    ended = getattr(getattr(client, "_transport", None), "on_error_future", None)
    if isinstance(ended, asyncio.Future):
        ended.add_done_callback(_retrieve_error)


def _retrieve_error(ended: asyncio.Future[Any]) -> None:
    if not ended.cancelled():
        ended.exception()


def _driver_process(before: set[int]) -> psutil.Process | None:
    for child in psutil.Process().children():
        if child.pid in before:
            continue
        try:
            if "run-driver" in child.cmdline():
                return child
        except psutil.Error:
            continue
    return None


def tree(process: psutil.Process | None) -> list[psutil.Process]:
    """Return the driver and all its descendants; psutil checks their start times."""
    if process is None:
        return []
    try:
        return [*process.children(recursive=True), process]
    except psutil.Error:
        return []


_RENDERER = "--type=renderer"
_CHILD = "--type="  # of every process but the first
_PROFILE_OPTION = "--user-data-dir="
_NEARLY = 12  # open files that a connection or a renderer needs at once
_BUSY_S = 0.5  # sampling time for CPU use
_BUSY_PAGE = 0.1  # of a processor: blocked by its own messages, even a flooding page gets little
# The browser itself, which a flood keeps busy: with 12 programs that compute on 2 processors, it
# had 0.3 of one or more during a flood, and 0.11 at most with honest pages.
_BUSY_BROWSER = 0.2


class Family:
    """A browser's first process and all its descendants."""

    def __init__(self, root: psutil.Process) -> None:
        self._root = root

    @classmethod
    def of(cls, pid: int) -> Family | None:
        """Return the family of the process with this number; None if it is gone."""
        try:
            return cls(psutil.Process(pid)) if pid else None
        except psutil.Error:
            return None

    def members(self) -> list[psutil.Process]:
        """Return the running processes, children first; empty if the first one is gone."""
        try:
            return [*reversed(self._root.children(recursive=True)), self._root]
        except psutil.Error:
            return []

    def profile(self) -> str:
        """Return the browser's profile folder; "" if the process is gone."""
        try:
            words = self._root.cmdline()
        except psutil.Error:
            return ""
        return next(
            (
                word.removeprefix(_PROFILE_OPTION)
                for word in words
                if word.startswith(_PROFILE_OPTION)
            ),
            "",
        )

    @staticmethod
    def is_renderer(member: psutil.Process) -> bool:
        """Return whether a process runs pages."""
        return _is_type(member, _RENDERER)

    def ports(self) -> frozenset[int] | None:
        """Return the local ports of their TCP connections; None if there are none, or unknown."""
        return frozenset(ours for ours, _ in self.connections() or ()) or None

    def connections(self) -> Pairs | None:
        """Return both ports of their TCP connections; None if the system denies access."""
        found: set[tuple[int, int]] = set()
        for member in self.members():
            try:
                if _RENDERER not in member.cmdline():  # renderers have none
                    known = member.net_connections("tcp4")
                    found.update(
                        (one.laddr.port, one.raddr.port if one.raddr else 0) for one in known
                    )
            except psutil.NoSuchProcess:
                continue
            except psutil.Error:
                return None
        return frozenset(found)

    def lacks_files(self, most: int) -> bool:
        """Return whether a process has nearly `most` open files; its next one may fail."""
        for member in self.members():
            with contextlib.suppress(psutil.Error):
                if member.num_fds() >= most - _NEARLY:
                    return True
        return False

    def end(self) -> None:
        """Kill all processes at once."""
        end(self.members())

    def end_flooding_page(self) -> bool:
        """End the renderer that keeps the browser busy; return False if there is none.

        For a thread: it measures for half a second.
        The process of a flooding page cannot be requested from the browser: all its messages are in
        one queue, behind the flood. A browser may also answer late because the machine has other
        work, but then it uses little of the processors.
        """
        used = _used(self.members())
        browser = sum(share for process, share in used.items() if not _is_type(process, _CHILD))
        renderers = [process for process in used if self.is_renderer(process)]
        busiest = max(renderers, key=used.__getitem__, default=None)
        if busiest is None or used[busiest] <= _BUSY_PAGE or browser <= _BUSY_BROWSER:
            return False
        end([busiest])
        return True


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill each process; ignore those that are gone."""
    for process in processes:
        try:
            process.kill()  # checks the start time, in case the number was reused
        except psutil.Error:
            continue


def _is_type(process: psutil.Process, option: str) -> bool:
    """Return whether a process, unless it is gone, was started with this option."""
    try:
        return any(word.startswith(option) for word in process.cmdline())
    except psutil.Error:
        return False


def _used(processes: list[psutil.Process]) -> dict[psutil.Process, float]:
    """Return the share of a processor that each one uses. For a thread."""
    began_s, before = time.monotonic(), {process: _spent_s(process) for process in processes}
    time.sleep(_BUSY_S)  # the interval over which CPU time is compared
    took_s = time.monotonic() - began_s
    return {one: max(0.0, _spent_s(one) - spent) / took_s for one, spent in before.items()}


def _spent_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
