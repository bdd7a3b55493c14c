"""The ledger's folder, or the task's, away for a while at random instants of a crawl."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from engine.ledger.lease import Lease
from engine.ledger.ledger import Ledger
from engine.ledger.reaper import Reaper
from fixtures.site.site import Site
from tests.hard.figures import Figures, most_s
from tests.hard.kill_program import REPO, WINDOW, pages_of, wait_for
from tests.support.endless_site import endless

PAGES: Final = 60
CANCEL_S: Final = 3.0
AT_ONCE: Final = 3
ARGS: Final = {
    "engine": "static",
    "delay_ms": 30,
    "respect_robots": False,
    "concurrency": 3,
    "max_depth": 100,
    "max_pages": PAGES,
    "retries": 0,
}
Back = Callable[[], object]


def moved(place: Path) -> Back:
    aside = place.with_name("aside")
    place.rename(aside)
    return lambda: aside.rename(place)


def unmounted(place: Path) -> Back:
    """An empty folder stands there meanwhile, as where a disk was mounted."""
    back = moved(place)
    place.mkdir()

    def again() -> None:
        shutil.rmtree(place)
        back()

    return again


def copied(place: Path) -> Back:
    """What comes back is a copy: another folder, with leases that nobody holds."""
    aside = place.with_name("aside")
    place.rename(aside)

    def again() -> None:
        shutil.copytree(aside, place.with_name("copy"))
        place.with_name("copy").rename(place)

    return again


HOW: Final = {"moved": moved, "unmounted": unmounted, "copied": copied}


def command(face: str, home: Path, url: str, pages: int) -> list[str]:
    args = json.dumps({**ARGS, "url": url, "max_pages": pages})
    if face == "window":
        return [sys.executable, "-c", WINDOW, str(home), args]
    octask = ["-m", "engine.cli", "start", "crawl", "--args", args, "--home", str(home)]
    return [sys.executable, *octask]


def chosen(number: int, rng: random.Random) -> dict[str, Any]:
    """What is done in one run: the length of the absence is spread evenly over its magnitudes."""
    what = rng.choice(("ledger", "task"))
    return {
        "face": "window" if number % 4 == 3 else "octask",
        "what": what,
        "how": rng.choice(
            ("moved", "copied", "unmounted") if what == "ledger" else ("moved", "copied")
        ),
        "then": {1: "cancel", 2: "kill"}.get(number % 5, "go on"),
        "after_s": rng.uniform(0, 1.0),
        "away_s": 0.1 * 300 ** rng.random(),
    }


def play(home: Path, url: str, plan: dict[str, Any]) -> list[str]:
    """One run; what went wrong in it, as sentences."""
    root, then = home / "tasks", plan["then"]
    environment = {**os.environ, "PYTHONPATH": str(REPO), "QT_QPA_PLATFORM": "offscreen"}
    pages = PAGES if then == "go on" else 1_000_000
    with (home / "said").open("wb") as said:
        program = subprocess.Popen(
            command(plan["face"], home, url, pages), env=environment, stdout=said, stderr=said
        )
        try:
            wait_for(lambda: pages_of(root) >= 1)
            time.sleep(plan["after_s"])  # the length of the fault is what is tested
            found = absent(root, program, plan)
            return [*found, *judged(root, plan)]
        finally:
            program.kill()
            program.wait()


def absent(root: Path, program: subprocess.Popen[bytes], plan: dict[str, Any]) -> list[str]:
    """Let the folder go and come back, and what is to happen happen; wait for the end."""
    (folder,) = [one for one in root.iterdir() if one.name[0] != "."]
    back = HOW[plan["how"]](root if plan["what"] == "ledger" else folder)
    time.sleep(plan["away_s"])  # the length of the fault is what is tested
    if plan["then"] == "kill":
        program.send_signal(signal.SIGKILL)
        program.wait()
    elif plan["then"] == "cancel" and plan["face"] == "octask":
        program.send_signal(signal.SIGINT)
    back()
    if plan["then"] == "kill":
        return []
    if plan["then"] == "cancel" and plan["face"] == "window":
        ledger = Ledger(root)
        ledger.request_cancel(folder.name)
    took_s = wait_for(lambda: status(folder) not in ("", "PENDING", "RUNNING"), 90.0)
    if took_s >= 90:
        return [f"it was still {status(folder)} 90 s after the folder was back"]
    if plan["then"] == "cancel" and took_s > most_s(CANCEL_S, short=plan["short"]):
        return [f"cancelled {took_s:.1f} s after the folder was back"]
    return []


def status(folder: Path) -> str:
    try:
        found: str = json.loads((folder / "meta.json").read_bytes())["status"]
    except (OSError, ValueError):
        return ""
    return found


def judged(root: Path, plan: dict[str, Any]) -> list[str]:
    if plan["then"] == "kill":
        lease = Lease.acquire(root)
        try:
            Reaper(Ledger(root, lease=lease)).settle()
        finally:
            lease.release()
    (folder,) = [one for one in root.iterdir() if (one / "meta.json").exists() and _is_task(one)]
    wanted = {"kill": "FAILED", "cancel": "CANCELLED", "go on": "COMPLETED"}[plan["then"]]
    lines = (folder / "pages.jsonl").read_bytes().splitlines()
    urls = [json.loads(line)["url"] for line in lines]
    result = json.loads((folder / "result.json").read_bytes())
    found = []
    if status(folder) != wanted:
        error = json.loads((folder / "meta.json").read_bytes()).get("error")
        found.append(f"it ended {status(folder)} ({error})")
    if len(urls) != len(set(urls)):
        found.append("a page is there twice")
    if [page["url"] for page in result["pages"]] != urls:
        found.append("the result lacks pages that were kept")
    if plan["then"] == "go on" and len(urls) != PAGES:
        found.append(f"{len(urls)} of {PAGES} pages")
    if any(page.get("error") for page in result["pages"]):
        found.append("a page failed")
    return found


def _is_task(folder: Path) -> bool:
    return folder.name not in ("aside", "copy")


def measure(*, short: bool) -> Figures:
    """Two runs, or forty: three at a time."""
    rng = random.Random(19)
    plans = [{**chosen(number, rng), "short": short} for number in range(40)]
    if short:
        plans = [
            {**plans[0], "face": "octask", "what": what, "how": how, "then": "go on", "away_s": 0.4}
            for what, how in (("ledger", "copied"), ("task", "moved"))
        ]
    with Site() as site, ThreadPoolExecutor(AT_ONCE) as pool:
        url = endless(site)
        found = list(pool.map(lambda plan: _in_a_home(url, plan), plans))
    misses = [
        f"{plan['face']}, {plan['what']} {plan['how']} for {plan['away_s']:.1f} s, "
        f"{plan['then']}: {'; '.join(wrong)}"
        for plan, wrong in zip(plans, found, strict=True)
        if wrong
    ]
    facts = {
        "runs": len(plans),
        "good": len(plans) - len(misses),
        "in_windows": sum(plan["face"] == "window" for plan in plans),
        "cancelled": sum(plan["then"] == "cancel" for plan in plans),
        "killed": sum(plan["then"] == "kill" for plan in plans),
        "longest_away_s": round(max(plan["away_s"] for plan in plans), 1),
    }
    return Figures("G16", facts, misses)


def _in_a_home(url: str, plan: dict[str, Any]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            return play(Path(folder), url, plan)
        except (OSError, ValueError, KeyError) as error:
            return [f"{type(error).__name__}: {error}"]
