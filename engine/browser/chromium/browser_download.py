"""Download Chromium with Playwright's driver into the folder of `locate.downloads`.

The driver writes into a staging folder. A complete build is started once there, and then moved to
its place by one rename, so that `locate` never finds a part of a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import filelock
import psutil
from playwright._impl._driver import compute_driver_executable, get_driver_env
from playwright._impl._errors import Error

from engine.browser.chromium.locate import (
    COMPLETE,
    WHOLE_VERSION,
    downloads,
    program_in,
    version_of,
)
from engine.logging.logs import private_file, private_folder
from engine.model.addresses import parse
from engine.model.errors import (
    BrowserDiskFull,
    BrowserDownloadFailed,
    BrowserDownloadInterrupted,
    BrowserDownloadRefused,
    BrowserFailed,
    BrowserFolderUnusable,
    BrowserLibrariesMissing,
    BrowserNotOffered,
    BrowserProxyRefused,
    BrowserServerUnreachable,
)

STAGING: Final = ".download"
LOCK: Final = ".download.lock"
LOOK_S: Final = 0.25  # interval of progress reports, and of attempts at the lock
PLAN_S: Final = 60.0
START_S: Final = 60.0  # a cold start of a new program on a slow disk, under a virus scanner
SHELL_MB: Final = 110  # approximate sizes of a download, shown before it begins
FULL_MB: Final = 175
_KEPT_LINES: Final = 40
_LINE_CHARS: Final = 4_000
_GRACE_S: Final = 5.0

Stage = Literal["waiting", "connecting", "downloading", "extracting", "checking"]
Report = Callable[["Progress"], object]


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a download; `total_bytes` is 0 while unknown.

    `waiting`: another program downloads, and this one waits for its end.
    """

    stage: Stage
    done_bytes: int = 0
    total_bytes: int = 0


@dataclass(frozen=True, slots=True)
class InstalledBrowser:
    """A downloaded browser that was started once; `is_new` unless it had been there before."""

    path: str
    version: str
    is_new: bool


async def install_browser(*, full: bool, report: Report) -> InstalledBrowser:
    """Download Chromium unless its current build is there; wait for a download elsewhere.

    A cancellation ends the driver with its helpers and removes the partial files.

    Args:
        full: the browser with windows, for recordings; otherwise the headless shell.
        report: called on the loop for each change of the progress.

    Raises:
        BrowserDownloadFailed: or one of its subclasses, each with the way out.
        BrowserLibrariesMissing: it was downloaded, but needs them to start. The next call starts
            it again without another download.
        BrowserFailed: it was downloaded, but does not start, and was removed.
    """
    build = await _plan(full)
    report(Progress("connecting"))
    lock = await asyncio.to_thread(_open_lock)
    try:
        while not await asyncio.to_thread(_locked, lock):
            report(Progress("waiting"))
            await asyncio.sleep(LOOK_S)
        return await _install(build, report)
    finally:
        os.close(lock)


@dataclass(frozen=True, slots=True)
class _Build:
    """One build of Chromium: the folder that the driver gives it, and its server."""

    full: bool
    folder: str
    version: str
    host: str
    proxy: str  # without user and password; "" for a direct connection

    @property
    def target(self) -> Path:
        return downloads() / self.folder

    @property
    def staged(self) -> Path:
        return downloads() / STAGING / self.folder


# The driver's own names for what to install, with either switch it takes one browser only.
_WANTED: Final = {True: ("--no-shell", "chromium"), False: ("--only-shell", "chromium")}
_LOCATION = re.compile(r"Install location:\s+(\S.*)")
_URL = re.compile(r"Download url:\s+(\S+)")


async def _plan(full: bool) -> _Build:
    """Ask the driver, which does not write or connect for it, what it would install."""
    driver = await _start_driver("--dry-run", *_WANTED[full])
    try:
        async with asyncio.timeout(PLAN_S):
            out, _ = await driver.communicate()
    except TimeoutError:
        reason = f"the driver did not answer within {PLAN_S:.0f} s"
        raise BrowserDownloadFailed(reason=reason) from None
    finally:
        await _end(driver)
    text = out.decode("utf-8", "replace")
    browser, _, _ = text.partition("\n\n")  # further blocks are of FFmpeg
    location, url = _LOCATION.search(browser), _URL.search(browser)
    if location is None:
        raise BrowserDownloadFailed(reason=_last_error(text.splitlines()))
    if url is None:
        system = f"{platform.system()} {platform.machine()}"
        raise BrowserNotOffered(system=system, **_ways_out())
    version = WHOLE_VERSION.search(browser)
    address = parse(url.group(1))
    proxy = await asyncio.to_thread(_proxy_for, url.group(1))
    return _Build(
        full,
        os.path.basename(location.group(1).strip()),
        version.group() if version else "",
        address.place if address is not None else "",
        proxy,
    )


async def _install(build: _Build, report: Report) -> InstalledBrowser:
    target, staged = build.target, build.staged
    if (target / COMPLETE).is_file():
        path, version = await _started(build, target, report)
        return InstalledBrowser(path, version, is_new=False)
    if not (staged / COMPLETE).is_file():
        await _download(build, report)
    try:
        path, version = await _started(build, staged, report)
    except BrowserLibrariesMissing:
        raise
    except BrowserFailed:  # a damaged build, which a further attempt must not find
        await asyncio.to_thread(shutil.rmtree, downloads() / STAGING, ignore_errors=True)
        raise
    with _writing(downloads()):
        await asyncio.to_thread(_move, staged, target)
    return InstalledBrowser(str(target / Path(path).relative_to(staged)), version, is_new=True)


def _move(staged: Path, target: Path) -> None:
    if target.exists():  # left incomplete by another program
        shutil.rmtree(target)
    os.rename(staged, target)
    shutil.rmtree(downloads() / STAGING, ignore_errors=True)


# The download.


async def _download(build: _Build, report: Report) -> None:
    staging = downloads() / STAGING
    with _writing(staging):
        await asyncio.to_thread(_empty, staging)
    driver: asyncio.subprocess.Process | None = None
    is_complete = False
    try:
        driver = await _start_driver(*_WANTED[build.full], staging=staging)
        await _follow(driver, build, report)
        is_complete = True
    finally:
        # A second cancellation must not leave the processes or the partial files.
        await asyncio.shield(_clean_up(driver, None if is_complete else staging))


async def _clean_up(driver: asyncio.subprocess.Process | None, staging: Path | None) -> None:
    if driver is not None:
        await _end(driver)
    if staging is not None:
        await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)


async def _follow(driver: asyncio.subprocess.Process, build: _Build, report: Report) -> None:
    """Report the progress until the build is complete.

    The driver then downloads FFmpeg, which only its own videos need: its caller ends it.
    """
    output = _Output(build)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(output.read(driver.stdout), name="read the driver's output")
        reading.add_done_callback(lambda _: output.ended.set())
        while not await asyncio.to_thread((build.staged / COMPLETE).is_file):
            if output.ended.is_set():
                break
            done_bytes = await asyncio.to_thread(_downloaded_bytes, downloads() / STAGING)
            report(output.progress(done_bytes))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await output.ended.wait()
        await _end(driver)
        await reading
    if not await asyncio.to_thread((build.staged / COMPLETE).is_file):
        raise output.error()


def _downloaded_bytes(staging: Path) -> int:
    """Return the size of the archive: the driver itself reports each tenth only."""
    sizes = [0]
    for archive in staging.glob("playwright-download-*/*.zip"):
        with contextlib.suppress(OSError):
            sizes.append(archive.stat().st_size)
    return max(sizes)


_CONNECTIONS: Final = 2  # attempts at a server that does not answer
_ATTEMPT_FAILED = re.compile(r"attempt #\d+ - ERROR")
_TOTAL = re.compile(r"-- total bytes: (\d+)", re.ASCII)
_STATUS = re.compile(r"server returned code (\d{3})", re.ASCII)
_NO_ROOM = re.compile(r"\b(?:ENOSPC|EDQUOT)\b")
_NO_WRITE = re.compile(r"\b(EACCES|EPERM|EROFS|ENOTDIR|ENAMETOOLONG)\b")
_NO_SERVER = re.compile(
    r"\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPROTO)\b"
    r"|timed out after (\d+)ms|(\w*CERT\w*|UNABLE_TO_\w+)\b"
)
_CUT_OFF = re.compile(
    r"size mismatch|server closed connection|ECONNRESET|socket hang up|aborted"
    r"|central directory|invalid (?:signature|zip)|Download failed: (?!server returned)"
)
# With a proxy these may come from it: who answered a CONNECT is not visible.
_PROXY_STATUSES: Final = frozenset({401, 403, 407, 502, 503, 504})


class _Output:
    """The driver's output: the progress, and the reason of a failure. Lines are never shown.

    They may have the password of a proxy or of a mirror.
    """

    def __init__(self, build: _Build) -> None:
        self._build = build
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._total_bytes = 0
        self._stage: Stage = "connecting"
        self._fault: BrowserDownloadFailed | None = None
        self._failed_attempts = 0
        self._is_answered = False  # with an error status, by the server or a proxy
        self.ended = asyncio.Event()  # the driver has ended, or has to: its next attempt fails too

    def _is_final(self) -> bool:
        """Whether further attempts would fail in the same way; the driver makes five of 30 s."""
        if self._is_answered:  # a second wrong password may lock the user out of a proxy
            return True
        if isinstance(self._fault, BrowserServerUnreachable | BrowserProxyRefused):
            return self._failed_attempts >= _CONNECTIONS
        return isinstance(self._fault, BrowserDiskFull | BrowserFolderUnusable)

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        """Read until the driver has ended. A line may be a whole page, so it is cut."""
        rest = ""
        while stream is not None and (part := await stream.read(65_536)):
            *lines, rest = (rest + part.decode("utf-8", "replace")).split("\n")
            rest = rest[-_LINE_CHARS:]
            for line in lines:
                self._take(line[:_LINE_CHARS])
        self._take(rest)

    def progress(self, done_bytes: int) -> Progress:
        return Progress(self._stage, done_bytes, self._total_bytes)

    def error(self) -> BrowserDownloadFailed:
        """Return the error of a driver that ended without a browser."""
        return self._fault or BrowserDownloadFailed(reason=_last_error(self._lines))

    def _take(self, line: str) -> None:
        if line.strip():
            self._lines.append(line)
        if total := _TOTAL.search(line):
            self._total_bytes, self._stage = int(total.group(1)), "downloading"
        elif "extracting archive" in line:
            self._stage = "extracting"
        elif _ATTEMPT_FAILED.search(line):
            self._failed_attempts += 1
        elif fault := _fault_in(line, self._build):
            self._fault = fault
            self._is_answered = _STATUS.search(line) is not None
        if self._is_final():
            self.ended.set()


def _fault_in(line: str, build: _Build) -> BrowserDownloadFailed | None:
    """Return the error that a line of the driver names."""
    if _NO_ROOM.search(line):
        return BrowserDiskFull(folder=str(downloads()))
    if denied := _NO_WRITE.search(line):
        return BrowserFolderUnusable(folder=str(downloads()), reason=denied.group(1))
    if status := _STATUS.search(line):
        return _refused(int(status.group(1)), build)
    if offline := _NO_SERVER.search(line):
        reason = next(filter(None, offline.groups()))
        reason = f"{reason} ms" if reason.isdigit() else reason
        if build.proxy:
            return BrowserProxyRefused(proxy=build.proxy, reason=reason, **_ways_out())
        return BrowserServerUnreachable(host=build.host, reason=reason, **_ways_out())
    if _CUT_OFF.search(line):
        return BrowserDownloadInterrupted(host=build.host)
    return None


def _refused(status: int, build: _Build) -> BrowserDownloadFailed:
    ways = _ways_out()
    if status in _PROXY_STATUSES and build.proxy:
        return BrowserProxyRefused(proxy=build.proxy, reason=f"HTTP {status}", **ways)
    return BrowserDownloadRefused(host=build.host, status=status, **ways)


def _last_error(lines: deque[str] | list[str]) -> str:
    errors = [line.strip() for line in lines if "rror:" in line]
    return errors[-1][:300] if errors else "the driver ended without a reason"


def _ways_out() -> dict[str, str]:
    return {"command": install_command(), "folder": str(downloads())}


_BY_SYSTEM: Final = {
    "debian": "sudo apt install chromium",
    "ubuntu": "sudo snap install chromium",
    "fedora": "sudo dnf install chromium",
    "rhel": "sudo dnf install chromium",
    "arch": "sudo pacman -S chromium",
    "opensuse": "sudo zypper install chromium",
    "suse": "sudo zypper install chromium",
    "alpine": "sudo apk add chromium",
}


def install_command() -> str:
    """Return the command with which this system installs Chromium or Chrome."""
    if sys.platform == "win32":
        return "winget install Google.Chrome"
    if sys.platform == "darwin":
        return "brew install --cask google-chrome"
    try:
        return linux_command(platform.freedesktop_os_release())
    except OSError:
        return linux_command({})


def linux_command(release: Mapping[str, str]) -> str:
    """Return the command for the distribution of an os-release file, or for the one it is like."""
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split(), "debian"]
    known = (name.partition("-")[0] for name in names)
    return next(_BY_SYSTEM[name] for name in known if name in _BY_SYSTEM)


# The driver's process.


async def _start_driver(*words: str, staging: Path | None = None) -> asyncio.subprocess.Process:
    """Start the driver's command `install`.

    Raises:
        BrowserDownloadFailed: the driver is missing or damaged.
    """
    try:
        node, cli = compute_driver_executable()
        environment = await asyncio.to_thread(_environment, staging)
        return await asyncio.create_subprocess_exec(
            node,
            cli,
            "install",
            *words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            # Ctrl-C in a terminal reaches this program only, which ends the driver in order.
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except Error as broken:
        raise BrowserDownloadFailed(reason=broken.message) from broken
    except OSError as broken:
        raise BrowserDownloadFailed(reason=str(broken)) from broken


def _environment(staging: Path | None) -> dict[str, str]:
    """Return the driver's environment; with `staging` it writes nowhere else."""
    environment: dict[str, str] = get_driver_env()
    for name in ("DEBUG_FILE", "npm_config_loglevel", "PLAYWRIGHT_DOWNLOAD_NO_PROGRESS"):
        environment.pop(name, None)
    environment |= {f"{scheme}_proxy": url for scheme, url in _system_proxies(environment)}
    environment["PLAYWRIGHT_BROWSERS_PATH"] = str(staging or downloads())
    if staging is not None:
        environment |= {"DEBUG": "pw:install", "NO_COLOR": "1"}
        environment |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(staging))
    return environment


def _system_proxies(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the proxies of Windows' or macOS' settings, unless the environment has its own."""
    from urllib.request import getproxies  # 15 ms, for a download only

    names = {name.lower() for name, value in environment.items() if value}
    for scheme, url in getproxies().items():
        if scheme in ("http", "https") and not names & {f"{scheme}_proxy", "all_proxy"}:
            yield scheme, url


def _proxy_for(url: str) -> str:
    """Return `host:port` of the proxy for an address; the driver reads the same variables."""
    from urllib.request import proxy_bypass

    address = parse(url)
    environment = {name.lower(): value for name, value in _environment(None).items() if value}
    if address is None or proxy_bypass(address.place):
        return ""
    scheme = url.partition(":")[0]
    given = environment.get(f"{scheme}_proxy") or environment.get("all_proxy", "")
    proxy = parse(given if "://" in given else f"http://{given}") if given else None
    return proxy.place if proxy is not None else ""


async def _end(driver: asyncio.subprocess.Process) -> None:
    """End the driver and its helper processes, and wait until it has ended."""
    if driver.returncode is None:
        await asyncio.to_thread(_kill_tree, driver.pid)
    await driver.wait()


def _kill_tree(pid: int) -> None:
    with contextlib.suppress(psutil.Error):
        driver = psutil.Process(pid)
        tree = [driver, *driver.children(recursive=True)]
        for one in tree:
            with contextlib.suppress(psutil.Error):
                one.kill()
        psutil.wait_procs(tree[1:], timeout=_GRACE_S)


# Files and the lock between programs.


def _open_lock() -> int:
    folder = downloads()
    with _writing(folder):
        private_folder(folder)
        private_file(folder / LOCK)
        return os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))


def _locked(lock: int) -> bool:
    with _writing(downloads()):
        return filelock.lock_descriptor(lock, blocking=False)


def _empty(staging: Path) -> None:
    """Create the staging folder without what an ended program left in it."""
    if staging.exists():
        shutil.rmtree(staging)
    private_folder(staging)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Convert errors of the file system."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BrowserDiskFull(folder=str(folder)) from error
        reason = error.strerror or str(error)
        raise BrowserFolderUnusable(folder=str(folder), reason=reason) from error


# The first start.


async def _started(build: _Build, folder: Path, report: Report) -> tuple[str, str]:
    """Start the browser in `folder` once; return its program and its version."""
    report(Progress("checking"))
    path = await asyncio.to_thread(program_in, folder, headless=not build.full)
    if path is None:
        raise BrowserDownloadFailed(reason=f"there is no browser in {folder}")
    version = await asyncio.to_thread(start_once, path)
    return path, version or build.version


def start_once(path: str) -> str:
    """Start a browser and return its version. For a thread.

    Raises:
        BrowserLibrariesMissing: system libraries are missing, all of which are named.
        BrowserFailed: it does not start.
    """
    if sys.platform == "win32":  # `--version` opens a window there
        words = ["--headless", "--disable-gpu", "--dump-dom", "about:blank"]
    else:
        words = ["--version"]
    try:
        ended = subprocess.run(
            [path, *words],
            capture_output=True,
            timeout=START_S,
            stdin=subprocess.DEVNULL,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise BrowserFailed(reason=f"{path}: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as slow:
        reason = f"{path}: it did not answer within {START_S:.0f} s"
        raise BrowserFailed(reason=reason) from slow
    said = ended.stderr.decode("utf-8", "replace")
    if ended.returncode:
        if libraries := missing_libraries(path, said):
            raise BrowserLibrariesMissing(libraries=", ".join(libraries))
        first = next((line.strip() for line in said.splitlines() if line.strip()), "")
        reason = f"{path}: it ended at once (exit code {ended.returncode}) {first[:200]}"
        raise BrowserFailed(reason=reason.strip())
    if sys.platform == "win32":
        return version_of(path)
    found = WHOLE_VERSION.search(ended.stdout.decode("utf-8", "replace"))
    if found is None:
        raise BrowserFailed(reason=f"{path}: it names no version, so it is no Chromium")
    return found.group()


_NOT_LOADED = re.compile(r"error while loading shared libraries: (\S+?):")
_NOT_FOUND = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)


def missing_libraries(path: str, said: str) -> list[str]:
    """Return the missing system libraries; the loader names one only, `ldd` all."""
    first = _NOT_LOADED.search(said)
    if first is None:
        return []
    try:
        listed = subprocess.run(
            ["ldd", path],
            capture_output=True,
            timeout=START_S,
            stdin=subprocess.DEVNULL,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        listed = ""
    return sorted({first.group(1), *_NOT_FOUND.findall(listed)})
