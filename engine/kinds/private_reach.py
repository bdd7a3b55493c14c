"""What a task's browser may reach of what is private, by what its operator typed."""

from __future__ import annotations

from engine.browser.egress.egress_policy import Policy
from engine.model.config import Settings

FROM_OUTSIDE = frozenset({"mcp", "http"})  # what comes this way was not typed by the operator


def reach(settings: Settings, *urls: str) -> Policy:
    """The policy for these addresses, the first of which is where the task starts.

    Their own private host and port may be reached, unless the request came over MCP or
    HTTP: then only what stands in the operator's allow list.

    Raises:
        AddressBlocked: one of them is not an http or https address.
    """
    if settings.route in FROM_OUTSIDE or not urls:
        return Policy(None, settings.allow_private)
    first, *others = urls
    return Policy.for_start(first, named=others)
