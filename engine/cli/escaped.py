"""JSON output in which no character controls a terminal."""

from __future__ import annotations

import json
import re

import click

# DEL and C1 controls, direction marks and overrides, invisible characters, line separators, and
# lone surrogates, which no encoder accepts. JSON escapes the others itself.
_STEERING = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def json_text(data: object, indent: int | None = 2) -> str:
    """Encode `data` as JSON with unsafe characters as escapes."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_json(data: object, indent: int | None = 2) -> None:
    """Print one JSON document on standard output."""
    click.echo(json_text(data, indent))
