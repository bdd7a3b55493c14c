"""Options for home and root, and the call of a verb with its result, errors and exit codes.

Every command opens the engine, calls and closes it. Results are JSON for programs, indented text
for users. Options come first, then the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
import msgspec

from engine.cli.exit_codes import (
    BAD_USAGE,
    CANCELLED,
    FAILED,
    GUARD_REFUSED,
    KILLED,
    NOT_FOUND,
    OK,
    WAIT_TIMEOUT,
)
from engine.cli.octask import VERBS
from engine.contracts.bulk_progress import BulkCompletionRefused, ContractNotFound, TaskRunNotFound
from engine.export.output import ExportStopped
from engine.ledger.filesystem_checks import SILENT_WORDS, FolderProbe, is_missing, privacy_concerns
from engine.ledger.record_store import NotAnId, RecordNotFound
from engine.logging.logs import log_to_file
from engine.model.config import Settings
from engine.model.display import display
from engine.model.ending_signals import handled_on_loop
from engine.model.errors import (
    AmbiguousId,
    BrowserDownloadCancelled,
    EngineError,
    InvalidArguments,
    LedgerAway,
    LedgerMissing,
    LedgerNotThere,
    LedgerUnusable,
    NotATaskId,
    QueryError,
    TaskNotFound,
    WaitTimeout,
)
from engine.model.ledger_ids import HERE
from engine.model.records import RUNS_FOLDER, Status, TaskRecord, TaskView
from engine.service.stop_plan import NotConfirmed
from engine.text.cli_messages import say
from engine.verbs import Verb
from engine.verbs.json_answers import described

if TYPE_CHECKING:
    from engine.service.engine import Engine

ANSWER_S = 2.0  # a folder that has not answered by then is reported


def settings_from(home: Path | None, root: Path | None) -> Settings:
    """Return the settings for the options, see `Settings.chosen`.

    Warns once per command on standard error if other users could change the tasks.

    Raises:
        LedgerUnusable: OPENCHROME_TASK_ROOT is not an absolute path, no home is known, or the
            folder does not answer.
    """
    settings = bare_settings(home, root)
    await_answer(settings)
    for concern in privacy_concerns(settings.root, settings.home):
        click.echo(display(str(concern)), err=True)
    return settings


def await_answer(settings: Settings) -> None:
    """Wait for a folder on a slow drive with a message; a dead drive would block every access.

    Raises:
        LedgerUnusable: it does not answer.
    """
    answer = FolderProbe(settings.root, settings.home)
    if answer.responded(ANSWER_S):
        return
    click.echo(say("place.silent", root=settings.root), err=True)
    if not answer.responded(settings.away_s):
        raise LedgerUnusable(path=str(settings.root), reason=SILENT_WORDS)


def check_there(settings: Settings) -> None:
    """Reject a missing ledger folder if tasks of its home have run before.

    Without earlier runs nothing is missing, and an empty list is correct.

    Raises:
        LedgerNotThere: the folder is unmounted or removed.
    """
    if is_missing(settings.root) and (settings.home / RUNS_FOLDER).is_dir():
        raise LedgerNotThere(path=str(settings.root))


def bare_settings(home: Path | None, root: Path | None) -> Settings:
    """Return the settings without warnings and without accessing the folder."""
    return replace(Settings.chosen(os.environ, home=home, root=root), route="cli")


# DEL and C1 controls, direction marks and overrides, invisible characters, line separators, and
# lone surrogates, which no encoder accepts. JSON escapes the others itself.
_STEERING = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def json_text(data: object, indent: int | None = 2) -> str:
    """Encode `data` as JSON with unsafe characters as escapes."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(data: object, indent: int | None = 2) -> None:
    """Print one JSON document on standard output."""
    click.echo(json_text(data, indent))


T = TypeVar("T")

BY_STATUS: dict[str, int] = {
    Status.COMPLETED: OK,
    Status.FAILED: FAILED,
    Status.CANCELLED: CANCELLED,
}
BY_ERROR: tuple[tuple[type[EngineError], int], ...] = (
    (InvalidArguments, BAD_USAGE),
    (NotATaskId, BAD_USAGE),
    (LedgerAway, FAILED),  # a lost run, not a wrong id
    (TaskNotFound, NOT_FOUND),
    (WaitTimeout, WAIT_TIMEOUT),
    (NotAnId, BAD_USAGE),
    (AmbiguousId, BAD_USAGE),
    (ContractNotFound, NOT_FOUND),
    (TaskRunNotFound, NOT_FOUND),
    (RecordNotFound, NOT_FOUND),
    (BulkCompletionRefused, GUARD_REFUSED),
    (ExportStopped, CANCELLED),
    (BrowserDownloadCancelled, CANCELLED),
    (QueryError, BAD_USAGE),
    (NotConfirmed, BAD_USAGE),
)


def exit_code(error: EngineError) -> int:
    """Return the exit code of an error; 1 by default."""
    return next((code for kind, code in BY_ERROR if isinstance(error, kind)), FAILED)


def status_code(view: TaskView) -> int:
    """Return the exit code of an ended task."""
    entry = view.entry
    return BY_STATUS.get(entry.status, FAILED) if isinstance(entry, TaskRecord) else FAILED


def call(
    settings: Settings,
    work: Callable[[Engine], Awaitable[T]],
    *,
    accepts: bool = False,
    as_json: bool = False,
) -> T:
    """Run `work` on an open engine and return its result; an error ends the program."""
    log_to_file()
    try:
        return asyncio.run(_opened(settings, work, accepts))
    except TaskNotFound as error:
        _warn_missing_ledger(settings, error, as_json)
        refuse(error, as_json=as_json)
    except EngineError as error:
        refuse(error, as_json=as_json)


def call_on_all(
    settings: Settings,
    work: Callable[[Engine], Awaitable[T]],
    *,
    accepts: bool = False,
    as_json: bool = False,
) -> T:
    """As `call`, for work on all tasks: refused if their folder is missing and only seems empty."""
    try:
        check_there(settings)
    except EngineError as error:
        refuse(error, as_json=as_json)
    return call(settings, work, accepts=accepts, as_json=as_json)


def _warn_missing_ledger(settings: Settings, error: TaskNotFound, as_json: bool) -> None:
    """Add to "no such task" that the whole ledger is missing, unless the error says so."""
    if isinstance(error, LedgerMissing | LedgerAway) or as_json:
        return
    try:
        check_there(settings)
    except LedgerNotThere as missing:
        click.echo(display(str(missing)), err=True)


async def _opened(settings: Settings, work: Callable[[Engine], Awaitable[T]], accepts: bool) -> T:
    from engine.service.engine import Engine  # no help and no mistake in usage needs it

    engine = Engine(settings, accepts=accepts)
    await engine.open()
    try:
        return await work(engine)
    finally:
        if engine.notice:  # they end with this command: no other would say it
            click.echo(display(engine.notice), err=True)
        await engine.close()


def _name_step(error: EngineError) -> None:
    """Name the recommended operation as a command, if the command line has it."""
    verb = error.step_verb
    if verb.partition(" ")[0] in VERBS:
        error.name_step({verb: f"`octask {verb}`"})


def refuse(error: EngineError, *, as_json: bool) -> NoReturn:
    """Print the error and its advice, and exit with its code."""
    _name_step(error)
    if as_json:
        print_json({"error": described(error)}, indent=None)
    elif isinstance(error, InvalidArguments):
        click.echo(say("mistakes", title=error.title), err=True)
        for problem in error.problems:
            click.echo(f"  {display(str(problem))}", err=True)
    elif isinstance(error, QueryError) and error.also:
        click.echo(say("mistakes", title=error.title), err=True)
        for one in error.all:
            click.echo(say("mistake.at", at=one.position + 1, said=str(one)), err=True)
    else:
        click.echo(display(str(error)), err=True)
        if error.advice:
            click.echo(display(error.advice), err=True)
    sys.exit(exit_code(error))


def warn_unknown_ledgers(query: str) -> None:
    """Warn if a query names another ledger: it finds nothing, but is valid."""
    if not query:
        return
    from engine.query import unknown_values  # most calls have no query

    for one in unknown_values(query, {"root": (HERE,)}):
        click.echo(display(str(one)), err=True)


class Interrupts:
    """Handle Ctrl-C and SIGTERM: the first calls `soft`, the second exits at once with 130.

    `last` is called right before that exit, which skips every `finally`. A closed terminal (SIGHUP)
    counts as a first one only, since both the system and a shell may report it; under `nohup` it
    stays ignored. `cause` names the first one, for the reason of a cancel.
    """

    def __init__(
        self, soft: Callable[[], object], last: Callable[[], object] = lambda: None
    ) -> None:
        self._soft = soft
        self._last = last
        self.cause = ""
        self._block = ExitStack()

    def __enter__(self) -> Interrupts:
        handlers = [
            (signal.SIGINT, lambda: self._interrupted("Ctrl-C")),
            (signal.SIGTERM, lambda: self._interrupted("SIGTERM")),
        ]
        hangup = getattr(signal, "SIGHUP", None)
        if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
            handlers.append((hangup, self._hung_up))
        self._block.enter_context(handled_on_loop(*handlers))
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()

    def _hung_up(self) -> None:
        if not self.cause:
            self._interrupted("the terminal was closed")

    def _interrupted(self, cause: str) -> None:
        if self.cause:
            self._last()
            os._exit(KILLED)  # the browser ends too: its driver reads the end of our pipe
        self.cause = cause
        self._soft()


MAX_SHOWN = 400  # characters of one value; --json writes it whole


def plainly(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Call the verb and print its result."""

    async def ask(engine: Engine) -> Any:
        found = msgspec.to_builtins(await verb.call(engine, given))
        if as_json and engine.notice and isinstance(found, dict):
            found["notice"] = engine.notice  # a program reads this document alone
        return found

    answer = call(settings, ask, accepts=verb.accepts, as_json=as_json)
    print_plain(answer, as_json)


def print_plain(answer: Any, as_json: bool) -> None:
    """Print plain data: records, lists of records, or one value."""
    if as_json:
        print_json(answer)
    else:
        for line in lines(answer):
            click.echo(line)


def lines(answer: Any, indent: str = "") -> Iterator[str]:
    """Yield plain data as lines; empty values are omitted."""
    if isinstance(answer, Mapping):
        for key, value in answer.items():
            if isinstance(value, Mapping | list) and value:
                yield f"{indent}{display(str(key))}:"
                yield from lines(value, indent + "  ")
            elif value not in (None, "", [], {}):
                yield f"{indent}{display(str(key))}: {_word(value)}"
    elif isinstance(answer, list):
        for item in answer:
            if isinstance(item, Mapping):
                first, *rest = list(lines(item, indent + "  ")) or ["-"]
                yield f"{indent}- {first.strip()}"
                yield from rest
            else:
                yield f"{indent}- {_word(item)}"
    else:
        yield indent + _word(answer)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return display(str(value), MAX_SHOWN)
