"""Diagnosis of everything that a task needs: browser, ledger, locks, limits, versions.

It writes nothing but the lease that a task would acquire, and that only where permitted.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.browser.chromium.locate import describe
from engine.doctor import environment
from engine.doctor.environment import Finding, Report
from engine.ledger.ledger import Ledger
from engine.logging.logs import log_path
from engine.model.config import VERSION, Settings
from engine.model.errors import BrowserMissing, EngineError, LedgerUnusable
from engine.text.messages import count, say

__all__ = ["Finding", "Report", "beside", "browser", "examine", "looks"]

LIBRARIES = ("PySide6-Essentials", "qasync", "playwright", "watchdog", "filelock", "aiohttp")


def examine(settings: Settings) -> Report:
    """Run all checks; takes up to about 5 s (the browser reports its version)."""
    return Report(tuple(finding for look in looks() for finding in look(settings)))


def looks() -> tuple[Callable[[Settings], list[Finding]], ...]:
    """List all checks in order, for callers that show progress. For threads."""
    return (
        browser,
        _ledger,
        environment.place,
        environment.locks,
        environment.limits,
        environment.variables,
        _versions,
        _log,
    )


def browser(settings: Settings) -> list[Finding]:
    """Check the browser that a task would use, with its version (up to 5 s)."""
    seen = describe(settings.browser_path)
    if seen.found is None:
        looked = ", ".join(place.where for place in seen.places)
        error = BrowserMissing(looked=f"looked for {looked}")
        return [Finding("browser", "problem", str(error), error.advice)]
    text = f"{seen.found.name} {seen.version} ({seen.found.path})"
    return [Finding("browser", "ok", text)]


def beside(root: Path, *, watch_only: bool) -> list[Finding]:
    """Check a further ledger: present, readable, watchable, and usable.

    A watch-only ledger is not even locked for a moment.
    """
    settings = Settings(home=root.parent, root=root)
    if not root.is_dir():
        reason = "it is no folder" if os.path.lexists(root) else "there is no such folder"
        return [Finding("ledger", "problem", str(LedgerUnusable(path=str(root), reason=reason)))]
    found = [*_ledger(settings), *environment.place(settings), *environment.watches(root)]
    return found if watch_only else found + environment.locks(settings)


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
