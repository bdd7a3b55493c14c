"""A root full of malformed and hostile folders: each is shown or left out as it should be, every
way of looking ends in an answer or a sentence, and not a byte has changed afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.export.exporter import FORMATS
from engine.ledger.ledger import Ledger
from engine.model.records import TaskRecord, Unreadable
from fixtures.hostile_ledger import STEERING, Planted, plant, remove_devices, spoil_home, traps
from tests.hostile_data.sweep import run, tree
from tests.support.loaded_octask import CAN_FORK, Answer, Loaded

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome"
EVERY = 11  # the rig `bad_input` takes every trap
forks = pytest.mark.skipif(not CAN_FORK, reason="this system has no fork")


@dataclass
class World:
    home: Path
    planted: Planted


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("traps") / "home"
    planted = plant(home / "tasks")
    for folder in (CORPUS / "tasks").iterdir():
        shutil.copytree(folder, home / "tasks" / folder.name)
    spoil_home(home)
    yield World(home, planted)
    remove_devices(home)


@pytest.mark.case("R32", "R34", "R35", "R37", "R38", "R40", "R44", "R45")
def test_each_folder_is_listed_unreadable_or_left_out_as_it_should_be(world: World) -> None:
    before = tree(world.home)
    found = {entry.task_id: entry for entry in Ledger(world.planted.root).list(limit=None)}
    for task_id, trap in world.planted.by_id.items():
        entry = found[task_id]
        if trap.listed == "unreadable":
            assert isinstance(entry, Unreadable), trap.name
            assert trap.reason in entry.reason, trap.name
        else:
            assert isinstance(entry, TaskRecord), trap.name
    theirs = {folder.name for folder in (CORPUS / "tasks").iterdir()}
    assert found.keys() - theirs == world.planted.by_id.keys()
    assert len(world.planted.by_id) >= 200
    assert tree(world.home) == before


@pytest.mark.case("R34", "R35")
def test_what_could_be_read_in_two_ways_is_not_opened(world: World) -> None:
    ledger = Ledger(world.planted.root)
    for task_id, trap in world.planted.by_id.items():
        if trap.strict:
            opened = ledger.read(task_id)
            assert isinstance(opened, Unreadable), trap.name
            assert trap.strict in opened.reason


@pytest.mark.thorough
@pytest.mark.case("R32", "R36", "R37", "R38")
def test_every_way_of_looking_ends_in_an_answer_or_a_sentence(tmp_path: Path) -> None:
    planted = plant(tmp_path / "tasks", traps()[::EVERY])
    spoil_home(tmp_path)
    before = tree(tmp_path)
    seen, views = run(tmp_path, formats=("csv", "html"))
    assert seen.broken == []
    assert len(views) == len(planted.by_id)
    assert tree(tmp_path) == before
    remove_devices(tmp_path)


LISTS = (
    ("list", "--limit", "9999"),
    ("list", "--limit", "9999", "--json"),
    ("watch", "--once"),
    ("prune", "--keep", "0", "--dry-run"),
    ("cancel", "--all-matching", "kind:crawl", "--dry-run"),
    ("contract", "list"),
    ("task-run", "list"),
    ("runs",),
    ("doctor",),
)


@forks
@pytest.mark.case("R32", "R85")
@pytest.mark.parametrize("words", LISTS, ids=lambda words: " ".join(words[:3]))
def test_listing_changes_no_file(world: World, octask: Loaded, words: tuple[str, ...]) -> None:
    before = tree(world.home)
    for terminal in (False, True):
        answer = octask(*words, "--home", str(world.home), terminal=terminal)
        told(answer, {0, 1})
        assert not STEERING & set(answer.said)
    after = tree(world.home)
    leases = repr(str(world.home / "tasks" / ".runners").encode())  # where doctor tries a lock
    assert {k: v for k, v in after.items() if k != leases} == {
        k: v for k, v in before.items() if k != leases
    }


def told(answer: Answer, codes: set[int]) -> None:
    assert answer.code in codes, answer.said[-500:]
    assert "Traceback" not in answer.said
    assert "unexpected happened" not in answer.said


@forks
@pytest.mark.case("R32")
def test_the_list_names_each_corrupt_folder_and_no_other(world: World, octask: Loaded) -> None:
    answer = octask("list", "--json", "--limit", "9999", "--home", str(world.home))
    told(answer, {0})
    listed = {task["task_id"]: task for task in json.loads(answer.out)["tasks"]}
    for task_id, trap in world.planted.by_id.items():
        assert (listed[task_id]["view"]["standing"] == "unreadable") == (
            trap.listed == "unreadable" or trap.judged
        ), trap.name
    assert not {name.decode("latin-1") for name in world.planted.ignored} & listed.keys()


@forks
@pytest.mark.case("R32", "R36")
def test_hostile_tasks_are_shown_and_exported(world: World, octask: Loaded) -> None:
    before = tree(world.home)
    formats = [name for name, form in FORMATS.items() if form.text]
    for number, task_id in enumerate(list(world.planted.by_id)[::40]):
        where = (task_id, "--home", str(world.home))
        asked = octask("get", *where, "--events", "--json")
        told(asked, {0, 1})
        json.loads(asked.out)
        for more in ((), ("--json",)):
            shown = octask("get", *where, "--events", "--result", *more, terminal=True)
            told(shown, {0, 1})
            assert not STEERING & set(shown.said)
        form = formats[number % len(formats)]
        told(octask("export", *where, "--format", form), {0, 1})
        told(octask("wait", *where, "--timeout-ms", "1"), {0, 1, 3, 124})
    assert tree(world.home) == before


@forks
@pytest.mark.case("R32")
def test_what_acts_on_hostile_tasks_refuses_in_words(tmp_path: Path, octask: Loaded) -> None:
    unreadable = [trap for trap in traps() if trap.listed == "unreadable"][::17]
    locks = [trap for trap in traps() if trap.name.startswith(("lock is", ".lock is"))]
    planted = plant(tmp_path / "tasks", [*unreadable, *locks])
    outside = tree(tmp_path / "outside")
    for task_id, trap in planted.by_id.items():
        before = tree(planted.root / task_id)
        told(octask("cancel", task_id, "--home", str(tmp_path)), {0, 1})
        told(octask("rerun", task_id, "--home", str(tmp_path)), {1})
        if trap.listed == "unreadable":
            assert tree(planted.root / task_id) == before, trap.name
    assert tree(tmp_path / "outside") == outside
    remove_devices(tmp_path)


@pytest.mark.case("R46")
def test_only_the_result_in_the_tasks_own_folder_is_ever_opened(tmp_path: Path) -> None:
    chosen = [trap for trap in traps() if trap.name.startswith("result_path")]
    planted = plant(tmp_path / "tasks", chosen)
    ledger = Ledger(planted.root)
    for task_id in planted.by_id:
        assert not ledger.has_result(task_id)
        (planted.root / task_id / "result.json").write_bytes(b'{"own": true}')
        with ledger.open_result(task_id) as result:
            assert result.read() == b'{"own": true}'
