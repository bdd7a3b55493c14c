"""Command tasks that run until they are stopped, and the states of their commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from engine.browser.chromium.browser_options import InstanceOptions
from engine.egress.egress_policy import Policy
from fixtures.site.site import Site
from tests.commands.conftest import Booth, do

FOREVER = do("wait_for", selector="#never", timeout=1_000_000)  # longer than any test


def states(found: dict[str, Any]) -> list[str]:
    return [command["status"] for command in found["commands"]]


async def until(condition: Callable[[], Any]) -> Any:
    """Ask again and again until it is so; bounded."""
    async with asyncio.timeout(60):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.02)


async def running(booth: Booth, task_id: str, number: int) -> None:
    """Wait until command `number` of a task runs."""

    async def runs() -> bool:
        return states(await booth.look(task_id))[number] == "running"

    await until(runs)


def instance_options(*sites: Site) -> InstanceOptions:
    return InstanceOptions(Policy(None, [f"127.0.0.1:{site.port}" for site in sites]))
