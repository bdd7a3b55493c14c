"""Verb: its name, parameters and call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from engine.service.engine import Engine

# `json`: an object or its text; `many`: texts; `items`: texts or objects.
Shape = Literal["text", "path", "number", "flag", "json", "many", "items"]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a verb. `positional` ones have no option name on a command line."""

    name: str
    help: str
    shape: Shape = "text"
    positional: bool = False
    required: bool = False
    default: Any = None
    short: str = ""  # one-letter option
    bare: bool = False  # also accepted as a positional argument


@dataclass(frozen=True, slots=True)
class Verb:
    """One operation of the engine; a name of two words belongs to a group."""

    name: str
    help: str
    params: tuple[Param, ...]
    call: Callable[[Engine, Mapping[str, Any]], Awaitable[Any]]
    accepts: bool = False
    faces: tuple[str, ...] = ("cli", "mcp", "http")
