"""A window's start against a minimal one, and with many tasks: time, memory, idle load.

First paint: processor time of the whole process until the first paint event of the window that
stays, against a window that has PySide6, qasync and msgspec imported and shows one word; how long
that takes from exec on, and how long from there until a table of 10,000 tasks is painted. Then 20
of them run in another process: seconds until the table is whole, and what idling costs. Then
100,000: how much more memory than an empty window.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.listing import fill
from tests.bench.report import report
from tests.support.task_folders import elsewhere

TARGET_PAINT, TARGET_TABLE_S, TARGET_IDLE, TARGET_MB = 1.3, 1.0, 1.0, 150.0
TARGET_WHOLE_S = 3.0
RUNNING = """
root, first, tasks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + tasks):
    write_meta(root, number, "RUNNING", started_at=int(time.time() * 1000))
print("ready", flush=True)
at = 0
while True:
    at += 1
    for number in range(first, first + tasks):
        line = {"ts": int(time.time() * 1000), "kind": "progress"}
        line["data"] = {"unitsDone": at, "unitsTotal": 1000}
        with (root / task_id(number) / "events.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\\n")
    time.sleep(1.0)  # the period of the other program's writes
"""
PAINTED = """
import os, resource, sys, time
from PySide6.QtCore import QEvent, QObject
began = float(sys.argv[1])
def told(*more):
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, time.time() - began, *more
class Painted(QObject):
    def __init__(self, then):
        super().__init__()
        self.then = then
    def eventFilter(self, one, event):
        if event.type() == QEvent.Type.Paint and self.then is not None:
            then, self.then = self.then, None
            then()
        return False
"""
MINIMAL = (
    PAINTED
    + """
import asyncio, msgspec
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow
import qasync
app = QApplication([])
loop = qasync.QEventLoop(app)
def done():
    print(*told(), flush=True)
    os._exit(0)
window, filter = QMainWindow(), Painted(done)
label = QLabel("window")
window.setCentralWidget(label)
label.installEventFilter(filter)
window.resize(1180, 760)
window.show()
with loop:
    loop.run_forever()
"""
)
OURS = (
    PAINTED
    + """
from gui import app
from gui.window import main_window
made, begin = main_window.MainWindow.__init__, main_window.MainWindow.begin
first, filters, rows = [], [], []
def heavy():
    return int(any(name.split(".")[0] == "playwright" for name in sys.modules))
def watch(widget, then):
    filters.append(Painted(then))
    widget.installEventFilter(filters[-1])
def init(window, *args, **kwargs):
    made(window, *args, **kwargs)
    watch(window.centralWidget(), lambda: first.extend(told(heavy())))
def begun(window):
    begin(window)
    place = window.geometry()
    def usable():
        stays = first and window.isVisible() and window.geometry() == place
        newest = rows or told()[1:]
        print(*first, *told(window.model.total), int(bool(stays)), *newest, flush=True)
        window.quit_wanted.emit()  # in order: the next start has nothing to sweep up
    def loaded():
        watch(window.table.viewport() if window.model.total else window.area, usable)
        window.area.update()
        window.table.viewport().update()
    def filled():
        if window.model.total and not rows:
            window.bridge.batch.disconnect(filled)
            watch(window.table.viewport(), lambda: rows.extend(told()[1:]))
            window.table.viewport().update()
    window.bridge.batch.connect(filled)
    window.bridge.loaded.connect(loaded)
main_window.MainWindow.__init__, main_window.MainWindow.begin = init, begun
sys.exit(app.main(["--home", sys.argv[2], "--new-window"]))
"""
)
LOOK = """
import asyncio, json, os, sys, tempfile, time
import psutil
from pathlib import Path
from engine.model.config import Settings
from gui.startup.crash_handler import CrashHandler
from gui.app import make_application
from gui.startup.loop import run
from gui.startup.session import Session
from gui.context.preferences import Memory
async def look(home, idle_s):
    began, me = time.perf_counter(), psutil.Process()
    with tempfile.TemporaryDirectory() as place:
        session = Session(Settings.at(home=Path(home)), Memory(Path(place) / "m.ini"),
                          CrashHandler(), accepts=False)
        loaded = asyncio.Event()
        session.window.bridge.loaded.connect(loaded.set)
        session.open()
        await loaded.wait()
        whole_s, rows = time.perf_counter() - began, session.window.model.rowCount()
        cpu_s, loop_s = time.process_time(), time.thread_time()
        await asyncio.sleep(3.0)
        used, since = sum(me.cpu_times()[:2]), time.perf_counter()
        await asyncio.sleep(idle_s)
        share = (sum(me.cpu_times()[:2]) - used) / (time.perf_counter() - since) * 100
        print(json.dumps({"whole_s": whole_s, "rows": rows, "idle_percent": share,
                          "cpu_s": cpu_s, "loop_s": loop_s,
                          "mb": me.memory_info().rss / 2**20}), flush=True)
        os._exit(0)
run(make_application(), look(sys.argv[1], float(sys.argv[2])))
"""


def ran(script: str, *words: str) -> str:
    """What `script` says in a process of its own, on an invisible screen."""
    environ = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a program that is in use is compiled
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
        env=environ,
    )
    return done.stdout.splitlines()[-1]


def looked(home: Path, idle_s: float) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran(LOOK, str(home), str(idle_s)))
    return found


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds: processor time until the first paint, wall time until then and until usable."""

    used: float
    painted: float
    usable: float = 0.0
    worked: float = 0.0  # processor time from the first paint until usable
    tasks: int = 0
    heavy: bool = False
    rows: float = 0.0  # wall time until the newest tasks stand in the table


def minimal() -> Start:
    used, wall = map(float, ran(MINIMAL, str(time.time())).split())
    return Start(used, wall)


def our_start(home: Path) -> Start:
    """The whole program on `home`, until its table is painted.

    Raises:
        AssertionError: what was painted first is not the window that stays, where it stood.
    """
    told = ran(OURS, str(time.time()), str(home)).split()
    used, wall, heavy, whole, usable, tasks, stays, rows = map(float, told)
    assert stays, "another window than the first one has the table"
    return Start(used, wall, usable, whole - used, int(tasks), bool(heavy), rows)


def raced(rounds: int, home: Path) -> tuple[list[Start], list[Start]]:
    """Ours and the minimal window, each taken in turn; a first start that compiles is left out."""
    our_start(home)
    pairs = [(our_start(home), minimal()) for _ in range(rounds)]
    return [ours for ours, _ in pairs], [least for _, least in pairs]


def ms(many: list[Start]) -> float:
    return median(one.used for one in many) * 1000


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds of idling")
    parser.add_argument("--tasks", type=int, default=100_000)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        empty, some, many = (Path(place) / name for name in ("empty", "some", "many"))
        (empty / "tasks").mkdir(parents=True)
        fill(some / "tasks", 10_000)
        ours, least = raced(given.rounds, some)
        child = elsewhere(RUNNING, some / "tasks", 10_000, 20)
        try:
            assert child.stdout is not None
            child.stdout.readline()
            busy = looked(some, given.idle)
        finally:
            child.kill()
            child.communicate()
        fill(many / "tasks", given.tasks)
        large, none = looked(many, 1.0), looked(empty, 1.0)
    cpu, loop = (large[key] - none[key] for key in ("cpu_s", "loop_s"))
    ratio = median(a.used / b.used for a, b in zip(ours, least, strict=True))
    wall = [median(one.painted for one in many) for many in (ours, least)]
    usable = median(one.usable - one.painted for one in ours)
    newest = median(one.rows - one.painted for one in ours)
    worked = min(one.worked for one in ours)
    rows = [
        ("first paint, ms of processor time", ms(ours), ms(least), ratio),
        ("first paint, ms after exec", wall[0] * 1000, wall[1] * 1000, wall[0] / wall[1]),
        ("10,000 tasks, s from there until the newest stand there", newest, TARGET_TABLE_S, ""),
        ("the same, s until all do", usable, TARGET_TABLE_S, ""),
        ("the same, s of processor time, the least", worked, TARGET_TABLE_S, ""),
        ("10,020 tasks, s until whole", busy["whole_s"], TARGET_TABLE_S, ""),
        ("idle with 20 running elsewhere, %", busy["idle_percent"], TARGET_IDLE, ""),
        (f"{given.tasks:,} tasks, s until whole", large["whole_s"], TARGET_WHOLE_S, ""),
        ("the same, s of processor time over an empty window", cpu, "", ""),
        ("the same, s of the window's thread", loop, "", ""),
        ("the same, MB over an empty window", large["mb"] - none["mb"], TARGET_MB, ""),
    ]
    facts = {
        "paint_ratio": ratio,
        "paint_target": TARGET_PAINT,
        "painted_ms": wall[0] * 1000,
        "newest_after_s": newest,
        "usable_after_s": usable,
        "usable_after_cpu_s": worked,
        "playwright_imported": any(one.heavy for one in ours),
        "table_s": busy["whole_s"],
        "idle_percent": busy["idle_percent"],
        "memory_mb": large["mb"] - none["mb"],
        "whole_s": large["whole_s"],
        "whole_cpu_s": cpu,
        "whole_loop_s": loop,
        "rows": [busy["rows"], large["rows"]],
    }
    report("start", ("what", "ours", "minimal or most", "x"), rows, facts)
