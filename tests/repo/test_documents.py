"""The documents cover every module and field."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from engine.contracts.bulk_progress import Contract, Failed, Forced
from engine.contracts.contract_store import Line, Summary
from engine.kinds.registry import KINDS
from engine.model.records import ENVELOPE, EngineFields, ErrorInfo, Status, TaskRecord, Units

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
LEDGER = (ROOT / "docs" / "ledger.md").read_text("utf-8")


def packages(top: str) -> list[str]:
    found = {place.stem for place in (ROOT / top).glob("[!_.]*.py")}
    found |= {place.name for place in (ROOT / top).iterdir() if any(place.glob("*.py"))}
    return sorted(found)


@pytest.mark.parametrize("top", ["engine", "gui"])
def test_the_architecture_names_exactly_the_packages_that_exist(top: str) -> None:
    title = {"engine": "## Packages of the engine", "gui": "## Packages of the window"}[top]
    section = PAGE.split(title)[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == packages(top)


def test_every_module_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`((?:engine|gui)\.[\w.]+)`", PAGE))
    missing = [name for name in named if not (ROOT / f"{name.replace('.', '/')}.py").exists()]
    assert named
    assert not missing


def test_the_glossary_is_in_order_and_every_term_names_a_module_or_page_that_exists() -> None:
    table, _, _ = GLOSSARY.partition("## Words that labels do not use")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if "|" in line][2:]
    terms = [term.partition(" (")[0] for term, _, _ in rows]
    assert terms == sorted(terms)
    for _, _, where in rows:
        modules = re.findall(r"`(engine\.[\w.]+|gui\.[\w.]+)`", where)
        places = [ROOT / module.replace(".", "/") for module in modules]
        assert all(place.with_suffix(".py").is_file() or place.is_dir() for place in places), where
        assert modules or re.search(r"\]\(\w+\.md\)|`[\w/]+\.js`", where), where


@pytest.mark.parametrize(
    "record", [TaskRecord, EngineFields, ErrorInfo, Units, Contract, Failed, Forced, Line, Summary]
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
