"""Secrets that another program wrote into its tasks are not shown again by ours."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.model.config import Settings
from engine.service.engine import Engine
from engine.text.words import task_name
from gui.details.facts import arguments_text
from tests.support.octask import Octask

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "openchrome" / "tasks"
LEAKY, SECRET = "ffa8131d8d4c1ea3", "hunter2-dev"  # OpenChrome's redactor passes over both places


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(CORPUS / LEAKY, tmp_path / "tasks" / LEAKY)
    assert SECRET in (tmp_path / "tasks" / LEAKY / "meta.json").read_text()
    return tmp_path


@pytest.mark.parametrize("command", [("list",), ("list", "--json"), ("get", LEAKY)])
def test_the_command_line_shows_none_of_them(home: Path, command: tuple[str, ...]) -> None:
    for words in (command, (*command, "--json")):
        said = Octask(home)(*words)
        assert "docs.example.test" in said
        assert SECRET not in said


async def test_the_window_shows_none_of_them(home: Path) -> None:
    engine = Engine(Settings.at(home=home), accepts=False)
    await engine.open()
    try:
        view = await engine.tasks.get(LEAKY)
    finally:
        await engine.close(0)
    entry: Any = view.entry
    for shown in (task_name(view), arguments_text(entry.args_summary)):
        assert "docs.example.test" in shown
        assert SECRET not in shown
