"""The documents say what is there: a module or field that is added must be told, too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from engine.bulk import Contract, Failed, Forced
from engine.goals.contracts import Summary
from engine.goals.item_log import Line
from engine.records import ENVELOPE, EngineFields, ErrorInfo, Status, TaskRecord, Units
from engine.run.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
HOUSE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
LEDGER = (ROOT / "docs" / "ledger.md").read_text("utf-8")


def rooms(package: str) -> list[str]:
    found = {place.stem for place in (ROOT / package).glob("[!_.]*.py")}
    found |= {place.name for place in (ROOT / package).iterdir() if any(place.glob("*.py"))}
    return sorted(found)


@pytest.mark.parametrize("package", ["engine", "gui"])
def test_the_picture_of_the_house_shows_every_room(package: str) -> None:
    rows = "\n".join(line for line in HOUSE.splitlines() if line.startswith("|"))
    missing = [room for room in rooms(package) if f"`{room}`" not in rows]
    assert not missing


def test_the_picture_of_the_house_shows_no_room_that_is_gone() -> None:
    there = {*rooms("engine"), *rooms("gui")}
    first = [line.split("|")[1] for line in HOUSE.splitlines() if line.startswith("| `")]
    shown = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    assert shown <= there, shown - there


@pytest.mark.parametrize(
    "record",
    [TaskRecord, EngineFields, ErrorInfo, Units, Contract, Failed, Forced, Line, Summary],
)
def test_every_stored_field_is_told(record: type[msgspec.Struct]) -> None:
    missing = [
        name
        for name in record.__struct_fields__
        if f"`{name}`" not in LEDGER and f'"{name}"' not in LEDGER
    ]
    assert not missing


def test_the_example_of_meta_is_one_that_we_read() -> None:
    example = re.search(r"## meta\.json\s+```json\n(.*?)```", LEDGER, re.DOTALL)
    assert example is not None
    raw = json.loads(example[1])
    assert set(raw) <= set(TaskRecord.__struct_fields__)
    assert raw["status"] == Status.COMPLETED


def test_the_example_of_events_is_one_that_we_read() -> None:
    example = re.search(r"## events\.jsonl.*?```json\n(.*?)```", LEDGER, re.DOTALL)
    assert example is not None
    assert all({"ts", "kind"} <= set(json.loads(line)) for line in example[1].splitlines())


@pytest.mark.parametrize("kind", [*KINDS, ENVELOPE])
def test_every_kind_of_task_is_told_with_its_unit_and_its_result(kind: str) -> None:
    guide = (ROOT / "docs" / "octask.md").read_text("utf-8")
    (row,) = [line for line in guide.splitlines() if line.startswith(f"| `{kind}` |")]
    assert all(cell.strip() for cell in row.strip("|").split("|"))
    assert f"`{kind}`" in next(line for line in LEDGER.splitlines() if line.startswith("| `kind`"))
