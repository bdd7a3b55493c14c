"""Requests that repeat a task: the recorded request, or one for what failed in it.

Source: the ledger stores a request only if no part of it was redacted; a repeated task that
silently lacks a password would be another task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from engine.kinds.commands.command_table import placeholders
from engine.kinds.crawl.crawl_args import still_served
from engine.kinds.registry import KINDS
from engine.kinds.traits import COMMANDS_TRAITS
from engine.model.addresses import address_of
from engine.model.display import elide_right
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.kind_traits import link_follower
from engine.model.ledger_ids import plain_id
from engine.model.records import ENVELOPE, TASK_RUN, EngineFields, TaskId, TaskRecord, TaskView
from engine.model.redact import MARK
from engine.results.units import Unit, UnitState
from engine.service.admission import MAX_NAME, NO_TERMS, Terms
from engine.text import words

COMMANDS: Final = COMMANDS_TRAITS.name
LENGTHS: Final = ("text_length", "key_length")  # fields of a stored command that replace typed text
NO_VARIABLES: Final = "are for command tasks only"
_LEFT_OUT: Final = ("variables", "commands")  # parts of a command task that may hold marks


class CannotRepeat(EngineError):
    """A task's request is incomplete, so the same task cannot be started again."""

    code = "cannot_repeat"
    title = "The task cannot be repeated as it was"
    sentence = "Task {task_id} cannot be repeated: {reason}."
    advice_text = "Start it anew with `{command}` and give what is missing."

    def __init__(self, record: TaskRecord, reason: str) -> None:
        anew = "octask run FILE" if record.kind == COMMANDS else f"octask start {record.kind}"
        super().__init__(task_id=record.task_id, kind=record.kind, reason=reason, command=anew)


class RequestHidden(CannotRepeat):
    """Part of the request was secret and was not stored."""

    code = "request_hidden"


class RequestCut(CannotRepeat):
    """The request was too long to be stored."""

    code = "request_cut"


class RequestUnknown(CannotRepeat):
    """Another program created the task and stored only a summary of its request."""

    code = "request_unknown"


class VariablesMissing(CannotRepeat):
    """Commands need variables, whose values are not stored."""

    code = "variables_missing"
    sentence = (
        "Task {task_id} cannot be repeated: values of variables are not kept, "
        "and these are missing: {names}."
    )
    advice_text = "Give them in a JSON file: `{command}`."

    def __init__(self, record: TaskRecord, names: Iterable[str], command: str) -> None:
        EngineError.__init__(
            self, task_id=record.task_id, kind=record.kind, names=", ".join(names), command=command
        )


class TypedTextMissing(CannotRepeat):
    """Commands type literal texts, which are not stored."""

    code = "typed_text_missing"
    sentence = "Task {task_id} cannot be repeated: the texts that it types are not kept."
    advice_text = (
        "Run its file again: `{command}`. A variable in the place of a text can be given once more."
    )

    def __init__(self, record: TaskRecord, command: str) -> None:
        EngineError.__init__(self, task_id=record.task_id, kind=record.kind, command=command)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in the form that `start` accepts."""

    kind: str
    args: dict[str, Any]
    name: str | None = None
    terms: Terms = NO_TERMS


def asked(
    record: TaskRecord,
    contract: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Asked:
    """Return the request of this task; `contract` holds the terms of its contract.

    Args:
        variables: values for the variables of a command task; they are not stored.

    Raises:
        RequestHidden, RequestCut, RequestUnknown, VariablesMissing, TypedTextMissing: the
            request is incomplete.
        InvalidArguments: variables were given for a task that has none.
    """
    return completed(record, recorded(record, contract), variables)


def recorded(record: TaskRecord, contract: Mapping[str, Any] | None = None) -> Asked:
    """Return the request as stored: commands may lack variables and typed texts.

    Raises:
        RequestHidden, RequestCut, RequestUnknown: other parts are missing, too.
    """
    engine = record.engine
    if engine is None or engine.host is None:
        raise RequestUnknown(record, "another program made it and kept only a summary")
    args = record.args_summary if engine.args is None else engine.args
    rest = [record.policy, record.objective, engine.metadata]
    if record.kind == COMMANDS:
        rest += [value for name, value in args.items() if name not in _LEFT_OUT]
    else:
        rest.append(args)
    _expect_whole(record, engine, args, rest)
    if record.kind == COMMANDS and engine.metadata is not None:
        args = {**args, "metadata": engine.metadata}  # part of the task's own document
    if record.kind == ENVELOPE:
        args = {}  # the rest of an envelope's summary is its outcome
    terms = Terms(
        objective=record.objective,
        phase=_first_phase(record),
        policy=record.policy,
        enforce=engine.enforce,
        contract=contract,
        metadata=engine.metadata,
    )
    return Asked(record.kind, still_served(args), engine.name, terms)


def _expect_whole(
    record: TaskRecord, engine: EngineFields, args: Mapping[str, Any], rest: list[Any]
) -> None:
    is_marked = holds_mark(rest)
    if record.kind == COMMANDS and engine.withheld and engine.metadata is None and not is_marked:
        # Nothing else of a command task is left out without a mark.
        reason = "its metadata, larger than 64 KiB or with integers above 2^53, was not kept"
        raise RequestCut(record, reason)
    if engine.withheld or is_marked:
        raise RequestHidden(record, "something in it was secret and was not written down")
    if args.get("_truncated") is True:
        raise RequestCut(record, "its arguments were too long to be kept")


def completed(
    record: TaskRecord,
    request: Asked,
    variables: Mapping[str, Any] | None = None,
    verb: str = "rerun",
) -> Asked:
    """Add missing variables to a recorded request, or to a part of one.

    Raises:
        VariablesMissing, TypedTextMissing: it needs values that are not stored.
        InvalidArguments: variables were given for a task that has none.
    """
    if request.kind != COMMANDS:
        if variables:
            raise InvalidArguments((Problem("variables", "unknown_argument", NO_VARIABLES),))
        return request
    commands = request.args.get("commands", ())
    values = {**request.args.get("variables", {}), **(variables or {})}
    missing = [name for name in _names_in(commands) if holds_mark(values.get(name))]
    if holds_mark(commands):
        raise TypedTextMissing(record, _command("run FILE", bool(missing), commands))
    if missing:
        again = f"{verb} {plain_id(record.task_id)}"
        raise VariablesMissing(record, missing, _command(again, True, commands))
    needed = {name: value for name, value in values.items() if not holds_mark(value)}
    given = {"variables": needed} if "variables" in request.args or variables else {}
    return replace(request, args={**request.args, **given})


def _names_in(given: Any) -> list[str]:
    """Return the variables that commands use, without duplicates."""
    if isinstance(given, str):
        return placeholders(given)
    inner = given.values() if isinstance(given, Mapping) else given
    several = inner if isinstance(given, Mapping | list | tuple) else ()
    return list(dict.fromkeys(name for each in several for name in _names_in(each)))


def _command(verb: str, variables: bool, commands: Iterable[Any]) -> str:
    """Return the command line that supplies the missing values."""
    more = " --variables VALUES.json" if variables else ""
    uploads = any("files" in (each.get("args") or {}) for each in commands)
    return f"octask {verb}{more}{' --allow-files DIR' if uploads else ''}"


def known(record: TaskRecord) -> Asked:
    """Return the recorded parts of a request, for the user to complete.

    Values with redacted secrets are omitted: a mark must never be typed into a page. Commands
    keep their marks, which the start dialog asks the user to replace.
    """
    engine = record.engine
    whole = engine.args if engine is not None and engine.args is not None else record.args_summary
    cut = whole.get("_truncated") is True
    marked = _LEFT_OUT if record.kind == COMMANDS else ()
    told = whole.items() if not cut else ()
    args = {name: given for name, given in told if name in marked or not holds_mark(given)}
    if record.kind == COMMANDS and engine is not None and engine.metadata is not None:
        args["metadata"] = engine.metadata
    objective = None if holds_mark(record.objective) else record.objective
    policy = None if holds_mark(record.policy) else record.policy
    terms = Terms(
        objective=objective,
        phase=_first_phase(record),
        policy=policy,
        enforce=engine.enforce if engine is not None else False,
    )
    found = Asked(record.kind, args, engine.name if engine is not None else None, terms)
    return to_complete(found) if record.kind == COMMANDS else found


def to_complete(request: Asked) -> Asked:
    """Return recorded commands without the lengths of typed texts."""
    commands = [_without_lengths(each) for each in request.args.get("commands", ())]
    return replace(request, args={**request.args, "commands": commands})


def _without_lengths(command: Any) -> Any:
    if not isinstance(command, Mapping) or not isinstance(command.get("args"), Mapping):
        return command
    kept = {name: value for name, value in command["args"].items() if name not in LENGTHS}
    return {**command, "args": kept}


def repeatable(record: TaskRecord) -> bool:
    """Return whether the request of this task is complete, according to its own record."""
    try:
        asked(record)
    except CannotRepeat:
        return False
    return True


class Chance(StrEnum):
    """Outcome of repeating a task, according to its own record.

    `STARTING` lists the outcomes that count as repeatable.
    """

    STARTS = "starts"
    LED = "led"  # starts, and then waits for an agent to drive it
    ASKS = "asks"  # incomplete: the user must supply the missing parts
    LIVE = "live"  # has not ended
    COPY = "copy"  # would start, but its copy in another ledger starts the same request
    GOAL = "goal"  # a task run: a goal that other tasks work for; it cannot be started
    STRANGE = "strange"  # of a kind that only another program can run
    LOST = "lost"  # unreadable, or in an unknown state


STARTING: Final = (Chance.STARTS, Chance.LED)  # unchanged, without a question to the user


@dataclass(frozen=True, slots=True)
class Repeats:
    """Tasks grouped by the outcome of repeating each; nothing was started.
    `whys` counts the errors that prevent incomplete ones from starting, by error code.
    """

    chances: Mapping[Chance, tuple[TaskView, ...]]
    whys: Mapping[str, int]

    @property
    def with_copies(self) -> tuple[TaskId, ...]:
        """The `ids`, plus the copies in other ledgers."""
        return tuple(view.task_id for view in self.of(*STARTING, Chance.COPY))

    def of(self, *chances: Chance) -> tuple[TaskView, ...]:
        return tuple(view for each in chances for view in self.chances.get(each, ()))

    @property
    def ids(self) -> tuple[TaskId, ...]:
        """Tasks that can be started unchanged, in the given order."""
        return tuple(view.task_id for view in self.of(*STARTING))


def repeats(
    views: Iterable[TaskView], remembers: Callable[[str], bool] = lambda _: False
) -> Repeats:
    """Group tasks by the outcome of repeating them, without starting any.

    `remembers` returns whether this process still has the complete request, with its secrets.
    """
    groups: dict[Chance, list[TaskView]] = {}
    whys: Counter[str] = Counter()
    for view in views:
        found, why = chance(view, remembers)
        groups.setdefault(found, []).append(view)
        if why:
            whys[why] += 1
    _set_aside_copies(groups)
    return Repeats({each: tuple(found) for each, found in groups.items()}, whys)


class Copies:
    """Count duplicates: tasks with equal ids in several ledgers, of which only one may start."""

    def __init__(self) -> None:
        self.number = 0
        self._first: set[str] = set()

    def note(self, view: TaskView) -> None:
        known = len(self._first)
        self._first.add(plain_id(view.task_id))
        self.number += len(self._first) == known


def _set_aside_copies(groups: dict[Chance, list[TaskView]]) -> None:
    """Select one copy of each task: that of the own ledger, or else the first."""
    starting = [view for each in STARTING for view in groups.get(each, ())]
    starting.sort(key=lambda view: view.ledger != "")
    first = {plain_id(view.task_id): view.task_id for view in reversed(starting)}
    if len(first) == len(starting):
        return
    for each in STARTING:
        found = groups.pop(each, [])
        for view in found:
            copy = first[plain_id(view.task_id)] != view.task_id
            groups.setdefault(Chance.COPY if copy else each, []).append(view)


def chance(
    view: TaskView, remembers: Callable[[str], bool] = lambda _: False
) -> tuple[Chance, str]:
    """Return the outcome of repeating this task, and the error code if it is incomplete."""
    record = view.entry
    if not isinstance(record, TaskRecord):
        return Chance.LOST, ""
    if record.kind == TASK_RUN:
        return Chance.GOAL, ""
    if not record.is_terminal:
        return (Chance.LIVE if record.is_live else Chance.LOST), ""
    if record.kind not in (*KINDS, ENVELOPE):
        return Chance.STRANGE, ""
    if not remembers(record.task_id):
        try:
            asked(record)
        except CannotRepeat as error:
            return Chance.ASKS, error.code
    return (Chance.LED if record.kind == ENVELOPE else Chance.STARTS), ""


def _first_phase(record: TaskRecord) -> str | None:
    """Return the first phase of the task, since an envelope's own phase changes."""
    first = record.args_summary.get("phase") if record.kind == ENVELOPE else record.phase
    return first if isinstance(first, str) else None


def holds_mark(given: Any) -> bool:
    """Return whether any value or name in here was redacted."""
    if isinstance(given, str):
        return MARK in given
    if isinstance(given, Mapping):
        return any(holds_mark(name) or holds_mark(item) for name, item in given.items())
    return isinstance(given, list | tuple) and any(map(holds_mark, given))


REFUSED: Final = "blocked: "  # the first word of a page's error, as `AddressBlocked` has it
MOST: Final = 5_000  # maximum pages of one retry
_MOST_CHARS: Final = 512 * 1024  # maximum size of their addresses
# Options of loading a page; options of following links do not apply to a list of pages.
_PAGE_OPTIONS: Final = frozenset(
    {"output_format", "respect_robots", "delay_ms", "concurrency", "engine", "block_resources"}
    | {"screenshot", "settle_ms", "wait_for", "timeout_ms", "retries", "fragments", "keep_links"}
    | {"redact_content", "max_elements", "max_text_kb", "host_pause", "dismiss_consent"}
    | {"scroll", "load_more", "max_loads", "click_links", "max_clicks", "fields"}
    | {"profile", "archive", "max_archive_mb", "connection", "cluster"}
    | {"proxy", "proxy_username", "proxy_password", "proxy_bypass"}
    | {"user_agent", "device", "viewport", "locale", "timezone", "headers", "header_origins"}
)


class NothingToRetry(EngineError):
    """Nothing of a task failed, or its parts cannot be retried separately."""

    code = "nothing_to_retry"
    title = "There is nothing to retry"
    sentence = "Nothing of task {task_id} failed that could be tried again on its own."
    advice_text = "`octask rerun {task_id}` starts the whole task once more."


class NotEnded(EngineError):
    """A retry of a running task, which may still visit these pages."""

    code = "not_ended"
    title = "The task has not ended"
    sentence = "Task {task_id} has not ended."
    advice_text = "Wait for its end, or cancel it first."


@dataclass(frozen=True, slots=True)
class Remainder:
    """The failed parts of a task as a request, if there are any.

    `request` holds the first `taken` of `failed` parts. With a `refusal` the request lacks
    values that are not stored, and the user completes it.
    """

    task_id: str
    kind: str
    request: Asked | None = None
    failed: int = 0
    taken: int = 0
    refusal: CannotRepeat | None = None

    @property
    def whole(self) -> Asked:
        """The request that can be started. Raises CannotRepeat or NothingToRetry."""
        if self.refusal is not None:
            raise self.refusal
        if self.request is None:
            raise NothingToRetry(task_id=self.task_id)
        return self.request

    def named_after(self, record: TaskRecord) -> Remainder:
        """Return it with a name that tells of which task it is a retry."""
        if self.request is None:
            return self
        return replace(self, request=named_as_retry(self.request, record))


def named_as_retry(request: Asked, record: TaskRecord) -> Asked:
    """Name a request `Retry of example.com`: its first address is the first that failed.

    The retry of a retry keeps the name.
    """
    before = words.record_name(record)
    is_retry = before.startswith(words.say("task.retry", name=""))
    name = before if is_retry else words.say("task.retry", name=before)
    return replace(request, name=elide_right(name, MAX_NAME))


def failed_urls(units: Iterable[Unit]) -> list[str]:
    """Return the addresses of failed pages, in order and without duplicates.

    Pages that robots.txt forbids are not included: a retry would be refused again. Neither are
    those that the egress policy refused: the retry must not allow an address that a page named.
    """
    failed = (unit for unit in units if unit.state == UnitState.FAILED)
    return web_pages(one.name for one in failed if not one.reason.startswith(REFUSED))


def web_pages(names: Iterable[str]) -> list[str]:
    """Return the page addresses among these names, in order and without duplicates."""
    return list(dict.fromkeys(name for name in names if name.startswith(("http://", "https://"))))


def remaining_pages(task_id: str, asked: Asked, urls: Sequence[str]) -> Remainder:
    """Build a crawl of these pages only, with the original options, up to the size limits."""
    taken: list[str] = []
    chars = 0
    for url in urls[:MOST]:
        chars += len(url)
        if chars > _MOST_CHARS:
            break
        taken.append(url)
    if not taken:
        return Remainder(task_id, asked.kind)
    taken = _own_first(taken, asked)
    options = {name: value for name, value in asked.args.items() if name in _PAGE_OPTIONS}
    if "headers" in options:  # the pages may be of other sites, which get none
        options.setdefault("header_origins", start_addresses(asked.args))
    pages = {"url": taken[0], "max_depth": 0, "max_pages": len(taken)}
    further = {"urls": taken[1:]} if taken[1:] else {}
    request = Asked(link_follower(), {**options, **pages, **further}, asked.name)
    return Remainder(task_id, asked.kind, request, len(urls), len(taken))


def _own_first(urls: list[str], asked: Asked) -> list[str]:
    """Return the addresses with one of the original start's host first, if there is one.

    The private address of a start may be opened, so that no other page may become the start.
    """
    start = address_of(str(asked.args.get("url", "")))
    places = [found.place if (found := address_of(url)) else "" for url in urls]
    if start is None or start.place not in places:
        return urls
    first = places.index(start.place)
    return [urls[first], *urls[:first], *urls[first + 1 :]]


def start_addresses(args: Mapping[str, Any]) -> list[Any]:
    """Return the start addresses of a crawl, references among them."""
    given = [args.get("url"), args.get("sitemap_url"), *(args.get("urls") or ())]
    return [one for one in given if one]


def remaining_commands(asked: Asked, states: Sequence[object]) -> Asked | None:
    """Return the commands from the failed one on; None if no command failed.

    They begin at the last `goto` before it, because a fresh browser shows no page.
    """
    commands = asked.args.get("commands")
    if not isinstance(commands, list) or "error" not in states:
        return None
    failed = min(states.index("error"), len(commands) - 1)
    start = next((at for at in range(failed, -1, -1) if _goes_to_a_page(commands[at])), 0)
    return Asked(asked.kind, {**asked.args, "commands": commands[start:]}, asked.name, asked.terms)


def _goes_to_a_page(command: object) -> bool:
    if not isinstance(command, Mapping) or command.get("tool_name") != "browser_navigate":
        return False
    args: Any = command.get("args")
    return isinstance(args, Mapping) and isinstance(args.get("url"), str)
