"""Bad input of every sort, counted: spoiled folders, wrong requests, and bytes changed at random.

Nothing may end in a traceback, hang, change a file by being looked at, or go missing from a
list without a word. The long form takes every trap, 70 requests and 20,000 changes.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fixtures.hostile_ledger import HOSTILE_TEXTS, plant, remove_devices, spoil_home, traps
from tests.hard.figures import Figures
from tests.hostile_data.mutating import many
from tests.hostile_data.readers import READERS, REFUSALS, shelves
from tests.hostile_data.sweep import run, tree
from tests.support.loaded_octask import CAN_FORK, Loaded

HANG_S = 60.0
LONG, SHORT = 20_000, 1_500
SHORT_EVERY = 9  # of the traps
SHORT_REQUESTS = 20


@dataclass
class Count:
    """What was tried and what went wrong, by sort."""

    folders: int = 0
    looks: int = 0
    refusals: int = 0
    requests: int = 0
    mutations: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    broken: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def took(self, what: str, seconds: float) -> None:
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest = seconds, what


def measure(*, short: bool) -> Figures:
    count = Count()
    with tempfile.TemporaryDirectory(prefix="bad-input-") as place:
        folders(count, Path(place) / "home", short)
        if CAN_FORK:
            requests(count, Path(place) / "requests", short)
        mutations(count, Path(place) / "bytes", SHORT if short else LONG)
    misses = [f"it broke: {one}" for one in count.broken[:20]]
    misses += [f"looking changed {one}" for one in count.changed[:20]]
    misses += [f"missing from the list or told wrongly: {one}" for one in count.hidden[:20]]
    if count.slowest_s > HANG_S:
        misses.append(f"{count.slowest} took {count.slowest_s:.1f} s")
    facts = {
        "folders": count.folders,
        "looks": count.looks,
        "requests": count.requests if CAN_FORK else "this system has no fork",
        "mutations": count.mutations,
        "refusals": count.refusals,
        "broken": len(count.broken),
        "files_changed": len(count.changed),
        "rows_hidden": len(count.hidden),
        "slowest": f"{count.slowest_s:.2f} s ({count.slowest})",
    }
    return Figures("G6", facts, misses)


def folders(count: Count, home: Path, short: bool) -> None:
    """Every way of looking, led over every trap."""
    chosen = traps()[::SHORT_EVERY] if short else traps()
    planted = plant(home / "tasks", chosen)
    spoil_home(home)
    before = tree(home)
    seen, views = run(home, formats=("csv",)) if short else run(home)
    count.folders, count.looks, count.refusals = len(planted.by_id), seen.looks, seen.errors
    count.broken += seen.broken
    count.took(seen.slowest[1], seen.slowest[0])
    after = tree(home)
    count.changed += [name for name in before | after if before.get(name) != after.get(name)]
    found = {view.task_id: type(view.entry).__name__ for view in views}
    for task_id, trap in planted.by_id.items():
        told = trap.listed == "unreadable" or trap.judged
        wanted = "Unreadable" if told else "TaskRecord"
        if found.pop(task_id, None) != wanted:
            count.hidden.append(trap.name)
    count.hidden += [f"{task_id} is no task" for task_id in found]
    remove_devices(home)


def requests(count: Count, home: Path, short: bool) -> None:
    """Task files and arguments that are wrong: exit code 2, and nothing is started."""
    home.mkdir()
    told = list(_requests(home))
    with Loaded() as octask:
        for name, words in told[:: max(1, len(told) // SHORT_REQUESTS)] if short else told:
            count.requests += 1
            answer = octask(*words, "--home", str(home / "home"), limit_s=HANG_S)
            count.took(name, answer.seconds)
            if answer.code != 2 or "Traceback" in answer.said:
                count.broken.append(f"{name}: {answer.code} {answer.said[-200:]}")
    if (home / "home" / "tasks").exists() and any((home / "home" / "tasks").glob("[0-9a-f]*")):
        count.broken.append("a wrong request left a task")


def _requests(home: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    step = {"tool_name": "browser_navigate", "intention": "go", "args": {"action": "goto"}}
    whole = {"task_name": "n", "task_intention": "i", "commands": [step]}
    files: dict[str, bytes] = {
        "no bytes": b"",
        "zeros": b"\0" * 100,
        "cut": b'{"task_name": "n", "comm',
        "an array": b"[]",
        "null": b"null",
        "two documents": json.dumps(whole).encode() * 2,
        "UTF-16": json.dumps(whole).encode("utf-8").decode().encode("utf-16"),
        "Latin-1": b'{"task_name": "\xe9"}',
        "overlong": b'{"task_name": "\xc0\xaf"}',
        "NaN": b'{"task_name": NaN}',
        "1e999": b'{"task_name": 1e999}',
        "5,000 digits": b'{"task_name": ' + b"9" * 5_000 + b"}",
        "deep": b"[" * 100_000,
        "a key twice": b'{"task_name": "a", "task_name": "b"}',
        "2 MiB": b" " * 2 * 1024 * 1024 + json.dumps(whole).encode(),
        "no commands": json.dumps({**whole, "commands": []}).encode(),
        "many commands": json.dumps({**whole, "commands": [step] * 3_000}).encode(),
    }
    for number, (name, value) in enumerate(HOSTILE_TEXTS.items()):
        wrong = {**step, "tool_name": value} if number % 2 else {**step, "args": {value: value}}
        files[f"a command of {name}"] = json.dumps({**whole, "commands": [wrong]}).encode()
    for odd in (None, 7, True, "x", [1], {"a": 1}, -0.5):
        files[f"commands: {odd!r}"] = json.dumps({**whole, "commands": odd}).encode()
        files[f"a command: {odd!r}"] = json.dumps({**whole, "commands": [odd]}).encode()
    for number, (name, data) in enumerate(files.items()):
        place = home / f"{number}.json"
        place.write_bytes(data)
        yield f"run a file of {name}", ("run", str(place))
    yield "run a folder", ("run", str(home))
    yield "run /dev/zero", ("run", "/dev/zero")
    for args in ("[]", "{", "NaN", '{"max_pages": NaN}', '{"max_pages": 1e999}', "[" * 50_000):
        yield f"start with {args[:20]}", ("start", "crawl", "http://site.test/", "--args", args)
    for url in (
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://[",
        "http://a b",
        "\x1b[2J",
        "",
    ):
        yield f"start at {url!r}", ("start", "crawl", url)


def mutations(count: Count, home: Path, number: int) -> None:
    """Good bytes with a few changes, for each reader its share of `number`."""
    readers = [*READERS, *shelves(home)]
    for reader in readers:
        for data in many(reader.good, -(-number // len(readers)), f"G6 {reader.name}"):
            count.mutations += 1
            began = time.monotonic()
            try:
                reader.read(data)
            except REFUSALS:
                count.refusals += 1
            except Exception as error:  # noqa: BLE001 - the very thing that is looked for
                name = type(error).__name__
                count.broken.append(f"{reader.name}: {name}: {str(error)[:100]} for {data[:200]!r}")
            count.took(f"bytes for {reader.name}", time.monotonic() - began)
