"""Tasks as resources of MCP, and notifications of their changes."""

import asyncio
import json
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.subscriptions import ResourceUpdated

from engine.server.mcp_resources import uri_of
from tests.server.conftest import Hosting, data, place_of


async def test_a_task_its_events_and_its_result_are_resources(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        args = {"url": site.url, "max_pages": 2, "delay_ms": 0}
        asked = {"kind": "crawl", "args": args, "name": "My crawl"}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        await client.call_tool("oc_task_wait", {"task_id": task_id})
        listed = {one.uri: one for one in (await client.list_resources()).resources}
        assert "My crawl" in listed[uri_of(task_id)].name
        templates = (await client.list_resource_templates()).resource_templates
        assert len(templates) == 4

        async def read(uri: str) -> dict[str, Any]:
            (found,) = (await client.read_resource(uri)).contents
            assert isinstance(found, types.TextResourceContents)
            assert found.mime_type == "application/json"
            return dict(json.loads(found.text))

        assert (await read(uri_of(task_id)))["status"] == "COMPLETED"
        assert len((await read(uri_of(task_id, "/result")))["result"]["pages"]) == 2
        while True:  # the last event is written right after the state
            events = await read(uri_of(task_id, "/events"))
            if events["events"][-1]["kind"] == "completed":
                break
            await asyncio.sleep(0.02)
        later = await read(uri_of(task_id, f"/events?offset={events['events_next_offset']}"))
        assert later["events"] == []


@pytest.mark.parametrize(
    "uri",
    [
        *("octask://tasks/", "octask://tasks/../../etc/passwd", "file:///etc/passwd"),
        *("octask://tasks/0123456789abcdef", "octask://tasks/0123456789abcdef/meta.json"),
        *("octask://tasks/0123456789abcdef/result?cursor=../x", "octask://" + "x" * 10_000),
    ],
)
async def test_another_address_is_refused_with_words(hosting: Hosting, uri: str) -> None:
    async with hosting("memory") as client:
        with pytest.raises(MCPError) as wrong:
            await client.read_resource(uri)
        assert wrong.value.error.message
        assert len(wrong.value.error.message) < 500


async def test_a_subscriber_hears_each_change_of_its_task(hosting: Hosting) -> None:
    async with hosting("memory") as client:
        opened = data(await client.call_tool("oc_task_start", {"objective": "look"}))
        task_id = opened["task_id"]
        async with client.listen(resource_subscriptions=[uri_of(task_id)]) as changes:
            expected = ResourceUpdated(uri=uri_of(task_id))
            assert await anext(aiter(changes)) == expected  # to be read once, from now on
            await client.call_tool("oc_task_update", {"task_id": task_id, "phase": "act"})
            assert await anext(aiter(changes)) == expected


@pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_subscriber_of_the_older_handshake_hears_it_too(hosting: Hosting) -> None:
    heard = asyncio.Queue[str]()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.put_nowait(str(message.params.uri))

    async with hosting("memory", mode="legacy", message_handler=hear) as client:
        opened = data(await client.call_tool("oc_task_start", {"objective": "look"}))
        uri = uri_of(opened["task_id"])
        await client.subscribe_resource(uri)
        assert await heard.get() == uri  # to be read once, from now on
        moved = {"task_id": opened["task_id"], "phase": "act"}
        await client.call_tool("oc_task_update", moved)
        assert await heard.get() == uri
        await client.unsubscribe_resource(uri)


async def test_screenshots_and_artifacts_are_resources(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        args = {"url": site.url, "include": ["dom", "screenshot"]}
        asked = {"kind": "oc_evidence_bundle", "args": args}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        await client.call_tool("oc_task_wait", {"task_id": task_id})
        part = {"task_id": task_id, "include_files": True}
        files = data(await client.call_tool("oc_task_get", part))["files"]
        kinds = {}
        for one in files:
            uri = uri_of(task_id, f"/files/{one['name']}")
            (found,) = (await client.read_resource(uri)).contents
            kinds[one["name"].rpartition(".")[2]] = (type(found), found.mime_type)
        assert kinds["png"] == (types.BlobResourceContents, "image/png")
        assert kinds["html"] == (types.TextResourceContents, "text/plain")
        for name in ("meta.json", "artifacts/../meta.json", "artifacts/nothing.png", "artifacts"):
            with pytest.raises(MCPError, match=r"has no file|no resource"):
                await client.read_resource(uri_of(task_id, f"/files/{name}"))


async def test_the_state_of_a_session_is_no_resource(
    hosting: Hosting, places: list[str], site: Any
) -> None:
    places.append(place_of(site.url))
    async with hosting("memory") as client:
        args = {
            "objective": "keep it",
            "current_step": "here",
            "next_actions": ["go on"],
            "tabs": [site.url],
            "visit": True,
            "screenshot": True,
            "include_cookies": True,
        }
        asked = {"kind": "oc_session_snapshot", "args": args}
        task_id = data(await client.call_tool("oc_task_start", asked))["task_id"]
        ended = data(await client.call_tool("oc_task_wait", {"task_id": task_id}))
        assert ended["status"] == "COMPLETED", ended
        part = {"task_id": task_id, "include_files": True}
        names = [one["name"] for one in data(await client.call_tool("oc_task_get", part))["files"]]
        assert names
        assert all(name.endswith(".png") for name in names)
