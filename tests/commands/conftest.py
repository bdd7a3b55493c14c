"""What tests of command tasks need: an engine on an empty home, and short ways to say a task."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.model.config import Settings
from engine.model.errors import InvalidArguments
from engine.model.records import TaskRecord
from engine.service.engine import Engine
from tests.support.far_limits import be_patient

Opening = Callable[..., AbstractAsyncContextManager["Booth"]]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


_TOOL_OF = {
    "goto": "browser_navigate",
    "reload": "browser_navigate",
    "back": "browser_navigate",
    "forward": "browser_navigate",
    "wait_for": "browser_navigate",
    "tabs": "browser_navigate",
    "new_tab": "browser_navigate",
    "switch_tab": "browser_navigate",
    "close_tab": "browser_navigate",
    "dialog": "browser_interact",
    "upload": "browser_interact",
    "click": "browser_interact",
    "check": "browser_interact",
    "uncheck": "browser_interact",
    "press": "browser_interact",
    "type": "browser_interact",
    "keyboard": "browser_interact",
    "scroll": "browser_interact",
    "select": "browser_interact",
    "hover": "browser_interact",
    "drag": "browser_interact",
    "expect": "browser_content",
    "screenshot": "browser_content",
    "get_text": "browser_content",
    "get_html": "browser_content",
    "get_viewport_dom": "browser_content",
    "evaluate": "browser_execute",
    "list": "browser_instance",
    "launch": "browser_instance",
    "close": "browser_instance",
    "status": "browser_instance",
}


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
        await self.engine.tasks.wait(record.task_id)
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
def opened(home: Path) -> Opening:
    """`async with opened(environ={…}) as booth:` an accepting engine on an empty home."""

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
