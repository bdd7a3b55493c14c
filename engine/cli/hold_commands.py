"""`octask hold` and `octask release`, and the notes of other commands about a hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from engine.cli.calls import call, print_json
from engine.cli.show import now_ms
from engine.ledger.hold import read_hold
from engine.model.config import Settings
from engine.model.records import Hold
from engine.text import words
from engine.text.cli_messages import say
from engine.verbs.hold_verbs import HoldAnswer
from engine.verbs.model import Verb

if TYPE_CHECKING:
    from engine.service.engine import Engine


def hold(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Hold new starts, and print since when and by whom they are held."""
    answer = _answer(verb, settings, given, as_json)
    if as_json:
        print_json(msgspec.to_builtins(answer))
    elif answer.hold is not None:
        click.echo(f"{hold_line(answer.hold)} {say('hold.way_out')}")


def release(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """End the hold, or release single tasks from it."""
    answer = _answer(verb, settings, given, as_json)
    if as_json:
        print_json(msgspec.to_builtins(answer))
        return
    for task_id in answer.released:
        click.echo(say("hold.released.task" if answer.held else "hold.slot", task_id=task_id))
    if not answer.released:
        click.echo(say("hold.none" if answer.hold is None else "hold.released"))


def _answer(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> HoldAnswer:
    async def ask(engine: Engine) -> HoldAnswer:
        found: HoldAnswer = await verb.call(engine, given)
        return found

    return call(settings, ask, accepts=verb.accepts, as_json=as_json)


def hold_line(hold: Hold) -> str:
    """Return in one sentence that new starts are held: since when, by whom and why."""
    now = now_ms()
    since = words.clock(hold.since, now) if hold.since else ""
    line = say("hold.since", since=since, ago=words.ago(hold.since, now)) if since else say("hold")
    if hold.by:
        line += " " + say("hold.by", by=hold.by)
    return f"{line}: {say('hold.reason', reason=hold.reason)}" if hold.reason else f"{line}."


def note_hold(settings: Settings) -> None:
    """Print on standard error that new starts are held, so that queued tasks wait."""
    found = read_hold(settings.root)
    if found is not None:
        click.echo(f"{hold_line(found)} {say('hold.queued')}", err=True)


def waiting_line(engine: Engine, task_ids: list[str]) -> str:
    """Return why these tasks of this process wait under a hold; empty if none does."""
    found, executor = engine.start_hold.state, engine.own.executor
    if found is None or executor is None:
        return ""
    kept = [one for one in task_ids if one not in found.released and executor.waits(one)]
    return f"{hold_line(found)} {say('hold.waits', task_id=kept[0])}" if kept else ""


RENDERERS: Final = {"hold": hold, "release": release}
