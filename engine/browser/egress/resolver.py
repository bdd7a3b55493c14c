"""aiohttp resolver that applies the egress policy."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from engine.browser.egress import public_addresses
from engine.model.errors import AddressBlocked

if TYPE_CHECKING:
    from engine.browser.egress.egress_policy import Policy


class PolicyResolver(AbstractResolver):
    """Passes aiohttp the addresses that the policy checked, so that none can be replaced."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the allowed addresses of `host`.

        Raises:
            AddressBlocked, PageError: as `Policy.check`; both pass through aiohttp unchanged.
        """
        from engine.browser.egress.egress_policy import Place

        place = Place(public_addresses.canonical_host(host), port)
        try:
            found = await self._policy.addresses(place, f"//{place}")
        except AddressBlocked as refused:
            self._policy.blocked_requests.note(str(place), refused.reason)
            raise
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
            if family in (socket.AF_UNSPEC, _FAMILIES[address.version])
        ]

    async def close(self) -> None:
        """Do nothing: there are no resources."""


_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
