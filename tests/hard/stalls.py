"""The window in every trouble of a day, and how long its loop could not answer in each.

Each scene is a window in a process of its own on an invisible screen, with its heartbeat. A
"stall" is wall time and so counts what other programs take from the machine; "work" is the
processor time of the window's own thread in one go. A scene misses its figure when the work is
too long, or (in the long form) when the loop stalled although the machine was at rest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.hard.figures import Figures

STALL_MS = 100.0
FIRST = "first paint"  # before there is anything to click: told, and judged by nobody
SIDE_LIMIT_S = 240
REPO = Path(__file__).resolve().parents[2]
SHORT = ("hostile ledger", "20 MB of events", "deleted root")


def measure(*, short: bool) -> Figures:
    """Play every scene (`short`: the quick ones, in one process) and tell the longest stalls."""
    from tests.hard.window_scenes import CALM, SCENES

    facts: dict[str, Any] = {}
    misses: list[str] = []
    for names in [SHORT] if short else [(name,) for name in SCENES]:
        for name, told in _in_a_window(names, short).items():
            stall, work = told["stall_ms"], told["busy_ms"]
            facts[name] = (
                f"stall {stall:.0f} ms, work {work:.0f} ms in {told['what']} "
                f"(load {told['load']:.1f})"
            )
            facts |= {f"{name}: {fact}": value for fact, value in told["facts"].items()}
            misses += [f"{name}: {miss}" for miss in told["misses"]]
            calm = not short and told["load"] < CALM
            if work > STALL_MS or (calm and stall > STALL_MS):
                misses.append(f"{name}: the loop stood still for {stall:.0f} ms ({work:.0f} work)")
    return Figures("G15", facts, misses)


def _in_a_window(names: tuple[str, ...], short: bool) -> dict[str, dict[str, Any]]:
    words = [sys.executable, "-m", "tests.hard.stalls", "--work", json.dumps(names)]
    done = subprocess.run(
        [*words, *(["--short"] if short else [])],
        capture_output=True,
        text=True,
        check=False,
        timeout=SIDE_LIMIT_S,
        cwd=REPO,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
    )
    if done.returncode or not done.stdout:
        why = {"facts": {}, "misses": [f"the window ended: {done.stderr[-1500:]}"]}
        return {names[0]: {"stall_ms": 0.0, "busy_ms": 0.0, "load": 0.0, "what": "", **why}}
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


async def _played(name: str, short: bool) -> dict[str, Any]:
    from engine.model.config import Settings
    from gui.context.preferences import Memory
    from gui.startup.crash_handler import CrashHandler
    from gui.startup.session import Session
    from tests.hard.window_scenes import SCENES, Stage, other_load
    from tests.loop_monitor import Heartbeat

    with tempfile.TemporaryDirectory(prefix="oc-stalls-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"

        def make() -> Session:
            return Session(
                Settings.at(home=home), Memory(Path(folder) / "window.ini"), CrashHandler()
            )

        beat = Heartbeat()
        stage = Stage(home, short, make, beat)
        beat.start()
        await SCENES[name](stage)
        stage.rest("the trouble itself")
        beat.stop()
        if stage.session is not None:
            await stage.session.close()
        turns = [told for told in stage.pulses if told[0] != FIRST]
        what, worst = max(turns, key=lambda told: told[1].busy_ms)
        first = max(pulse.busy_ms for what, pulse in stage.pulses if what == FIRST)
        return {
            "stall_ms": max(pulse.stall_ms for _, pulse in turns),
            "busy_ms": worst.busy_ms,
            "what": what,
            "turns": {what: round(pulse.busy_ms) for what, pulse in stage.pulses},
            "load": other_load(),
            "facts": {"first paint, ms of work": round(first, 1)} | stage.facts,
            "misses": stage.misses,
        }


def _work(names: list[str], short: bool) -> None:
    from gui.app import make_application
    from gui.startup.loop import run
    from gui.style.theme import Theme, apply_theme

    app = make_application()
    apply_theme(app, Theme.LIGHT)

    async def play() -> dict[str, dict[str, Any]]:
        return {name: await _played(name, short) for name in names}

    print(json.dumps(run(app, play())), flush=True)


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--work", required=True)
    asked.add_argument("--short", action="store_true")
    given = asked.parse_args()
    _work(json.loads(given.work), given.short)
