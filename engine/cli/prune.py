"""`octask prune`: preview as a table, and the result after confirmation."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from engine.cli.calls import Interrupts, call_on_all, print_json
from engine.cli.show import now_ms
from engine.model.config import Settings
from engine.model.display import display
from engine.service.pruning import Ended, Preview, Pruned
from engine.text import words
from engine.text.cli_messages import say
from engine.text.words import size_words
from engine.verbs.json_answers import described
from engine.verbs.model import Verb, read
from engine.verbs.result_verbs import prune as let_go

if TYPE_CHECKING:
    from engine.service.engine import Engine


def prune(verb: Verb, settings: Settings, given: Mapping[str, Any], as_json: bool) -> None:
    """Preview the deletion; with --yes delete, and exit with 1 if a task could not be deleted."""

    async def work(engine: Engine) -> Preview | Pruned:
        stop = threading.Event()
        with Interrupts(stop.set):
            return await let_go(engine, read(verb, given), stop)

    found = call_on_all(settings, work, as_json=as_json)
    if isinstance(found, Preview):
        print_json({"dry_run": True, **_data(found)}) if as_json else _show(found, given)
        return
    print_json({"dry_run": False, **_data(found)}) if as_json else _report(found, given)
    sys.exit(1 if found.refused else 0)


def _data(found: Preview | Pruned) -> dict[str, Any]:
    if isinstance(found, Preview):
        kept = {"by_rules": found.by_rules, "kept": found.kept}
        return {"tasks": _tasks(found.tasks), "size_bytes": found.size_bytes, **kept}
    return {
        "gone": _tasks(found.gone),
        "size_bytes": found.size_bytes,
        "stayed": [{"task_id": task_id, "why": why} for task_id, why in found.stayed],
        "refused": [{"task_id": one.task_id, **described(one.error)} for one in found.refused],
    }


def _tasks(tasks: Iterable[Ended]) -> list[dict[str, Any]]:
    data = [msgspec.structs.asdict(one) for one in tasks]
    return [{name: one[name] for name in one if name != "stamp"} for one in data]


def _show(found: Preview, given: Mapping[str, Any]) -> None:
    for one in found.tasks:
        click.echo(_line(one))
    told = "prune.preview.delete" if given["delete"] else "prune.preview.trash"
    click.echo(say(told, number=len(found.tasks), size=size_words(found.size_bytes)), err=True)
    stay = {say("prune.kept.rules"): found.by_rules}
    stay |= {say(f"prune.kept.{why}"): number for why, number in found.kept.items()}
    kept = ", ".join(f"{number} {why}" for why, number in stay.items() if number)
    if kept:
        click.echo(say("prune.kept", told=kept), err=True)
    if found.tasks:
        click.echo(say("prune.confirm"), err=True)


def _line(one: Ended) -> str:
    ago = words.ago(one.ended_at, now_ms())
    told = (one.task_id, display(one.status, 40), one.kind, ago, size_words(one.size_bytes))
    return "\t".join((*told, display(one.name, 100)))


def _report(found: Pruned, given: Mapping[str, Any]) -> None:
    for one in found.gone:
        click.echo(_line(one))
    for task_id, why in found.stayed:
        click.echo(say("prune.stayed", task_id=task_id, why=say(f"prune.kept.{why}")), err=True)
    for refused in found.refused:
        click.echo(display(f"{refused.error} {refused.error.advice}"), err=True)
    told = "prune.done.delete" if given["delete"] else "prune.done.trash"
    click.echo(say(told, number=len(found.gone), size=size_words(found.size_bytes)), err=True)


RENDERERS: Final = {"prune": prune}
