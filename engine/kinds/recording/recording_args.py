"""Arguments of a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from engine.kinds.arguments import (
    ADDRESS_HINT,
    KEYS_HINT,
    Argument,
    FormField,
    Table,
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

Screenshots = Literal["each", "navigation", "none"]
MAX_DURATION_MS = 24 * 3_600_000


class RecordingArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a recording. `url` is without credentials.

    Without `duration_ms` it continues until it is stopped, cancelled, or the window is closed.
    """

    url: str
    credentials: Credentials | None = None
    label: str | None = None
    duration_ms: int | None = None
    headless: bool = False
    keep_text: bool = False
    screenshots: Screenshots = "navigation"
    width: int = 1280
    height: int = 800
    redact_content: bool = True
    secrets: tuple[Hidden, ...] = ()


ARGUMENTS: Table = {
    "url": Argument(
        "url",
        web_address,
        FormField("Address", "first", hint=ADDRESS_HINT, shade="example.com/docs"),
    ),
    "label": Argument(
        "label",
        optional(text),
        FormField("Label", "limits", editor="line"),
        help="Label, also the name of exports.",
    ),
    "duration_ms": Argument(
        "duration_ms",
        optional(whole(100, MAX_DURATION_MS)),
        FormField("Duration", "limits", editor="seconds", none="until it is stopped"),
        help="End after this time in ms (default: when it is stopped or its window is closed).",
    ),
    "screenshots": Argument(
        "screenshots",
        one_of("each", "navigation", "none"),
        FormField(
            "Screenshots",
            "limits",
            options=(
                ("navigation", "Of every new page"),
                ("each", "After every action"),
                ("none", "None"),
            ),
        ),
        help="Screenshots that are taken.",
    ),
    "headless": Argument(
        "headless",
        flag,
        FormField("Headless (no visible window)", "limits"),
        help="Run without a visible window; another program drives it.",
        option="switch",
    ),
    "headed": Argument(
        "headed",
        flag,
    ),
    "width": Argument(
        "width",
        whole(200, 8_000),
        FormField("Window width", suffix=" px"),
    ),
    "height": Argument(
        "height",
        whole(200, 8_000),
        FormField("Window height", suffix=" px"),
    ),
    **CREDENTIALS,
    "keep_text": Argument(
        "keep_text",
        flag,
        FormField(
            "Keep what is typed",
            hint="Without this only the length of what is typed is kept; never passwords.",
        ),
        help="Keep typed text; never passwords and card numbers.",
        option="switch",
    ),
    "redact_content": redact_content(KEYS_HINT),
}


def parse_recording(given: Mapping[str, Any]) -> RecordingArgs:
    """Parse the arguments of a recording.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a recording")
    if "url" not in given:
        problems.append(missing("url", "the address to start at"))
    headed = fields.pop("headed", None)
    if headed is not None and fields.setdefault("headless", not headed) == headed:
        problems.append(Problem("headed", "given_twice", "contradicts headless"))
    problems.extend(credential_problems(fields, fields.get("url")))
    if problems:
        raise InvalidArguments(tuple(problems))
    typed = fields.pop("url")
    address = address_of(typed)
    assert address is not None  # validated by web_address
    credentials, secrets = credentials_from(fields, typed)
    return RecordingArgs(url=address.url, credentials=credentials, secrets=secrets, **fields)
