"""An error at every system call of every scene: old or new, never half; a sentence; a retry works.

Each call in which the ledger opens, writes, flushes, locks or renames fails once, by strace,
with each of five errors (`short`: a sample of the calls, with one of the errors each). What
is refused is asked for once more at once, by the same process: it must then be done.
"""

from __future__ import annotations

import errno
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fixtures.site.site import Site
from tests.hard.failing_program import failed_starts
from tests.hard.figures import Figures
from tests.hard.kill_syscalls import Point, Stages, home_in, judge
from tests.hard.place import Scene
from tests.hard.scenes import SCENES
from tests.hard.stage import Stage
from tests.hard.syscalls import injected, traced, why_not, within

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS", "EMFILE")
SAMPLE = 60
STARTS = 30  # of the whole program, in the long form
READ_ONLY = "The ledger is read-only"


class Failing(NamedTuple):
    """One call, and the error that it returns."""

    at: Point
    error: str

    def __str__(self) -> str:
        return f"{self.at} {self.error}"

    @property
    def reason(self) -> str:
        """The system's own words for it."""
        return os.strerror(getattr(errno, self.error))


def measure(*, short: bool) -> Figures:
    """Let all calls fail in all ways, or (`short`) a sample of them."""
    if missing := why_not():
        return Figures("G3", {"strace": missing})
    seed = 3 if "CI" in os.environ else random.randrange(1_000)
    with tempfile.TemporaryDirectory() as folder, Stages() as stages:
        every = enumerated(stages, Path(folder))
        chosen = random.Random(seed).sample(every, min(SAMPLE, len(every))) if short else every
        outcomes = stages.each(chosen, lambda stage, work: fail(stage, work, Path(folder)))
    misses = [
        f"{work}: {why}" for work, one in zip(chosen, outcomes, strict=True) for why in one["wrong"]
    ]
    if not short:
        misses += whole_program(seed)
    facts = {
        "octask_starts": 0 if short else STARTS,
        "calls": len({str(work.at) for work in every}),
        "failed": len(outcomes),
        "seed": seed if short else "all",
        "refused": sum(one["refused"] for one in outcomes),
        "went_on": sum(not one["refused"] for one in outcomes),
        "violations": len(misses),
        "by_call": dict(Counter(work.at.call.name for work in chosen)),
        "by_error": dict(Counter(work.error for work in chosen)),
    }
    return Figures("G3", facts, misses)


def whole_program(seed: int) -> list[str]:
    """`octask start crawl`, from its first call to its exit code."""
    with tempfile.TemporaryDirectory() as folder, Site(pages=5) as site:
        return list(failed_starts(Path(folder), site.url, ERRORS, STARTS, seed))


def enumerated(stages: Stages, folder: Path) -> list[Failing]:
    """Every call on a file of the home, with every error."""

    def one(stage: Stage, scene: Scene) -> list[Failing]:
        home = home_in(folder, "traced", scene.name)
        _, calls = traced(stage, scene.name, home, home.parent / "trace")
        at = [Point(scene.name, call) for call in within(calls, home)]
        return [Failing(point, error) for point in at for error in ERRORS]

    return [work for some in stages.each(SCENES, one) for work in some]


def fail(stage: Stage, work: Failing, folder: Path) -> dict[str, Any]:
    """One failure: what the program made of it, and what the next program finds."""
    at = work.at
    home = home_in(folder, at.scene, at.call.name, at.call.number, work.error)
    said = injected(stage, at.scene, home, at.call, f"error={work.error}", again=True)
    words = [word for word in said["said"] if "again" not in word]
    found = judge(stage, at.scene, home, {**said, "said": words})
    wrong = [why for word in said["said"] for why in problems(work, word)]
    if said["status"] != 0:
        wrong.append(f"it ended with {said['status']}")
    refused = any("refused" in word for word in said["said"])
    return {"wrong": [*wrong, *found["wrong"]], "refused": refused}


def problems(work: Failing, word: dict[str, Any]) -> Iterator[str]:
    """What is not as promised in what a step said."""
    if "crash" in word:
        yield f"a traceback: {word['crash']}"
    if "hang" in word:
        yield "it hung"
    if "again" in word:
        yield f"{word['step']} was refused a second time: {word['again']}"
    if "refused" in word and not is_told(work, word["refused"]):
        yield f"{word['step']} was refused with: {word['refused']}"
    if word.get("half") and not work.at.call.name.startswith(("unlink", "rmdir")):
        yield f"{word['step']} was refused, and left {word['half']}"


def is_told(work: Failing, sentence: str) -> bool:
    """Does the sentence name the reason?"""
    return work.reason in sentence or (work.error == "EROFS" and READ_ONLY in sentence)
