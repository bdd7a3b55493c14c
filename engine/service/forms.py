"""What can be asked of each kind, as a form needs to know it: defaults, ranges and choices.

Read out of the tables that judge a request, so that no form can offer what would be refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engine.kinds.arguments import Maybe, OneOf, Reading, Table, Whole
from engine.kinds.commands.command_table import TIMEOUT, TOOLS, Arg, default_timeout_ms
from engine.kinds.crawl import crawl_args
from engine.kinds.credential_args import SecretText
from engine.kinds.evidence import evidence_args
from engine.kinds.recording import recording_args
from engine.kinds.sitemap import sitemap_args
from engine.kinds.snapshot import snapshot_args
from engine.model.records import ENVELOPE

COMMANDS: Final = "commands"
STARTABLE: Final = (
    "crawl",
    "crawl_sitemap",
    "recording",
    "oc_evidence_bundle",
    "oc_session_snapshot",
    COMMANDS,
    ENVELOPE,
)


@dataclass(frozen=True, slots=True)
class Input:
    """One argument. `low` and `high` bound a number, `choices` are all that a text may be.

    A `secret` one may be given by reference, and `default` is what holds without it.
    """

    default: Any = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    secret: bool = False


_TABLES: Final[Mapping[str, tuple[Table, type[msgspec.Struct]]]] = {
    "crawl": (crawl_args.ARGUMENTS, crawl_args.CrawlArgs),
    "crawl_sitemap": (sitemap_args.ARGUMENTS, crawl_args.CrawlArgs),
    "recording": (recording_args.ARGUMENTS, recording_args.RecordingArgs),
    "oc_evidence_bundle": (evidence_args.ARGUMENTS, evidence_args.EvidenceArgs),
    "oc_session_snapshot": (snapshot_args.ARGUMENTS, snapshot_args.SnapshotArgs),
}
_OWN_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "crawl_sitemap": {"max_pages": sitemap_args.MAX_PAGES, "other_origins": False}
}


def inputs(kind: str) -> dict[str, Input]:
    """The arguments of a kind by their own names, without other spellings of them.

    Empty for command tasks and envelopes, which are no flat list of arguments.
    """
    if kind not in _TABLES:
        return {}
    table, struct = _TABLES[kind]
    defaults = {**dict(_defaults(struct)), **_OWN_DEFAULTS.get(kind, {})}
    return {
        name: _input(row.read, defaults.get(name))
        for name, row in table.items()
        if name == row.field
    }


def own_names(kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """`args` with each argument under its own name (`maxPages` as `max_pages`)."""
    table = _TABLES[kind][0] if kind in _TABLES else {}
    fields = {name: row.field for name, row in table.items() if row.field in table}
    return {fields.get(name, name): value for name, value in args.items()}


def actions() -> Iterator[tuple[str, str, dict[str, Input]]]:
    """Every tool of command tasks with each of its actions and what that takes."""
    for tool, table in TOOLS.items():
        for action, rows in table.items():
            found = {name: _argument(arg) for name, arg in rows.items()}
            found["timeout"] = _argument(TIMEOUT, default_timeout_ms(action))
            yield tool, action, found


def _argument(arg: Arg, default: Any = None) -> Input:
    found = _input(arg.read, default)
    return Input(default, found.low, found.high, found.choices, arg.required, arg.text)


def _input(read: Reading, default: Any) -> Input:
    if isinstance(read, Maybe):
        read = read.read
    if isinstance(read, Whole):
        return Input(default, read.low, read.high)
    if isinstance(read, SecretText):
        return Input(default, secret=True)
    if isinstance(read, OneOf):
        return Input(default, choices=read.choices)
    return Input(default)


def _defaults(struct: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    for each in msgspec.structs.fields(struct):
        if each.default is not msgspec.NODEFAULT:
            yield each.name, each.default
