"""The browser's process with its pipe, started without a shell, and ended with the engine.

Chromium reads commands from descriptor 3 and writes answers to 4; both are one socket pair here.
It ends by itself when the pipe is closed. A guard, which waits for the end of the engine, ends a
browser that hangs then, and removes its profile.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Final

PROFILE: Final = "openchrome_crawl_profile-"  # temporary folders of these browsers
MOST_SAID: Final = 8_192  # bytes of its error output that are kept
REAP_S: Final = 3.0
LOOK_S: Final = 0.02
_ABOVE: Final = 10  # the lowest number of a descriptor that is duplicated to 3 and 4
# It reads until the engine, which holds the other end, has ended.
_GUARD: Final = 'trap "" INT TERM HUP; read -r _; sleep 2; kill -KILL "-$1"; rm -rf -- "$2"'


class BrowserProcess:
    """One running browser; `end` kills it with all its processes and removes its profile."""

    def __init__(
        self,
        pid: int,
        profile: str,
        pipe: socket.socket,
        errors: int,
        guard: subprocess.Popen[bytes],
    ) -> None:
        """Take a process that has been started, with its guard."""
        self.pid = pid
        self.profile = profile
        self.pipe = pipe
        self.exit_code: int | None = None
        self._errors = errors
        self._said = b""
        self._guard = guard
        self._ending: asyncio.Future[None] | None = None

    def watch(self) -> None:
        """Read its error output from now on, on the running loop."""
        asyncio.get_running_loop().add_reader(self._errors, self._read_errors)

    @property
    def said(self) -> str:
        """The start of its error output."""
        return self._said.decode("utf-8", "replace")

    async def end(self) -> None:
        """Kill it with all its processes, within 3 s, also when cancelled; once and for all.

        Later the number of its process group may be that of another one.
        """
        self._ending = self._ending or asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        _kill(self.pid)
        await self._ended(REAP_S)
        if self._errors >= 0:
            self._read_errors()
        self._close_errors()
        self.pipe.close()
        await asyncio.to_thread(self._clean_up)

    async def _ended(self, limit_s: float) -> None:
        deadline = asyncio.get_running_loop().time() + limit_s
        while not self._reaped():
            if asyncio.get_running_loop().time() >= deadline:
                return  # the guard waits for it no longer either
            await asyncio.sleep(LOOK_S)  # the system sends no event for it

    def _reaped(self) -> bool:
        if self.exit_code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # reaped by another part of the program
                self.exit_code = -1
            else:
                self.exit_code = os.waitstatus_to_exitcode(status) if pid else None
        return self.exit_code is not None

    def _clean_up(self) -> None:
        shutil.rmtree(self.profile, ignore_errors=True)
        self._guard.kill()
        self._guard.communicate()

    def _read_errors(self) -> None:
        try:
            said = os.read(self._errors, MOST_SAID)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if said:
            self._said = (self._said + said)[:MOST_SAID]
        else:
            self._close_errors()

    def _close_errors(self) -> None:
        if self._errors >= 0:
            asyncio.get_running_loop().remove_reader(self._errors)
            os.close(self._errors)
            self._errors = -1


def start(program: str, flags: Sequence[str]) -> BrowserProcess:
    """Start `program` with a fresh profile and a pipe; it takes some milliseconds.

    Raises:
        OSError: it cannot be started.
    """
    with ExitStack() as undo, ExitStack() as used:
        profile = tempfile.mkdtemp(prefix=PROFILE)
        undo.callback(shutil.rmtree, profile, ignore_errors=True)
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        used.callback(theirs.close)
        errors, told = os.pipe()
        undo.callback(os.close, errors)
        used.callback(os.close, told)
        ours.setblocking(False)
        os.set_blocking(errors, False)
        words = [program, *flags, f"--user-data-dir={profile}"]
        pid = _spawn([*words, "--remote-debugging-pipe", "--no-startup-window"], theirs, told)
        undo.callback(os.waitpid, pid, 0)
        undo.callback(_kill, pid)
        guard = _guard(pid, profile)
        undo.pop_all()
    return BrowserProcess(pid, profile, ours, errors, guard)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _spawn(words: Sequence[str], pipe: socket.socket, told: int) -> int:
    """Start a process group of its own; descriptors that Python opened are not inherited."""
    high = fcntl.fcntl(pipe.fileno(), fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    high_told = fcntl.fcntl(told, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, high_told, 2),
            (os.POSIX_SPAWN_DUP2, high, 3),
            (os.POSIX_SPAWN_DUP2, high, 4),
        ]
        return os.posix_spawn(
            words[0],
            list(words),
            os.environ,
            file_actions=actions,
            setpgroup=0,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
        )
    finally:
        os.close(high)
        os.close(high_told)


def _guard(pid: int, profile: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "octask-browser-guard", str(pid), profile],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


# Playwright's switches of a headless browser, for one that is started without Playwright.
# `tests/browser/test_direct.py` compares them with the command line that Playwright makes.

_FEATURES_ON: Final = "CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies"
_DEFAULTS: Final = (
    "--disable-field-trial-config",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--no-default-browser-check",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-edgeupdater",
    "--disable-extensions",
    f"--enable-features={_FEATURES_ON}",
    "--allow-pre-commit-input",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-renderer-backgrounding",
    "--disable-updater-scheduler",
    "--force-color-profile=srgb",
    "--metrics-recording-only",
    "--no-first-run",
    "--password-store=basic",
    "--use-mock-keychain",
    "--no-service-autorun",
    "--disable-search-engine-choice-screen",
    "--unsafely-disable-devtools-self-xss-warnings",
    "--enable-unsafe-swiftshader",
    "--edge-skip-compat-layer-relaunch",
    "--disable-stack-profiler",
    "--disable-infobars",
    "--disable-sync",
    "--do-not-de-elevate",
    "--headless",
    "--hide-scrollbars",
    "--mute-audio",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,"
    "availablePointerTypes=4",
)


def switches(
    own: Sequence[str], *, without: Iterable[str], proxy: str, bypass: str, sandbox: bool
) -> list[str]:
    """Return all switches of a browser, without those of its profile and its pipe.

    Args:
        own: the product's switches; of two with one name the last counts.
        without: Playwright's switches that are left out.
        proxy: the proxy of requests outside any context, and `bypass` its exceptions.
        sandbox: whether renderers run in Chromium's sandbox.
    """
    left_out = frozenset(without)
    kept = [one for one in _DEFAULTS if one not in left_out]
    exceptions = bypass.replace(",", ";")
    proxied = [f"--proxy-server={proxy}", f"--proxy-bypass-list={exceptions}"]
    return [*kept, *([] if sandbox else ["--no-sandbox"]), *proxied, *own]
