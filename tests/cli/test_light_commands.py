"""Commands that only look import nothing that runs tasks, and help and completion no ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from engine.cli.octask import COMMANDS, VERBS, octask
from engine.verbs.verb_table import VERBS as ALL_VERBS
from tests.support.octask import LIMIT_S
from tests.support.task_folders import task_id, write_meta

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
place, *words = sys.argv[1:]
sys.argv = ["octask", *words]
from engine.cli.__main__ import main
try:
    main()
finally:
    with open(place, "w") as out:
        json.dump([*sys.modules], out)
"""
# Packages and libraries that cost more CPU than a command that only looks may take.
RUN_TASKS = {
    *("engine.agents", "engine.browser", "engine.egress", "engine.execution", "engine.pages"),
    *("engine.kinds.registry", "engine.server", "engine.service.running_parts"),
    *("engine.verbs.verb_table", "aiohttp", "playwright", "jinja2", "tzlocal", "watchdog"),
}
READ_TASKS = {
    *("engine.contracts", "engine.export", "engine.ledger", "engine.query", "engine.results"),
    *("engine.schedules", "engine.service", "engine.verbs", "asyncio", "filelock", "psutil"),
}
SHOW_BARS = {"rich"}  # on a terminal alone
FIRST = task_id(0)


def imported(tmp_path: Path, *words: str, **environ: str) -> set[str]:
    """Run `octask` in a process of its own; return the modules that it imported."""
    place = tmp_path / "modules.json"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place), *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    return {*json.loads(place.read_text("utf-8"))}


def among(modules: set[str], packages: set[str]) -> set[str]:
    """Return which of the packages were imported, whole or in part."""
    return {one for one in packages for name in modules if f"{name}.".startswith(f"{one}.")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number in range(3):
        folder = write_meta(tmp_path / "tasks", number, "COMPLETED")
        (folder / "events.jsonl").write_text('{"ts": 1, "kind": "started"}\n')
        (folder / "result.json").write_text('{"pages": []}')
    return tmp_path


@pytest.mark.parametrize("words", [["--version"], ["--help"]], ids=" ".join)
def test_help_and_version_import_no_ledger(tmp_path: Path, words: list[str]) -> None:
    found = imported(tmp_path, *words)
    assert not among(found, RUN_TASKS | READ_TASKS | SHOW_BARS)


@pytest.mark.parametrize("typed", ["octask l", "octask --", "octask "], ids=repr)
def test_completing_a_command_imports_no_ledger(tmp_path: Path, typed: str) -> None:
    found = imported(
        tmp_path,
        _OCTASK_COMPLETE="bash_complete",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(typed.split(" ")) - 1),
    )
    assert not among(found, RUN_TASKS | READ_TASKS | SHOW_BARS)


def test_completing_an_id_imports_nothing_that_runs_tasks(home: Path) -> None:
    typed = f"octask --home {home} get "
    found = imported(home, _OCTASK_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD="4")
    assert not among(found, RUN_TASKS | {"asyncio", "engine.service.engine"} | SHOW_BARS)


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "--json"],
        ["list", "--query", "status:completed"],
        ["get", FIRST],
        ["get", FIRST, "--json"],
        ["get", FIRST, "--events", "--result"],
    ],
    ids=" ".join,
)
def test_reading_imports_nothing_that_runs_tasks(home: Path, words: list[str]) -> None:
    found = imported(home, *words, "--home", str(home))
    assert "engine.service.engine" in found
    assert not among(found, RUN_TASKS | SHOW_BARS)


@pytest.mark.parametrize(
    "words",
    [["runs", "list"], ["contract", "list"], ["task-run", "list"]],
    ids=" ".join,
)
def test_reading_records_of_the_home_imports_nothing_that_runs_tasks(
    home: Path, words: list[str]
) -> None:
    found = imported(home, *words, "--json", "--home", str(home))
    assert not among(found, RUN_TASKS | SHOW_BARS)


@pytest.mark.parametrize("name", ["cancel", "get", "hold", "list", "reap", "wait"])
def test_help_of_a_command_on_tasks_imports_no_engine(tmp_path: Path, name: str) -> None:
    found = imported(tmp_path, name, "--help")
    assert not among(
        found, RUN_TASKS | {"asyncio", "engine.ledger", "engine.service.engine"} | SHOW_BARS
    )


def test_the_list_of_commands_has_the_help_of_each_command() -> None:
    shown = {name: said for name, (*_, said) in {**COMMANDS, **VERBS}.items()}
    context = click.Context(octask)
    loaded = {name: octask.get_command(context, name) for name in shown}
    own = {name: one.get_short_help_str(1_000) for name, one in loaded.items() if one is not None}
    assert shown == own
    assert {name for name, one in loaded.items() if one is not None and one.hidden} == {
        "_cluster",
        "_worker",
    }


def test_every_verb_for_the_command_line_is_a_command() -> None:
    context = click.Context(octask)
    for verb in ALL_VERBS.values():
        if "cli" not in verb.faces:
            continue
        head, _, rest = verb.name.partition(" ")
        command = octask.get_command(context, head)
        assert command is not None, verb.name
        if rest:
            assert isinstance(command, click.Group)
            assert rest in command.commands, verb.name
