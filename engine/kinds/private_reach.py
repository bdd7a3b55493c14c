"""Access of a task's browser to private addresses, derived from the operator's input."""

from __future__ import annotations

from engine.egress.egress_policy import Policy
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
