"""`octask start KIND [URL]`: in the foreground with progress, or `--detach`ed in a worker."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from msgspec import to_builtins

from engine.cli.calls import Interrupts, call, refuse, status_code
from engine.cli.detach import detach
from engine.cli.escaped import as_json as print_json
from engine.cli.examples import json_example
from engine.cli.place import place_options, settings_from
from engine.cli.progress import Progress, progress_for
from engine.cli.recordings import FLAGS as RECORDING_FLAGS
from engine.cli.recordings import OPTIONS as RECORDING
from engine.cli.recordings import recording_options
from engine.cli.run_files import STANDARD_INPUT, read_bytes
from engine.cli.show import view_data
from engine.kinds.commands.command_file import MAX_BYTES
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
from engine.service.admission import Terms
from engine.service.engine import Engine
from engine.text import words
from engine.text.cli_messages import say

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


def gather_terms(given: dict[str, Any]) -> Terms:
    """Move the options of `terms_options` from `given` to a `Terms`.

    Raises:
        InvalidArguments: an option that must be JSON is not.
    """
    found: dict[str, Any] = {
        name: given.pop(name)
        for name in ("objective", "phase", "enforce", "task_run_id", "task_thread_id")
    }
    found["workflow_id"], found["agent_id"] = given.pop("workflow_id"), given.pop("agent_id")
    problems: list[Problem] = []
    for name in JSON_OPTIONS:
        text = given.pop(name)
        if text is not None:
            found[name] = from_json(f"--{name}", text, problems)
            if name != "metadata" and not isinstance(found[name], dict) and not problems:
                problems.append(no_object(f"--{name}", text))
    if problems:
        raise InvalidArguments(tuple(problems))
    return Terms(**found)


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


# Options for the arguments of each kind, with their help.

CRAWL: Final[Mapping[str, str]] = {
    "urls": "A further address to begin at (again for more).",
    "max_pages": "Stop after so many pages (1 to 1,000,000; 20, of a sitemap 50).",
    "max_depth": "Follow links so deep (0 to 100; 2).",
    "username": "Who logs in, where the site asks with HTTP authentication.",
    "password": "env:NAME, the variable that holds the password; never the password itself.",
    "scope": "Only addresses that match this pattern (the start's origin).",
    "include_patterns": "Only addresses that match one of these patterns (again for more).",
    "exclude_patterns": "No address that matches one of these patterns (again for more).",
    "fragments": "ignore, or routes: addresses with #/ or #! are pages of their own (ignore).",
    "output_format": "markdown, text or structured (markdown).",
    "engine": "browser, static or auto (browser).",
    "concurrency": "So many pages at once (1 to 16; 3).",
    "delay_ms": "Wait between two pages of one host, in ms (1000).",
    "respect_robots": "true or false: obey robots.txt (true).",
    "block_resources": "true or false: leave out images, fonts and media (true).",
    "screenshot": "none, failed or all (none).",
    "settle_ms": "Ready when nothing changed for so many ms (100; 500 if scripts wrote it).",
    "wait_for": "A page is ready when this CSS selector is there.",
    "timeout_ms": "Take a page as it is after so many ms (30000).",
    "keep_links": "true or false: keep a list of each page's links (true).",
    "max_elements": "Take at most so many elements of a page (1,000 to 1,000,000; 250,000).",
    "max_text_kb": "Keep at most so many KiB of a page's content (16 to 4,096; 2,048).",
    "retries": "Try a page that failed for a moment again so often (0 to 10; 2).",
}
SITEMAP: Final[Mapping[str, str]] = {
    "sitemap_url": "Its own address (robots.txt, else /sitemap.xml tell).",
    "filter": "Only addresses that match this pattern.",
    "other_origins": "true or false: also pages of other sites (false).",
}
EVIDENCE: Final[Mapping[str, str]] = {
    "include": "dom, screenshot, phash, network, console (dom,screenshot).",
    "network_window_ms": "Watch requests for so many ms (5000).",
    "full_page": "true or false: a picture of the whole page (true).",
}
SNAPSHOT: Final[Mapping[str, str]] = {
    "current_step": "The step that is being done.",
    "next_actions": "What comes next (again for more).",
    "completed_steps": "What is done (again for more).",
    "notes": "Anything else.",
    "tabs": "The address of a tab (again for more).",
    "visit": "true or false: open these tabs (false).",
    "include_cookies": "true or false: keep their cookies, in a file (false).",
    "include_storage": "true or false: keep their local storage, too (false).",
}
PAGES: Final[Mapping[str, str]] = {
    "redact_content": "true or false: take keys of services out of page content (true).",
}
OPTIONS: Final[Mapping[str, str]] = {**CRAWL, **SITEMAP, **EVIDENCE, **SNAPSHOT, **PAGES}
LISTS: Final = frozenset(
    {
        "urls",
        "include_patterns",
        "exclude_patterns",
        "include",
        "next_actions",
        "completed_steps",
        "tabs",
    }
)

KindCommand = Callable[..., None]


class Grouped(click.Command):
    """Command whose help groups its options, ungrouped ones first."""

    sections: Mapping[str, Collection[str]] = {}  # title -> names of parameters

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group of options."""
        grouped = {name for names in self.sections.values() for name in names}
        told = {
            param.name: param.get_help_record(ctx)
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
        }
        rest = [name for name in told if name not in grouped]
        for title, names in {"Options": rest, **self.sections}.items():
            rows = [record for record in map(told.get, names) if record is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=26)


def kind_options(command: KindCommand) -> KindCommand:
    """Add one option for each argument of a kind.

    Values stay texts: the engine validates them all at once, so that every mistake is reported, not
    only the first.
    """
    for name, text in reversed(tuple(OPTIONS.items())):
        option = "--" + name.replace("_", "-")
        command = click.option(option, name, multiple=True, metavar="VALUE", help=text)(command)
    return command


def given_options(options: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Convert options to arguments: lists stay lists, else the last value counts."""
    return {
        name: [*values] if name in LISTS else _given(name, values[-1])
        for name, values in options.items()
        if values
    }


def _given(name: str, text: str) -> Any:
    if name == "password":  # other users can read the command line
        return {"secret": text}
    return text if name == "username" else _value(text)


def _value(text: str) -> Any:
    """Convert integers, `true` and `false`; other values stay texts."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


LOOK_S = 0.2
SESSION = "oc_session_snapshot"  # its objective is an argument as well as the task's objective


class Start(Grouped):
    """The `start` command, with its options grouped by kind."""

    sections: Mapping[str, Collection[str]] = {
        "Crawl (and crawl_sitemap)": CRAWL,
        "Crawl of a sitemap": SITEMAP,
        "Recording": (*RECORDING, *RECORDING_FLAGS),
        "Evidence bundle": EVIDENCE,
        "Session snapshot": SNAPSHOT,
        "Terms (of any kind)": TERMS,
    }


@click.command(cls=Start)
@click.argument("kind")
@click.argument("url", required=False)
@click.option(
    "--args",
    "args_json",
    metavar="JSON",
    help="Arguments as a JSON object; @FILE reads them from a file, - from standard input.",
)
@click.option("--name", help="A name for the list.")
@click.option("--detach", "detached", is_flag=True, help="Run in the background; print the id.")
@kind_options
@recording_options
@terms_options
@place_options
def start(kind: str, url: str | None, args_json: str | None, **given: Any) -> None:
    """Start a task; URL is where it begins.

    \b
    KIND is one of
      crawl                pages, by the links of a first one
      crawl_sitemap        pages that a sitemap names
      recording            what somebody does in a browser window
      oc_evidence_bundle   document, picture, requests and messages of a page
      oc_session_snapshot  where a piece of work stands, to go on later
      commands             a scripted task, better started with `octask run FILE`
      browser_task         work of an agent outside, measured by its budgets
    """
    name, detached, as_json = given.pop("name"), given.pop("detached"), given.pop("as_json")
    try:
        terms = gather_terms(given)
        settings = for_agent(settings_from(given.pop("home"), given.pop("root")), terms)
        args = gather(url, args_json, given)
        if kind == SESSION and terms.objective is not None:
            args.setdefault("objective", terms.objective)
        if kind == ENVELOPE:
            _open_envelope(settings, args, name, terms, as_json)
            return
        if detached:
            asked = {"kind": kind, "args": args, "name": name, "terms": to_builtins(terms)}
            record = detach(settings, asked)
            print_json(record) if as_json else click.echo(record["task_id"])
            return
    except EngineError as error:
        refuse(error, as_json=as_json)
    _follow(
        settings, lambda engine: engine.requests.start(kind, args, name=name, terms=terms), as_json
    )


def _follow(
    settings: Settings, begin: Callable[[Engine], Awaitable[TaskRecord]], as_json: bool
) -> None:
    """Show the task's progress to its end, and exit with its exit code."""
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
    url: str | None, args_json: str | None, options: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    """Merge the arguments of a start: JSON, then options, then the URL.

    Raises:
        InvalidArguments: `--args` is not a JSON object, or its file cannot be read.
    """
    args: dict[str, Any] = {}
    if args_json is not None:
        args_json = _read(args_json)
        problems: list[Problem] = []
        given = from_json("--args", args_json, problems)
        if problems:
            raise InvalidArguments(tuple(problems))
        if not isinstance(given, dict):
            raise InvalidArguments((no_object("--args", args_json),))
        args.update(given)
    args.update(given_options(options))
    if url is not None:
        args["url"] = url
    return args


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
            work = engine.commands.cancel(task_id, "Ctrl-C")
        cancels.add(asyncio.create_task(print_refusal(work, show.note), name="stop or cancel"))

    with Interrupts(soft), show:
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
    """Print once why this process' tasks cannot continue (missing folder, full disk, …); return it.

    The return of a folder is also printed, unless it came too late, with whether the task continues
    or is `ending` on request.
    """
    if any(engine.own.lost(task_id) is not None for task_id in ids):
        return before
    away = say("start.away")
    now = away if any(map(engine.own.is_away, ids)) else display(engine.own.trouble)
    if now and now != before:
        note(now)
    elif before == away and not now:
        note(say("start.back.ending" if ending else "start.back"))
    return now


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
