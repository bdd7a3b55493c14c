"""The cross of G13: random passwords × each way to give one × each kind × each sink.

`SPELLINGS_SEED` repeats a run; without it the passwords are others each time.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tests.trust.crossing import PLAYS, batched, commands, paired, requests
from tests.trust.given_values import Echoing, Reader

if TYPE_CHECKING:
    from tests.hard.secrets import Scene

LONG: Final = 300
SHORT: Final = 10
MOST_TOLD: Final = 5
# What sites stored is kept as it is where a snapshot was asked for it: it is the session itself.
SESSION: Final = "session-state.json"
PLACES: Final = ("home", "crossed", "user", "temp", "exports")


class Everywhere:
    """One run: its passwords, a server that says them again, and what was found of them."""

    def __init__(self, *, short: bool) -> None:
        self.seed = int(os.environ.get("SPELLINGS_SEED") or random.randrange(10**6))
        self.count = SHORT if short else LONG
        self.short = short
        self.batches = batched(self.seed, self.count)
        self.batches += [] if short else paired(self.seed, self.count)
        self.echoing = Echoing(self.batches)
        self.told: dict[str, Any] = {}
        self._reader = Reader(one for batch in self.batches for one in batch)
        self.found: list[str] = []

    @contextmanager
    def serving(self) -> Iterator[None]:
        self.echoing.server.start()
        try:
            yield
        finally:
            self.echoing.server.stop()

    def play(self, scene: Scene) -> None:
        """Every kind through the service, and every way of the command line."""
        home = scene.place / "crossed"
        home.mkdir(mode=0o700)
        words = (str(home), str(self.seed), str(self.count), self.echoing.host)
        said = scene.run("the crossing", "-m", "tests.trust.crossing", *words)
        last = said.rstrip().rpartition(b"\n")[2]
        self.told = json.loads(last) if last.startswith(b'{"shown"') else {}
        self._at_the_terminal(scene)
        if not self.short:
            scene.run("the window of the crossing", "-m", "tests.trust.window_texts", str(home))

    def _at_the_terminal(self, scene: Scene) -> None:
        """`--args` as JSON, from a file and from standard input; variables, also once more."""
        asked = requests(self.echoing.host, 0, self.batches[0], str)
        for kind in ("static",) if self.short else [one for one in PLAYS if one != "commands"]:
            name, args = asked[kind]
            text, path = json.dumps(args), scene.file(f"{kind}.txt", args)
            scene.octask("start", name, "--args", "-", given=text.encode())
            if not self.short:
                scene.octask("start", name, "--args", f"@{path}", "--json")
                scene.octask("start", name, "--args", text)
        self._run(scene)

    def _run(self, scene: Scene) -> None:
        host, batch = self.echoing.host, self.batches[0]
        document = commands(f"http://{host}/echo/0", batch, str)
        values = {**document.pop("variables"), "first": batch[0], "second": batch[1]}
        document["commands"] = [one for one in document["commands"] if _is_repeatable(one["args"])]
        variables = scene.file("values.txt", values)
        before = set(scene.tasks())
        written, report = scene.file("task.txt", document), scene.place / "exports/cross.xml"
        scene.octask("run", written, "--variables", variables, "--junit", str(report))
        for task_id in set(scene.tasks()) - before:
            scene.octask("rerun", task_id, "--variables", variables)
            if not self.short:
                scene.octask("retry", task_id, "--variables", variables, "--json")
            scene.octask("get", task_id, "--result", "--events", "--json")

    def search(self, scene: Scene) -> None:
        """Every output, every file that any of it left, and every process."""
        for sink, data in scene.said:
            self._look(sink, data)
        for folder in PLACES:
            for path in sorted((scene.place / folder).rglob("*")):
                self._look(f"names of {folder}", path.name.encode())
                if path.is_file() and not path.is_symlink() and path.name != SESSION:
                    self._look(path.relative_to(scene.place).as_posix(), path.read_bytes())
        for name, words, _ in scene.bystander.others():
            self._look(f"the command line of {name}", words)

    def _look(self, sink: str, data: bytes) -> None:
        for value, around in self._reader.found(data):
            self.found.append(f"a random password stands in {sink}: {value!r} in {around!r}")

    def misses(self) -> list[str]:
        told = [f"pictures of two passwords differ: {one}" for one in self.told.get("shown", ())]
        told += [f"no picture to compare: {one}" for one in self.told.get("missing", ())]
        if not self.told.get("tasks"):
            told.append("the crossing did not run to its end")
        return [*self.found[:MOST_TOLD], *told]

    def facts(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "random passwords": self.count,
            "tasks given them": self.told.get("tasks", 0),
            "pictures compared": self.told.get("compared", 0),
            "passwords readable": len(self.found),
            "pairs of pictures that differ": len(self.told.get("shown", ())),
            "pairs without a picture": len(self.told.get("missing", ())),
        }


def _is_repeatable(args: dict[str, Any]) -> bool:
    """A text that is typed as it stands is kept nowhere, and cannot be typed again."""
    return args["action"] != "type" or "{{" in str(args["text"])
