"""Egress of a task: the private hosts that it may reach, and the log of refused requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.egress.egress_policy import Policy, Refusal
from engine.kinds.context import Context
from engine.model.config import Settings

FROM_OUTSIDE = frozenset({"mcp", "http"})  # untrusted: not typed by the operator


def reach(settings: Settings, *urls: str) -> Policy:
    """Return the policy for these addresses; the first one is the start address.

    Their own private host and port are allowed, unless the request came over MCP or HTTP: then
    only the operator's allowlist applies.

    Raises:
        AddressBlocked: one of them is not an http or https address.
    """
    if settings.route in FROM_OUTSIDE or not urls:
        return Policy(None, settings.allow_private)
    first, *others = urls
    return Policy.for_start(first, named=others)


PHASE = "egress"


@asynccontextmanager
async def telling(context: Context, policy: Policy) -> AsyncIterator[None]:
    """Write one `log` event of the task for each request that `policy` refuses.

    Raises:
        EngineError: an event could not be written, and the block itself succeeded.
    """
    loop = asyncio.get_running_loop()
    heard: asyncio.Queue[Refusal | None] = asyncio.Queue()

    def hear(refusal: Refusal) -> None:
        with contextlib.suppress(RuntimeError):  # the loop closed before its browser
            loop.call_soon_threadsafe(heard.put_nowait, refusal)

    teller = asyncio.create_task(_tell(heard, context), name="tell what was refused")
    try:
        with policy.blocked_requests.subscribed(hear):
            yield
    finally:
        # The sentinel is queued after entries from other threads, so that no refusal is lost.
        loop.call_soon_threadsafe(heard.put_nowait, None)
        try:
            await asyncio.wait({teller})
        finally:
            teller.cancel()
        failed = teller.exception()
    if failed is not None:
        raise failed


async def _tell(heard: asyncio.Queue[Refusal | None], context: Context) -> None:
    while (refusal := await heard.get()) is not None:
        place, reason = refusal
        await context.log(PHASE, f"Refused {place}: {reason}", place=place, reason=reason)
