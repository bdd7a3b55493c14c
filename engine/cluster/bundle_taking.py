"""Take an evidence bundle on a worker, in a new tab."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.page.bundle_parts import PART_S, Opened, Part, Piece, Taking
from engine.cluster.bundle_records import (
    CODES,
    MOST_PART_BYTES,
    BundleReply,
    BundleRequest,
    PartFailure,
    SentFacts,
    SentPage,
    SentPart,
    TakenPart,
)
from engine.cluster.page_records import MOST_MESSAGE_CHARS
from engine.egress.egress_policy import Policy
from engine.model.errors import EngineError, PageError, UnitTimeout


class PartTooLarge(EngineError):
    """A part was taken, and is larger than a cluster carries."""

    code = "part_too_large"
    title = "A part is too large for a cluster"
    sentence = "The part is larger than the 8 MiB that a cluster carries."
    advice_text = "Set cluster to none to take the bundle on this machine."


async def take_bundle(
    request: BundleRequest, browser: BrowserSession, policy: Policy
) -> BundleReply:
    """Open the page of a bundle and take its parts; their failures are part of the reply.

    Raises:
        BrowserMissing, BrowserFailed, BrowserGone, ShuttingDown: there is no browser for it.
    """
    # They import Playwright, which a worker of static pages does without.
    from engine.browser.interact.agent_tab import open_tab
    from engine.browser.page.evidence import camera_on

    options = InstanceOptions(policy, look=request.terms.look)
    async with browser.instance(options) as instance:
        tab = await open_tab(1, instance, policy)
        async with camera_on(tab, request, time.monotonic, PART_S) as camera:
            taking = Taking(camera, request, _unit, time.monotonic)
            await taking.open()
            parts = [_taken(part, await taking.take(part)) for part in request.include]
    unopened = None if taking.unopened is None else _failure(taking.unopened)
    return BundleReply(opened=_page(taking.opened), unopened=unopened, parts=parts)


def _page(opened: Opened | None) -> SentPage | None:
    if opened is None:
        return None
    return SentPage(opened.url, opened.title, opened.status, opened.settled)


@asynccontextmanager
async def _unit(label: str, limit_s: float) -> AsyncIterator[None]:
    """Limit a block as the unit of a task does. Raises UnitTimeout."""
    scope = asyncio.timeout(limit_s)
    try:
        async with scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise UnitTimeout(label=label, limit_s=limit_s) from None


def _taken(part: Part, found: Piece | EngineError) -> TakenPart:
    if isinstance(found, EngineError):
        return TakenPart(part, failure=_failure(found))
    if len(found.data) > MOST_PART_BYTES:
        return TakenPart(part, failure=_failure(PartTooLarge()))
    return TakenPart(part, SentPart(found.data, found.truncated, SentFacts(**found.told)))


def _failure(failed: EngineError) -> PartFailure:
    kind = failed.kind if isinstance(failed, PageError) else ""
    code = failed.code if failed.code in CODES else PageError.code
    return PartFailure(code, str(failed)[:MOST_MESSAGE_CHARS], kind)
