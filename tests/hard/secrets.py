"""G13: secrets of two dozen kinds are planted, everything is run, and every sink is searched.

Pages repeat what they were given in several spellings, and publish what only looks like a
secret: that has to be kept. Random passwords go the same ways, see `given_everywhere`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from fixtures.site.site import Site
from tests.commands.conftest import do, task
from tests.hard.figures import Figures
from tests.hard.given_everywhere import Everywhere
from tests.trust.planted import PLANTED, PUBLISHED, SECRETS, Walk
from tests.trust.plays import ANSWERS, STATIC, VARIABLES, WORDS, address

REPO: Final = Path(__file__).resolve().parents[2]
FAST: Final = ("--engine", "static", "--delay-ms", "0", "--respect-robots", "false")
LIMIT_S: Final = 1_800
MOST_TASKS: Final = 3  # that are looked at one by one from the command line
# Markup is kept with where its links lead. What the user exported himself is in the environment
# of what he starts.
MARKUP: Final = frozenset({"signature of a link"})
EXPORTED: Final = frozenset({*VARIABLES, "proxy password"})
# The state of a profile is what signs a task in; it is encrypted where there is a keyring.
STATE: Final = frozenset({"cookie of a profile", "stored token of a profile"})


class Bystander:
    """Looks at the process list again and again, as any user of the machine can."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, float], tuple[str, bytes, bytes]] = {}
        self._typed: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def typed(self, pid: int) -> None:
        """This command was typed by the user, secrets and all."""
        self._typed.add(pid)

    def others(self) -> list[tuple[str, bytes, bytes]]:
        """Name, words and environment of every process that no user typed.

        A child that was just forked still bears its parent's words.
        """
        typed = {seen[1] for (pid, _), seen in self.seen.items() if pid in self._typed}
        return [seen for seen in self.seen.values() if seen[1] not in typed]

    @contextmanager
    def looking(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for child in psutil.Process().children(recursive=True):
                try:
                    words, began = " ".join(child.cmdline()), child.create_time()
                    said = json.dumps(dict(child.environ())).encode()
                except (psutil.Error, OSError):
                    continue
                if words.strip():
                    self.seen[child.pid, began] = (
                        Path(words.split()[0]).name,
                        words.encode(),
                        said,
                    )


class Scene:
    """A home, a place for temp files and logs, a site, and what programs on them say."""

    def __init__(self, place: Path, site: Site, bystander: Bystander) -> None:
        self.site, self.walk, self.bystander = site, Walk(), bystander
        self.said: list[tuple[str, bytes]] = []
        self.place, self.home = place, place / "home"
        for name in ("home", "temp", "exports"):
            (place / name).mkdir(mode=0o700)

    def environment(self) -> dict[str, str]:
        plain = {name: word for name, word in os.environ.items() if not name.startswith("XDG_")}
        proxy = f"http://ann:{PLANTED['proxy password']}@127.0.0.1:9"
        return {
            **plain,
            "PYTHONPATH": str(REPO),
            "HOME": str(self.place / "user"),
            "TMPDIR": str(self.place / "temp"),
            "HTTPS_PROXY": proxy,
            "https_proxy": proxy,
            **{variable: PLANTED[name] for name, variable in VARIABLES.items()},
        }

    def start(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [sys.executable, *words],
            env=self.environment(),
            cwd=REPO,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.bystander.typed(started.pid)
        return started

    def run(self, sink: str, *words: str, given: bytes | None = None) -> bytes:
        """Run to its end, with `given` on its standard input, and search what it said."""
        started = self.start(*words, stdin=subprocess.PIPE if given else subprocess.DEVNULL)
        try:
            out, err = started.communicate(given, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            started.kill()
            out, err = started.communicate()
            self.walk.found.append(f"{sink} did not end within {LIMIT_S} s")
        self.said += [(f"stdout of {sink}", out), (f"stderr of {sink}", err)]
        self.walk.look(f"stdout of {sink}", out)
        self.walk.look(f"stderr of {sink}", err)
        if b"Traceback" in err:
            self.walk.found.append(f"{sink} printed a traceback: {err.decode()[-300:]}")
        return out

    def octask(self, *words: str, given: bytes | None = None) -> bytes:
        called = ("-m", "engine.cli", *words, "--home", str(self.home))
        return self.run(f"octask {words[0]}", *called, given=given)

    def tasks(self) -> list[str]:
        """The ids of all tasks of the home."""
        return [one.name for one in (self.home / "tasks").iterdir() if one.name[0] != "."]

    def file(self, name: str, value: object) -> str:
        """A file of the user's own, outside of everything that is searched."""
        path = self.place / name
        path.write_text(json.dumps(value), "utf-8")
        return str(path)


def at_the_terminal(scene: Scene) -> None:
    """What a user types: in text, as JSON, and mistyped."""
    start = ("start", "crawl", address(scene.site.url), *FAST, "--max-pages", "2")
    before = set(scene.tasks())
    scene.octask(*start, "--name", WORDS)
    (task_id,) = set(scene.tasks()) - before  # of another kind the pages' words would be missing
    scene.octask("get", task_id, "--json", "--result", "--events")
    scene.octask("start", "crawl", address("ftp://x.test"), "--json")


def at_length(scene: Scene) -> None:
    """The rest of what can be typed, a worker in the background, and its sudden death."""
    tasks = scene.tasks()
    for words in (["list"], ["list", "--json"], ["watch", "--once"], ["doctor"], ["runs", "list"]):
        scene.octask(*words)
    for task_id in tasks[:MOST_TASKS]:
        scene.octask("get", task_id, "--result", "--events")
        scene.octask("export", task_id, "--format", "html")
    scene.octask("rerun", tasks[0])
    scene.octask("list", "--query", f'"{WORDS}" stat:x')
    typed = task(
        do("goto", url=f"{scene.site.url}/form"),
        do("type", selector="#p", text="{{pin}}"),
        do("get_text", selector="#echo"),
        do("click", selector="#nothing", timeout=300),
    )
    variables = scene.file("variables.txt", {"pin": PLANTED["variable of a run"]})
    report = str(scene.place / "exports" / "report.xml")
    document = scene.file("task.txt", typed)
    scene.octask("run", document, "--variables", variables, "--junit", report)
    told = task(
        do("goto", url=f"{scene.site.url}/form"),
        do("dialog", answer="accept", text="{{pin}}"),
        do("type", selector="#p", text="{{pin}}"),
        do("evaluate", script="alert(echo.textContent); prompt(echo.textContent)"),
        do("press", selector="#p", key="End"),
        do("tabs"),
        do("expect", selector="#echo", text="nothing", timeout=100),
    )
    document = scene.file("told.txt", told)
    scene.octask("run", document, "--variables", variables, "--junit", report)
    worker_dies(scene)


def worker_dies(scene: Scene) -> None:
    args = json.dumps({"url": address(scene.site.url, "/hang"), **STATIC, "max_pages": 4})
    told = scene.octask("start", "crawl", "--args", args, "--detach", "--json")
    os.kill(json.loads(told)["pid"], signal.SIGKILL)
    scene.octask("reap")


def in_the_window(scene: Scene) -> None:
    """Every text of a window that shows all of it, selected one after the other."""
    scene.run("the window", "-m", "tests.trust.window_texts", str(scene.home))


def recorded(scene: Scene) -> None:
    scene.run("a recording", "-m", "tests.trust.recorded", str(scene.home), scene.site.url)


def search(scene: Scene) -> None:
    """Every file that any of it left."""
    walk = scene.walk
    spared = {"artifacts/dom.html": MARKUP, "profiles/states/rig.json": STATE}
    walk.folder("the home", scene.home, spared)
    walk.folder("log, settings and crash file", scene.place / "user", {})
    walk.folder("temp files", scene.place / "temp", {})
    walk.folder("exports", scene.place / "exports", {})
    left = [one.name for one in (scene.place / "temp").iterdir()]
    walk.found += [f"{name} was left among the temp files" for name in left]
    for name, words, environ in scene.bystander.others():
        walk.look("command lines of children", words)
        walk.look(f"environment of {name}", environ, EXPORTED)
    for sink in ("the home", "exports", "stdout of octask get"):
        walk.found += walk.lost(sink)


def measure(*, short: bool) -> Figures:
    """Run everything and search; the short form leaves out window, recording and many commands."""
    bystander, everywhere = Bystander(), Everywhere(short=short)
    with (
        tempfile.TemporaryDirectory(prefix="secrets-") as folder,
        Site(4) as site,
        everywhere.serving(),
    ):
        site.answers |= ANSWERS
        scene = Scene(Path(folder), site, bystander)
        with bystander.looking():
            length = () if short else ("--long",)
            scene.run("the service", "-m", "tests.trust.plays", str(scene.home), site.url, *length)
            at_the_terminal(scene)
            if not short:
                at_length(scene)
                recorded(scene)
                in_the_window(scene)
            everywhere.play(scene)
        search(scene)
        everywhere.search(scene)
    figures = told(scene.walk, bystander)
    facts = {**figures.facts, **everywhere.facts()}
    return Figures("G13", facts, [*figures.misses, *everywhere.misses()])


def told(walk: Walk, bystander: Bystander) -> Figures:
    looked: Mapping[str, int] = walk.looked
    facts = {
        "planted": len(SECRETS),
        "spellings": sum(len(one.spellings) for one in SECRETS),
        "files searched": sum(n for sink, n in looked.items() if not sink.startswith("std")),
        "published": len(PUBLISHED),
        "outputs searched": sum(n for sink, n in looked.items() if sink.startswith("std")),
        "processes seen": len(bystander.seen),
        "occurrences": len(walk.found),
    }
    return Figures("G13", facts, sorted(set(walk.found)))
