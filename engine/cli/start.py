"""`octask start KIND [URL]`: in the foreground with progress, or `--detach`ed in a worker."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import to_builtins

from engine.cli.calls import (
    Interrupts,
    call,
    print_json,
    refuse,
    settings_from,
    status_code,
)
from engine.cli.hold_commands import note_hold, waiting_line
from engine.cli.known_ids import complete_param, whole_ids
from engine.cli.options import place_options
from engine.cli.progress import Progress, progress_for
from engine.cli.run_files import STANDARD_INPUT, read_bytes
from engine.cli.streams import keep_task_without_reader
from engine.cli.trust_options import with_proxy
from engine.kinds.arguments import PASSWORDS, REFERENCED, Argument
from engine.kinds.commands.command_file import MAX_BYTES
from engine.kinds.look_arguments import literal_secrets
from engine.kinds.registry import KINDS
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import (
    EngineError,
    InvalidArguments,
    LedgerUnusable,
    Problem,
    TaskNotFound,
    TaskUnreadable,
)
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE, RESULT_NAME, TaskRecord, TaskView, Units, Unreadable
from engine.model.typed_address import complete
from engine.service.admission import Terms, admit, check_envelope
from engine.service.forms import Input, inputs, kind_forms
from engine.service.worker_process import detach
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs.json_answers import view_data

if TYPE_CHECKING:
    from engine.service.engine import Engine

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


# Options for the terms of a start: budgets, contract and ownership.

Command = Callable[..., None]
TERMS = (
    *("objective", "phase", "policy", "enforce", "contract", "metadata"),
    *("task_run_id", "agent_id", "task_thread_id", "workflow_id"),
)
JSON_OPTIONS = ("policy", "contract", "metadata")


def terms_options(command: Command) -> Command:
    """Add the options for the terms of a task."""
    for option in (
        click.option("--workflow-id", help="The workflow it belongs to, kept in its run."),
        click.option("--thread-id", "task_thread_id", help="The task thread it belongs to."),
        click.option("--agent-id", help="The agent it runs for (COMET_AGENT_ID)."),
        click.option("--task-run-id", help="The task run it works for."),
        click.option("--metadata", metavar="JSON", help="Any JSON; it comes back untouched."),
        click.option(
            "--contract", metavar="JSON", help="Bulk contract: what has to be done to be complete."
        ),
        click.option("--enforce", is_flag=True, help="End the task when it exceeds a budget."),
        click.option("--policy", metavar="JSON", help="Budgets, such as '{\"maxToolCalls\": 50}'."),
        click.option("--phase", help="explore, act, verify or recover (for browser_task)."),
        click.option("--objective", help="What the task is for."),
    ):
        command = option(command)
    return command


def gather_terms(given: dict[str, Any], problems: list[Problem]) -> Terms:
    """Move the options of `terms_options` from `given` to a `Terms`.

    An option that must be JSON and is not is added to `problems`, and is missing in the terms.
    """
    found: dict[str, Any] = {
        name: given.pop(name)
        for name in ("objective", "phase", "enforce", "task_run_id", "task_thread_id")
    }
    found["workflow_id"], found["agent_id"] = given.pop("workflow_id"), given.pop("agent_id")
    for name in JSON_OPTIONS:
        text = given.pop(name)
        if text is not None:
            found[name] = _json_option(name, text, problems)
    return Terms(**found)


def _json_option(name: str, text: str, problems: list[Problem]) -> Any:
    before = len(problems)
    found = from_json(f"--{name}", text, problems)
    if name == "metadata" or isinstance(found, dict) or len(problems) > before:
        return found
    problems.append(no_object(f"--{name}", text))
    return None


def from_json(option: str, text: str, problems: list[Problem]) -> Any:
    """Parse the JSON of an option; a mistake is added to `problems`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        wrong = display(str(error), 200)
        reason = f"is not valid JSON ({wrong}). For example: {json_example(option, text)}"
        problems.append(Problem(option, "not_json", reason))
        return None


def no_object(option: str, text: str) -> Problem:
    """Build the problem of an option whose JSON is no object."""
    reason = f"must be a JSON object. For example: {json_example(option, text)}"
    return Problem(option, "wrong_type", reason)


def for_agent(settings: Settings, terms: Terms) -> Settings:
    """Apply `--agent-id`, which overrides COMET_AGENT_ID."""
    return replace(settings, agent_id=terms.agent_id) if terms.agent_id else settings


# Options for the arguments of each kind, made from its table.


def kind_options(only: str | None = None) -> dict[str, list[click.Option]]:
    """Title of a kind -> one option for each argument that no kind before it has.

    `only` one kind: all its own options, with its defaults. Values stay texts: the engine validates
    them all at once, so that every mistake is reported, not only the first.
    """
    found: dict[str, list[click.Option]] = {}
    taken = set(TERMS)
    for name, kind in KINDS.items():
        rows = {key: row for key, row in kind.arguments.items() if row.help and key not in taken}
        if rows and only in (None, name):
            title = kind.form.options_title if kind.form is not None else ""
            options = [_option(key, row, _facts(key, only)) for key, row in rows.items()]
            found[f"Options of {name}" if only else title or name] = options
            taken |= set(rows)
    return found


def _facts(name: str, only: str | None) -> dict[str, Input]:
    """Return range, choices and default of an argument by kind."""
    kinds = [only] if only else [kind for kind in KINDS if name in KINDS[kind].arguments]
    return {kind: inputs(kind)[name] for kind in kinds}


def _option(name: str, row: Argument, facts: Mapping[str, Input]) -> click.Option:
    declared = ["--" + name.replace("_", "-"), name]
    text = f"{row.help.removesuffix('.')}{_bounds(row, facts)}."
    if row.option == "switch":
        return click.Option(declared, is_flag=True, callback=_as_typed, help=text)
    first = next(iter(facts.values()))
    return click.Option(declared, multiple=True, metavar=_metavar(first), help=text)


def _metavar(values: Input) -> str:
    if values.low is not None:
        return "N"
    if isinstance(values.default, bool):
        return "BOOL"
    return "NAME" if values.choices else "TEXT"


def _bounds(row: Argument, facts: Mapping[str, Input]) -> str:
    """The values that an option takes and its default, in brackets."""
    first, parts = next(iter(facts.values())), list[str]()
    if row.option == "switch":
        return ""
    if row.option == "repeated":
        return " (repeatable)"
    if first.choices:
        parts.append(", ".join(first.choices))
    elif first.low is not None and first.high is not None:
        parts.append(f"{first.low:,} to {first.high:,}" + f", or {first.word}" * bool(first.word))
    elif isinstance(first.default, bool):
        parts.append("true or false")
    defaults = [f"default: {_plain(first.default)}"] * (first.default not in (None, "", ()))
    for kind, one in facts.items():
        # Another kind's argument of this name may be of another type.
        if one.default not in (first.default, None) and type(one.default) is type(first.default):
            defaults.append(f"{kind}: {_plain(one.default)}")
    parts += [", ".join(defaults)] * bool(defaults)
    return f" ({'; '.join(parts)})" if parts else ""


def _plain(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:,}" if isinstance(default, int) else str(default)


def _as_typed(_: click.Context, __: click.Parameter, on: bool) -> tuple[str, ...]:
    return ("true",) if on else ()


def given_options(options: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Convert options to arguments: lists stay lists, else the last value counts."""
    lists = {
        name
        for kind in KINDS.values()
        for name, row in kind.arguments.items()
        if row.option == "repeated"
    }
    return {
        name: [*values] if name in lists else _given(name, values[-1])
        for name, values in options.items()
        if values
    }


def _given(name: str, text: str) -> Any:
    if name in PASSWORDS:  # other users can read the command line
        return {"secret": text}
    return text if name in REFERENCED else _value(text)


def _value(text: str) -> Any:
    """Convert integers, `true` and `false`; other values stay texts."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


LOOK_S = 0.2


_KIND: Final = "octask.start.kind"  # in the context: the kind whose help is wanted


class Start(click.Command):
    """The `start` command, with its options made from the kinds and grouped by them.

    With a kind, `--help` shows only what this kind takes.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the kind first, because `--help` ends the reading of the others."""
        ctx.meta[_KIND] = next((one for one in args if one in kind_forms()), None)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Add the options of every kind, also of one that was registered later."""
        options = [one for options in kind_options().values() for one in options]
        return [*self.params, *options, *filter(None, [self.get_help_option(ctx)])]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Name the kind whose help is shown."""
        kind = ctx.meta.get(_KIND)
        pieces = super().collect_usage_pieces(ctx)
        return [kind if kind and piece == "[KIND]" else piece for piece in pieces]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help, and one line for each kind."""
        forms, kind = kind_forms(), ctx.meta.get(_KIND)
        if kind is not None:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_dl([(kind, forms[kind].summary)])
            return
        super().format_help_text(ctx, formatter)
        with formatter.section("KIND is one of"):
            formatter.write_dl([(name, form.summary) for name, form in forms.items()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in sections: for every task, of each kind, the terms."""
        plain = [one for one in self.params if isinstance(one, click.Option)]
        plain += filter(None, [self.get_help_option(ctx)])
        own = kind_options(ctx.meta.get(_KIND))
        terms = {one.name: one for one in plain if one.name in TERMS}
        sections = {
            "Options": [one for one in plain if one.name not in terms],
            **own,
            "Terms (of any kind)": [terms[name] for name in TERMS],
        }
        if ctx.meta.get(_KIND):  # what the kind takes comes first
            sections["Common options"] = sections.pop("Options")
        for title, params in sections.items():
            rows = [record for one in params if (record := one.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=26)


@click.command(cls=Start)
@click.argument("kind", required=False, shell_complete=complete_param)
@click.argument("url", required=False)
@click.option(
    "--args",
    "args_json",
    metavar="JSON",
    help="Arguments as a JSON object; @FILE reads them from a file, - from standard input.",
)
@click.option("--name", help="A name for the list.")
@click.option("--detach", "detached", is_flag=True, help="Run in the background; print the id.")
@terms_options
@place_options
def start(kind: str | None, url: str | None, args_json: str | None, **given: Any) -> None:
    """Start a task; URL is where it begins.

    `octask start KIND --help` lists the options of one kind. Without a kind, --objective opens a
    browser_task.
    """
    if kind is None:
        if given["objective"] is None:
            raise click.UsageError("Missing argument 'KIND'.")
        kind = ENVELOPE
    name, detached, as_json = given.pop("name"), given.pop("detached"), given.pop("as_json")
    try:
        home, root, problems = given.pop("home"), given.pop("root"), list[Problem]()
        terms = gather_terms(given, problems)
        args = gather(url, args_json, given, problems)
        refuse_all(kind, args, name, terms, problems)
        settings = for_agent(settings_from(home, root), terms)
        terms = _with_whole_ids(settings, terms)
        args = with_objective(kind, args, terms)
        if kind == ENVELOPE:
            _open_envelope(settings, args, name, terms, as_json)
            return
        if detached:
            asked = {"kind": kind, "args": args, "name": name, "terms": to_builtins(terms)}
            record = detach(settings, asked)
            print_json(record) if as_json else click.echo(record["task_id"])
            note_hold(settings)
            return
    except EngineError as error:
        refuse(error, as_json=as_json)
    follow(
        settings, lambda engine: engine.requests.start(kind, args, name=name, terms=terms), as_json
    )


def with_objective(kind: str, args: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    """Return the arguments with the option --objective, if it is one of the kind as well."""
    known = KINDS[kind].arguments if kind in KINDS else {}
    if "objective" in known and terms.objective is not None:
        return {"objective": terms.objective, **args}
    return {**args}


def _with_whole_ids(settings: Settings, terms: Terms) -> Terms:
    if terms.task_run_id is None:
        return terms
    whole = whole_ids("start", settings, {"task_run_id": terms.task_run_id})
    return msgspec.structs.replace(terms, **whole)


def follow(
    settings: Settings, begin: Callable[[Engine], Awaitable[TaskRecord]], as_json: bool
) -> None:
    """Show the progress of a new task to its end, and exit with its exit code."""
    keep_task_without_reader()
    show = progress_for(as_json)
    view = call(
        settings,
        lambda engine: foreground(engine, lambda: begin(engine), show),
        accepts=True,
        as_json=as_json,
    )
    report(view, settings.root, as_json)
    sys.exit(status_code(view))


def _open_envelope(
    settings: Settings, args: dict[str, Any], name: str | None, terms: Terms, as_json: bool
) -> None:
    """Start a `browser_task` and print its id; it outlives this command.

    Its owner is the calling process: this process ends at once and does not drive the task. Process
    1 never ends and would not identify the driver either.
    """
    caller = os.getppid()
    settings = replace(settings, host_pid=caller if caller > 1 else None)

    async def begin(engine: Engine) -> TaskView:
        return await engine.tasks.get(
            (await engine.requests.start(ENVELOPE, args, name=name, terms=terms)).task_id
        )

    view = call(settings, begin, accepts=True, as_json=as_json)
    print_json(view_data(view)) if as_json else click.echo(view.task_id)


def gather(
    url: str | None,
    args_json: str | None,
    options: dict[str, tuple[str, ...]],
    problems: list[Problem],
) -> dict[str, Any]:
    """Merge the arguments of a start: JSON, then options, then the URL.

    `--args` that is no JSON object is added to `problems`, and so is a header with a secret.

    Raises:
        InvalidArguments: the file of `--args` cannot be read.
    """
    args: dict[str, Any] = {}
    if args_json is not None:
        args.update(_json_option("args", _read(args_json), problems) or {})
    problems.extend(literal_secrets(options.get("headers")))  # others can read a command line
    args = with_proxy(args, given_options(options))
    if url is not None:
        args["url"] = complete(url)
    return args


def refuse_all(
    kind: str, args: dict[str, Any], name: str | None, terms: Terms, problems: list[Problem]
) -> None:
    """Refuse a request whose JSON options have `problems`, with its other mistakes.

    Raises:
        InvalidArguments: there are problems.
    """
    if not problems:
        return
    unread = {each.path for each in problems}
    if "--policy" in unread:  # with it, this would be no mistake
        terms = msgspec.structs.replace(terms, enforce=False)
    others: tuple[Problem, ...] = ()
    try:
        check_envelope(args, name, terms) if kind == ENVELOPE else admit(kind, args, name, terms)
    except InvalidArguments as error:
        others = error.problems
    if "--args" in unread:  # what seems to be missing may be in them
        others = tuple(each for each in others if each.code != "missing")
    raise InvalidArguments((*problems, *others))


def _read(typed: str) -> str:
    """Return the JSON of `--args`: the text itself, `@FILE`, or `-` for standard input.

    The process list shows the command line, but neither file nor standard input.
    """
    if typed != STANDARD_INPUT and not typed.startswith("@"):
        return typed
    found = read_bytes(typed.removeprefix("@"))
    if len(found) > MAX_BYTES:
        raise InvalidArguments((Problem("--args", "too_large", "must be under 1 MiB"),))
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidArguments((Problem("--args", "not_json", "is not UTF-8"),)) from None


async def foreground(
    engine: Engine, begin: Callable[[], Awaitable[TaskRecord]], show: Progress
) -> TaskView:
    """Start a task and show its progress to its end; Ctrl-C stops or cancels it."""
    record = await begin()
    task_id = record.task_id
    cancels: set[asyncio.Task[Any]] = set()

    def soft() -> None:
        if traits_of(record.kind).stoppable:  # the user has what they wanted
            show.note(say("start.stopping"))
            work: Awaitable[object] = engine.commands.stop(task_id)
        else:
            show.note(say("start.cancelling"))
            work = engine.commands.cancel(task_id, interrupts.cause)
        cancels.add(asyncio.create_task(print_refusal(work, show.note), name="stop or cancel"))

    with Interrupts(soft) as interrupts, show:
        show.accepted(task_id)
        gone = asyncio.create_task(engine.tasks.join(task_id), name="join")
        offset, standing = 0, ""
        while not gone.done():
            await asyncio.wait({gone}, timeout=LOOK_S)
            standing = print_obstacle(engine, [task_id], standing, show.note, ending=bool(cancels))
            offset = await _show_new(engine, task_id, offset, show)
        await _show_new(engine, task_id, offset, show)
        await asyncio.gather(*cancels, return_exceptions=True)
    if (lost := engine.own.lost(task_id)) is not None:
        raise lost
    await engine.tasks.wait(task_id, timeout_ms=1_000)
    return await engine.tasks.get(task_id)


async def print_refusal(work: Awaitable[object], note: Callable[[str], object]) -> None:
    """Await a request, and print the error if it is refused."""
    try:
        await work
    except EngineError as error:
        note(display(str(error)))


def print_obstacle(
    engine: Engine,
    ids: Collection[str],
    before: str,
    note: Callable[[str], object],
    *,
    ending: bool,
) -> str:
    """Print once why this process' tasks cannot continue (missing folder, full disk, hold, …).

    Return it for the next call. The return of a folder is also printed, unless it came too late,
    with whether the task continues or is `ending` on request, and so is the end of a hold.
    """
    if any(engine.own.lost(task_id) is not None for task_id in ids):
        return before
    away = say("start.away")
    now = away if any(map(engine.own.is_away, ids)) else _trouble_line(engine, ending=ending)
    now = now or ("" if ending else waiting_line(engine, [*ids]))
    if now and now != before:
        note(now)
    elif before == away and not now:
        note(say("start.back.ending" if ending else "start.back"))
    elif before.startswith(say("hold")) and not now and not ending:
        note(say("hold.over"))
    return now


def _trouble_line(engine: Engine, *, ending: bool) -> str:
    trouble = display(engine.own.trouble).rstrip(".")
    line = "start.trouble.ending" if ending else "start.trouble"
    return say(line, reason=trouble) if trouble else ""


async def _show_new(engine: Engine, task_id: str, offset: int, show: Progress) -> int:
    try:
        part = await engine.tasks.events(task_id, offset)
    except (TaskNotFound, LedgerUnusable, TaskUnreadable):
        return offset  # the folder is missing: the run waits for it, or reports its failure
    for event in part.events:
        show.event(event)
    return part.next_offset


def report(view: TaskView, root: Path, as_json: bool) -> None:
    """Print how a task of this process ended, and the path of its result."""
    record = view.entry
    if as_json or isinstance(record, Unreadable):
        print_json(view_data(view))
        return
    units = record.engine.units if record.engine and record.engine.units else Units()
    began = record.started_at or record.created_at
    took = words.took((record.ended_at or time.time() * 1000) - began)
    done = words.progress_spoken(record.kind, Units(done=units.done, failed=units.failed))
    click.echo(
        say("start.ended", task_id=record.task_id, status=record.status, done=done, took=took)
    )
    if record.error is not None:
        click.echo(display(record.error.message), err=True)
    result = root / record.task_id / RESULT_NAME
    if result.exists():
        click.echo(say("start.result", path=result))
