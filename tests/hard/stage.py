"""Play scenes in forked children with everything imported, and check the leftovers.

    python -m tests.hard.stage

reads one JSON object a line and answers each by one. `play` forks a child, which prepares a
scene and waits; `go` lets it act, and tells what it acknowledged once it has ended. `judge`
opens the home as the next program would. A child costs a few milliseconds, so that every
system call of every scene can have one of its own.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from engine.model.errors import EngineError, LedgerReadOnly, LedgerWriteFailed
from tests.hard.judging import judged, unreadable
from tests.hard.place import Place, Step
from tests.hard.scenes import BY_NAME, SCENES

REPO = Path(__file__).resolve().parents[2]
HANG_S = 60.0
_SET_PTRACER, _ANYBODY = 0x59616D61, ctypes.c_ulong(-1)  # for a kernel that lets parents only


class Stage:
    """The far side's handle: one server process, asked from one thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hard.stage"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPO,
        )
        try:
            self.ask("wait")  # until it is warm
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def ask(self, do: str, **words: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"do": do, **words}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the stage is gone")
        found: dict[str, Any] = json.loads(answer)
        return found


def serve() -> None:
    logging.disable()  # what is only logged belongs to no one here
    warm_up()
    child = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "play":
            child = Child(asked)
            answer = {"pid": child.pid, **child.word()}
        elif asked["do"] == "go":
            assert child is not None
            answer = child.let_go()
        elif asked["do"] == "judge":
            answer = in_child(asked)
        else:
            answer = {}
        print(json.dumps(answer), flush=True)


def warm_up() -> None:
    """Play all of it once, so that no child imports anything while it is watched."""
    for scene in SCENES:
        with tempfile.TemporaryDirectory() as folder:
            place = Place(Path(folder) / "home")
            scene.prepare(place)
            for step in scene.steps:
                step.act(place)
            place.close()
            judged(place.home, scene.name, [], place.ids)


class Child:
    """A fork that plays one scene. Its words come through a pipe, one JSON object a line."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._words, words = os.pipe()
        wait, self._go = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._words)
            os.close(self._go)
            play(asked, wait, words)
        os.close(words)
        os.close(wait)
        self._ended = False

    def word(self) -> dict[str, Any]:
        """Its next word; nothing once it has ended."""
        line = bytearray()
        until = time.monotonic() + HANG_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._words], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                os.kill(self.pid, signal.SIGKILL)
                return {"hang": True}
            byte = os.read(self._words, 1)
            if not byte:
                return {}
            line += byte
        found: dict[str, Any] = json.loads(line)
        return found

    def let_go(self) -> dict[str, Any]:
        """Have it act; everything that it then says, and how it ended."""
        os.write(self._go, b"g")
        said = []
        while word := self.word():
            said.append(word)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._go)
        os.close(self._words)
        return {"said": said, "status": os.waitstatus_to_exitcode(status)}


def play(asked: dict[str, Any], wait: int, words: int) -> None:
    """Be the child: prepare, wait for the word, act, and tell what is done."""

    def say(**word: object) -> None:
        os.write(words, json.dumps({**word, "ids": place.ids}).encode() + b"\n")

    place = Place(Path(asked["home"]))
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PTRACER, _ANYBODY, 0, 0, 0)
        scene = BY_NAME[asked["scene"]]
        scene.prepare(place)
        before = litter(place.home)
        say(ready=True)
        os.read(wait, 1)
        for step in scene.steps:
            if asked.get("again"):
                said = tried(step, place, before)
                say(step=step.name, **said)
            else:
                step.act(place)
                say(step=step.name)
        if asked.get("again"):
            place.runs.settle()  # as every program does twice a minute
    except BaseException:  # noqa: BLE001 - told to whoever watches, who fails for it
        say(crash=traceback.format_exc())
    os._exit(0)


def tried(step: Step, place: Place, before: list[str]) -> dict[str, Any]:
    """Do a step in which a call fails; when it is refused, look, and do it once more."""
    try:
        step.act(place)
    except EngineError as error:
        new = sorted(set(litter(place.home)) - set(before))
        half = [*new, *unreadable(place.home)]
        said: dict[str, Any] = {"refused": str(error), "code": error.code, "half": half}
        try:
            step.act(place)
        except EngineError as again:
            unflushed = isinstance(error, LedgerWriteFailed | LedgerReadOnly)
            if not (unflushed and step.kept(place)):  # it stands: there is nothing left to do
                said["again"] = f"{again.code}: {again}"
        return said
    return {}


def litter(home: Path) -> list[str]:
    """Temp files that are there although nobody writes."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*.tmp"))


def in_child(asked: dict[str, Any]) -> dict[str, Any]:
    """Judge in a fork, so that this process stays as fresh as the next program would be."""
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            found = judged(Path(asked["home"]), asked["scene"], asked["said"], asked["ids"])
        except BaseException:  # noqa: BLE001 - told to whoever watches, who fails for it
            found = {"wrong": [traceback.format_exc()]}
        with os.fdopen(tell, "wb") as file:
            file.write(json.dumps(found).encode())
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    told_of: dict[str, Any] = json.loads(data)
    return told_of


if __name__ == "__main__":
    serve()
