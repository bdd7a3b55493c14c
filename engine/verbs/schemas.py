"""JSON Schemas of verbs, of the arguments of each kind, and of a command task.

They are made from the tables that validate the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine import budgets
from engine.budgets.envelopes import PHASES
from engine.kinds import arguments
from engine.kinds.arguments import Argument, Maybe, OneOf, Reading, SecretText, Whole, WholeOr
from engine.kinds.commands.command_table import TOOLS
from engine.kinds.registry import KINDS
from engine.kinds.snapshot_kind import SNAPSHOT as SNAPSHOT_KIND
from engine.model.records import ENVELOPE
from engine.service.forms import actions, startable
from engine.verbs.model import OF_SHAPE, TEXT, Param

Schema = dict[str, Any]

_OF_COMMAND_LINE: Final = re.compile(
    r" \(again for more[^)]*\)|\(again for more; with a reason\)| \(Exit code 5: not yet\.\)"
    r"| \(repeatable\)"
)

SECRET: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"secret": {"type": "string", "pattern": "^env:[A-Za-z_][A-Za-z0-9_]*$"}},
    "required": ["secret"],
    "additionalProperties": False,
}
OF_READER: Final[Mapping[Reading, Mapping[str, Any]]] = {
    arguments.flag: {"type": "boolean"},
    arguments.text: TEXT,
    arguments.web_address: {"type": "string", "description": "an http or https address"},
    arguments.texts: {"type": "array", "items": TEXT, "maxItems": arguments.MAX_ENTRIES},
    arguments.web_addresses: {
        "type": "array",
        "items": TEXT,
        "maxItems": arguments.MAX_ADDRESSES,
    },
}


def object_schema(params: Iterable[Param]) -> Schema:
    """Return the schema of an object with these parameters, and no other member."""
    params = tuple(params)
    found: Schema = {
        "type": "object",
        "properties": {param.name: param_schema(param) for param in params},
        "additionalProperties": False,
    }
    required = [param.name for param in params if param.required]
    return {**found, "required": required} if required else found


def param_schema(param: Param) -> Schema:
    """Return the schema of one parameter, with its help and its default."""
    found: Schema = {**OF_SHAPE[param.shape], **param.schema}
    if param.shape == "many":
        found = {"anyOf": [found["items"], found]}
    found["description"] = plain_help(param.help)
    if param.default is not None:
        found["default"] = param.default
    return found


def plain_help(text: str) -> str:
    """Return a help text without what it says of the command line alone."""
    return _OF_COMMAND_LINE.sub("", text)


def reading_schema(read: Reading) -> Schema:
    """Return the schema of a reader; empty for a reader without one."""
    if isinstance(read, Maybe):
        return reading_schema(read.read)
    if isinstance(read, Whole):
        return {"type": "integer", "minimum": read.low, "maximum": read.high}
    if isinstance(read, WholeOr):
        number = {"type": "integer", "minimum": read.low, "maximum": read.high}
        return {"anyOf": [number, {"type": "string", "const": read.word}]}
    if isinstance(read, OneOf):
        return {"type": "string", "enum": [*read.choices]}
    if isinstance(read, SecretText):
        return {"anyOf": [dict(TEXT), dict(SECRET)]}
    return dict(OF_READER.get(read, {}))


def _argument_schema(row: Argument) -> Schema:
    found = reading_schema(row.read)
    lists = row.option == "repeated" or (row.form is not None and row.form.editor == "lines")
    if not found and lists:
        found = {"type": "array"}
    said = row.help or (row.form.label if row.form is not None else "")
    return {**found, "description": said} if said else found


# Arguments that no model needs to know: those that a program may give only if the operator allows
# it, clicks, which act on the site, the pauses of a failing host, and the size of an archive.
_ACTS: Final = ("click_links", "max_clicks")
BY_OPERATOR: Final = frozenset(
    {"profile", *arguments.PROXY, *_ACTS, "host_pause", "max_archive_mb", "connection", "cluster"}
    | {"remote_browser"}
)


def kind_schema(kind: str) -> Schema:
    """Return the schema of a kind's arguments."""
    if kind == ENVELOPE:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    spec = KINDS[kind]
    if not spec.arguments:
        return command_task_schema()
    properties = {
        name: {**_argument_schema(row), **_default(spec.defaults.get(name))}
        for name, row in spec.arguments.items()
        if not row.field and name not in BY_OPERATOR
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _default(value: Any) -> Schema:
    return {"default": value} if isinstance(value, str | int | bool) else {}


def start_arguments_schema() -> Schema:
    """Return the schema of `args` of a start: the arguments of all kinds, each with its kinds.

    One flat object, since hosts and models handle alternatives of objects badly.
    """
    rows: dict[str, dict[str, Schema]] = {}  # name -> kind -> its schema
    for kind in startable():
        for name, found in kind_schema(kind)["properties"].items():
            rows.setdefault(name, {})[kind] = found
    properties = {name: _shared(by_kind) for name, by_kind in rows.items()}
    return {"type": "object", "properties": properties}


def _shared(by_kind: Mapping[str, Schema]) -> Schema:
    """Return what the kinds say alike about an argument, and which kinds have it."""
    first, *others = ({**found, "description": ""} for found in by_kind.values())
    alike = {
        key: value
        for key, value in first.items()
        if key != "default" and all(other.get(key) == value for other in others)
    }
    said = next((str(one["description"]) for one in by_kind.values() if "description" in one), "")
    others_of = [kind for kind in startable() if kind not in by_kind]
    all_but = f"all but {', '.join(others_of)}" if 0 < len(others_of) < len(by_kind) else ""
    kinds = all_but or ", ".join(by_kind)
    defaults = {kind: one["default"] for kind, one in by_kind.items() if "default" in one}
    spelled = {kind: _spelled(value) for kind, value in defaults.items()}
    if len({*spelled.values()}) == 1:  # no `default`: a host may send it to the other kinds
        kinds = f"{kinds}; default {next(iter(spelled.values()))}"
    elif spelled:
        kinds += "; default of " + ", ".join(f"{kind}: {one}" for kind, one in spelled.items())
    return {**alike, "description": f"{said.rstrip('.')} ({kinds})" if said else kinds}


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def policy_schema() -> Schema:
    """Return the schema of budgets (seed 004)."""
    whole = {"type": "integer", "minimum": 1}
    return {
        "type": "object",
        "properties": {
            **{name: dict(whole) for name in budgets.BUDGETS},
            budgets.DOMAINS: {"type": "array", "items": dict(TEXT), "minItems": 1},
        },
        "additionalProperties": False,
    }


def request_schema() -> Schema:
    """Return the schema of a request that can be repeated: of a kind that runs by itself."""
    kinds = [kind for kind in startable() if kind != ENVELOPE]
    return {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": kinds},
            "args": {"type": "object", "description": "the arguments of the kind"},
            "name": {**TEXT, "description": "a name for the list"},
            "policy": {"type": "object", "description": "budgets of each run"},
            "enforce": {"type": "boolean", "description": "end a run over its budget"},
            "contract": {"type": "object", "description": "what must be done in each run"},
            "metadata": {"type": "object", "description": "returned unchanged"},
        },
        "required": ["kind"],
    }


def command_task_schema() -> Schema:
    """Return the schema of a command task (seed 002)."""
    args: Schema = {}
    for _, _, rows in actions():
        for name, one in rows.items():
            found: Schema = {}
            if one.low is not None and one.high is not None:
                found = {"type": "integer", "minimum": one.low, "maximum": one.high}
            elif one.choices:
                found = {"type": "string", "enum": [*one.choices]}
            args[name] = found if args.get(name, found) == found else {}
    actions_of = "; ".join(f"{tool}: {', '.join(table)}" for tool, table in TOOLS.items())
    command = {
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "enum": [*TOOLS]},
            "intention": {**TEXT, "description": "what this command is for"},
            "args": {
                "type": "object",
                "description": f"action, and its arguments ({actions_of})",
                "properties": {"action": {**TEXT}, **args},
                "required": ["action"],
            },
        },
        "required": ["tool_name", "intention", "args"],
    }
    return {
        "type": "object",
        "properties": {
            "task_name": {**TEXT, "description": "a name for the list"},
            "task_intention": {**TEXT, "description": "what the task is for"},
            "commands": {"type": "array", "items": command, "minItems": 1},
            "instanceId": {**TEXT, "description": "a browser instance that is open"},
            "metadata": {"type": "object", "description": "returned unchanged"},
            "variables": {"type": "object", "description": "values of {{name}} in the commands"},
            "redact_content": {"type": "boolean", "description": "redact keys in page content"},
            "dialogs": {"description": "leave or stay, when a page asks before it is left"},
        },
        "required": ["task_name", "task_intention", "commands"],
    }


KIND_NAMES: Final = startable()
SNAPSHOT: Final = SNAPSHOT_KIND.name
PHASE: Final[Mapping[str, Any]] = {"enum": [*PHASES]}
