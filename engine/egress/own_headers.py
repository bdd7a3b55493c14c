"""Headers that a task sends to its own sites only: the origins of its start addresses.

Their values are secrets. They are added to a request only after its address was compared with the
origins, so no redirect and no request of a page takes them to another site.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from engine.model import addresses


class OwnHeaders(msgspec.Struct, frozen=True):
    """Pairs of name and value, and the origins that get them. Its repr shows no value."""

    pairs: tuple[tuple[str, str], ...] = ()
    origins: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.pairs)
        return f"OwnHeaders({names})"

    def __bool__(self) -> bool:
        return bool(self.pairs and self.origins)

    def for_origin(self, origin: str) -> Mapping[str, str]:
        """Return the headers for a request to this origin; empty for other sites."""
        return dict(self.pairs) if origin in self.origins else {}


NO_HEADERS = OwnHeaders()


def own_headers(pairs: Iterable[tuple[str, str]], urls: Iterable[str]) -> OwnHeaders:
    """Return headers for the origins of these start addresses."""
    found = (addresses.address_of(url) for url in urls)
    origins = frozenset(address.origin for address in found if address is not None)
    return OwnHeaders(tuple(pairs), origins)
