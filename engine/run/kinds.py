"""The kinds this engine can run: how each reads its arguments, and its coroutine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.browser.session import BrowserSession
from engine.config import Settings
from engine.errors import InvalidArguments, Problem
from engine.work.context import Context


@dataclass(frozen=True, slots=True)
class Tools:
    """What a body may use of the outside world."""

    settings: Settings
    browser: BrowserSession


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of task. `parse` names every mistake; `body` returns the result's summary."""

    name: str
    parse: Callable[[Mapping[str, Any]], Any]
    body: Callable[[Any, Context, Tools], Awaitable[dict[str, Any]]]


KINDS: dict[str, Kind] = {}


def kind_of(name: str) -> Kind:
    """The kind called `name`.

    Raises:
        InvalidArguments: nothing of that name can be run here.
    """
    kind = KINDS.get(name)
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise InvalidArguments(
            (Problem("kind", "unknown_kind", f"'{name}' cannot be started here (known: {known})"),)
        )
    return kind
