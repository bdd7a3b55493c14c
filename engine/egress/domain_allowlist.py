"""Domain allowlist: a policy narrowed to a task's `allowedDomains`.

The navigation filter checks each document of the tab, so that links, forms, scripts and every hop
of a redirect are subject to it as well. Source: seed 004 (an additive narrowing).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine import budgets
from engine.egress.egress_policy import Place, Policy, without_credentials
from engine.egress.public_addresses import IPAddress
from engine.model.errors import AddressBlocked


class DomainBlocked(AddressBlocked):
    """The address is not in the task's allowedDomains; nothing was opened."""

    code = "domain_blocked"
    title = "Not one of the task's domains"

    def __init__(self, url: str) -> None:
        super().__init__(url, "not one of the task's allowed domains")


class DomainAllowlist(Policy):
    """The policy `inside`, minus addresses outside the newest task's domains."""

    def __init__(self, inside: Policy) -> None:
        super().__init__(None)
        self._inside = inside
        self.blocked_requests = inside.blocked_requests
        self._budgets: Mapping[str, Any] = {}

    def narrow(self, budgets: Mapping[str, Any] | None) -> None:
        """Restrict the tab to the `allowedDomains` of these budgets from now on; None lifts it."""
        self._budgets = budgets or {}

    @property
    def root(self) -> Policy:
        return self._inside.root

    async def ask(self, url: str) -> None:
        """As `Policy.ask`; raise DomainBlocked outside the task's domains."""
        if not budgets.allows(self._budgets, url):
            raise DomainBlocked(without_credentials(url))
        await self._inside.ask(url)

    async def addresses(self, place: Place, url: str) -> tuple[IPAddress, ...]:
        """As `Policy.addresses`; `check` applies the allowlist."""
        return await self._inside.addresses(place, url)

    def known(self, url: str) -> bool | None:
        """As `Policy.known`."""
        return self._inside.known(url) if budgets.allows(self._budgets, url) else False

    def known_addresses(self, place: Place) -> tuple[IPAddress, ...] | None:
        """As `Policy.known_addresses`."""
        return self._inside.known_addresses(place)

    def loopback_places(self) -> tuple[str, ...]:
        """As `Policy.loopback_places`."""
        return self._inside.loopback_places()
