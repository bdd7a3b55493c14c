"""User and password of a start address."""

from __future__ import annotations

import msgspec


class Credentials(msgspec.Struct, frozen=True):
    """User and password of a start URL, for HTTP authentication at `origin` only."""

    origin: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.origin})"
