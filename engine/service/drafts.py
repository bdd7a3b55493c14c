"""Requests as JSON documents: write, parse strictly, redact for storage, validate shapes.

Accepted shapes: `{"kind": …, "args": …}` with a name and terms next to them, the document of
a command task, and the meta.json of a task. Nothing is started here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from engine.kinds.commands.command_file import MAX_BYTES, read_document
from engine.kinds.commands.command_table import stored_args
from engine.model import redact
from engine.model.errors import InvalidArguments, Problem
from engine.model.records import ENVELOPE
from engine.service.admission import Terms
from engine.service.forms import COMMANDS, own_names, startable
from engine.service.rerun import LENGTHS, Asked, holds_mark

TERMS: Final = ("objective", "phase", "policy", "enforce", "contract", "metadata")
_LINKS: Final = ("task_run_id", "task_thread_id", "workflow_id", "agent_id")
_TOP: Final = ("kind", "args", "name", *TERMS, *_LINKS)
_ENVELOPE_ARGS: Final = ("objective", "phase", "policy")
_BEFORE_JSON: Final = b"\xef\xbb\xbf \t\r\n"


def document(asked: Asked) -> dict[str, Any]:
    """Convert the request to JSON values, without empty fields."""
    found: dict[str, Any] = {"kind": asked.kind}
    if asked.name:
        found["name"] = asked.name
    found["args"] = dict(asked.args)
    for name in (*TERMS, *_LINKS):
        value = getattr(asked.terms, name)
        if value is not None and value is not False:
            found[name] = value
    return found


def text_of(asked: Asked) -> str:
    """Format `document` for display, with non-printable characters escaped."""
    text = json.dumps(document(asked), indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else _escaped(one) for one in text)


def _escaped(sign: str) -> str:
    return json.dumps(sign)[1:-1]


def read(data: bytes, name: str) -> Asked:
    """Parse the request in a file called `name`.

    Raises:
        InvalidArguments: it is larger than 1 MiB, no JSON (with line and column), or no request.
    """
    return asked_of(read_document(data, name))


def content(data: bytes, name: str) -> Asked | str:
    """Parse a file or a pasted text: a request, or lines of addresses (as text).

    Raises:
        InvalidArguments: JSON that is no request, input that is too large, or not UTF-8.
    """
    if data.lstrip(_BEFORE_JSON)[:1] in (b"{", b"["):
        found = read_document(data, name)
        if isinstance(found, list) and found and all(isinstance(one, str) for one in found):
            return "\n".join(found)
        return asked_of(found)
    if len(data) > MAX_BYTES:
        raise InvalidArguments((Problem(name, "too_large", "is larger than 1 MiB"),))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        problem = Problem(name, "not_utf8", "is neither a task in JSON nor a list of addresses")
        raise InvalidArguments((problem,)) from None


def file_content(path: Path) -> Asked | str:
    """Parse a file that the user chose, as `content`; blocks, for a thread.

    Raises:
        InvalidArguments: it cannot be read, is no plain file, or as `content`.
    """
    try:
        if not path.is_file():
            reason = "is not a file" if path.exists() else "is not there"
            raise InvalidArguments((Problem(path.name, "no_file", reason),))
        with path.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InvalidArguments((Problem(path.name, "no_file", reason),)) from error
    return content(data, path.name)


def asked_of(given: object) -> Asked:
    """Convert a JSON value to a request; its arguments are not validated yet.

    Raises:
        InvalidArguments: it is no request at all.
    """
    if not isinstance(given, Mapping):
        raise _refused("", "must be an object: a task with a kind, or a command task")
    if "kind" not in given and "commands" in given:
        return Asked(COMMANDS, dict(given))
    if "args_summary" in given and "task_id" in given:
        given = _of_record(given)
    kind = given.get("kind")
    if kind not in startable():
        raise _refused("kind", f"must be one of {', '.join(startable())}")
    problems = [
        Problem(str(name)[:64], "unknown_argument", f"is not known (known: {', '.join(_TOP)})")
        for name in given
        if name not in _TOP
    ]
    problems += _shape_problems(given)
    if problems:
        raise InvalidArguments(tuple(problems))
    return _asked(str(kind), given)


def _asked(kind: str, given: Mapping[str, Any]) -> Asked:
    args = own_names(kind, given.get("args") or {})
    terms = {name: given[name] for name in (*TERMS, *_LINKS) if given.get(name) is not None}
    if kind == ENVELOPE:
        terms = {**{name: args.pop(name) for name in _ENVELOPE_ARGS if name in args}, **terms}
    return Asked(kind, args, given.get("name") or None, Terms(**terms))


def levelled(asked: Asked) -> Asked:
    """Normalise the request as `asked_of` does: every argument in its own place."""
    return _asked(asked.kind, document(asked))


def _shape_problems(given: Mapping[str, Any]) -> list[Problem]:
    """Return type errors that neither the form nor the later validation could handle."""
    objects, texts = ("args", "policy", "contract"), ("name", "objective", "phase", *_LINKS)
    wrong = [(one, "an object") for one in objects if not isinstance(given.get(one) or {}, Mapping)]
    wrong += [(one, "a text") for one in texts if not isinstance(given.get(one), str | None)]
    if not isinstance(given.get("enforce"), bool | None):
        wrong.append(("enforce", "true or false"))
    return [Problem(name, "wrong_type", f"must be {what}") for name, what in wrong]


def _of_record(given: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the request from a task's record."""
    engine = given.get("engine")
    own = engine if isinstance(engine, Mapping) else {}
    args = own.get("args") or given["args_summary"]
    found = {"kind": given.get("kind"), "args": args, "name": own.get("name")}
    if given.get("kind") == ENVELOPE:
        args = {}
    found.update({name: given.get(name) for name in ("objective", "policy")}, args=args)
    return found


def storable(asked: Asked) -> tuple[dict[str, Any], bool]:
    """Redact the request for storage, and return whether a secret was removed."""
    found = document(asked)
    if asked.kind == COMMANDS:
        found["args"] = _stored_commands(asked.args)
    kept = redact.value(found)
    return kept, kept != document(asked)


def lacks(asked: Asked) -> bool:
    """Return whether the request holds a redaction mark, to be replaced by the user."""
    return holds_mark(document(asked))


def _stored_commands(args: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(args)
    if isinstance(args.get("variables"), Mapping):
        kept["variables"] = dict.fromkeys(args["variables"], redact.MARK)
    if isinstance(args.get("commands"), list | tuple):
        kept["commands"] = [_stored_command(each) for each in args["commands"]]
    return kept


def _stored_command(given: object) -> object:
    if not isinstance(given, Mapping) or not isinstance(given.get("args"), Mapping):
        return given
    kept = stored_args(given["args"], len)
    return {**given, "args": {name: kept[name] for name in kept if name not in LENGTHS}}


def _refused(path: str, message: str) -> InvalidArguments:
    return InvalidArguments((Problem(path, "not_a_request", message),))


__all__ = [
    "MAX_BYTES",
    "TERMS",
    "Asked",
    "Terms",
    "asked_of",
    "content",
    "document",
    "file_content",
    "lacks",
    "levelled",
    "read",
    "storable",
    "text_of",
]
