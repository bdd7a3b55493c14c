"""User and password that an address was given with."""

from __future__ import annotations

import msgspec


class Credentials(msgspec.Struct, frozen=True):
    """User and password of a start URL. They answer the HTTP authentication of `origin` only."""

    origin: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.origin})"
