"""A look at everything that a task needs: browser, ledger, locks, limits, versions.

It writes nothing but the lease that a task would take, and that only where it may.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine.browser.locate import describe
from engine.config import Settings
from engine.display import display
from engine.errors import BrowserMissing, EngineError
from engine.logs import log_path
from engine.store.lease import Lease
from engine.store.ledger import Ledger
from engine.version import VERSION

LIBRARIES = ("PySide6-Essentials", "qasync", "playwright", "watchdog", "filelock", "aiohttp")
INOTIFY = Path("/proc/sys/fs/inotify/max_user_watches")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `state` is ok, warning or problem; `advice` says what to do."""

    subject: str
    state: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything found, in the order of importance."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Can tasks run here?"""
        return all(finding.state != "problem" for finding in self.findings)

    def text(self) -> str:
        """The report as plain text."""
        marks = {"ok": "ok     ", "warning": "WARNING", "problem": "PROBLEM"}
        lines: list[str] = []
        for finding in self.findings:
            lines.append(f"{marks[finding.state]}  {finding.subject}: {display(finding.text)}")
            if finding.advice:
                lines.append(f"{'':9}{display(finding.advice)}")
        return "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "healthy": self.healthy,
            "findings": [
                {"subject": f.subject, "state": f.state, "text": f.text, "advice": f.advice}
                for f in self.findings
            ],
        }


def examine(settings: Settings) -> Report:
    """Look at everything; takes up to about 5 s (the browser is asked for its version)."""
    looks: tuple[Callable[[Settings], list[Finding]], ...] = (
        _browser,
        _ledger,
        _privacy,
        _lease,
        _limits,
        _versions,
        _log,
    )
    return Report(tuple(finding for look in looks for finding in look(settings)))


def _browser(settings: Settings) -> list[Finding]:
    seen = describe(settings.browser_path)
    if seen.found is None:
        looked = ", ".join(place.where for place in seen.places)
        error = BrowserMissing(looked=f"looked for {looked}")
        return [Finding("browser", "problem", str(error), error.advice)]
    text = f"{seen.found.name} {seen.version} ({seen.found.path})"
    return [Finding("browser", "ok", text)]


def _ledger(settings: Settings) -> list[Finding]:
    if not os.path.lexists(settings.root):
        return [Finding("ledger", "ok", f"{settings.root} (made when the first task starts)")]
    try:
        count = sum(1 for _ in Ledger(settings.root).scan())
    except EngineError as error:
        return [Finding("ledger", "problem", str(error), error.advice)]
    return [Finding("ledger", "ok", f"{settings.root} ({count:,} tasks)")]


def _privacy(settings: Settings) -> list[Finding]:
    """Others who can write the ledger could plant tasks in it; see the trust rules."""
    try:
        found = os.stat(settings.root)
    except OSError:
        return []
    if sys.platform == "win32":
        return []  # profile folders are private there, and modes mean nothing
    findings: list[Finding] = []
    if found.st_uid != os.getuid():
        findings.append(Finding("ledger owner", "warning", "the ledger belongs to another user"))
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        advice = f"chmod 700 {settings.root}"
        findings.append(
            Finding("ledger mode", "warning", "other users can write the ledger", advice)
        )
    return findings


def _lease(settings: Settings) -> list[Finding]:
    if not os.path.isdir(settings.root):
        return []
    try:
        Lease.acquire(settings.root).release()
    except EngineError as error:
        return [Finding("locks", "problem", str(error), error.advice)]
    return [Finding("locks", "ok", "the ledger can be written and locked")]


def _limits(settings: Settings) -> list[Finding]:
    if not INOTIFY.exists():
        return []
    watches = int(INOTIFY.read_text())
    text = f"{watches:,} folders can be watched"
    if watches < 1_000:
        return [
            Finding(
                "watches",
                "warning",
                text,
                "Raise fs.inotify.max_user_watches; until then: polling.",
            )
        ]
    return [Finding("watches", "ok", text)]


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
