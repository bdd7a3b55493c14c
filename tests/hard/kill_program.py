"""Kill the program with -9 during a crawl: leftovers and lost pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from engine.browser.chromium.driver import alive
from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from engine.model.config import Settings
from engine.model.records import TaskRecord
from fixtures.site.site import Site
from tests.hard.figures import Figures, most_s

LIMIT_S = 5.0
REPO = Path(__file__).resolve().parents[2]


def wait_for(condition: Callable[[], object], limit_s: float = 150.0) -> float:
    """Wait until `condition()` holds; seconds that it took, or `limit_s` when it never did."""
    began = time.monotonic()
    while time.monotonic() - began < limit_s:
        if condition():
            return time.monotonic() - began
        time.sleep(0.02)  # no event to wait for: another process changes it
    return limit_s


ENDLESS = {"delay_ms": 0, "max_pages": 100_000, "max_depth": 100, "concurrency": 4}
# The window as users have it, and an operator who starts a crawl as soon as it is open.
WINDOW = """
import json, sys
from gui import app
from gui.startup.session import Session
home, args = sys.argv[1:]
open_window = Session.open
def open_and_start(session, *wish):
    open_window(session, *wish)
    session.bridge.opened.connect(lambda: session.bridge.start("crawl", json.loads(args)))
Session.open = open_and_start
sys.exit(app.main(["--home", home, "--new-window"]))
"""


def programs(home: Path, site: Site) -> dict[str, list[str]]:
    """The commands that crawl without end with a real browser."""
    args = json.dumps({"url": site.url, **ENDLESS})
    octask = ["-m", "engine.cli", "start", "crawl", "--args", args, "--home", str(home)]
    return {
        "octask": [sys.executable, *octask],
        "window": [sys.executable, "-c", WINDOW, str(home), args],
    }


def pages_of(root: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in root.glob("*/pages.jsonl"))


def family(pid: int) -> list[psutil.Process]:
    """Driver, browser and renderers of a run, as identities that survive the parent's death."""
    return psutil.Process(pid).children(recursive=True)


def kill_once(home: Path, command: list[str], pages: int, limit_s: float) -> dict[str, object]:
    """Start `command`, kill it after `pages` pages, and tell what came of it in `limit_s`."""
    root = Settings.at(home=home).root
    environment = {**os.environ, "PYTHONPATH": str(REPO), "QT_QPA_PLATFORM": "offscreen"}
    program = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: pages_of(root) >= pages)
        children = family(program.pid)
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()
    gone_s = wait_for(lambda: not [c for c in children if alive(c)], limit_s)
    left = [child for child in children if alive(child)]
    return {
        "processes": len(children),
        "left": len(left),
        "gone_s": round(gone_s, 2),
        **reaped(root),
    }


def reaped(root: Path) -> dict[str, object]:
    """What the next start makes of the ledger: the task reaped, its pages offered."""
    on_disk = pages_of(root)
    lease = Lease.acquire(root)
    try:
        ended = Reaper(Ledger(root, lease=lease)).settle()
    finally:
        lease.release()
    offered = 0
    for record in ended:
        assert isinstance(record, TaskRecord)
        result = json.loads((root / record.task_id / "result.json").read_bytes())
        offered += len(result["pages"])
    return {"reaped": len(ended), "pages": on_disk, "offered": offered}


def measure(*, short: bool) -> Figures:
    """Kill the command line and the window: once, or five times each at different instants."""
    outcomes, limit_s = [], most_s(LIMIT_S, short=short)
    with Site(pages=500) as site:
        for number in range(1 if short else 5):
            for name in ("octask", "window"):
                with tempfile.TemporaryDirectory() as folder:
                    command = programs(Path(folder), site)[name]
                    outcomes.append(kill_once(Path(folder), command, 3 + 5 * number, limit_s))
    facts = {
        "kills": len(outcomes),
        "processes": sum(int(str(one["processes"])) for one in outcomes),
        "left": sum(int(str(one["left"])) for one in outcomes),
        "slowest_gone_s": max(float(str(one["gone_s"])) for one in outcomes),
        "all_pages_offered": all(one["pages"] == one["offered"] for one in outcomes),
        "all_reaped": all(one["reaped"] == 1 for one in outcomes),
    }
    return Figures("G11", facts, _misses(facts, limit_s))


def _misses(facts: Mapping[str, object], limit_s: float) -> list[str]:
    found = []
    if facts["left"]:
        found.append(
            f"{facts['left']} processes ran on {limit_s:g} s after their program was killed"
        )
    if not facts["processes"]:
        found.append("no browser ran when the program was killed: nothing was shown")
    if not facts["all_pages_offered"]:
        found.append("a page on disk was not offered after the kill")
    if not facts["all_reaped"]:
        found.append("a killed program's task was not reaped at the next start")
    return found
