"""Arguments of an evidence bundle: the page, and the parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from engine.kinds.arguments import (
    ADDRESS_HINT,
    COUNTED_KEYS_HINT,
    PAGE_TIMEOUT,
    WAIT_FOR,
    Argument,
    FormField,
    Table,
    entries,
    flag,
    missing,
    one_of,
    optional,
    read_all,
    redact_content,
    text,
    web_address,
    whole,
)
from engine.kinds.credential_args import CREDENTIALS, credential_problems, credentials_from
from engine.model.addresses import Credentials, address_of
from engine.model.errors import InvalidArguments, Problem
from engine.secrets.given_secrets import Hidden

Part = Literal["dom", "screenshot", "phash", "network", "console"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
"""In the order in which they are taken: what watches the page is written down last."""


class EvidenceArgs(msgspec.Struct, frozen=True):
    """Validated arguments of an evidence bundle. `url` is without credentials.

    `tab` is an open tab of an agent, which is used without a new load. Requests are recorded for
    `network_window_ms` from the beginning.
    """

    url: str | None = None
    credentials: Credentials | None = None
    tab: str | None = None
    include: tuple[Part, ...] = ("dom", "screenshot")
    network_window_ms: int = 5_000
    full_page: bool = True
    wait_for: str | None = None
    timeout_ms: int = 30_000
    label: str | None = None
    redact_content: bool = True
    secrets: tuple[Hidden, ...] = ()


def _include(given: object) -> tuple[str, ...]:
    """Read a list of parts, each once, in canonical order; one text may name several."""
    named = entries([given] if isinstance(given, str) else given)
    read = one_of(*PARTS)
    chosen = {read(name) for each in named for name in _names(each)}
    if not chosen:
        raise ValueError(f"must name at least one of {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in chosen)


def _names(given: object) -> list[object]:
    if not isinstance(given, str):
        return [given]
    return [name.strip() for name in given.split(",") if name.strip()]


ARGUMENTS: Table = {
    "url": Argument(
        "url",
        optional(web_address),
        FormField("Address", "first", hint=ADDRESS_HINT, shade="example.com/docs"),
    ),
    "tab": Argument(
        "tab",
        optional(text),
    ),
    "include": Argument(
        "include",
        _include,
        FormField(
            "What to keep",
            "limits",
            editor="several",
            options=(
                ("dom", "The page as HTML"),
                ("screenshot", "A screenshot"),
                ("phash", "A fingerprint of how it looks"),
                ("network", "Its requests"),
                ("console", "What its console says"),
            ),
        ),
        help="Parts: dom, screenshot, phash, network, console (default: dom, screenshot).",
        option="repeated",
    ),
    "label": Argument(
        "label",
        optional(text),
        FormField("Label", "limits", editor="line"),
    ),
    "network_window_ms": Argument(
        "network_window_ms",
        whole(0, 60_000),
        FormField("Record requests for (ms)"),
        help="Record network requests for this time in ms.",
    ),
    "timeout_ms": PAGE_TIMEOUT,
    "wait_for": WAIT_FOR,
    **CREDENTIALS,
    "full_page": Argument(
        "full_page",
        flag,
        FormField("Full-page screenshot"),
        help="Take a screenshot of the full page.",
    ),
    "redact_content": redact_content(COUNTED_KEYS_HINT),
}


def parse_evidence(given: Mapping[str, Any]) -> EvidenceArgs:
    """Parse the arguments of an evidence bundle.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "an evidence bundle")
    has_url, has_tab = given.get("url") is not None, given.get("tab") is not None
    if not has_url and not has_tab:
        problems.append(missing("url", "the address of the page, or tab"))
    if has_url and has_tab:
        problems.append(Problem("tab", "not_together", "does not go with url"))
    problems.extend(credential_problems(fields, fields.get("url")))
    if problems:
        raise InvalidArguments(tuple(problems))
    typed = fields.pop("url", None)
    address = address_of(typed) if typed else None
    credentials, secrets = credentials_from(fields, typed or "")
    if address is None:
        return EvidenceArgs(**fields)
    return EvidenceArgs(url=address.url, credentials=credentials, secrets=secrets, **fields)
