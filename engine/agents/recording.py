"""Counting a call in the envelope that it names; a call that names none is never told here.

An envelope that cannot be written to stops no call: the reply then says that it was not
counted (OpenChrome, which shares the folder, says nothing at all).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from engine.agents.errors import InstructionRefused
from engine.agents.grammar import parse
from engine.budgets.envelopes import Envelopes, ToolCall
from engine.model.errors import EngineError
from engine.model.records import TaskId

Told = Callable[[TaskId], None]
MOST_SUMMARY = 160


class Bound:
    """One call, and the envelope that counts it (None: there is none, or none that can)."""

    def __init__(self, envelopes: Envelopes | None, task_id: str, told: Told) -> None:
        self._envelopes = envelopes
        self._task_id = task_id
        self._told = told
        self.policy: Mapping[str, Any] | None = None
        self.warning: str | None = None

    async def open(self) -> None:
        """Look at the envelope: its `allowedDomains` hold for this call."""
        if self._envelopes is None:
            self._ignore("this program keeps no ledger")
            return
        try:
            raw = await asyncio.to_thread(self._envelopes.expect, self._task_id)
        except EngineError as error:
            self._ignore(str(error))
            return
        policy = raw.get("policy")
        self.policy = policy if isinstance(policy, Mapping) else {}

    async def record(self, call: ToolCall) -> dict[str, Any] | None:
        """Count `call`; the envelope's state after it."""
        if self._envelopes is None or self.policy is None:
            return None
        try:
            # Shielded: a host that goes away does not undo what its call has done.
            writing = asyncio.to_thread(self._envelopes.record, self._task_id, call)
            state = await asyncio.shield(writing)
        except EngineError as error:
            self._ignore(str(error))
            return None
        self._told(TaskId(self._task_id))
        return dict(msgspec.to_builtins(state))

    def _ignore(self, why: str) -> None:
        self.warning = f"The call was not counted in {self._task_id[:40]}: {why}"


def storable(tool: str, given: Mapping[str, Any], url: str | None = None) -> dict[str, Any]:
    """The arguments of a call as an envelope may keep them: nothing that was typed.

    `url` is the address that was refused, where one was.
    """
    kept = {name: value for name, value in given.items() if value is not None}
    for name in ("value", "code", "text"):
        if name in kept:
            kept[name] = {"_length": len(str(kept[name]))}
    if "instruction" in kept:
        kept.update(_instruction(str(kept["instruction"])))
    if url is not None:
        kept["url"] = url
    return kept


def _instruction(said: str) -> dict[str, Any]:
    try:
        step = parse(said)
    except InstructionRefused:
        return {"instruction": {"_length": len(said)}}
    if step.action == "goto":
        return {"instruction": "go to", "url": step.value}
    told = [step.action, step.goal.words if step.goal else ""]
    told += [f"({len(step.value)} characters)"] if step.action == "type" else [step.value]
    return {"instruction": " ".join(filter(None, told))}
