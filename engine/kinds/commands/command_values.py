"""Masking of a command task's variables, secret references and typed text.

`{{name}}` in an argument is a placeholder for a variable; `{"secret": "env:NAME"}` instead of a
text is a reference to a secret. The stored form of a task keeps both unchanged, and only the
length of typed text; all page content passes `given_secrets.Scrub`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.browser.interact.command_keys import is_typing
from engine.kinds.commands.command_table import TYPED
from engine.model import redact

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_PLACE = re.compile(r"\{\{\s*([^{}]{0,120}?)\s*\}\}")
_REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]{0,199})", re.ASCII)


def placeholders(text: str) -> list[str]:
    """Return the names between double braces in `text`, in order."""
    return [found[1] for found in _PLACE.finditer(text)]


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Replace every known `{{name}}` in `text`, without recursion into the values."""
    return _PLACE.sub(lambda found: variables.get(found[1], found[0]), text)


def is_reference(given: object) -> bool:
    """Return whether the value has the form of a secret reference, valid or not."""
    return isinstance(given, Mapping) and "secret" in given


def reference_name(given: Mapping[str, Any]) -> str:
    """Return NAME of `{"secret": "env:NAME"}`. Raises ValueError."""
    found = _REFERENCE.fullmatch(given["secret"]) if isinstance(given["secret"], str) else None
    if found is None or len(given) != 1:
        raise ValueError('a secret is given as {"secret": "env:NAME"}, and nothing beside it')
    return found[1]


def variable_text(given: object) -> str:
    """Convert a variable's value to the inserted text. Raises ValueError."""
    if isinstance(given, str):
        return given
    if isinstance(given, bool | int | float):
        return json.dumps(given)
    raise ValueError("must be a text, a number or a truth value")


def stored_args(args: Mapping[str, Any], length_of: Callable[[str], int]) -> dict[str, Any]:
    """Return a command's arguments in their storable form.

    `length_of` returns the length of a typed text after its variables are filled in.
    """
    kept = dict(args)
    name = TYPED.get(str(args.get("action")), "")
    typed = args.get(name)
    if not isinstance(typed, str) or args.get("keep_text") is True or _names_only(typed):
        return kept
    if name == "key" and not is_typing(typed):
        return kept
    kept[name] = redact.MARK
    kept[f"{name}_length"] = length_of(typed)
    return kept


def stored_document(given: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Return a task document without typed text, variable values and metadata.

    Metadata is returned to the client unchanged, so it is stored outside of the redacted part.
    """
    kept = {name: value for name, value in given.items() if name != "metadata"}
    if "variables" in kept:
        kept["variables"] = {
            name: value if is_reference(value) else redact.MARK
            for name, value in given["variables"].items()
            if name in variables
        }
    kept["commands"] = [
        {**each, "args": stored_args(each["args"], lambda text: len(filled(text, variables)))}
        for each in given["commands"]
    ]
    return kept


def _names_only(text: str) -> bool:
    """Return whether the text has placeholders only: `{{password}}` reveals no value."""
    return bool(_PLACE.search(text)) and not _PLACE.sub("", text).strip()
