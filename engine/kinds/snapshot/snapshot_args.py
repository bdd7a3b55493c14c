"""Arguments of a session snapshot: the memo of the work, and the tabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.kinds.arguments import (
    KEYS_HINT,
    PAGE_TIMEOUT,
    Argument,
    FormField,
    Table,
    entries,
    flag,
    long_text,
    missing,
    optional,
    read_all,
    redact_content,
    text,
    web_address,
)
from engine.model.addresses import address_of
from engine.model.errors import InvalidArguments, Problem
from engine.secrets.given_secrets import Hidden, of_address

MAX_MEMO: Final = 4_096  # characters of one text of the memo, as OpenChrome's goals have


class GivenTab(msgspec.Struct, frozen=True):
    """A tab that was given by its address; credentials in it are removed.

    `secrets` are the secrets in the typed address, which are masked in page content.
    """

    url: str
    title: str | None = None
    secrets: tuple[Hidden, ...] = ()


class SnapshotArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a snapshot.

    Without `tabs` (None) the snapshot covers the open tabs of this process' agents; given addresses
    are stored (redacted), and opened only with `visit`.
    """

    objective: str
    current_step: str = ""
    next_actions: tuple[str, ...] = ()
    completed_steps: tuple[str, ...] | None = None
    notes: str | None = None
    label: str | None = None
    tabs: tuple[GivenTab, ...] | None = None
    visit: bool = False
    screenshot: bool = True
    include_cookies: bool = False
    include_storage: bool = False
    timeout_ms: int = 30_000
    redact_content: bool = True

    @property
    def wants_state(self) -> bool:
        return self.include_cookies or self.include_storage


_memo = long_text(MAX_MEMO)


def _memos(given: object) -> tuple[str, ...]:
    return tuple(map(_memo, entries(given)))


def _step(given: object) -> str:
    """Read a text that may be empty: before the first step there is none."""
    return "" if given == "" else str(_memo(given))


def _tabs(given: object) -> tuple[GivenTab, ...]:
    return tuple(map(_tab, entries(given)))


def _tab(given: object) -> GivenTab:
    if not isinstance(given, Mapping):
        return GivenTab(_plain(given), secrets=_secrets(given))
    unknown = [name for name in given if name not in ("url", "title")]
    if unknown or "url" not in given:
        raise ValueError("must have addresses, or objects with url and title")
    title = given.get("title")
    read = None if title is None else str(text(title))
    return GivenTab(_plain(given["url"]), read, _secrets(given["url"]))


def _secrets(given: object) -> tuple[Hidden, ...]:
    return tuple(of_address(given)) if isinstance(given, str) else ()


def _plain(given: object) -> str:
    address = address_of(web_address(given))
    assert address is not None
    return address.url


ARGUMENTS: Table = {
    "objective": Argument(
        "objective",
        _memo,
        FormField("What the session is for", "first", editor="prose"),
    ),
    "current_step": Argument(
        "current_step",
        _step,
        FormField("Where it stands", "limits", editor="line"),
        help="The step that is being done.",
    ),
    "currentStep": Argument(
        "current_step",
        _step,
    ),
    "next_actions": Argument(
        "next_actions",
        _memos,
        FormField("What comes next", "limits", editor="lines", hint="One a line."),
        help="A next step.",
        option="repeated",
    ),
    "nextActions": Argument(
        "next_actions",
        _memos,
    ),
    "completed_steps": Argument(
        "completed_steps",
        optional(_memos),
        FormField("What is done", editor="lines", hint="One a line."),
        help="A completed step.",
        option="repeated",
    ),
    "completedSteps": Argument(
        "completed_steps",
        optional(_memos),
    ),
    "tabs": Argument(
        "tabs",
        optional(_tabs),
        FormField(
            "Addresses of its tabs",
            editor="lines",
            hint="One a line; without any, the tabs that agents have open here.",
        ),
        help="Address of a tab.",
        option="repeated",
    ),
    "notes": Argument(
        "notes",
        optional(_memo),
        FormField("Notes", editor="prose"),
        help="Notes.",
    ),
    "label": Argument(
        "label",
        optional(text),
        FormField("Label", editor="line"),
    ),
    "timeout_ms": PAGE_TIMEOUT,
    "visit": Argument(
        "visit",
        flag,
        FormField("Open these addresses"),
        help="Open these tabs.",
    ),
    "screenshot": Argument(
        "screenshot",
        flag,
        FormField("A screenshot of every tab"),
    ),
    "include_cookies": Argument(
        "include_cookies",
        flag,
        FormField("Also cookies (they are secrets)"),
        help="Keep their cookies, in a file.",
    ),
    "include_storage": Argument(
        "include_storage",
        flag,
        FormField("Also what sites store (may be secret)"),
        help="Keep their local storage, too.",
    ),
    "includeCookies": Argument(
        "include_cookies",
        flag,
    ),
    "includeStorage": Argument(
        "include_storage",
        flag,
    ),
    "redact_content": redact_content(KEYS_HINT),
}


def parse_snapshot(given: Mapping[str, Any]) -> SnapshotArgs:
    """Parse the arguments of a session snapshot.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a session snapshot")
    if "objective" not in given:
        problems.append(missing("objective", "what the session is for"))
    if fields.get("visit") and not fields.get("tabs"):
        problems.append(Problem("visit", "not_together", "needs tabs with addresses to open"))
    if fields.get("tabs") is not None and not fields.get("visit"):
        asked = [name for name in ("include_cookies", "include_storage") if fields.get(name)]
        needs = "needs living tabs: leave tabs out, or visit them"
        problems.extend(Problem(name, "not_together", needs) for name in asked)
    if problems:
        raise InvalidArguments(tuple(problems))
    return SnapshotArgs(**fields)
