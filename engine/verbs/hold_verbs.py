"""Verbs of the queue: hold new starts, release them, or start single tasks anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from engine.model.records import Hold
from engine.verbs.model import BY_CALLER, CALLER, Caller, Param, Verb
from engine.verbs.task_verbs import TASK_IDS

if TYPE_CHECKING:
    from engine.service.engine import Engine


class HoldAnswer(msgspec.Struct, frozen=True):
    """Whether new starts are held now, and the hold; one that has ended stays in `hold`.

    `released` are the tasks that were released from it alone.
    """

    held: bool
    hold: Hold | None = None
    released: tuple[str, ...] = ()


async def _hold(engine: Engine, given: Mapping[str, Any]) -> HoldAnswer:
    caller = given[CALLER] or Caller()
    made = await engine.start_hold.hold(
        given["reason"] or "", client=caller.client, route=caller.route
    )
    return HoldAnswer(held=True, hold=made)


async def _release(engine: Engine, given: Mapping[str, Any]) -> HoldAnswer:
    if not given["task_ids"]:
        return HoldAnswer(held=False, hold=await engine.start_hold.release())
    released = [await engine.start_hold.start_anyway(task_id) for task_id in given["task_ids"]]
    hold = await engine.start_hold.read()
    return HoldAnswer(hold is not None, hold, tuple(record.task_id for record in released))


VERBS: tuple[Verb, ...] = (
    Verb(
        "hold",
        "Hold new starts: waiting tasks stay in the queue, running ones go on.",
        (Param("reason", "why, shown to everybody who works on the ledger"), BY_CALLER),
        _hold,
    ),
    Verb(
        "release",
        "Start waiting tasks again after a hold; with ids, only these, and the hold stays.",
        (TASK_IDS,),
        _release,
    ),
)
