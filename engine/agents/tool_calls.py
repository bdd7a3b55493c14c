"""Entry point of the browser tools: browser, tab, order and accounting of a call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from engine.agents.errors import InstructionRefused, UnknownTool
from engine.agents.grammar import parse
from engine.agents.reply import ToolReply, refusal
from engine.agents.sessions import IDLE_S, MOST_AGENTS, Sessions
from engine.agents.tool_table import TOOLS, Tool
from engine.browser.chromium.browser_session import BrowserSession
from engine.budgets.envelopes import Envelopes, ToolCall
from engine.egress.egress_policy import DomainBlocked, Policy
from engine.model.errors import EngineError
from engine.model.records import TaskId

# Accounting of calls that name an envelope.
#
# A failed write to the envelope does not stop the call: the reply has a warning (OpenChrome, which
# shares the folder, reports nothing).

Notify = Callable[[TaskId], None]
MOST_SUMMARY = 160


class AccountedCall:
    """One call and the envelope that counts it (None: unavailable)."""

    def __init__(self, envelopes: Envelopes | None, task_id: str, notify: Notify) -> None:
        self._envelopes = envelopes
        self._task_id = task_id
        self._notify = notify
        self.policy: Mapping[str, Any] | None = None
        self.warning: str | None = None

    async def open(self) -> None:
        """Read the envelope, whose `allowedDomains` restrict this call."""
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
        """Count `call`; return the envelope's state after it."""
        if self._envelopes is None or self.policy is None:
            return None
        try:
            # Shielded: a disconnecting host must not undo the accounting of a finished call.
            writing = asyncio.to_thread(self._envelopes.record, self._task_id, call)
            state = await asyncio.shield(writing)
        except EngineError as error:
            self._ignore(str(error))
            return None
        self._notify(TaskId(self._task_id))
        return dict(msgspec.to_builtins(state))

    def _ignore(self, why: str) -> None:
        self.warning = f"The call was not counted in {self._task_id[:40]}: {why}"


def storable(tool: str, given: Mapping[str, Any], url: str | None = None) -> dict[str, Any]:
    """Return the arguments of a call for storage, without typed texts.

    `url` is the blocked address, if there is one.
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
    parts = [step.action, step.goal.words if step.goal else ""]
    parts += [f"({len(step.value)} characters)"] if step.action == "type" else [step.value]
    return {"instruction": " ".join(filter(None, parts))}


ANYONE: Final = "default"  # agent id of calls without one


class Agents:
    """Browser tools for host agents; see the package. Bound to the event loop.

    `close` ends the browsers. `allow_private` are private `host:port` that may be opened (the
    operator's list, empty by default).
    """

    def __init__(
        self,
        browser: BrowserSession,
        *,
        allow_private: Iterable[str] = (),
        idle_s: float = IDLE_S,
        most_agents: int = MOST_AGENTS,
    ) -> None:
        self._envelopes: Envelopes | None = None
        self._notify: Notify = lambda task_id: None
        policy = Policy(None, allow_private)
        self.sessions = Sessions(browser, policy, idle_s=idle_s, most=most_agents)

    def count_in(self, envelopes: Envelopes, notify: Notify) -> None:
        """Count calls in `envelopes`; call `notify` with the id of each changed task."""
        self._envelopes, self._notify = envelopes, notify

    async def call(
        self,
        tool: str,
        args: object,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
    ) -> ToolReply:
        """Run a tool, and count the call in the envelope of `task_id`.

        Args:
            tool: a key of `TOOLS`.
            args: by name, see `TOOLS`; `tabId` and `tab_id` are equivalent.
            agent_id: the agent whose browser is used; calls without one share a browser.

        Raises:
            UnknownTool, InvalidArguments: nothing was done.
            OwnershipError: the tab is another agent's.
            EngineError: refused or failed; with a task id, the error's `fields` have the
                envelope's state under `task`.
        """
        known = TOOLS.get(tool)
        if known is None:
            raise UnknownTool(tool=str(tool)[:60], known=", ".join(TOOLS))
        agent = agent_id or ANYONE
        if task_id is None:
            return await self._do(known, args, agent, None)
        bound = AccountedCall(self._envelopes, task_id, self._notify)
        await bound.open()
        return await self._counted(bound, known, args, agent)

    async def answer(
        self,
        tool: str,
        args: object,
        *,
        task_id: str | None = None,
        agent_id: str | None = None,
    ) -> ToolReply:
        """As `call`, but return errors as a reply with `ok` false."""
        try:
            return await self.call(tool, args, task_id=task_id, agent_id=agent_id)
        except EngineError as error:
            return refusal(error)

    async def close(self) -> None:
        """End every agent's browser within a time limit. Idempotent."""
        await self.sessions.close()

    async def _counted(
        self, bound: AccountedCall, tool: Tool, args: object, agent: str
    ) -> ToolReply:
        began = time.monotonic()

        async def count(ok: bool, summary: str, url: str | None) -> dict[str, Any] | None:
            given = args if isinstance(args, Mapping) else {}
            call = ToolCall(
                tool=tool.name,
                args=storable(tool.name, given, url),
                ok=ok,
                duration_ms=(time.monotonic() - began) * 1000,
                session=agent,
                summary=summary[:MOST_SUMMARY],
            )
            return await bound.record(call)

        try:
            reply = await self._do(tool, args, agent, bound.policy)
        except EngineError as error:
            url = error.url if isinstance(error, DomainBlocked) else None
            error.fields["task"] = await count(False, error.code, url)
            error.fields["warning"] = bound.warning
            raise
        task = await count(True, _summary(tool, reply), None)
        return msgspec.structs.replace(reply, task=task, warning=bound.warning)

    async def _do(
        self, tool: Tool, args: object, agent: str, budgets: Mapping[str, Any] | None
    ) -> ToolReply:
        given = tool.read(args)
        from engine.agents.tools import run  # loads Playwright, so only on first use

        return await run(self.sessions, agent, tool.name, given, budgets)


def _summary(tool: Tool, reply: ToolReply) -> str:
    """Summarise a reply in one line for storage; script results are omitted."""
    if tool.name == "javascript_tool":
        return f"It gave {len(reply.text)} characters."
    return reply.text.partition("\n")[0]
