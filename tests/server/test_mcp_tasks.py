"""The Tasks extension of MCP: handles whose states are the ledger's."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, advertise
from pydantic import ConfigDict

from engine.server.mcp_server import TASKS_EXTENSION
from tests.server.conftest import SIDES, Hosting, data, place_of
from tests.support.endless_site import endless

FAST = {"delay_ms": 0, "respect_robots": False, "max_depth": 100}
ENDED = ("completed", "failed", "cancelled")


class Handle(types.Result):
    """A task handle as it comes over the wire."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"


class Anything(types.EmptyResult):
    """An answer with whatever it has."""

    model_config = ConfigDict(extra="allow")


class TaskRequest(types.Request[dict[str, Any], str]):
    """`tasks/get`, `tasks/update` or `tasks/cancel`."""

    name_param: ClassVar[str | None] = "taskId"


async def ask(session: Any, method: str, task_id: str, **more: Any) -> dict[str, Any]:
    request = TaskRequest(method=method, params={"taskId": task_id, **more})
    answer = await session.send_request(request, Anything)
    return dict(answer.model_dump(by_alias=True))


class Tasks(ClientExtension):
    """A client's side of the extension: it keeps the handles, and polls unless told not to."""

    identifier = TASKS_EXTENSION

    def __init__(self, *, polls: bool = True) -> None:
        self.handles: list[dict[str, Any]] = []
        self._polls = polls

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=Handle, resolve=self._resolve),)

    async def _resolve(self, handle: Handle, ctx: ClaimContext) -> types.CallToolResult:
        found = handle.model_dump(by_alias=True)
        self.handles.append(found)
        while self._polls and found["status"] not in ENDED:
            await asyncio.sleep(0.1)
            found = await ask(ctx.session, "tasks/get", found["taskId"])
        if "result" not in found:
            return types.CallToolResult(content=[], structured_content=found)
        return types.CallToolResult.model_validate(found["result"])


async def start(client: Client, url: str, **args: Any) -> types.CallToolResult:
    asked = {"kind": "crawl", "args": {"url": url, **FAST, **args}}
    return await client.call_tool("oc_task_start", asked)


@pytest.mark.parametrize("side", SIDES)
async def test_a_start_of_long_work_gives_a_handle_and_later_its_result(
    side: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    tasks = Tasks()
    async with hosting(side, extensions=[tasks]) as client:
        found = data(await start(client, site.url, max_pages=2))
        (handle,) = tasks.handles
        assert (handle["status"], handle["ttlMs"]) == ("working", None)
        assert handle["pollIntervalMs"] > 0
        assert found["status"] == "COMPLETED"
        assert len(found["result"]["pages"]) == 2
        listed = data(await client.call_tool("oc_task_list", {}))
        assert [one["task_id"] for one in listed["tasks"]] == [handle["taskId"]]


@pytest.mark.parametrize("side", SIDES)
async def test_the_next_client_finds_the_task_and_cancels_it(
    side: str, hosting: Hosting, places: list[str], site: Any
) -> None:
    if side != "stdio":
        pytest.skip("the task ends with the process of its server")
    places.append(place_of(site.url))
    tasks = Tasks(polls=False)
    async with hosting(side, extensions=[tasks]) as client:
        await start(client, endless(site), max_pages=10_000)
        task_id = tasks.handles[0]["taskId"]
    async with hosting(side, extensions=[Tasks()]) as client:
        found = await ask(client.session, "tasks/get", task_id)
        assert (found["status"], found["resultType"]) == ("working", "complete")
        assert await ask(client.session, "tasks/update", task_id, inputResponses={"x": {}})
        await ask(client.session, "tasks/cancel", task_id)
        while found["status"] not in ENDED:
            await asyncio.sleep(0.1)
            found = await ask(client.session, "tasks/get", task_id)
        assert found["status"] == "cancelled"
        assert "result" not in found


async def test_a_task_that_failed_is_completed_with_an_error_in_its_result(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    tasks = Tasks()
    async with hosting("memory", extensions=[tasks]) as client:
        answer = await start(client, site.url, failOnPage=1)
        task_id = tasks.handles[0]["taskId"]
        found = await ask(client.session, "tasks/get", task_id)
        assert found["status"] == "completed"
        assert answer.is_error
        assert answer.structured_content["status"] == "FAILED"
        assert answer.structured_content["error"]["message"] in found["statusMessage"]


@pytest.mark.parametrize("options", [{}, {"mode": "legacy"}], ids=["unnamed", "legacy"])
async def test_a_client_without_the_extension_gets_plain_answers(
    options: dict[str, Any], hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory", **options) as client:
        started = data(await start(client, site.url, max_pages=1))
        assert started["status"] in ("PENDING", "RUNNING")
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as wrong:
                await ask(client.session, method, started["task_id"])
            assert wrong.value.error.code in (
                types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                types.METHOD_NOT_FOUND,
            )
        await client.call_tool("oc_task_cancel", {"task_id": started["task_id"]})


async def test_an_envelope_and_an_unknown_id_have_no_handle(hosting: Hosting) -> None:
    tasks = Tasks()
    async with hosting("memory", extensions=[tasks]) as client:
        opened = data(await client.call_tool("oc_task_start", {"objective": "look around"}))
        assert (opened["kind"], tasks.handles) == ("browser_task", [])
        for task_id in ("0123456789abcdef", "../../etc", "", "x" * 10_000):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                with pytest.raises(MCPError) as wrong:
                    await ask(client.session, method, task_id)
                assert wrong.value.error.code == types.INVALID_PARAMS


async def test_a_mistake_in_a_start_is_answered_at_once(hosting: Hosting) -> None:
    async with hosting("memory", extensions=[advertise(TASKS_EXTENSION)]) as client:
        answer = await client.call_tool("oc_task_start", {"kind": "crawl", "args": {"url": 7}})
        assert answer.is_error
        assert answer.structured_content["error"]["problems"][0]["path"] == "args.url"
