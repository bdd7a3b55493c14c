"""Validation of the untrusted messages from a recorded browser, and its secret fields.

The script in the page (`browser/record.js`) reports the operator's input; the browser itself
reports navigations. A `Told` becomes an action in `recording_actions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol

import msgspec

from engine.model import redact
from engine.secrets.value_search import Echoes

_WORDS: Final = """
pass pwd pin cvv cvc csc otp ssn iban passphrase passcode passwort kennwort pan mfa totp
"""


_SECRET_WORDS: Final = frozenset(_WORDS.split())


_SECRET_PAIRS: Final = ("cardnumber", "securitycode", "creditcard", "onetimecode", "accountnumber")


_SECRET_ASKED: Final = re.compile(
    r"(^|\s)(cc-[a-z-]+|one-time-code|(current|new)-password)(\s|$)", re.I
)


NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def is_secret_field(target: Target) -> bool:
    """Return whether the field resembles one for a password, a code, or a card."""
    if target.type == "password" or any(map(_SECRET_ASKED.search, target.hints)):
        return True
    return any(map(_names_a_secret, (*target.hints, target.name or "")))


def _names_a_secret(hint: str) -> bool:
    words = {word.lower() for word in _WORD.findall(hint)}
    joined = NOT_SLUG.sub("", hint.lower())
    return (
        redact.is_secret_key(hint)
        or bool(words & _SECRET_WORDS)
        or any(pair in joined for pair in _SECRET_PAIRS)
    )


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
MAX_TEXT: Final = 10_000  # maximum length of one field's stored text, in characters


class Target(msgspec.Struct, frozen=True, rename="camel"):
    """An element as described by the script; each selector was unique at that time."""

    tag: str
    type: str = ""
    role: str | None = None
    name: str | None = None
    testid: str | None = None
    by_role: str | None = None
    within: list[tuple[Literal["item", "role"], str]] = []  # inside an entry or named part
    strong: str | None = None  # by an explicit id or attribute
    text: str | None = None
    number: str | None = None  # its index among elements of the same role and name
    css: str | None = None
    path: str | None = None
    frame: list[str] | None = None  # None: the frame has no selector
    hints: list[str] = []


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """One message of the script; `kind` determines the fields in use."""

    kind: Kind
    target: Target | None = None
    text: str = ""
    append: bool = False  # typed at the caret, in addition to the editor's previous text
    cut: bool = False
    secret: bool = False
    button: Literal["left", "middle", "right"] = "left"
    count: int = 1
    at_end: bool = False  # the click put an editor's caret behind all of its text
    values: list[str] = []
    opened: bool = False  # a click on another element opened the file chooser
    on: bool = False
    key: str = ""
    dx: int = 0
    dy: int = 0
    onto: Target | None = None  # the drop target
    by_person: bool = True
    signs: list[Target] = []  # elements that are visible on a loaded page


class Heard(msgspec.Struct, frozen=True):
    """A message of the script with its time (ms since 1970), tab and address."""

    ts: int
    tab: int
    url: str
    told: Told


class Went(msgspec.Struct, frozen=True):
    """A navigation of a tab. `asked` is the requested address if it differs."""

    ts: int
    tab: int
    url: str
    how: How
    asked: str | None = None
    failed: bool = False


class Answered(msgspec.Struct, frozen=True):
    """An answered dialog of a page. `text` is the input of a prompt, if any."""

    ts: int
    tab: int
    url: str
    sort: Literal["alert", "confirm", "prompt", "beforeunload"]
    message: str
    accepted: bool
    text: str | None = None


class WindowRefused(msgspec.Struct, frozen=True):
    """A page was refused a new window for the address `asked`."""

    ts: int
    tab: int
    url: str
    asked: str


class TabClosed(msgspec.Struct, frozen=True):
    """A closed tab; `by_person` means that no action in it directly preceded."""

    ts: int
    tab: int
    url: str
    by_person: bool


class Closed(msgspec.Struct, frozen=True):
    """The last window was closed, or the browser died.

    `lost`: the connection to a remote browser was lost, so that this is not known.
    """

    lost: bool = False


Happening = Heard | Went | Answered | WindowRefused | TabClosed | Closed
Hidden = Callable[[Iterable[str]], Echoes]


class Recorder(Protocol):
    """Interface of a recorded browser."""

    dropped: int
    """Messages that came too fast, were too large, or had no usable shape."""

    async def open(self, url: str) -> None:
        """Open the start address. Raises PageError, BrowserGone."""
        ...

    async def next(self) -> Happening:
        """Return the next event, in order of arrival."""
        ...

    def rest(self) -> list[Happening]:
        """Return the events that are already queued, without waiting."""
        ...

    async def screenshot(self, tab: int, hidden: Hidden, *, bare: bool) -> bytes | None:
        """Take a screenshot of a tab; with `bare`, fields show their contents.

        The texts from `hidden`, called with the contents of the fields, are masked everywhere.
        """
        ...

    def network(self) -> dict[str, Any]:
        """Return a summary of the requests: counts, never a query."""
        ...


OpenRecorder = Callable[[Any, Callable[[], int]], AbstractAsyncContextManager[Recorder]]


def read_told(payload: str) -> Told | None:
    """Decode a message of the script; None for an invalid one."""
    if len(payload) > MAX_PAYLOAD:
        return None
    try:
        return msgspec.json.decode(payload, type=Told)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
        return None
