"""Entries of the operator's lists of what requests over MCP and HTTP may reach."""

from __future__ import annotations

import re
from typing import Final

from engine.egress.egress_policy import place_of
from engine.kinds.commands.command_table import NAME
from engine.kinds.profile_use import ALLOWED
from engine.model.errors import EngineError
from engine.profiles.profile import NAME as PROFILE_NAME

# Nothing but a host and a port: of "http://intranet:80" only the host "http" would be read.
_PLACE: Final = re.compile(r"(\[[^\]/@?#\\]+\]|[^\s:/@?#\\\[\]]+):\d{1,5}")


def private_place(typed: str) -> str | None:
    """Return `host:port` as policies compare it; None if `typed` is no host with a port."""
    if not _PLACE.fullmatch(typed):
        return None
    try:
        return str(place_of(f"http://{typed}/"))
    except EngineError:
        return None


def is_variable(typed: str) -> bool:
    """Return whether `typed` can be the name of an environment variable."""
    return NAME.fullmatch(typed) is not None


def is_allowed_secret(typed: str) -> bool:
    """Return whether `typed` names an environment variable, or a profile as `profile:NAME`."""
    if typed.startswith(ALLOWED):
        return PROFILE_NAME.fullmatch(typed.removeprefix(ALLOWED)) is not None
    return is_variable(typed)
