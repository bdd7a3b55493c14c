"""commands.json as it is found: whatever stands in it has the seed's shapes afterwards.

Only programs of ours write that file, but anybody may change it, and a page line stands in the
place of a command. A field of another shape is left out, or empty where there must be one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from engine.kinds.commands.command_task import CommandStatus
from engine.ledger import meta
from engine.ledger.files import Unusable
from engine.model.status import moment

Found = dict[str, Any]

_TEXTS: Final = ("id", "instanceId", "name", "intention")
_COMMAND_TEXTS: Final = ("id", "tool_name", "intention")
_TIMES: Final = ("createdAt", "startedAt", "completedAt")
_STATUSES: Final = frozenset(get_args(CommandStatus))


def task_in(data: bytes) -> Found:
    """The task that a commands.json holds, or as much of it as is of any use.

    Raises:
        Unusable: it is no JSON object, or its commands are no list of objects.
    """
    raw = meta.shown(meta.forgiving(data))
    commands = raw.pop("commands", [])
    if not isinstance(commands, list) or not all(isinstance(each, dict) for each in commands):
        raise Unusable("its commands are no list of objects")
    texts = {name: raw.pop(name) for name in _TEXTS if name in raw}
    found = _timed(raw)
    found |= {name: text for name, text in texts.items() if isinstance(text, str)}
    if type(found.get("currentCommandIndex")) is not int:
        found.pop("currentCommandIndex", None)
    return {**found, "commands": [command_in(each) for each in commands]}


def command_in(raw: Mapping[str, Any]) -> Found:
    """One command with all that every command has."""
    found = _timed(raw)
    for name in _COMMAND_TEXTS:
        found[name] = found[name] if isinstance(found.get(name), str) else ""
    known = isinstance(found.get("status"), str) and found["status"] in _STATUSES
    found["status"] = found["status"] if known else "pending"
    if not isinstance(found.get("warning", ""), str):
        del found["warning"]
    found["args"] = found["args"] if isinstance(found.get("args"), dict) else {}
    return found


def _timed(raw: Mapping[str, Any]) -> Found:
    """`raw` with times that are times, and an error that has a code and a message."""
    found = {
        name: value
        for name, value in raw.items()
        if name not in _TIMES or moment(value) is not None
    }
    error = found.pop("error", None)
    if isinstance(error, Mapping):
        texts = {name: str(error.get(name) or "") for name in ("code", "message")}
        found["error"] = {**error, **texts}
    return found
