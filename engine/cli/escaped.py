"""JSON for programs that may end up on a terminal all the same: nothing in it steers one."""

from __future__ import annotations

import json
import re

import click

# DEL and the eight-bit controls, marks and overrides of direction, what is seen by nobody, line
# separators, and halves of surrogate pairs, which no encoder takes. JSON escapes the rest itself.
_STEERING = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def json_text(data: object, indent: int | None = 2) -> str:
    """`data` as JSON that every terminal can show and none obeys: what could, stands as escapes."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_json(data: object, indent: int | None = 2) -> None:
    """One JSON document on standard output."""
    click.echo(json_text(data, indent))
