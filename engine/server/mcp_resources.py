"""Resources and prompts of MCP, which hosts offer to their users.

Tasks are resources: record, events and result, with subscriptions. The live list of the ledger is
read only while a client has a subscription. The prompts are three ways of working.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import mcp_types as types
import msgspec
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
)

from engine.model.errors import EngineError
from engine.model.records import TaskRecord
from engine.server.change_feed import LiveReader
from engine.service.engine import Batch, Engine
from engine.text import words
from engine.verbs.json_answers import task_data
from engine.verbs.program_verbs import USUAL_BYTES, events_data, read_file, result_data

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

SCHEME: Final = "octask"
MIME: Final = "application/json"
TEXT: Final = "text/plain"
LISTED: Final = 50  # newest tasks in resources/list; every other one is read by its address
UNITS: Final = 20
MOST_SUBSCRIPTIONS: Final = 1_000
_URI: Final = re.compile(
    r"octask://tasks/([0-9a-z_]{1,80})"
    r"(?:/events(?:\?offset=(?P<offset>[0-9]{1,15}))?|/result(?:\?cursor=(?P<cursor>[0-9:]{1,40}))?"
    r"|/files/(?P<file>[A-Za-z0-9._/-]{1,200}))?",
    re.ASCII,
)
PARTS: Final = {
    "": ("Task", "its record, budgets and contract"),
    "/events": ("Events", "its events; ?offset= goes on at a byte"),
    "/result": ("Result", "what it found; ?cursor= goes on where the part before ended"),
}


def uri_of(task_id: str, part: str = "") -> str:
    """Return the address of a task, or of its `/events` or `/result`."""
    return f"{SCHEME}://tasks/{task_id}{part}"


class NewsBus(InMemorySubscriptionBus):
    """Bus that reads the live list of the ledger while it has listeners."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._listening = 0
        self._reader = LiveReader(engine, self._pass_on)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register `listener`; the first one starts the reading."""
        end = super().subscribe(listener)
        self._listening += 1
        self._reader.begin()
        ended = False

        def unsubscribe() -> None:
            nonlocal ended
            if ended:
                return
            ended = True
            end()
            self._listening -= 1
            if not self._listening:
                self._reader.stop()

        return unsubscribe

    async def close(self) -> None:
        """End the reading."""
        await self._reader.close()

    async def _pass_on(self, batch: Batch) -> None:
        # The first batches hold every task: a change since the subscription may be among them.
        changed = (view.task_id for view in batch.views)
        for task_id in (*changed, *batch.gone):
            for part in PARTS:
                await self.publish(ResourceUpdated(uri=uri_of(task_id, part)))


class TaskResources:
    """Handlers of `resources/*` and `subscriptions/listen`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bus = NewsBus(engine)
        self.listen = ListenHandler(self._bus)
        self._ends: dict[tuple[int, str], Callable[[], None]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End every subscription."""
        self.listen.close()
        for end in self._ends.values():
            end()
        await self._bus.close()

    async def list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the newest tasks, each with its result where it has ended."""
        found: list[types.Resource] = []
        for view in await self._engine.tasks.list(limit=LISTED):
            name = words.task_name(view) or view.task_id
            state = words.status_word(view)
            found.append(_resource(uri_of(view.task_id), name, state))
            if isinstance(view.entry, TaskRecord) and view.entry.is_terminal:
                uri = uri_of(view.task_id, "/result")
                found.append(_resource(uri, f"{name}: result", state))
        return types.ListResourcesResult(resources=found)

    async def templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """List the addresses that any task has."""
        rows = {**PARTS, "/files/{+name}": ("File", "one of its files, such as artifacts/page.png")}
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=uri_of("{task_id}", part),
                    name=name.lower(),
                    title=name,
                    description=said,
                    mime_type=MIME if part in PARTS else None,
                )
                for part, (name, said) in rows.items()
            ]
        )

    async def read(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read one task, or a part of its events or its result, as JSON.

        Raises:
            MCPError: the address has another form, or there is no such task.
        """
        found = _read_uri(str(params.uri))
        try:
            if found["file"]:
                return await self._file(found)
            data = await self._read(found)
        except EngineError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        text = msgspec.json.encode(data).decode()
        contents = types.TextResourceContents(uri=str(params.uri), mime_type=MIME, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _file(self, uri: re.Match[str]) -> types.ReadResourceResult:
        data, kind = await read_file(self._engine, uri[1], uri["file"])
        contents: types.TextResourceContents | types.BlobResourceContents
        if kind in (TEXT, MIME):
            text = data.decode(errors="replace")
            contents = types.TextResourceContents(uri=uri[0], mime_type=kind, text=text)
        else:
            blob = base64.b64encode(data).decode()
            contents = types.BlobResourceContents(uri=uri[0], mime_type=kind, blob=blob)
        return types.ReadResourceResult(contents=[contents])

    async def _read(self, uri: re.Match[str]) -> dict[str, Any]:
        engine, task_id, part = self._engine, uri[1], uri[0][uri.end(1) :]
        if part.startswith("/events"):
            return await events_data(engine, task_id, int(uri["offset"] or 0))
        if part.startswith("/result"):
            limits = {"cursor": uri["cursor"] or "", "limit": UNITS, "max_bytes": USUAL_BYTES}
            return await result_data(engine, task_id, limits)
        return await task_data(engine, await engine.tasks.get(task_id))

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Send a notification for each change of a task (handshake of 2025)."""
        uri, session = str(params.uri), ctx.session
        _read_uri(uri)
        key = (id(session.client_params), uri)
        if key in self._ends:
            return types.EmptyResult()
        if len(self._ends) >= MOST_SUBSCRIPTIONS:
            raise MCPError(types.INTERNAL_ERROR, "There are too many subscriptions.")

        async def send() -> None:
            try:
                await session.send_resource_updated(uri)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError):
                log.debug("a subscriber of %s is gone", uri)
                self._end(key)

        def hear(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and event.uri == uri:
                sending = asyncio.create_task(send(), name="send a resource update")
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)

        self._ends[key] = self._bus.subscribe(hear)
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """End a subscription (handshake of 2025)."""
        self._end((id(ctx.session.client_params), str(params.uri)))
        return types.EmptyResult()

    def _end(self, key: tuple[int, str]) -> None:
        end = self._ends.pop(key, None)
        if end is not None:
            end()


def _resource(uri: str, name: str, state: str) -> types.Resource:
    return types.Resource(uri=uri, name=name, description=state, mime_type=MIME)


def _read_uri(uri: str) -> re.Match[str]:
    """Return the parts of an address. Raises MCPError."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri[:100]!r}.")
    return found


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; `text` has a place `{name}` for each of `arguments` (name -> help)."""

    title: str
    description: str
    arguments: Mapping[str, str]
    text: str
    forms: Mapping[str, str] = field(default_factory=dict)  # pattern of an argument


PROMPTS: Final[Mapping[str, Prompt]] = {
    "crawl_with_contract": Prompt(
        "Crawl with a contract",
        "Crawl a list of pages so that none is forgotten.",
        {"urls": "the addresses, separated by spaces"},
        "Crawl these pages and tell me the title of each: {urls}\n"
        "1. Call oc_task_start with kind crawl, args {{url: the first one, urls: the others, "
        "max_depth: 0}} and contract {{items: all of the addresses}}.\n"
        "2. Call oc_task_wait with its task_id; on ETIMEDOUT, wait again.\n"
        "3. If it FAILED with bulk_incomplete, call oc_task_get, look which pages failed, and call "
        "oc_task_retry once.\n"
        "4. Read the pages with oc_task_get and include_result; follow next_cursor to the end.\n"
        "Name every page that could not be read, with the reason.",
    ),
    "scripted_login": Prompt(
        "Scripted login",
        "Log in with a command task, without the password ever being in the conversation.",
        {"url": "the login page", "secret": "the environment variable with the password"},
        "Log in at {url}.\n"
        "1. Call navigate, then javascript_tool to list the CSS selectors of the form's inputs and "
        "its button (by id, name or type). References of read_page are no selectors.\n"
        "2. Call task_submit with commands: browser_navigate goto, browser_interact type for the "
        'user, browser_interact type for the password with text {{"secret": "env:{secret}"}}, '
        "browser_interact click, and browser_navigate wait_for on something that only a logged-in "
        "page has.\n"
        "3. Follow it with oc_task_wait, then task_status. If a command failed, tell me which one "
        "and why; do not guess passwords.",
        {"secret": r"[A-Za-z_][A-Za-z0-9_]*"},
    ),
    "watch_a_budget": Prompt(
        "Work within a budget",
        "Do a browser task with a limit on calls, so that it does not wander.",
        {"objective": "what is to be reached", "calls": "the most calls of browser tools"},
        "Reach this with the browser tools: {objective}\n"
        "1. Call oc_task_start with that objective and policy {{maxToolCalls: {calls}, "
        "maxFailureStreak: 3}}; it opens a browser_task.\n"
        "2. Pass its task_id as taskId to every call of a browser tool, and read the line about "
        "the task in the answers: at budget warning do what it says next; at exceeded stop.\n"
        "3. Say your phase with oc_task_update (explore, act, verify).\n"
        "4. End with oc_task_finish: completed only if you verified it.",
        {"calls": r"[1-9][0-9]{0,5}"},
    ),
}


async def list_prompts(
    ctx: Any, params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    """Answer `prompts/list`."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=prompt.title,
                description=prompt.description,
                arguments=[
                    types.PromptArgument(name=each, description=said, required=True)
                    for each, said in prompt.arguments.items()
                ],
            )
            for name, prompt in PROMPTS.items()
        ]
    )


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Answer `prompts/get`.

    Raises:
        MCPError: no prompt has this name, or an argument is missing.
    """
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        known = ", ".join(PROMPTS)
        raise MCPError(types.INVALID_PARAMS, f"There is no such prompt; there are: {known}.")
    given = params.arguments or {}
    missing = [name for name in prompt.arguments if not given.get(name)]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"The prompt needs: {', '.join(missing)}.")
    wrong = [
        name for name, form in prompt.forms.items() if not re.fullmatch(form, given[name], re.ASCII)
    ]
    if wrong:
        said = ", ".join(f"{name} ({prompt.arguments[name]})" for name in wrong)
        raise MCPError(types.INVALID_PARAMS, f"These arguments have no valid value: {said}.")
    text = prompt.text.format_map({name: given[name] for name in prompt.arguments})
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])
