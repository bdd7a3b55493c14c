"""Diagnosis of everything that a task needs: browser, ledger, locks, limits, versions.

It writes nothing but the lease that a task would acquire, and that only where permitted.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from engine.browser import direct
from engine.browser.chromium.consent_rules import installed_version
from engine.browser.chromium.consent_rules import place as place_of_rules
from engine.browser.chromium.locate import describe, locate
from engine.cluster.cluster_address import import_library
from engine.egress.upstream import probe_proxy, probe_user
from engine.kinds.cluster_use import default_cluster
from engine.ledger.directory_watcher import Listener, open_watcher
from engine.ledger.files import MIB
from engine.ledger.filesystem_checks import concerns, disk_kind
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.lock import UNMOVED_S, locks_of_others
from engine.ledger.machine import wall_ms
from engine.ledger.ownership import owner_of
from engine.ledger.reader import LedgerReader
from engine.ledger.task_files import check_writable
from engine.logging.logs import log_path
from engine.model import process_limits, redact
from engine.model.config import VERSION, Settings
from engine.model.display import display
from engine.model.errors import (
    BrowserMissing,
    EngineError,
    InvalidArguments,
    LedgerUnusable,
    ProxyUnreachable,
)
from engine.model.proxies import UpstreamProxy
from engine.model.records import LIVE, RUNS_FOLDER, Unreadable
from engine.text.messages import count, decimal, retold, say

WATCHES: Final = Path("/proc/sys/fs/inotify/max_user_watches")
FEW_WATCHES: Final = 1_000
LITTLE_ROOM: Final = 200 * MIB
BUILT_MS: Final = 1_735_689_600_000  # 2025: no correct clock shows less
SKEW_MS: Final = 2_000
LOCK_LOOK_S: Final = 0.3
MOST_NAMED: Final = 5
PROXY_S: Final = 3.0
CLUSTER_S: Final = 3.0
MOST_UNUSABLE: Final = 3  # workers that are named with their reasons
PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
PLACES: Final = ("OPENCHROME_TASK_ROOT", "OPENCHROME_HOME", "OC_BROWSER", "OC_CLUSTER", "TMPDIR")
LIBRARIES = ("PySide6-Essentials", "qasync", "playwright", "watchdog", "filelock", "aiohttp")


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check. `state` is ok, warning or problem; `advice` names the remedy."""

    subject: str
    state: str
    text: str
    advice: str = ""

    def line(self) -> str:
        """Format the finding as plain text, with its advice on a second line."""
        marks = {"ok": "ok     ", "warning": "WARNING", "problem": "PROBLEM"}
        line = f"{marks[self.state]}  {self.subject}: {display(self.text)}"
        return f"{line}\n{'':9}{display(self.advice)}" if self.advice else line


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order of importance."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether tasks can run here."""
        return all(finding.state != "problem" for finding in self.findings)

    def text(self) -> str:
        """Format the report as plain text."""
        return "\n".join(finding.line() for finding in self.findings)

    def data(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "healthy": self.healthy,
            "findings": [
                {"subject": f.subject, "state": f.state, "text": f.text, "advice": f.advice}
                for f in self.findings
            ],
        }


def examine(settings: Settings) -> Report:
    """Run all checks; takes up to about 5 s (the browser reports its version)."""
    return Report(tuple(finding for look in looks() for finding in look(settings)))


def looks() -> tuple[Callable[[Settings], list[Finding]], ...]:
    """List all checks in order, for callers that show progress. For threads."""
    return (
        browser,
        _connection,
        _consent_rules,
        _cluster,
        _ledger,
        place,
        _runs,
        locks,
        limits,
        proxy,
        variables,
        _versions,
        _log,
    )


def browser(settings: Settings) -> list[Finding]:
    """Check the browser that a task would use, with its version (up to 5 s)."""
    seen = describe(settings.browser_path)
    if seen.found is None:
        looked = ", ".join(place.where for place in seen.places)
        error = BrowserMissing(reason=f"no browser was found; looked for {looked}")
        return [Finding("browser", "problem", str(error), error.advice)]
    text = f"{seen.found.name} {seen.version} ({seen.found.path})"
    return [Finding("browser", "ok", text)]


def _connection(settings: Settings) -> list[Finding]:
    """Tell which connection to the browser a plain crawl would use; no browser starts."""
    if not direct.AVAILABLE:
        return [Finding("browser connection", "ok", say("doctor.connection.windows"))]
    try:
        locate(settings.browser_path, headless=True)
    except BrowserMissing:
        return []  # which is a finding of its own
    return [Finding("browser connection", "ok", say("doctor.connection.direct"))]


def _consent_rules(_: Settings) -> list[Finding]:
    """Check the rules for consent banners, which only some tasks need."""
    try:
        found = installed_version()
    except EngineError as error:
        return [Finding("consent rules", "warning", str(error), error.advice)]
    text = f"autoconsent {found} ({place_of_rules()})" if found else say("doctor.consent.none")
    return [Finding("consent rules", "ok", text)]


def _cluster(settings: Settings) -> list[Finding]:
    """Check the cluster of tasks that name none; scheduler and workers get 3 s each to answer."""
    try:
        text = say("doctor.cluster", version=version("distributed"))
    except PackageNotFoundError:
        text = say("doctor.cluster.none")
    found = [Finding("cluster", "ok", text)]
    try:
        address = default_cluster(settings)
        if address is None:
            return found
        if address.local:
            import_library("distributed.security")
            return [*found, Finding("cluster", "ok", say("doctor.cluster.local", cluster=address))]
        from engine.cluster.cluster_connection import probe_cluster  # only where a cluster is used

        look = probe_cluster(address, CLUSTER_S)
    except InvalidArguments as error:  # its sentence begins with the argument, as the line does
        text = "; ".join(problem.message for problem in error.problems)
        return [*found, Finding("cluster", "problem", text, error.advice)]
    except EngineError as error:
        return [*found, Finding("cluster", "problem", str(error), error.advice)]
    return [*found, _workers(address, look.workers, look.unusable)]


def _workers(cluster: object, workers: int, unusable: Sequence[tuple[str, str]]) -> Finding:
    """Tell of the workers of a cluster that answers; `unusable` has names and reasons."""
    if not workers:
        return Finding("cluster", "warning", say("doctor.cluster.empty", cluster=cluster))
    if not unusable:
        text = say("doctor.cluster.workers", cluster=cluster, workers=workers)
        return Finding("cluster", "ok", text)
    why = "; ".join(f"{name}: {reason}" for name, reason in unusable[:MOST_UNUSABLE])
    counts = {"workers": workers, "unusable": len(unusable)}
    text = say("doctor.cluster.unusable", cluster=cluster, why=why, **counts)
    return Finding("cluster", "warning" if len(unusable) < workers else "problem", text)


def beside(root: Path, *, watch_only: bool) -> list[Finding]:
    """Check a further ledger: present, readable, watchable, and usable.

    A watch-only ledger is not even locked for a moment.
    """
    settings = Settings(home=root.parent, root=root)
    if not root.is_dir():
        reason = "it is no folder" if os.path.lexists(root) else "there is no such folder"
        return [Finding("ledger", "problem", str(LedgerUnusable(path=str(root), reason=reason)))]
    found = [*_ledger(settings), *place(settings), *watches(root)]
    return found if watch_only else found + locks(settings)


def _ledger(settings: Settings) -> list[Finding]:
    if not os.path.lexists(settings.root):
        return [Finding("ledger", "ok", say("doctor.ledger.later", path=settings.root))]
    try:
        number = sum(1 for _ in Ledger(settings.root).scan())
    except EngineError as error:
        return [Finding("ledger", "problem", str(error), error.advice)]
    words = "doctor.ledger.one" if number == 1 else "doctor.ledger"
    return [Finding("ledger", "ok", say(words, path=settings.root, count=count(number)))]


def _versions(settings: Settings) -> list[Finding]:
    text = (
        f"openchrome-monitor {VERSION}, Python {platform.python_version()}, {platform.platform()}"
    )
    libraries = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    return [Finding("program", "ok", text), Finding("libraries", "ok", libraries)]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _log(settings: Settings) -> list[Finding]:
    return [Finding("log", "ok", str(log_path()))]


def place(settings: Settings) -> list[Finding]:
    """Check the owner and mode of the ledger's folder, its disk and the free space."""
    found: list[Finding] = []
    if os.path.isdir(settings.root):
        found.append(Finding("folder", "ok", _facts(settings.root)))
    found += [
        Finding(one.subject, "warning", one.text, one.advice)
        for one in concerns(settings.root, settings.home)
    ]
    return found + _room(settings.root)


def _runs(settings: Settings) -> list[Finding]:
    """Report a folder of run records that cannot be written: they would be lost unnoticed."""
    folder = settings.home / RUNS_FOLDER
    if not os.path.lexists(folder):
        return []
    try:
        check_writable(folder)
        if not folder.is_dir():
            raise LedgerUnusable(path=str(folder), reason="it is no folder")
    except EngineError as error:
        told = say("notice.runs.memory", reason=str(error))
        return [Finding("runs", "warning", told, error.advice)]
    return []


def _facts(root: Path) -> str:
    facts = os.stat(root)
    ours = not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
    facts_shown = {
        "owner": say("doctor.folder.you" if ours else "doctor.folder.other"),
        "disk": disk_kind(root) or say("doctor.folder.unknown"),
    }
    if os.name != "posix":
        return say("doctor.folder", **facts_shown)
    return say("doctor.folder.mode", mode=f"{stat.S_IMODE(facts.st_mode):04o}", **facts_shown)


def _room(root: Path) -> list[Finding]:
    above = next((folder for folder in (root, *root.parents) if folder.is_dir()), None)
    try:
        free = shutil.disk_usage(above or root).free
    except OSError:
        return []
    text = say("doctor.room", free=count(free // MIB))
    if free < LITTLE_ROOM:
        return [Finding("room", "warning", text, say("doctor.room.advice", root=root))]
    return [Finding("room", "ok", text)]


def locks(settings: Settings) -> list[Finding]:
    """Check whether the ledger can be written and locked, and the disk's clock agrees with ours."""
    if not os.path.isdir(settings.root):
        return []
    before_ms = wall_ms()
    try:
        check_writable(settings.root)
        lease = Lease.acquire(settings.root)
    except EngineError as error:
        return [Finding("locks", "problem", str(error), error.advice)]
    try:
        written_ms = lease.written_ms()
    finally:
        lease.release()
    found = [Finding("locks", "ok", say("doctor.locks")), *_foreign_locks(settings.root)]
    now_ms = wall_ms()
    return found + list(_clock(now_ms, _clock_offset_ms(written_ms, before_ms, now_ms)))


def _foreign_locks(root: Path) -> Iterator[Finding]:
    """Report tasks whose lock another program holds now, and still holds a moment later."""
    held = locks_of_others(root)
    if held:
        time.sleep(LOCK_LOOK_S)  # a living peer holds it for milliseconds
        later = locks_of_others(root)
        held = {task_id: one for task_id, one in held.items() if later.get(task_id) == one}
    if not held:
        return
    reader = LedgerReader(root)
    named = "; ".join(_task_owner(reader, task_id) for task_id in sorted(held)[:MOST_NAMED])
    more = "" if len(held) <= MOST_NAMED else " …"
    text = say("doctor.locks.held", count=count(len(held)), ids=named + more)
    advice = say("doctor.locks.held.advice", seconds=decimal(UNMOVED_S, 0))
    yield Finding("locks", "warning", text, advice)


def _task_owner(reader: LedgerReader, task_id: str) -> str:
    """Describe a locked task and its owner; the holder of the lock itself is unknown."""
    try:
        entry = reader.read(task_id)
    except EngineError:
        return task_id
    if isinstance(entry, Unreadable) or entry.status not in LIVE:
        return f"{task_id}: {say('doctor.locks.nobody')}"
    return f"{task_id}: {retold(owner_of(reader.root, entry).sentence)}"


def _clock_offset_ms(written_ms: int | None, before_ms: int, after_ms: int) -> int:
    """Offset of the disk's clock in ms (behind: below 0); a slow disk is not behind."""
    if written_ms is None:
        return 0
    return written_ms - min(max(written_ms, before_ms), after_ms)


def _clock(now_ms: int, offset_ms: int) -> Iterator[Finding]:
    shown = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if now_ms < BUILT_MS:
        advice = say("doctor.clock.past.advice")
        yield Finding("clock", "warning", say("doctor.clock.past", shown=shown), advice)
    elif abs(offset_ms) > SKEW_MS:
        words = "doctor.clock.ahead" if offset_ms > 0 else "doctor.clock.behind"
        text = say(words, away=decimal(abs(offset_ms) / 1000, 0))
        yield Finding("clock", "warning", text, say("doctor.clock.advice"))
    else:
        yield Finding("clock", "ok", shown)


def limits(settings: Settings) -> list[Finding]:
    """Check the limit of open files, and whether folders can be watched."""
    return [*_descriptors(), *watches(settings.root)]


def _descriptors() -> Iterator[Finding]:
    if sys.platform == "win32":
        return
    most, size = process_limits.most_open_files(), process_limits.most_file_bytes()
    text = say("doctor.files.any") if most is None else say("doctor.files", count=count(most))
    if process_limits.has_few_files():
        yield Finding("open files", "warning", text, say("doctor.files.advice"))
    else:
        yield Finding("open files", "ok", text)
    if size is not None and size < process_limits.FEW_BYTES:
        text = say("doctor.file_size", count=count(size))
        yield Finding("file size", "warning", text, say("doctor.file_size.advice"))


def watches(root: Path) -> Iterator[Finding]:
    """Check whether changes in this folder are noticed at once."""
    advice = say("doctor.watches.advice")
    if not os.path.isdir(root):
        return
    try:
        watcher = open_watcher()
        try:
            watcher.watch_folder(Path(os.path.realpath(root)), _IgnoreChanges())()
        finally:
            watcher.close()
    except OSError as error:
        used_up = error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE)
        reason = say("doctor.watches.used_up") if used_up else error.strerror or str(error)
        text = say("doctor.watches.none", reason=reason)
        yield Finding("watches", "warning", text, advice)
        return
    if WATCHES.exists() and (most := int(WATCHES.read_text("ascii"))) < FEW_WATCHES:
        yield Finding("watches", "warning", say("doctor.watches.few", count=count(most)), advice)
    else:
        yield Finding("watches", "ok", say("doctor.watches"))


class _IgnoreChanges(Listener):
    def on_change(self, name: str) -> None: ...

    def on_end(self) -> None: ...

    def on_overflow(self) -> None: ...


def proxy(settings: Settings) -> list[Finding]:
    """Check the proxy of tasks that ask for none, if there is one, and the user that it gets."""
    if not settings.proxy:
        return []
    try:
        upstream = settings.proxy.upstream()
        if upstream is None:
            return []
        asyncio.run(_answers(upstream))
    except EngineError as error:
        return [Finding("proxy", "problem", str(error), error.advice)]
    names = "doctor.proxy.there" if upstream.resolves_names else "doctor.proxy.here"
    return [Finding("proxy", "ok", say(names, proxy=upstream))]


async def _answers(upstream: UpstreamProxy) -> None:
    try:
        async with asyncio.timeout(PROXY_S):
            await probe_proxy(upstream)
    except TimeoutError as late:
        raise ProxyUnreachable(proxy=str(upstream), reason="no answer in time") from late
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PROXY_S):
            await probe_user(upstream)


def variables(settings: Settings) -> list[Finding]:
    """List the relevant environment variables, without user and password."""
    given = {name: value for name, value in settings.environ.items() if value}
    places = [f"{name}={redact.text(given[name])}" for name in PLACES if name in given]
    found = [Finding("variables", "ok", ", ".join(places))] if places else []
    proxies = [f"{name}={_without_user(given[name])}" for name in given if name.lower() in PROXIES]
    if proxies:
        text = say("doctor.proxies", proxies=", ".join(sorted(proxies)))
        found.append(Finding("proxies", "ok", text))
    return found


def _without_user(proxy: str) -> str:
    """Strip the user from a proxy, also without a scheme."""
    scheme, mark, rest = proxy.rpartition("://")
    return redact.text(scheme + mark + rest.rpartition("@")[2])
