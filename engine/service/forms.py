"""Start forms of every kind: fields, defaults, ranges, choices, address lists, permissions.

Everything comes from the table that validates a request, so no form offers an invalid value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from engine.egress.egress_policy import Place, place_of
from engine.egress.public_addresses import literal, refusal
from engine.kinds.arguments import (
    Argument,
    Editor,
    FormField,
    Maybe,
    OneOf,
    Reading,
    SecretText,
    Table,
    Whole,
    WholeOr,
    flag,
    optional,
    text,
    web_address,
)
from engine.kinds.commands.command_check import OWN_BROWSER
from engine.kinds.commands.command_table import (
    TIMEOUT,
    TOOLS,
    Arg,
    default_timeout_ms,
    filled,
    is_reference,
    placeholders,
    variable_text,
)
from engine.kinds.registry import KINDS
from engine.kinds.spec import KindForm
from engine.kinds.traits import COMMANDS_TRAITS
from engine.model import redact
from engine.model.addresses import address_of
from engine.model.errors import AddressBlocked
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE
from engine.service.rerun import Asked

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


COMMANDS: Final = COMMANDS_TRAITS.name
# An envelope has no arguments: these are terms of its start.
_OUTSIDE: Final = KindForm(
    "Open a task for an agent",
    summary="work of an agent outside, measured by its budgets",
)
_OUTSIDE_TERMS: Final[Table] = {
    "objective": Argument(
        text,
        FormField(
            "Goal",
            "first",
            editor="prose",
            hint="Nothing runs here by itself: an agent drives it through its tools.",
        ),
    ),
    "phase": Argument(
        optional(text),
        FormField(
            "Starting phase",
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

    A `secret` argument accepts a reference, and `default` applies without a value. `word` is a
    text that is allowed instead of a number.
    """

    default: Any = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    secret: bool = False
    word: str = ""


def startable() -> tuple[str, ...]:
    """List every kind that can be started, in display order."""
    return (*KINDS, ENVELOPE)


def kind_forms() -> dict[str, KindForm]:
    """Return the form of each startable kind; a kind without one is shown by its name."""
    plain = {name: KindForm(name, summary="") for name in KINDS}
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


def inputs(kind: str) -> dict[str, Input]:
    """Return the arguments of a kind by their own names, without alternative spellings.

    Of command tasks these are what their own browser shows; empty for envelopes.
    """
    defaults = KINDS[kind].defaults if kind in KINDS else {}
    return {
        name: _input(row.read, defaults.get(name))
        for name, row in _table(kind).items()
        if not row.field
    }


def own_names(kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Rename each argument to its own name (`maxPages` to `max_pages`)."""
    table = _table(kind)
    fields = {name: row.field for name, row in table.items() if row.field in table}
    return {fields.get(name, name): value for name, value in args.items()}


def _table(kind: str) -> Table:
    if kind == COMMANDS:
        return OWN_BROWSER
    return KINDS[kind].arguments if kind in KINDS else {}


def _editor(read: Reading) -> Editor:
    if isinstance(read, Maybe):
        read = read.read
    if isinstance(read, Whole | WholeOr):
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
    if isinstance(read, WholeOr):
        return Input(default, read.low, read.high, word=read.word)
    if isinstance(read, SecretText):
        return Input(default, secret=True)
    if isinstance(read, OneOf):
        return Input(default, choices=read.choices)
    return Input(default)


_ADDRESS: Final = re.compile(r"https?:[/\\]*[^\s\"'<>`]+", re.IGNORECASE)
_PLAIN_PORTS: Final = (80, 443)
_NEAR_NAMES: Final = (".localhost", ".local", ".internal", ".home.arpa", ".lan")
_STEPS: Final = {
    "type": "typing",
    "keyboard": "typing",
    "select": "typing",
    "evaluate": "scripts",
    "click": "clicks",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """`hosts` lists all hosts in the request, `private` those of this machine or network.

    `scripts`, `typing` and `clicks` count commands; `secrets` are names of environment
    variables; `instance` is a browser that is already open and may be logged in.
    """

    hosts: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    follows_links: bool = False
    anywhere: bool = False
    scripts: int = 0
    typing: int = 0
    clicks: int = 0
    secrets: tuple[str, ...] = ()
    headed: bool = False
    cookies: bool = False
    instance: bool = False


def abilities(asked: Asked) -> Abilities:
    """Collect abilities from the request alone, without resolving or opening an address."""
    args = asked.args
    places = dict.fromkeys(_places(_named(asked)))
    commands = _commands(args) if asked.kind == COMMANDS else []
    kinds = _step_kinds(commands)
    crawls = traits_of(asked.kind).crawls
    return Abilities(
        hosts=tuple(map(_shown, places)),
        private=tuple(str(place) for place in places if _is_private(place)),
        follows_links=traits_of(asked.kind).follows_links,
        anywhere=crawls and (args.get("scope") == "**" or args.get("other_origins") is True),
        scripts=kinds.count("scripts"),
        typing=kinds.count("typing"),
        clicks=kinds.count("clicks"),
        secrets=tuple(dict.fromkeys([*_secrets(_resolved(asked)), *_in_headers(args)])),
        headed=_is_headed(asked, commands),
        cookies=bool(args.get("include_cookies") or args.get("include_storage")),
        instance=isinstance(args.get("instanceId"), str) or isinstance(args.get("tab"), str),
    )


def _step_kinds(commands: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what each command does in a page; the mark of a replay is no script of its file."""
    from engine.kinds.recording.recording_export import MARK  # Not needed for the first paint

    kinds = ((_STEPS.get(str(each.get("action")), ""), each.get("script")) for each in commands)
    return [kind for kind, script in kinds if (kind, script) != ("scripts", MARK)]


class Placeholder(NamedTuple):
    """A `{{name}}` of a command task: the label of its field, "" if unknown, and its secrecy."""

    name: str
    label: str = ""
    secret: bool = False


def placeholders_in(args: Mapping[str, Any]) -> list[Placeholder]:
    """Return each `{{name}}` in the commands' arguments, in the order of first use.

    Labels and secrecy come from `metadata.variables`, as an exported recording has them;
    a name that resembles a password's is always secret.
    """
    names = dict.fromkeys(name for text in _texts(_commands(args)) for name in placeholders(text))
    metadata = args.get("metadata")
    listed = metadata.get("variables") if isinstance(metadata, Mapping) else None
    known = {
        str(one.get("name")): one
        for one in (listed if isinstance(listed, list | tuple) else ())
        if isinstance(one, Mapping)
    }
    return [_placeholder(name, known.get(name, {})) for name in names]


def _placeholder(name: str, known: Mapping[str, Any]) -> Placeholder:
    label = known.get("field")
    # The name counts even beside `"secret": false`, because any program may have written the file.
    hidden = known.get("secret") is True or redact.is_secret_key(name)
    return Placeholder(name, label if isinstance(label, str) else "", hidden)


def _named(asked: Asked) -> Any:
    """Return the texts that may hold addresses: all command texts, or the address arguments."""
    if asked.kind == COMMANDS:
        known = _variables(asked.args.get("variables"))
        return [filled(text, known) for text in _texts(asked.args.get("commands"))]
    return [asked.args.get(name) for name in ("url", "sitemap_url", "tabs")]


def _variables(given: object) -> dict[str, str]:
    """Return the values of `{{name}}`; skip invalid ones, which `start` rejects later."""
    known: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        with suppress(ValueError):
            known[str(name)] = variable_text(value)
    return known


def _places(given: Any) -> Iterator[Place]:
    for part in _texts(given):
        for found in _ADDRESS.findall(part):
            try:
                yield place_of(found)
            except AddressBlocked:
                continue  # `start` rejects the request for this address


def _texts(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        yield from (text for value in given.values() for text in _texts(value))
    elif isinstance(given, list | tuple):
        yield from (text for value in given for text in _texts(value))


def _commands(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = args.get("commands")
    listed = found if isinstance(found, list | tuple) else ()
    inner = (each.get("args") for each in listed if isinstance(each, Mapping))
    return [each for each in inner if isinstance(each, Mapping)]


def _resolved(asked: Asked) -> Any:
    """Return the arguments in which a start resolves references; metadata is for the client."""
    if asked.kind == COMMANDS:
        return [_commands(asked.args), asked.args.get("variables")]
    return asked.args


def _secrets(given: Any) -> Iterator[str]:
    if is_reference(given) and isinstance(given["secret"], str):
        yield given["secret"].removeprefix("env:")
    elif isinstance(given, Mapping):
        yield from (name for value in given.values() for name in _secrets(value))
    elif isinstance(given, list | tuple):
        yield from (name for value in given for name in _secrets(value))


def _in_headers(args: Mapping[str, Any]) -> Iterator[str]:
    given = args.get("headers")
    for one in given if isinstance(given, list | tuple) else ():
        found = redact.HEADER_REFERENCE.fullmatch(one) if isinstance(one, str) else None
        if found is not None:
            yield found["variable"]


def _is_headed(asked: Asked, commands: list[Mapping[str, Any]]) -> bool:
    if traits_of(asked.kind).opens_window:
        return asked.args.get("headless") is not True
    return any(each.get("headed") is True for each in commands)


def _is_private(place: Place) -> bool:
    host = place.host
    if host == "localhost" or host.endswith(_NEAR_NAMES):
        return True
    address = literal(host)
    return address is not None and refusal(address) is not None


def _shown(place: Place) -> str:
    return place.host if place.port in _PLAIN_PORTS else str(place)
