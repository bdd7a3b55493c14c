"""Verbs of envelopes: update and finish. They are started like other tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.service.engine import Engine
from engine.verbs.model import Param, Verb
from engine.verbs.task_verbs import TASK_ID


async def _update(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.contracts.update(given["task_id"], phase=given["phase"], note=given["note"])


async def _finish(engine: Engine, given: Mapping[str, Any]) -> Any:
    return await engine.contracts.finish(given["task_id"], given["outcome"], note=given["note"])


VERBS: tuple[Verb, ...] = (
    Verb(
        "update",
        "Say in which phase an envelope is, or leave a note; nothing is executed.",
        (
            TASK_ID,
            Param("phase", "explore, act, verify, recover or done"),
            Param("note", "what there is to say, at most 500 characters are kept"),
        ),
        _update,
    ),
    Verb(
        "finish",
        "End an envelope for good.",
        (
            TASK_ID,
            Param("outcome", "completed, failed or cancelled", required=True),
            Param("note", "the last word, at most 500 characters are kept"),
        ),
        _finish,
    ),
)
