"""The eight browser tools with their arguments, and their calls: browser, tab, order, accounting.

Verbs are generated from the table. Source: seed 004 (the tools that record to an envelope).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

from engine.agents.grammar import parse
from engine.agents.reply import InstructionRefused, ToolReply, UnknownTool, refusal
from engine.agents.sessions import IDLE_S, MOST_AGENTS, Sessions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.interact.command_errors import ScriptFailed
from engine.browser.interact.command_keys import read_key
from engine.budgets import ToolCall
from engine.budgets.envelopes import Envelopes
from engine.egress.egress_policy import DomainBlocked, Policy
from engine.kinds.arguments import (
    Argument,
    Table,
    flag,
    long_text,
    missing,
    one_of,
    read_all,
    web_address,
    whole,
)
from engine.model.errors import AddressBlocked, EngineError, InvalidArguments, Problem
from engine.model.proxies import DIRECT, DefaultProxy
from engine.model.records import ErrorInfo, TaskId
from engine.secrets.given_secrets import Scrub

TIMEOUT_MS: Final = 30_000
MOST_MS: Final = 120_000
MOST_READ: Final = 256 * 1024  # characters of page text in one reply
READ_CHARS: Final = 50_000
MOST_FOUND: Final = 50
MOST_CHARS: Final = 100_000  # typed in one call
MOST_CODE: Final = 100_000  # characters of one script
ACTIONS: Final = (
    *("click", "double_click", "right_click", "hover", "drag", "focus", "scroll_into_view"),
    *("type", "append", "clear", "press", "select", "check", "uncheck"),
)

Shape = Literal["text", "number", "flag"]
Reading = Callable[[object], Any]
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument of a tool; `default` is its value if it is omitted."""

    name: str
    help: str
    read: Reading
    shape: Shape = "text"
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tool:
    """One browser tool. `check` validates arguments against each other."""

    name: str
    help: str
    args: tuple[Arg, ...]
    check: Callable[[Given], list[Problem]] = lambda given: []

    @cached_property
    def table(self) -> Table:
        """The arguments by name, also by the names that MCP hosts use (tabId)."""
        rows = {arg.name: Argument(arg.read, field=arg.name) for arg in self.args}
        return {**rows, **{camel(name): row for name, row in rows.items()}}

    def read(self, given: object) -> dict[str, Any]:
        """Validate the arguments and fill in defaults.

        Raises:
            InvalidArguments: with every mistake; nothing was done.
        """
        if not isinstance(given, Mapping):
            raise InvalidArguments((Problem("", "wrong_type", "the arguments must be an object"),))
        named = {name: value for name, value in given.items() if value is not None}
        fields, problems = read_all(named, self.table, self.name)
        wrong = {problem.path for problem in problems}
        for arg in self.args:
            if arg.required and arg.name not in fields and not wrong & {arg.name, camel(arg.name)}:
                problems.append(missing(arg.name, arg.help))
        if not problems:
            fields = {**{arg.name: arg.default for arg in self.args}, **fields}
            problems = self.check(fields)
        if problems:
            raise InvalidArguments(tuple(problems))
        return fields


def camel(name: str) -> str:
    """Convert `tab_id` to the form of MCP hosts: `tabId`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _typed(given: object) -> str:
    """Read a text to type; leading and trailing spaces are kept."""
    if not isinstance(given, str):
        raise ValueError("must be a text")
    if len(given) > MOST_CHARS:
        raise ValueError(f"must not be longer than {MOST_CHARS:,} characters")
    return given


def _navigation(given: Given) -> list[Problem]:
    action, url = given["action"], given["url"]
    if action == "goto" and url is None:
        return [missing("url", "the address to open")]
    if action != "goto" and (url is not None or given["new_tab"]):
        name = "url" if url is not None else "new_tab"
        return [Problem(name, "not_together", f"does not go with {action}")]
    return []


_NEEDS = {
    "type": "the text to type",
    "append": "the text to append",
    "select": "the option to select",
    "press": "the key to press",
    "drag": "the ref of the element to drag it to",
}


def _dialogs(given: Given) -> list[Problem]:
    if given["prompt"] is not None and given["dialogs"] != "accept":
        return [Problem("prompt", "not_together", "needs dialogs: accept")]
    return []


def _interaction(given: Given) -> list[Problem]:
    return [*_dialogs(given), *_value_problems(given)]


def _value_problems(given: Given) -> list[Problem]:
    action, value = given["action"], given["value"]
    if action in _NEEDS and value is None:
        return [missing("value", _NEEDS[action])]
    if action not in _NEEDS and value is not None:
        return [Problem("value", "not_together", f"does not go with {action}")]
    if action == "press":
        try:
            read_key(value)
        except ValueError as wrong:
            return [Problem("value", "invalid_value", str(wrong))]
    return []


def _picture(given: Given) -> list[Problem]:
    if given["ref"] is not None and given["full_page"]:
        return [Problem("full_page", "not_together", "does not go with ref")]
    return []


_WAYS = ("goto", "back", "forward", "reload", "close")
_TAB = Arg("tab_id", "a tab of tabs_context; default: the last used", _typed)
_TIMEOUT = Arg(
    "timeout_ms", "give up after so many ms", whole(100, MOST_MS), "number", False, TIMEOUT_MS
)
_ANSWERS = ("dismiss", "accept")
_DIALOGS = (
    Arg(
        "dialogs",
        "answer to the page's dialogs during this call",
        one_of(*_ANSWERS),
        default="dismiss",
        choices=_ANSWERS,
    ),
    Arg("prompt", "text for an accepted prompt", _typed),
)
_REF = "an element, as read_page and find name it (ref_1_7)"

_ALL = (
    Tool(
        "navigate",
        "Open an address and wait until the page is ready; or go back, forward, reload, close.",
        (
            Arg("url", "the address to open", web_address),
            Arg("action", "what to do", one_of(*_WAYS), default="goto", choices=_WAYS),
            Arg("new_tab", "open it in a tab of its own", flag, "flag", default=False),
            Arg("wait_for", "ready when this CSS selector is there", long_text(500)),
            _TAB,
            _TIMEOUT,
        ),
        _navigation,
    ),
    Tool(
        "read_page",
        "The page's text in reading order, with a reference for each element that can be used.",
        (
            Arg(
                "filter",
                "all, or interactive: only elements that can be used",
                one_of("all", "interactive"),
                default="all",
                choices=("all", "interactive"),
            ),
            Arg("ref", f"read only inside {_REF}", long_text(40)),
            Arg(
                "offset",
                "go on where the reply before was cut",
                whole(0, 2**31),
                "number",
                False,
                0,
            ),
            Arg(
                "max_chars",
                "maximum number of characters",
                whole(100, MOST_READ),
                "number",
                False,
                READ_CHARS,
            ),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "find",
        "Elements whose role, name or text hold these words, the best first.",
        (
            Arg("query", "words to look for", long_text(500), required=True),
            Arg("limit", "maximum number", whole(1, MOST_FOUND), "number", False, 10),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "interact",
        "Click, type, select, drag one element. `type` replaces what is there, `append` adds.",
        (
            Arg("ref", _REF, long_text(40), required=True),
            Arg(
                "action",
                "what to do with it",
                one_of(*ACTIONS),
                required=True,
                choices=ACTIONS,
            ),
            Arg("value", "text to type, option to select, key to press, ref to drag to", _typed),
            *_DIALOGS,
            _TAB,
            _TIMEOUT,
        ),
        _interaction,
    ),
    Tool(
        "act",
        "One step in words, such as: click Save; type 'hello' into Name; select Blue in Colour.",
        (
            Arg("instruction", "the step", long_text(2_000), required=True),
            *_DIALOGS,
            _TAB,
            _TIMEOUT,
        ),
        _dialogs,
    ),
    Tool(
        "javascript_tool",
        "Run JavaScript in the page: an expression, or a body with return.",
        (
            Arg("code", "the script", long_text(MOST_CODE), required=True),
            _TAB,
            _TIMEOUT,
        ),
    ),
    Tool(
        "page_screenshot",
        "A picture (PNG) of the visible part, the page, or one element.",
        (
            Arg("ref", f"only {_REF}", long_text(40)),
            Arg("full_page", "the whole page", flag, "flag", default=False),
            _TAB,
            _TIMEOUT,
        ),
        _picture,
    ),
    Tool("tabs_context", "This agent's open tabs: id, address, title.", ()),
)
TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}


# Accounting of calls that name an envelope.
#
# A failed write to the envelope does not stop the call: the reply has a warning (OpenChrome, which
# shares the folder, reports nothing).

Notify = Callable[[TaskId], None]
MOST_SUMMARY = 160


class AccountedCall:
    """One call and the envelope that counts it (None: unavailable)."""

    def __init__(
        self, envelopes: Envelopes | None, task_id: str, session: str, notify: Notify
    ) -> None:
        self._envelopes = envelopes
        self._task_id = task_id
        self._session = session
        self._notify = notify
        self.policy: Mapping[str, Any] | None = None
        self.warning: str | None = None

    async def open(self) -> None:
        """Read the envelope, whose `allowedDomains` restrict this call."""
        if self._envelopes is None:
            self._ignore("this program keeps no ledger")
            return
        try:
            raw = await asyncio.to_thread(self._envelopes.expect, self._task_id, self._session)
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


_TYPED: Final = ("value", "code", "text", "prompt")  # arguments of which only the length is stored
# Their sentences quote parts of texts that are not stored.
_QUOTING: Final = (InstructionRefused, ScriptFailed)


def storable(tool: str, given: Mapping[str, Any], url: str | None = None) -> dict[str, Any]:
    """Return the arguments of a call for storage, without typed texts.

    A typed text may also be in an argument with a mistaken name. `url` is the blocked address, if
    there is one.
    """
    known = TOOLS[tool].table
    kept = {str(name): value for name, value in given.items() if value is not None}
    for name in kept:
        if name in _TYPED or name not in known:
            kept[name] = {"_length": len(str(kept[name]))}
    if "instruction" in kept:
        kept.update(_instruction(str(kept["instruction"])))
    if url is not None:
        kept["url"] = url
    return kept


def storable_error(error: EngineError, given: Mapping[str, Any]) -> ErrorInfo:
    """Return the reason of a refusal for storage, without typed texts."""
    if isinstance(error, InvalidArguments):
        typed = (*_TYPED, "instruction")
        found = (f"{one.path}: {one.code}" if one.path in typed else one for one in error.problems)
        return ErrorInfo("; ".join(map(str, found)), error.code)
    if isinstance(error, _QUOTING):
        return ErrorInfo(error.title, error.code)
    texts = [value for name in _TYPED if isinstance(value := given.get(name), str)]
    with suppress(InstructionRefused):
        step = parse(str(given.get("instruction", "")))
        texts += [step.value] if step.action == "type" else []
    sizes = [(text, f"({len(text)} characters)") for text in texts]
    return ErrorInfo(Scrub(sizes).hide(str(error)), error.code)


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
    operator's list, empty by default), and `proxy` is the upstream proxy.
    """

    def __init__(
        self,
        browser: BrowserSession,
        *,
        allow_private: Iterable[str] = (),
        proxy: DefaultProxy = DIRECT,
        idle_s: float = IDLE_S,
        most_agents: int = MOST_AGENTS,
    ) -> None:
        self._envelopes: Envelopes | None = None
        self._notify: Notify = lambda task_id: None
        policy = Policy(None, allow_private)
        self.sessions = Sessions(browser, policy, proxy=proxy, idle_s=idle_s, most=most_agents)

    async def allow(self, private: Iterable[str]) -> None:
        """Replace the allowed private `host:port`; see `Sessions.allow`."""
        await self.sessions.allow(private)

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
        bound = AccountedCall(self._envelopes, task_id, agent, self._notify)
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

        given = args if isinstance(args, Mapping) else {}

        async def count(
            summary: str, error: ErrorInfo | None = None, url: str | None = None
        ) -> dict[str, Any] | None:
            call = ToolCall(
                tool=tool.name,
                args=storable(tool.name, given, url),
                ok=error is None,
                duration_ms=(time.monotonic() - began) * 1000,
                session=agent,
                summary=summary[:MOST_SUMMARY],
                error=error,
            )
            return await bound.record(call)

        try:
            reply = await self._do(tool, args, agent, bound.policy)
        except EngineError as error:
            named = "url" in given and not isinstance(error, DomainBlocked)
            url = error.url if isinstance(error, AddressBlocked) and not named else None
            error.fields["task"] = await count(error.code, storable_error(error, given), url)
            error.fields["warning"] = bound.warning
            raise
        task = await count(_summary(tool, reply))
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
