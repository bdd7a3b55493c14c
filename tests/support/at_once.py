"""Cases of one test that wait for something, several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

Name = TypeVar("Name")
Result = TypeVar("Result")


async def ended(
    cases: Mapping[Name, Coroutine[Any, Any, Result]], *, most: int = 1_000
) -> dict[Name, asyncio.Task[Result]]:
    """Run all of them to their ends, `most` at once.

    `result()` of each is what it returned, or raises what it raised.
    """
    room = asyncio.Semaphore(most)

    async def in_turn(case: Coroutine[Any, Any, Result]) -> Result:
        async with room:
            return await case

    tasks = {name: asyncio.ensure_future(in_turn(case)) for name, case in cases.items()}
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    return tasks
