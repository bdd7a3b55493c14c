"""Engine settings, and the version. Defaults come from the home folder, not the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.model.control_groups import processors
from engine.model.errors import LedgerUnusable
from engine.model.proxies import DefaultProxy

VERSION = "0.1.0"


def default_slots() -> int:
    """Return half the processors, at least two: one browser page uses about one of them."""
    return max(2, int(processors() / 2))


@dataclass(frozen=True, slots=True)
class Settings:
    """Folders and limits of an engine.

    `root` holds the tasks, `home` everything else (`task-runs/`, `audit/`, …).
    `slots` tasks run at once; `browser_path` overrides the browser look-up.
    Every `reap_s` seconds the tasks of dead processes are ended.
    A run whose folder is missing waits `away_s` seconds for it.
    `route` is how requests come (mcp, cli, http; None for the window) and `agent_id` the agent,
    both recorded in runs. A request may come by another route (see `admission.Terms`).
    `host_pid` is the process that owns envelopes, where that is not this one.
    `allow_private` lists private `host:port` that agents' browser tools may open (the operator's
    list).
    `detached` runs each task in a worker process, which outlives this one.
    `allow_files` is the folder whose files command tasks may upload; without it none may.
    `proxy` is the upstream proxy of tasks that ask for none. `cluster` is that of crawls that name
    none, unless OC_CLUSTER in `environ` does.
    `environ` is the environment from which tasks resolve secrets; it is never written. Of it,
    requests over MCP and HTTP get only the names in `allow_secrets` (the operator's list): a page
    that persuades an agent must not read every variable.
    """

    home: Path = field(default_factory=lambda: Path.home() / ".openchrome")
    root: Path = field(default_factory=lambda: Path.home() / ".openchrome" / "tasks")
    slots: int = field(default_factory=default_slots)
    browser_path: str | None = None
    reap_s: float = 30.0
    away_s: float = 60.0
    route: str | None = None
    agent_id: str | None = None
    host_pid: int | None = None
    allow_private: tuple[str, ...] = ()
    allow_files: Path | None = None
    allow_secrets: tuple[str, ...] = ()
    detached: bool = False
    proxy: DefaultProxy = field(default_factory=DefaultProxy)
    cluster: str = ""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def at(cls, *, home: Path | None = None, root: Path | None = None) -> Settings:
        """Return settings for another home (moves everything) and/or root (moves the tasks)."""
        base = home or Path.home() / ".openchrome"
        return cls(home=base, root=root or base / "tasks")

    @classmethod
    def chosen(
        cls, environ: Mapping[str, str], *, home: Path | None = None, root: Path | None = None
    ) -> Settings:
        """Choose settings: arguments first, then the environment, then the home folder.

        `home` moves everything, regardless of `environ`. OPENCHROME_HOME does not move the tasks,
        because OpenChrome, which shares them, does not move them either.

        Raises:
            LedgerUnusable: OPENCHROME_TASK_ROOT is not absolute, no home folder is known, or
                an argument is no valid path.
        """
        given_root = environ.get("OPENCHROME_TASK_ROOT")
        if home is None and root is None and given_root:
            root = Path(given_root)
            if not root.is_absolute():
                reason = "OPENCHROME_TASK_ROOT must be an absolute path"
                raise LedgerUnusable(path=given_root, reason=reason)
        _check_paths(home, root, environ.get("OPENCHROME_HOME"))
        if home is not None:
            settings = cls.at(home=home.absolute(), root=root.absolute() if root else None)
        else:
            given_home = environ.get("OPENCHROME_HOME")
            base = Path(given_home).absolute() if given_home else _home(environ)
            settings = cls(home=base, root=root.absolute() if root else _home(environ) / "tasks")
        return replace(
            settings,
            browser_path=environ.get("OC_BROWSER") or None,
            away_s=_seconds(environ.get("OC_LEDGER_AWAY_S"), settings.away_s),
            agent_id=environ.get("COMET_AGENT_ID") or None,
            proxy=DefaultProxy.of_environment(environ),
            environ=environ,
        )


def _seconds(said: str | None, usual: float) -> float:
    """Read seconds from the environment, 0 to a day; the default for other values."""
    try:
        found = float(said or usual)
    except ValueError:
        return usual
    return found if 0 <= found <= 86_400 else usual


def _check_paths(*given: Path | str | None) -> None:
    """Reject paths with NUL, which no system call accepts, before they are used."""
    for path in given:
        if path is not None and "\0" in str(path):
            raise LedgerUnusable(path=str(path), reason="no path holds the character NUL")


def _home(environ: Mapping[str, str]) -> Path:
    said = environ.get("HOME", "/") if os.name == "posix" else "/"
    try:
        home = Path.home()
    except RuntimeError as error:  # no HOME and no entry for this user
        raise LedgerUnusable(path="~", reason="no home folder is known; use --home") from error
    if not said or not home.is_absolute():  # "" would mean "/", "x" the working folder
        raise LedgerUnusable(path="~", reason="HOME must be an absolute path; or use --home")
    return home / ".openchrome"
