"""What a verb is: its name, what it asks for, and the call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.service.engine import Engine

# A `json` is an object or its text, `many` are texts, `items` texts or objects.
Shape = Literal["text", "path", "number", "flag", "json", "many", "items"]


@dataclass(frozen=True, slots=True)
class Param:
    """One value that a verb asks for. `positional` ones come without a name on a command line."""

    name: str
    help: str
    shape: Shape = "text"
    positional: bool = False
    required: bool = False
    default: Any = None
    short: str = ""  # one letter for a command line
    bare: bool = False  # on a command line it may stand without its name, too


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that can be asked of the engine; a name of two words belongs to a group."""

    name: str
    help: str
    params: tuple[Param, ...]
    call: Callable[[Engine, Mapping[str, Any]], Awaitable[Any]]
    accepts: bool = False
    faces: tuple[str, ...] = ("cli", "mcp", "http")
