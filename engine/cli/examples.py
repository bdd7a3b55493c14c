"""Example values for an option's error message, ready to be copied."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import click

OF_JSON: Final[Mapping[str, dict[str, Any]]] = {
    "--args": {"max_pages": 5},
    "--policy": {"maxToolCalls": 50},
    "--contract": {"items": ["a", "b", "c"]},
    "--metadata": {"order": 17},
}
MOST_ITEMS: Final = 5
MOST_CHARS: Final = 80


def as_typed(text: str) -> str:
    """Quote `text` as one word of the shell: cmd.exe knows no single quotes."""
    return subprocess.list2cmdline([text]) if os.name == "nt" else shlex.quote(text)


def json_example(option: str, given: str) -> str:
    """Build a JSON object for `option`; a list of names in a contract reuses the input."""
    value = OF_JSON[option]
    names = [one.strip() for one in given.split(",")]
    short = len(names) <= MOST_ITEMS and len(given) <= MOST_CHARS
    if option == "--contract" and short and all(one and one.isprintable() for one in names):
        value = {"items": names} if not set(given) & set('{}[]"') else value
    return f"{option} {as_typed(json.dumps(value, ensure_ascii=False))}"


class Number(click.IntRange):
    """Whole number whose error message has an example."""

    name = "integer"
    example = 30

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or raise `BadParameter` with an example."""
        try:
            int(value)
        except ValueError:
            option = param.opts[-1] if param is not None else ""
            said = f"{value!r} is not a whole number. For example: {option} {self.example}"
            self.fail(said, param, ctx)
        return super().convert(value, param, ctx)
