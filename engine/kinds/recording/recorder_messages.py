"""What a recorded browser tells: untrusted records, checked before anything is made of them.

The script in the page (`browser/record.js`) tells what the operator does there; the browser
itself tells where it goes. A `Told` becomes an action in `recording_actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol

import msgspec

from engine.secrets.echo_matching import Echoes

Kind = Literal[
    "click",
    "type",
    "select",
    "check",
    "upload",
    "key",
    "scroll",
    "hover",
    "drag",
    "drop",
    "unread",
    "ready",
    "traverse",
]
How = Literal["typed", "reload", "back", "forward", "link", "form", "script", "in_page"]
BY_PERSON: Final = frozenset({"typed", "reload", "back", "forward"})
MAX_PAYLOAD: Final = 64 * 1024  # characters of one message of the script
MAX_TEXT: Final = 10_000  # characters of one field's text that are kept


class Target(msgspec.Struct, frozen=True, rename="camel"):
    """An element as the script names it; each selector was the only match when it was told."""

    tag: str
    type: str = ""
    role: str | None = None
    name: str | None = None
    testid: str | None = None
    by_role: str | None = None
    within: list[tuple[Literal["item", "role"], str]] = []  # inside of an entry, or a named part
    strong: str | None = None  # by an id or attribute that somebody gave
    text: str | None = None
    number: str | None = None  # its place among those of the same role and name
    css: str | None = None
    path: str | None = None
    frame: list[str] | None = None  # None: in a frame that cannot be named
    hints: list[str] = []


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """One message of the script; which fields count depends on `kind`."""

    kind: Kind
    target: Target | None = None
    text: str = ""
    append: bool = False  # typed where the caret stood, beside what the editor held
    cut: bool = False
    secret: bool = False
    button: Literal["left", "middle", "right"] = "left"
    count: int = 1
    at_end: bool = False  # the click put an editor's caret behind all of its text
    values: list[str] = []
    opened: bool = False  # a click on another element asked for the files
    on: bool = False
    key: str = ""
    dx: int = 0
    dy: int = 0
    onto: Target | None = None  # what it was dragged to
    by_person: bool = True
    signs: list[Target] = []  # what can be seen on a page that is ready


class Heard(msgspec.Struct, frozen=True):
    """Something that happened, with when (ms since 1970) and on which tab and address."""

    ts: int
    tab: int
    url: str
    told: Told


class Went(msgspec.Struct, frozen=True):
    """A tab shows another address. `asked` is what was asked for, where that differs."""

    ts: int
    tab: int
    url: str
    how: How
    asked: str | None = None
    failed: bool = False


class Answered(msgspec.Struct, frozen=True):
    """A dialog of a page was answered. `text` is what was typed into a prompt, if anything."""

    ts: int
    tab: int
    url: str
    sort: Literal["alert", "confirm", "prompt", "beforeunload"]
    message: str
    accepted: bool
    text: str | None = None


class WindowRefused(msgspec.Struct, frozen=True):
    """A page wanted to open a window at the address `asked`, and got none."""

    ts: int
    tab: int
    url: str
    asked: str


class TabClosed(msgspec.Struct, frozen=True):
    """A tab was closed; `by_person` where nothing was done in it right before."""

    ts: int
    tab: int
    url: str
    by_person: bool


class Closed(msgspec.Struct, frozen=True):
    """The last window was closed, or the browser died."""


Happening = Heard | Went | Answered | WindowRefused | TabClosed | Closed
Hidden = Callable[[Iterable[str]], Echoes]


class Recorder(Protocol):
    """A browser that is being recorded."""

    dropped: int
    """Messages that came too fast, were too large, or had no usable shape."""

    async def open(self, url: str) -> None:
        """Go to the start address. Raises PageError, BrowserGone."""
        ...

    async def next(self) -> Happening:
        """The next happening, in the order in which it came."""
        ...

    def rest(self) -> list[Happening]:
        """What has come and was not asked for yet; does not wait."""
        ...

    async def screenshot(self, tab: int, hidden: Hidden, *, bare: bool) -> bytes | None:
        """A picture of that tab; with `bare` fields show what they hold. What `hidden` names,
        together with the texts that it is given, is shown nowhere."""
        ...

    def network(self) -> dict[str, Any]:
        """What was requested: counts, never a query."""
        ...


OpenRecorder = Callable[[Any, Callable[[], int]], AbstractAsyncContextManager[Recorder]]


def read_told(payload: str) -> Told | None:
    """A message of the script, or None where it is not one."""
    if len(payload) > MAX_PAYLOAD:
        return None
    try:
        return msgspec.json.decode(payload, type=Told)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
        return None
