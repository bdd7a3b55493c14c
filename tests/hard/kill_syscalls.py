"""SIGKILL at every mutating system call of every scene: nothing acknowledged is lost, nothing half.

The points are read from a trace of each scene (see `scenes`), so that all of them are known.
At each one a process of its own is killed as it enters the call; then the home is opened as
the next program would. The short form takes a sample, by a seed that is told.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from tests.hard.figures import Figures
from tests.hard.scenes import SCENES
from tests.hard.stage import Stage
from tests.hard.syscalls import Call, injected, points, traced, why_not

SAMPLE = 70
AT_ONCE = 2
Outcome = TypeVar("Outcome")


class Point(NamedTuple):
    """One call of one scene."""

    scene: str
    call: Call

    def __str__(self) -> str:
        return f"{self.scene}: {self.call}"


def measure(*, short: bool) -> Figures:
    """Kill at all points, or (`short`) at a sample of them."""
    if missing := why_not():
        return Figures("G2", {"strace": missing})
    seed = 2 if "CI" in os.environ else random.randrange(1_000)
    with tempfile.TemporaryDirectory() as folder:
        every, wrong = enumerated(Path(folder))
        chosen = random.Random(seed).sample(every, min(SAMPLE, len(every))) if short else every
        outcomes = on_stages(chosen, lambda stage, at: kill(stage, at, Path(folder)))
    misses = wrong + [f"{at}: {why}" for at, one in outcomes for why in one["wrong"]]
    facts = {
        "points": len(every),
        "killed": sum(one["killed"] for _, one in outcomes),
        "seed": seed if short else "all",
        "violations": len(misses),
        "slowest_recovery_s": round(max(one["recovery_s"] for _, one in outcomes), 2),
        "by_scene": dict(Counter(at.scene for at in every)),
        "by_call": dict(Counter(at.call.name for at in every)),
    }
    return Figures("G2", facts, misses)


def enumerated(folder: Path) -> tuple[list[Point], list[str]]:
    """Every point there is, and what is wrong already when nothing is killed."""
    found: list[Point] = []
    wrong: list[str] = []
    with Stage() as stage:
        for number, scene in enumerate(SCENES):
            home = home_in(folder, f"traced-{number}")
            said, calls = traced(stage, scene.name, home, folder / "trace")
            found += [Point(scene.name, call) for call in points(calls, home)]
            wrong += [
                f"{scene.name}: {why}" for why in judge(stage, scene.name, home, said)["wrong"]
            ]
    return found, wrong


def kill(stage: Stage, at: Point, folder: Path) -> dict[str, Any]:
    """One death, and what the next program finds."""
    home = home_in(
        folder, f"killed-{id(stage)}-{SCENE_AT[at.scene]}-{at.call.name}-{at.call.number}"
    )
    said = injected(stage, at.scene, home, at.call, "signal=SIGKILL")
    found = judge(stage, at.scene, home, said)
    if crash := next((word["crash"] for word in said["said"] if "crash" in word), ""):
        found["wrong"].append(f"a traceback: {crash}")
    killed = said["status"] == -9
    return {**found, "killed": killed}


SCENE_AT = {scene.name: number for number, scene in enumerate(SCENES)}


def judge(stage: Stage, scene: str, home: Path, said: dict[str, Any]) -> dict[str, Any]:
    steps = [word["step"] for word in said["said"] if "step" in word]
    return stage.ask("judge", scene=scene, home=str(home), said=steps, ids=said["ids"])


def home_in(folder: Path, name: str) -> Path:
    """A home that is not there yet, in a folder that is."""
    (folder / name).mkdir()
    return folder / name / "home"


def on_stages(
    chosen: Sequence[Point], do: Callable[[Stage, Point], Outcome]
) -> list[tuple[Point, Outcome]]:
    """Do it at each point, on as many stages as there are processors for; in the given order."""
    free: SimpleQueue[Stage] = SimpleQueue()

    def one(at: Point) -> tuple[Point, Outcome]:
        stage = free.get()
        try:
            return at, do(stage, at)
        finally:
            free.put(stage)

    with Stage() as first, Stage() as second, ThreadPoolExecutor(AT_ONCE) as pool:
        free.put(first)
        free.put(second)
        return list(pool.map(one, chosen))
