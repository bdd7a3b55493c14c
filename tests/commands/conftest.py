"""An engine on an empty home, and short constructors of command tasks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.browser.interact import command_reading, command_tools
from engine.kinds.commands import command_table
from engine.kinds.commands.command_table import TOOLS
from engine.model.config import Settings
from engine.model.errors import InvalidArguments
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from tests.support.far_limits import FAR_S, be_patient

Opening = Callable[..., AbstractAsyncContextManager["Booth"]]


WAIT_MS = 180_000  # for the end of a task: many commands take their time on a crowded machine


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)
    monkeypatch.setattr(command_tools, "LAST_READ_S", FAR_S)
    monkeypatch.setattr(command_reading, "READ_MS", FAR_S * 1_000)


_TOOL_OF = {action: tool for tool, actions in TOOLS.items() for action in actions}


def do(action: str, **args: Any) -> dict[str, Any]:
    """One command; its tool follows from the action."""
    return {
        "tool_name": _TOOL_OF[action],
        "intention": f"to {action}",
        "args": {"action": action, **args},
    }


def task(*commands: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "task_name": "A try",
        "task_intention": "To see whether it works",
        "commands": list(commands),
        **fields,
    }


def mistakes(error: InvalidArguments) -> dict[str, str]:
    """Path -> code of every mistake."""
    return {problem.path: problem.code for problem in error.problems}


class Booth:
    """An engine with its home; what it answers for a task is seed 002's shape."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine = engine
        self.home = home

    async def run(self, *commands: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Run a task to its end and return it as the seed answers for it."""
        record = await self.start(*commands, **fields)
        await self.engine.tasks.wait(record.task_id, WAIT_MS)
        return await self.look(record.task_id)

    async def start(self, *commands: dict[str, Any], **fields: Any) -> TaskRecord:
        return await self.engine.requests.start("commands", task(*commands, **fields))

    async def look(self, task_id: str) -> dict[str, Any]:
        found = await self.engine.tasks.command_task(task_id)
        assert found is not None
        return found

    def folder(self, task_id: str) -> Path:
        return self.home / "tasks" / task_id


@pytest.fixture
def opened(home: Path, kept_browser: object, monkeypatch: pytest.MonkeyPatch) -> Opening:
    """`async with opened(environ={…}) as booth:` an accepting engine on an empty home.

    An expectation of its tasks has as much time as every other command.
    """
    monkeypatch.setattr(command_table, "EXPECT_TIMEOUT_MS", command_table.DEFAULT_TIMEOUT_MS)

    @asynccontextmanager
    async def make(**given: Any) -> AsyncIterator[Booth]:
        settings = replace(
            Settings.at(home=home), browser_path=os.environ.get("OC_BROWSER"), **given
        )
        engine = Engine(settings, accepts=True)
        await engine.open()
        try:
            yield Booth(engine, home)
        finally:
            await engine.close()

    return make


async def results(booth: Booth, *commands: dict[str, Any], **fields: Any) -> list[Any]:
    """What each command found; all of them must have gone well."""
    done = await booth.run(*commands, **fields)
    bad = [command.get("error") for command in done["commands"] if command["status"] != "success"]
    assert not bad, bad
    assert done["status"] == "completed"
    return [command["result"] for command in done["commands"]]


async def failure(booth: Booth, *commands: dict[str, Any], **fields: Any) -> tuple[str, str]:
    """Code and reason of the last command, which must be the first that failed."""
    done = await booth.run(*commands, **fields)
    states = [command["status"] for command in done["commands"]]
    assert states == ["success"] * (len(states) - 1) + ["error"], done
    error = done["commands"][-1]["error"]
    assert "\n" not in error["message"]
    assert "Call log" not in error["message"]
    return error["code"], error["message"]
