"""Default output of a verb: JSON for programs, indented text for users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from engine.cli.calls import call
from engine.cli.escaped import as_json as print_json
from engine.model.config import Settings
from engine.model.display import display
from engine.verbs import Verb

MAX_SHOWN = 400  # characters of one value; --json writes it whole


def plainly(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Call the verb and print its result."""
    answer = call(
        settings, lambda engine: verb.call(engine, given), accepts=verb.accepts, as_json=as_json
    )
    show(msgspec.to_builtins(answer), as_json)


def show(answer: Any, as_json: bool) -> None:
    """Print plain data: records, lists of records, or one value."""
    if as_json:
        print_json(answer)
    else:
        for line in lines(answer):
            click.echo(line)


def lines(answer: Any, indent: str = "") -> Iterator[str]:
    """Yield plain data as lines; empty values are omitted."""
    if isinstance(answer, Mapping):
        for key, value in answer.items():
            if isinstance(value, Mapping | list) and value:
                yield f"{indent}{display(str(key))}:"
                yield from lines(value, indent + "  ")
            elif value not in (None, "", [], {}):
                yield f"{indent}{display(str(key))}: {_word(value)}"
    elif isinstance(answer, list):
        for item in answer:
            if isinstance(item, Mapping):
                first, *rest = list(lines(item, indent + "  ")) or ["-"]
                yield f"{indent}- {first.strip()}"
                yield from rest
            else:
                yield f"{indent}- {_word(item)}"
    else:
        yield indent + _word(answer)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return display(str(value), MAX_SHOWN)
