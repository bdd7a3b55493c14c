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
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from tests.hard.figures import Figures, most_s
from tests.hard.judging import RECOVERY_S
from tests.hard.place import Scene
from tests.hard.scenes import SCENES
from tests.hard.stage import Stage
from tests.hard.syscalls import Call, injected, points, traced, why_not

SAMPLE = 70
AT_ONCE = 2
Work = TypeVar("Work")
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
    with tempfile.TemporaryDirectory() as folder, Stages() as stages:
        every, wrong = enumerated(stages, Path(folder))
        chosen = random.Random(seed).sample(every, min(SAMPLE, len(every))) if short else every
        outcomes = stages.each(chosen, lambda stage, at: kill(stage, at, Path(folder)))
    pairs = zip(chosen, outcomes, strict=True)
    misses = wrong + [f"{at}: {why}" for at, one in pairs for why in one["wrong"]]
    slowest_s = max(one["recovery_s"] for one in outcomes)
    if slowest_s > most_s(RECOVERY_S, short=short):
        misses.append(f"one recovery took {slowest_s:.1f} s")
    facts = {
        "points": len(every),
        "killed": sum(one["killed"] for one in outcomes),
        "seed": seed if short else "all",
        "violations": len(misses),
        "slowest_recovery_s": round(slowest_s, 2),
        "by_scene": dict(Counter(at.scene for at in every)),
        "by_call": dict(Counter(at.call.name for at in every)),
    }
    return Figures("G2", facts, misses)


def enumerated(stages: Stages, folder: Path) -> tuple[list[Point], list[str]]:
    """Every point there is, and what is wrong already when nothing is killed."""

    def one(stage: Stage, scene: Scene) -> tuple[list[Point], list[str]]:
        home = home_in(folder, "traced", scene.name)
        said, calls = traced(stage, scene.name, home, home.parent / "trace")
        wrong = [f"{scene.name}: {why}" for why in judge(stage, scene.name, home, said)["wrong"]]
        return [Point(scene.name, call) for call in points(calls, home)], wrong

    found = stages.each(SCENES, one)
    return [at for some, _ in found for at in some], [why for _, some in found for why in some]


def kill(stage: Stage, at: Point, folder: Path) -> dict[str, Any]:
    """One death, and what the next program finds."""
    home = home_in(folder, at.scene, at.call.name, at.call.number)
    said = injected(stage, at.scene, home, at.call, "signal=SIGKILL")
    found = judge(stage, at.scene, home, said)
    if crash := next((word["crash"] for word in said["said"] if "crash" in word), ""):
        found["wrong"].append(f"a traceback: {crash}")
    killed = said["status"] == -9
    return {**found, "killed": killed}


def judge(stage: Stage, scene: str, home: Path, said: dict[str, Any]) -> dict[str, Any]:
    steps = [word["step"] for word in said["said"] if "step" in word]
    return stage.ask("judge", scene=scene, home=str(home), said=steps, ids=said["ids"])


def home_in(folder: Path, *names: object) -> Path:
    """A home that is not there yet, in a folder that is."""
    place = folder / "-".join(map(str, names))
    place.mkdir()
    return place / "home"


class Stages:
    """A stage for each processor; what is done on them is told in the given order."""

    def __enter__(self) -> Stages:
        self._open = ExitStack()
        with ThreadPoolExecutor(AT_ONCE) as starting:
            self._stages = list(starting.map(lambda _: Stage(), range(AT_ONCE)))
        self._free: SimpleQueue[Stage] = SimpleQueue()
        for stage in self._stages:
            self._free.put(self._open.enter_context(stage))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def each(self, chosen: Sequence[Work], do: Callable[[Stage, Work], Outcome]) -> list[Outcome]:
        def one(work: Work) -> Outcome:
            stage = self._free.get()
            try:
                return do(stage, work)
            finally:
                self._free.put(stage)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(one, chosen))
