"""The planned architecture: allowed imports, and the places of certain calls."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.house_rules import (
    BROAD_CATCHERS,
    CANCEL_KEEPERS,
    ENVIRONMENT,
    OTHER_ADDRESSES,
    OTHER_MEANINGS,
    PRINTERS,
    RULES,
    SPAWNERS,
    WRITERS,
    Rule,
    break_in,
    breaks_of,
    parsed,
)

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    place.relative_to(ROOT).as_posix()
    for room in ("engine", "gui")
    for place in (ROOT / room).rglob("*.py")
)
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base"}

# For each rule a module that breaks it: a rule that cannot fail holds nothing.
BROKEN = {
    "outside_things_have_one_seam": (
        "engine/text/words.py",
        "def f():\n    import playwright.async_api",
    ),
    "addresses_have_one_parser": ("engine/service/feed.py", "from urllib.parse import urlsplit"),
    "the_window_knows_only_the_engines_face": (
        "gui/tasks/row.py",
        "from engine.ledger.ledger import Ledger",
    ),
    "kinds_are_named_in_their_package_alone": ("gui/tasks/row.py", "crawls = kind == 'crawl'"),
    "files_are_written_in_one_place": (
        "engine/service/feed.py",
        "with open('x', mode='ab') as out: pass",
    ),
    "no_dialog_runs_a_loop_of_its_own": ("gui/start/start_dialog.py", "dialog.exec()"),
    "background_tasks_have_an_owner": ("engine/text/words.py", "asyncio.create_task(work())"),
    "text_from_outside_stays_plain": ("gui/tasks/row.py", "class Name(QLabel): pass"),
    "only_the_faces_read_the_environment": ("engine/model/config.py", "home = os.environ['HOME']"),
    "only_the_command_line_prints": ("engine/text/words.py", "print('hello')"),
    "broad_excepts_stand_at_the_edges": (
        "engine/text/words.py",
        "try: f()\nexcept (OSError, Exception): pass",
    ),
    "cancelling_is_passed_on": (
        "engine/text/words.py",
        "try: f()\nexcept asyncio.CancelledError: pass",
    ),
    "nothing_is_run_from_text": ("engine/text/words.py", "subprocess.run(line, shell=True)"),
    "functions_stay_flat": (
        "engine/text/words.py",
        "def f():\n if a:\n  for b in c:\n   while d:\n    if e:\n     f()",
    ),
    "modules_say_what_they_are_for": ("engine/text/words.py", "x = 1"),
}


@cache
def breaks() -> dict[str, list[str]]:
    """Rule -> every place that breaks it; each module is parsed once for all rules."""
    found: dict[str, list[str]] = {rule.__name__: [] for rule in RULES}
    for path in MODULES:
        tree = parsed(path, (ROOT / path).read_text("utf-8"))
        for rule, places in breaks_of(path, tree).items():
            found[rule] += places
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_rule_holds(rule: Rule) -> None:
    found = breaks()[rule.__name__]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_rule_can_be_broken(rule: Rule) -> None:
    path, source = BROKEN[rule.__name__]
    assert break_in(path, source, rule)


@pytest.mark.parametrize(
    "source",
    [
        "path.write_bytes(b'')",
        "os.open(name, os.O_RDONLY | os.O_CREAT)",
        "place.open('w')",
        "os.replace(a, b)",
        "temporary.replace(target)",
        "io.open(name, 'r+')",
    ],
)
def test_every_way_to_write_a_file_is_seen(source: str) -> None:
    rule = next(rule for rule in RULES if rule.__name__ == "files_are_written_in_one_place")
    assert break_in("engine/service/feed.py", source, rule)


@pytest.mark.parametrize("source", ["open(name)", "place.open('rb')", "'a'.replace('a', 'b')"])
def test_reading_is_not_taken_for_writing(source: str) -> None:
    rule = next(rule for rule in RULES if rule.__name__ == "files_are_written_in_one_place")
    assert not break_in("engine/service/feed.py", source, rule)


def test_a_task_group_may_start_tasks_anywhere() -> None:
    source = "async def f():\n async with asyncio.TaskGroup() as group:\n  group.create_task(g())"
    rule = next(rule for rule in RULES if rule.__name__ == "background_tasks_have_an_owner")
    assert not break_in("engine/text/words.py", source, rule)


def test_every_exception_to_a_rule_is_still_needed() -> None:
    """A table that names what is gone would quietly allow it to come back."""
    tables = (
        OTHER_ADDRESSES,
        OTHER_MEANINGS,
        WRITERS,
        SPAWNERS,
        ENVIRONMENT,
        PRINTERS,
        BROAD_CATCHERS,
        CANCEL_KEEPERS,
    )
    gone = [place for table in tables for place in table if not (ROOT / place).exists()]
    assert not gone, f"named in tests/house_rules.py, but not there: {gone}"


def test_no_module_is_an_attic() -> None:
    vague = [path for path in MODULES if set(Path(path).with_suffix("").parts) & VAGUE]
    assert not vague, f"a name that says nothing draws in everything: {vague}"


def test_every_module_parses_on_the_oldest_python() -> None:
    assert breaks().keys() == {rule.__name__ for rule in RULES}  # all were parsed and read


def test_the_layers_hold() -> None:
    linter = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    ]
    done = subprocess.run(
        [*linter, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
