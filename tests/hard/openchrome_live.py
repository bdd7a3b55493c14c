"""OpenChrome and ours at once on one home: no change is lost, no living task is reaped.

Node programs keep tasks as OpenChrome does (`openchrome.mjs`), ours as the product does
(`openchrome_writer`). In each round every program creates two tasks; all of them count in fields
and lanes that neither product knows, request cancels, end their own tasks and reap, on the same
tasks at the same time. In every fifth round one of them is killed: while it holds a lock, or
anywhere. After each round the files are compared with what the programs acknowledged.
"""

from __future__ import annotations

import json
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

from engine.ledger.reader import LedgerReader
from engine.model.records import ENVELOPE, TERMINAL, Unreadable
from engine.results.findings import Findings
from tests.hard.figures import Figures, RigUnavailable
from tests.hard.peer import node_modules

REPO = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("openchrome.mjs")
LIMIT_S = 120.0  # of one order
SETTLED_S = 30.0
KILL_EVERY = 5
HOT = 4
PAUSE_MS = 12
KILLS = (("node", "inside"), ("ours", "inside"), ("node", "anywhere"), ("ours", "anywhere"))
MINE = (("crawl", "RUNNING"), ("crawl", "PENDING"), (ENVELOPE, "RUNNING"))
CHANGES = ("count", "count", "lane", "field", "event", "item", "call")


class Size(NamedTuple):
    rounds: int
    a_side: int
    steps: int
    kills: tuple[tuple[str, str], ...]
    every: int


LONG = Size(300, 4, 20, KILLS, KILL_EVERY)
# A lock that Node died in holds all up for 8 s.
SHORT = Size(3, 2, 8, (("ours", "inside"), ("node", "at rest"), ("ours", "anywhere")), 1)


class Program:
    """A writer of either side; `words` are its acknowledgements of this round, in order."""

    def __init__(self, side: str, name: str, command: list[str], log: Path) -> None:
        self.side, self.name, self.killed = side, name, False
        self.words: list[dict[str, Any]] = []
        self._heard: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.log = log
        with log.open("wb") as errors:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=errors, cwd=REPO
            )
        self._listener = threading.Thread(target=self._hear, daemon=True)
        self._listener.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._heard.put(json.loads(line))
        self._heard.put(None)

    def order(self, what: str, **given: Any) -> None:
        """Give an order; where the program has ended, `hear` tells it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"do": what, **given}).encode() + b"\n")
            self.process.stdin.flush()

    def last_words(self) -> str:
        return self.log.read_text("utf-8", "replace").strip()[-300:]

    def hear(self, until: str = "done", most: int = sys.maxsize) -> bool:
        """Collect words up to `until`, or `most` of them; False when the program has ended."""
        limit = time.monotonic() + LIMIT_S
        while most:
            try:
                word = self._heard.get(timeout=max(0.1, limit - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{self.name}: no '{until}' within {LIMIT_S} s") from None
            if word is None:
                return False
            if word["did"] == until:
                return True
            self.words.append(word)
            most -= 1
        return True

    def kill(self) -> None:
        self.killed = True
        self.process.kill()
        self.close()
        self.hear()

    def close(self) -> int:
        """Wait for its end, which comes when there are no more orders; return its exit code."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(LIMIT_S)
        self._listener.join(LIMIT_S)
        return code


@dataclass
class Made:
    """A task, or a task run, as its creator wrote it."""

    task_id: str
    owner: Program
    meta: dict[str, Any]


@dataclass
class Acknowledged:
    """What the programs said in a round, by task; `unended` has those whose end was refused."""

    ends: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    unended: set[str] = field(default_factory=set)
    fields: dict[str, set[str]] = field(default_factory=dict)
    items: set[str] = field(default_factory=set)


@dataclass
class Totals:
    """Figures over all rounds, and each promise that was not kept."""

    done: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)
    longest_ms: dict[str, int] = field(default_factory=dict)

    def miss(self, what: str, sentence: str) -> None:
        self.found[what] += 1
        if len(self.misses) < 40:
            self.misses.append(f"{what}: {sentence}")


class Live:
    """One home with programs of both sides."""

    def __init__(self, home: Path, modules: Path, size: Size, chance: random.Random) -> None:
        self.home, self.modules, self.size, self.chance = home, modules, size, chance
        self.root = home / "tasks"
        self.root.mkdir(parents=True)
        self.ledger = LedgerReader(self.root)
        self.totals = Totals()
        self.started = 0
        self.programs = [self.start(side) for side in ("node", "ours") for _ in range(size.a_side)]
        self.gone: list[Program] = []
        self.lasting: list[Made] = []
        self.acknowledged: Counter[tuple[str, str, str]] = Counter()  # task, program, what
        self.temps: set[Path] = set()

    def start(self, side: str) -> Program:
        self.started += 1
        name = f"{side}{self.started}"
        ours = [sys.executable, "-m", "tests.hard.openchrome_writer", str(self.home), name]
        node = ["node", str(PROGRAM), str(self.modules), str(self.home), name]
        return Program(side, name, node if side == "node" else ours, self.home / f"{name}.log")

    def living(self, side: str) -> list[Program]:
        return [one for one in self.programs if one.side == side]

    def keep_two(self) -> None:
        """Create a task on each side whose owner lives as long as the rig."""
        for side in ("node", "ours"):
            owner = self.living(side)[0]
            self.lasting.append(self.made_by(owner, "create", kind="crawl", status="RUNNING"))

    def made_by(self, owner: Program, what: str, **given: Any) -> Made:
        owner.order(what, **given)
        if not owner.hear():
            raise RuntimeError(f"{owner.name} ended: {owner.last_words()}")
        word = owner.words.pop()
        return Made(word["task"], owner, word["meta"])

    def round(self, number: int) -> bool:
        """Run one round and judge it; False when a program ended by itself."""
        made = []
        for at, owner in enumerate(self.programs):
            for kind, status in (MINE[(number + at + of) % len(MINE)] for of in (0, 1)):
                made.append(self.made_by(owner, "create", kind=kind, status=status))
        run = self.made_by(self.living("node")[0], "run")
        victim, way = self.victim(number)
        for program in self.programs:
            program.order("work", steps=self.steps(program, made, run, ends=program is not victim))
        if victim is not None:
            self.kill(victim, way)
            self.replace(victim, run)
        if not all(one.hear() for one in self.programs):
            return False  # `close` tells who crashed
        if victim is not None:
            self.change_locked(run)
        self.settle(made)
        self.judge(made, run)
        for one in made:
            rmtree(self.root / one.task_id)
        rmtree(self.home / "task-runs" / run.task_id)
        return True

    def victim(self, number: int) -> tuple[Program | None, str]:
        """Return who is killed in this round, and where; never an owner of a lasting task."""
        if (number + 1) % self.size.every:
            return None, ""
        side, way = self.size.kills[number // self.size.every % len(self.size.kills)]
        return self.chance.choice(self.living(side)[1:]), way

    def steps(
        self, program: Program, made: list[Made], run: Made, *, ends: bool
    ) -> list[tuple[str, str, int]]:
        """Return what `program` does in a round: changes, a cancel, a look for orphans, ends."""
        lasting = [one.task_id for one in self.lasting]
        hot = [*(one.task_id for one in made[:HOT]), *lasting]
        own = [one for one in made if one.owner is program]
        envelopes = [one.task_id for one in made if one.meta["kind"] == ENVELOPE]
        others = [one.task_id for one in made if one.owner is not program]
        steps = []
        for _ in range(self.size.steps):
            what = self.chance.choice(CHANGES)
            task_id = self.chance.choice(hot if self.chance.random() < 0.7 else others)
            if what == "call":
                task_id = self.chance.choice(envelopes)
            if what == "field" and task_id in lasting:
                what = "count"
            steps.append((what, run.task_id if what == "item" else task_id))
        claims = [("claim", one.task_id) for one in own if one.meta["status"] == "PENDING"]
        steps += [*claims, ("cancel", self.chance.choice(others)), ("reap", "")]
        self.chance.shuffle(steps)
        # Others still change what has ended; a task is claimed before it ends.
        last = max(map(steps.index, claims), default=0) + 1
        end = max(last, len(steps) - self.chance.randrange(3))
        steps[end:end] = [("finish", one.task_id) for one in own if ends]
        return [(what, task_id, self.chance.randrange(PAUSE_MS)) for what, task_id in steps]

    def kill(self, victim: Program, way: str) -> None:
        """Kill it in the middle of its work, or after that: in a lock, or at rest."""
        if way == "anywhere":
            victim.hear(most=self.chance.randrange(1, self.size.steps))
            time.sleep(self.chance.random() * 0.02)
        else:
            victim.hear()
        if way == "inside":
            victim.order("hold", task=self.chance.choice(self.lasting).task_id)
            if victim.hear("hold"):
                time.sleep(self.chance.random() * 0.2)  # others begin to wait
        victim.kill()

    def replace(self, victim: Program, run: Made) -> None:
        """Start another program on its side. Ours opens the ledger, and goes on with the run."""
        started = self.start(victim.side)
        self.programs[self.programs.index(victim)] = started
        self.gone.append(victim)
        steps = [("reap", "", 0), ("item", run.task_id, 0)]
        started.order("work", steps=steps if victim.side == "ours" else steps[:1])

    def change_locked(self, run: Made) -> None:
        """Change what a killed program may have left locked: nobody else may come by."""
        steps = [("count", one.task_id, 0) for one in self.lasting]
        ours = self.living("ours")[0]
        ours.order("work", steps=[*steps, ("item", run.task_id, 0)])
        ours.hear()

    def settle(self, made: list[Made]) -> None:
        """Let both sides reap until each task of a killed program has ended."""
        until = time.monotonic() + SETTLED_S
        orphans = [one for one in made if one.owner.killed]
        while any(self.status(one) not in TERMINAL for one in orphans):
            for side in ("node", "ours"):
                last = self.living(side)[-1]
                last.order("reap", settle=True)
                last.hear()
            if time.monotonic() > until:
                return

    def status(self, one: Made) -> str:
        return str(self.ledger.read_raw(one.task_id).get("status"))

    def judge(self, made: list[Made], run: Made) -> None:
        """Compare the files with what was acknowledged since the last time."""
        said = Acknowledged()
        unsure = {one.name for one in self.gone}
        for program in [*self.programs, *self.gone]:
            for word in program.words:
                self.take(word, program, said)
            program.words.clear()
        for one in [*made, *self.lasting]:
            raw = self.ledger.read_raw(one.task_id)
            self.judge_counts(one, raw, unsure)
            self.judge_fields(one, raw, said.fields.get(one.task_id, set()))
            self.judge_state(one, raw, said)
            self.judge_litter(one)
        self.judge_run(run, said.items, unsure)
        self.gone.clear()

    def take(self, word: dict[str, Any], program: Program, said: Acknowledged) -> None:
        """Count one word of a program."""
        what, task_id, side = word["did"], word["task"], program.side
        if "result" not in word:
            said.ends.setdefault(task_id, []).append(word)
            self.totals.done[f"{side} {what}s"] += 1
            return
        self.totals.done[f"{side} {word['result']}"] += 1
        longest_ms = self.totals.longest_ms
        longest_ms[side] = max(longest_ms.get(side, 0), word["ms"])
        if (what, word["result"]) == ("finish", "refused"):
            said.unended.add(task_id)
        if word["result"] != "done":
            return
        match what:
            case "cancel":
                said.cancelled.add(task_id)
            case "field":
                said.fields.setdefault(task_id, set()).add(f"x_{program.name}_{word['at']}")
            case "item":
                said.items.add(f"{program.name}:{word['at']}")
        if what in CHANGES:
            self.totals.done[f"{side} changes"] += 1
            self.acknowledged[task_id, program.name, what] += 1

    def judge_counts(self, one: Made, raw: dict[str, Any], unsure: set[str]) -> None:
        task_id = one.task_id
        counts = raw.get("counts", {})
        lanes = {lane["lane_id"]: lane for lane in raw.get("lanes", [])}
        events = Counter(
            str((event.data or {}).get("by"))
            for event in self.ledger.read_events(task_id, whole=True).events
        )
        names = {name for at, name, _ in self.acknowledged if at == task_id} | set(counts)
        for name in names:
            lane = lanes.get(f"lane_{name}", {"counters": {"toolCalls": 0}})
            found = {"count": counts.get(name, 0), "lane": lane["counters"]["toolCalls"]}
            found["event"] = events[name]
            for what, number in found.items():
                said = self.acknowledged[task_id, name, what]
                self.compare(f"{what} of {name} in {task_id}", said, number, name in unsure)
                # What was in flight when it died counts from now on.
                self.acknowledged[task_id, name, what] = max(said, number)
        if raw.get("total", 0) != sum(counts.values()):
            self.totals.miss("lost", f"total {raw.get('total')} of {sum(counts.values())}")
        if raw.get("kind") == ENVELOPE:
            said = sum(self.acknowledged[task_id, name, "call"] for name in names)
            found_calls = raw["counters"]["toolCalls"]
            self.compare(f"calls in {task_id}", said, found_calls, bool(unsure))

    def compare(self, what: str, said: int, found: int, unsure: bool) -> None:
        """Compare counts; of a program that was killed one more may be on disk than it said."""
        if found < said:
            self.totals.found["lost changes"] += said - found
            self.totals.miss("lost", f"{what}: {found} of {said}")
        elif found > said + unsure:
            self.totals.miss("repeated", f"{what}: {found} for {said}")

    def judge_fields(self, one: Made, raw: dict[str, Any], fields: set[str]) -> None:
        for name in fields:
            at = int(name.rpartition("_")[2])
            if raw.get(name) != {"at": at, "words": "a half \ud83d"}:
                self.totals.miss("field", f"{name} of {one.task_id} is {raw.get(name)!r}")
        stay = ["task_id", "kind", "created_at", "owner", "later", "task_nonce", "policy"]
        stay += ["cost_curve", "_mu_state", "objective"]
        lost = [name for name in stay if raw.get(name) != one.meta.get(name)]
        lost += [name for name in one.meta if name not in raw]
        before = one.meta.get("lanes", [])
        if lost or raw.get("lanes", [])[: len(before)] != before:
            self.totals.miss("field", f"{lost or 'lanes'} of {one.task_id} changed")
        ours = one.meta.get("engine", {})
        if ours != {name: raw.get("engine", {}).get(name) for name in ours}:
            self.totals.miss("field", f"engine of {one.task_id}: {raw.get('engine')}")

    def judge_state(self, one: Made, raw: dict[str, Any], said: Acknowledged) -> None:
        task_id, status, ended_at = one.task_id, raw["status"], raw.get("ended_at")
        for end in said.ends.get(task_id, []):
            if (end["status"], end["ended_at"]) != (status, ended_at):
                self.totals.miss("overwritten", f"{task_id}: {end} became {status} {ended_at}")
        orphaned = raw.get("error", {}).get("code") == "orphaned"
        if orphaned and not one.owner.killed:
            self.totals.miss("living reaped", f"{task_id} of {one.owner.name}: {raw['error']}")
        if one in self.lasting:
            if status != "RUNNING":
                self.totals.miss("living ended", f"{task_id} is {status}")
            return
        self.totals.done[f"ended {'orphaned' if orphaned else status}"] += 1
        if status not in TERMINAL:
            if task_id not in said.unended:
                self.totals.miss("not ended", f"{task_id} of {one.owner.name} is {status}")
        elif task_id in said.cancelled and status != "CANCELLED" and not orphaned:
            self.totals.miss("cancel lost", f"{task_id} is {status}")
        if status == "COMPLETED" and one.owner.side == "node" and raw["kind"] == "crawl":
            self.judge_result(task_id)

    def judge_result(self, task_id: str) -> None:
        """Open a crawl that Node stored: its pages are inside a string."""
        rows = list(Findings(self.ledger, task_id, "crawl").rows())
        if [row["url"] for row in rows] != [f"http://site.test/{n}" for n in range(3)]:
            self.totals.miss("result", f"{task_id}: {rows}")
        self.totals.done["crawl results of Node read"] += 1

    def judge_litter(self, one: Made) -> None:
        """Look for locks and temp files; Node's own temp files are Node's to remove."""
        folder = self.root / one.task_id
        for path in folder.iterdir():
            if path.name.startswith("meta.json."):
                self.totals.done["temp files that killed Nodes left"] += path not in self.temps
                self.temps.add(path)
            elif path.name.startswith(".lock.lock"):
                if self.died_at_its_end(one):
                    self.totals.done["locks that killed Nodes left on ended tasks"] += 1
                else:
                    self.totals.miss("lock left", f"{path.name} in {one.task_id}")
            elif path.name.endswith(".tmp"):
                self.totals.miss("temp file left", f"{path.name} in {one.task_id}")

    def died_at_its_end(self, one: Made) -> bool:
        """Return whether a Node was killed between the last change of an ended task and its lock.

        Nobody locks an ended task again, so that its empty folder stays.
        """
        return any(one.side == "node" for one in self.gone) and self.status(one) in TERMINAL

    def judge_run(self, run: Made, items: set[str], unsure: set[str]) -> None:
        raw = json.loads((self.home / "task-runs" / run.task_id / "meta.json").read_bytes())
        listed = raw["completed_items"]
        more = {one for one in set(listed) - items if one.partition(":")[0] not in unsure}
        if missing := items - set(listed):
            self.totals.found["lost changes"] += len(missing)
            self.totals.miss("lost", f"items of task run {run.task_id}: {sorted(missing)}")
        if more or len(listed) != len(set(listed)):
            self.totals.miss("repeated", f"items of task run {run.task_id}: {sorted(more)}")
        if raw["later"] != run.meta["later"] or raw["goal"] != run.meta["goal"]:
            self.totals.miss("field", f"task run {run.task_id}: {raw}")

    def close(self) -> None:
        for program in self.programs:
            code = program.close()
            if code and not program.killed:
                self.totals.miss("crash", f"{program.name} ({code}): {program.last_words()}")
        for log in self.home.glob("*.log"):
            if words := log.read_text("utf-8", "replace").strip():
                self.totals.miss("crash", f"{log.stem} said {words[-300:]}")


@contextmanager
def observed(live: Live) -> Iterator[None]:
    """List the ledger all the time, as a window does: each record must be readable."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for entry in live.ledger.list(limit=None):
                live.totals.done["records listed"] += 1
                if isinstance(entry, Unreadable):
                    live.totals.miss("unreadable", f"{entry.task_id}: {entry.reason}")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def measure(*, short: bool, rounds: int | None = None) -> Figures:
    size = SHORT if short else LONG
    size = size._replace(rounds=rounds or size.rounds)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        modules, why_not = node_modules(folder / "npm")
        if modules is None:
            raise RigUnavailable(why_not)
        live = Live(folder / "home", modules, size, random.Random(1116))
        began = time.monotonic()
        try:
            with observed(live):
                live.keep_two()
                all(live.round(number) for number in range(size.rounds))
        finally:
            live.close()
        lasted_s = time.monotonic() - began
    return Figures("G20", facts_of(live, lasted_s), live.totals.misses)


def facts_of(live: Live, lasted_s: float) -> dict[str, Any]:
    done, found = live.totals.done, live.totals.found
    promised = ("lost", "living reaped", "overwritten", "field", "crash", "lock left")
    return {
        "rounds": live.size.rounds,
        "programs a side": live.size.a_side,
        "killed": live.started - 2 * live.size.a_side,
        **dict(sorted(done.items())),
        **{f"longest step of {side} ms": ms for side, ms in live.totals.longest_ms.items()},
        "lost changes": found["lost changes"],
        **{name: found[name] for name in promised},
        **{name: number for name, number in found.items() if name not in promised},
        "wall time s": round(lasted_s, 1),
    }
