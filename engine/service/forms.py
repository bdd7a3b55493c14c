"""Start forms of every kind: fields, defaults, ranges, choices and address lists.

Everything comes from the table that validates a request, so no form offers an invalid value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from engine.kinds.arguments import (
    Argument,
    Editor,
    FormField,
    Maybe,
    OneOf,
    Reading,
    Table,
    Whole,
    flag,
    optional,
    text,
    web_address,
)
from engine.kinds.commands.command_table import TIMEOUT, TOOLS, Arg, default_timeout_ms
from engine.kinds.commands.commands_traits import COMMANDS_TRAITS
from engine.kinds.credential_args import SecretText
from engine.kinds.registry import KINDS
from engine.kinds.spec import KindForm
from engine.model.addresses import address_of
from engine.model.records import ENVELOPE

MOST: Final = 5_000  # maximum tasks of one list


class Refused(NamedTuple):
    """Invalid line: its number (from 1), its text, and the reason."""

    line: int
    text: str
    reason: str


class AddressList(NamedTuple):
    """Unique `urls` in input order; `doubles` counts duplicates."""

    urls: tuple[str, ...]
    doubles: int
    refused: tuple[Refused, ...]


class Sorting:
    """Validate addresses as a task would; two are duplicates if a crawl treats them as one page.

    Line by line, so that a long list can be validated in slices.
    """

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._refused: list[Refused] = []
        self._doubles = 0

    def add(self, line: int, text: str) -> None:
        """Validate one line."""
        address = address_of(text)
        try:
            web_address(text)
        except ValueError as wrong:
            self._refused.append(Refused(line, text, str(wrong)))
            return
        assert address is not None  # web_address validated it
        key = address.own.key  # a route is opened as it was typed
        self._doubles += key in self._urls
        self._urls.setdefault(key, text)

    @property
    def found(self) -> AddressList:
        """The result of all lines so far."""
        return AddressList(tuple(self._urls.values()), self._doubles, tuple(self._refused))


def sort_out(lines: Iterable[tuple[int, str]]) -> AddressList:
    """Validate all lines at once."""
    sorting = Sorting()
    for line, line_text in lines:
        sorting.add(line, line_text)
    return sorting.found


COMMANDS: Final = COMMANDS_TRAITS.name
# An envelope has no arguments: these are terms of its start.
_OUTSIDE: Final = KindForm(
    "Agent task",
    "Open a task for an agent",
    "agent",
    summary="work of an agent outside, measured by its budgets",
)
_OUTSIDE_TERMS: Final[Table] = {
    "objective": Argument(
        "objective",
        text,
        FormField(
            "What is to be reached",
            "first",
            editor="prose",
            hint="Nothing runs here by itself: an agent drives it through its tools.",
        ),
    ),
    "phase": Argument(
        "phase",
        optional(text),
        FormField(
            "It begins to",
            "limits",
            editor="choice",
            options=(
                ("explore", "Explore"),
                ("act", "Act"),
                ("verify", "Verify"),
                ("recover", "Recover"),
            ),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Input:
    """One argument. `low` and `high` bound a number, `choices` lists all allowed texts.

    A `secret` argument accepts a reference, and `default` applies without a value.
    """

    default: Any = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    secret: bool = False


def startable() -> tuple[str, ...]:
    """List every kind that can be started, in display order."""
    return (*KINDS, ENVELOPE)


def kind_forms() -> dict[str, KindForm]:
    """Return the form of each startable kind; a kind without one is shown by its name."""
    plain = {name: KindForm(name, name, "list", summary="") for name in KINDS}
    known = {name: kind.form for name, kind in KINDS.items() if kind.form is not None}
    return {**plain, **known, ENVELOPE: _OUTSIDE}


def form_fields(kind: str) -> dict[str, FormField]:
    """Return the fields of a kind's form by argument, each with its editor."""
    table = _OUTSIDE_TERMS if kind == ENVELOPE else _table(kind)
    return {
        name: row.form._replace(editor=row.form.editor or _editor(row.read))
        for name, row in table.items()
        if row.form is not None
    }


def form_texts() -> set[str]:
    """Return every English text of the forms, for translations."""
    fields = (field for kind in startable() for field in form_fields(kind).values())
    forms = (
        text for form in kind_forms().values() for text in (form.title, form.action, form.listed)
    )
    return {*filter(None, forms), *(text for field in fields for text in field.texts())}


def inputs(kind: str) -> dict[str, Input]:
    """Return the arguments of a kind by their own names, without alternative spellings.

    Empty for command tasks and envelopes, which have no flat list of arguments.
    """
    defaults = KINDS[kind].defaults if kind in KINDS else {}
    return {
        name: _input(row.read, defaults.get(name))
        for name, row in _table(kind).items()
        if name == row.field
    }


def own_names(kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Rename each argument to its own name (`maxPages` to `max_pages`)."""
    table = _table(kind)
    fields = {name: row.field for name, row in table.items() if row.field in table}
    return {fields.get(name, name): value for name, value in args.items()}


def _table(kind: str) -> Table:
    return KINDS[kind].arguments if kind in KINDS else {}


def _editor(read: Reading) -> Editor:
    if isinstance(read, Maybe):
        read = read.read
    if isinstance(read, Whole):
        return "number"
    if isinstance(read, OneOf):
        return "choice"
    return "check" if read is flag else "line"


def actions() -> Iterator[tuple[str, str, dict[str, Input]]]:
    """Yield every tool of command tasks with each of its actions and their arguments."""
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
