"""Crawls killed with -9 at random instants, some of them again while they are resumed."""

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
from pathlib import Path
from typing import Any

from engine.ledger.reader import LedgerReader
from engine.model.config import Settings
from tests.hard.figures import Figures
from tests.support.linked_site import LinkedSite, random_links

REPO = Path(__file__).resolve().parents[2]
PAGES, TABS = 150, 4
LONG, SHORT = 20, 2
WITH_BROWSER = 5  # in the long form every fifth round
LIMIT_S = 300.0
START_S = 1.0  # the program is loaded and has opened its ledger by then

Stored = dict[str, int]  # the depth of each page by its path


def measure(*, short: bool, rounds: int = 0) -> Figures:
    """Resume: every page is there once, at the same depth as in an undisturbed crawl."""
    chance = random.Random(20_261_126)
    misses: list[str] = []
    kept = repeated = kills = 0
    number = rounds or (SHORT if short else LONG)
    for turn in range(number):
        site = LinkedSite(random_links(PAGES, seed=turn), delay_s=0.01)
        engine = "browser" if not short and turn % WITH_BROWSER == WITH_BROWSER - 1 else "static"
        with site.running():
            found = _round(site, engine, chance)
        kills += found["kills"]
        kept += found["kept"]
        repeated += found["repeated"]
        misses += [f"round {turn} ({engine}): {why}" for why in found["wrong"]]
    facts = {"rounds": number, "kills": kills, "pages_each": PAGES, "pages_kept": kept}
    return Figures("resume", {**facts, "pages_loaded_again": repeated}, misses)


def _round(site: LinkedSite, engine: str, chance: random.Random) -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="oc-resume-"))
    try:
        return _killed_and_resumed(home, site, engine, chance)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _killed_and_resumed(
    home: Path, site: LinkedSite, engine: str, chance: random.Random
) -> dict[str, Any]:
    args = {"url": f"{site.url}/0", "engine": engine, "delay_ms": 0, "respect_robots": False}
    args |= {"max_depth": 60, "max_pages": 1_000, "concurrency": TABS}
    start = ["start", "crawl", "--args", json.dumps(args)]
    undisturbed, lasted_s = _undisturbed(home / "whole", start)
    site.requests.clear()
    wrong: list[str] = []
    kills, kept = 0, 0
    words = start
    while kills < 3:
        if not _killed(home, words, START_S + chance.random() * lasted_s):
            break
        kills += 1
        last = _last(home)
        kept = len(last[1]) if last is not None else 0
        words = ["resume", last[0]] if last is not None else start
        if chance.random() < 0.5:
            break
    if words != start or kills:
        ended = _octask(home, words)
        ended.wait(LIMIT_S)
    last = _last(home)
    stored = last[1] if last is not None else []
    paths = dict(stored)
    if len(paths) != len(stored):
        wrong.append(f"{len(stored) - len(paths)} pages are stored twice")
    if paths != undisturbed:
        lost, strange = set(undisturbed) - set(paths), set(paths) - set(undisturbed)
        wrong.append(f"{len(lost)} lost, {len(strange)} strange, or other depths")
    repeated = sum(site.requests.values()) - len(undisturbed)
    if repeated > kills * TABS:
        wrong.append(f"{repeated} pages were loaded again after {kills} kills")
    return {"wrong": wrong, "kills": kills, "kept": kept, "repeated": repeated}


def _undisturbed(home: Path, words: list[str]) -> tuple[Stored, float]:
    """The pages of a crawl that nothing kills, and about how long it worked."""
    began = time.monotonic()
    _octask(home, words).wait(LIMIT_S)
    found = _last(home)
    assert found is not None
    return dict(found[1]), max(0.2, time.monotonic() - began - START_S)


def _killed(home: Path, words: list[str], after_s: float) -> bool:
    """Run a command and kill it; return whether it still ran."""
    program = _octask(home, words)
    try:
        program.wait(after_s)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        return True
    return False


def _octask(home: Path, words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *words, "--home", str(home)],
        env={**os.environ, "PYTHONPATH": str(REPO)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _last(home: Path) -> tuple[str, list[tuple[str, int]]] | None:
    """The newest task, and path and depth of each page that it stored."""
    root = Settings.at(home=home).root
    reader = LedgerReader(root)
    records = reader.list() if root.is_dir() else []
    if not records:
        return None
    task_id = max(records, key=lambda one: getattr(one, "created_at", 0)).task_id
    pages = reader.read_pages(task_id)
    return task_id, [("/" + page["url"].split("/", 3)[3], page["depth"]) for page in pages]
