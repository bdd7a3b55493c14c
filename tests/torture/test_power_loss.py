"""The order of system calls survives a power loss; no process dies here.

A kill leaves what was written in the system's memory; a power cut does not. So each scene is
traced, and the order of writes, flushes and renames is held against what was acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hard.scenes import BY_NAME, SCENES
from tests.hard.stage import Stage
from tests.hard.syscalls import Call, traced

WRITES = ("write", "pwrite64", "writev", "ftruncate")
FLUSHES = ("fsync", "fdatasync")
RENAMES = ("rename", "renameat", "renameat2")
MKDIRS = ("mkdir", "mkdirat")
# What a step promises beyond the life of its process, by folders of the home. A step that is
# not here tells of progress, of which a loss of power may take the last second.
PROMISES = {
    ("first", "create"): ("home", "tasks"),
    ("first", "create commands"): ("tasks",),
    ("run", "claim"): ("tasks",),
    ("cancel", "ask"): ("tasks",),
    ("cancel", "cancel"): ("tasks",),
    ("complete", "result"): ("tasks",),
    ("complete", "finish"): ("tasks",),
    ("fail", "fail"): ("tasks",),
    ("reap", "recover"): ("tasks",),
    ("contract", "start"): ("progress-contracts",),
    ("task run", "start"): ("progress-contracts", "task-runs"),
    ("task run's end", "checkpoint"): ("task-runs",),
    ("task run's end", "force"): ("progress-contracts", "task-runs"),
    ("bound crawl", "accept"): ("tasks",),
    ("envelope", "start"): ("tasks",),
    ("envelope's end", "finish"): ("tasks",),
    ("linked", "finish"): ("tasks",),
}
LOCKS = (".lock.lock", "meta.lock.lock")


@pytest.fixture(scope="module")
def traces(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Call]]:
    """The calls of every scene, played once."""
    found = {}
    for number, scene in enumerate(SCENES):
        folder = tmp_path_factory.mktemp(f"scene-{number}")
        said, found[scene.name] = traced(stage, scene.name, folder / "home", folder / "trace")
        assert [word.get("step") for word in said["said"]] == [step.name for step in scene.steps]
    return found


@pytest.mark.case("R19")
@pytest.mark.parametrize("scene", BY_NAME)
def test_files_are_flushed_before_rename(traces: dict[str, list[Call]], scene: str) -> None:
    assert list(renamed_unflushed(traces[scene])) == []


@pytest.mark.case("R19")
@pytest.mark.parametrize(("scene", "step"), PROMISES, ids="-".join)
def test_folders_are_flushed_first(traces: dict[str, list[Call]], scene: str, step: str) -> None:
    calls = until_told(traces[scene], scene, step)
    assert list(names_unflushed(calls, PROMISES[scene, step])) == []


@pytest.mark.case("R19")
def test_the_result_is_durable_before_the_record(traces: dict[str, list[Call]]) -> None:
    calls = traces["complete"]
    result = next(n for n, call in enumerate(calls) if renames_to(call, "result.json"))
    record = next(n for n, call in enumerate(calls) if renames_to(call, "meta.json"))
    folder = str(Path(calls[result].paths[-1]).parent)
    flushed = [n for n, call in enumerate(calls) if call.name == "fsync" and folder in call.paths]
    assert any(result < n < record for n in flushed)
    assert not [call for call in calls[result + 1 : record] if "result" in call.paths[0]]


@pytest.mark.case("R19")
def test_a_transition_writes_flushes_and_renames(traces: dict[str, list[Call]]) -> None:
    steps = [
        call.name
        for call in traces["fail"]
        if call.is_word
        or (call.name in WRITES + FLUSHES and ".meta.json." in call.paths[0])
        or renames_to(call, "meta.json")
        or (call.name in FLUSHES and Path(call.paths[0]).name.isalnum())
    ]
    assert steps == ["write", "fsync", "renameat", "fsync", "write"]


def renames_to(call: Call, name: str) -> bool:
    return call.name in RENAMES and Path(call.paths[-1]).name == name


def renamed_unflushed(calls: list[Call]) -> Iterator[str]:
    """Files that were renamed although some of what was written to them was not flushed."""
    dirty: set[str] = set()
    for call in calls:
        if call.failed:
            continue
        if call.name in WRITES:
            dirty.add(call.paths[0])
        elif call.name in FLUSHES:
            dirty.discard(call.paths[0])
        elif call.name in RENAMES:
            source = call.paths[0]
            for path in dirty:
                if path == source or path.startswith(f"{source}/"):
                    yield f"{call}: {path}"


def until_told(calls: list[Call], scene: str, step: str) -> list[Call]:
    """The calls up to the word that acknowledges `step`, that one not included."""
    number = [one.name for one in BY_NAME[scene].steps].index(step)
    words = [at for at, call in enumerate(calls) if call.is_word]
    return calls[: words[number]]


def names_unflushed(calls: list[Call], promised: tuple[str, ...]) -> Iterator[str]:
    """Names that were made in the promised folders, and whose folder was not flushed since."""
    waiting: dict[str, Call] = {}
    for call in calls:
        if call.failed:
            continue
        if call.name in (*RENAMES, *MKDIRS):
            waiting.pop(call.paths[0], None)  # what had a name for a moment only
            waiting[call.paths[-1]] = call
        elif call.name.startswith(("unlink", "rmdir")):
            waiting.pop(call.paths[0], None)
        elif call.name in FLUSHES:
            waiting = {path: one for path, one in waiting.items() if above(path) != call.paths[0]}
    for path, call in waiting.items():
        if Path(path).name not in LOCKS and above_home(path) in promised:
            yield f"{call}: {path}"


def above(path: str) -> str:
    return str(Path(path).parent)


def above_home(path: str) -> str:
    """The folder of the home that `path` is in; `home` for what is the home's own."""
    parts = Path(path).parts
    inside = parts[parts.index("home") + 1 :]
    return inside[0] if len(inside) > 1 else "home"
