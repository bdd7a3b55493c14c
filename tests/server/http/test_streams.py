"""Event streams of one task and of all, and results that are larger than any answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from engine.server import change_feed, event_streams
from engine.server.local_server import LocalServer
from tests.server.http.conftest import WAIT_S, Client, Serving, is_held_up, sse
from tests.server.http.test_routes import NOBODY, STATIC
from tests.support.engines import until


async def _all(response: Any) -> list[tuple[str, str | None, Any]]:
    return [one async for one in sse(response)]


async def test_the_events_of_a_task_come_until_its_end(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        async with client.events(f"/tasks/{task_id}/events") as response:
            assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            following = asyncio.ensure_future(_all(response))
            await client.post(f"/tasks/{task_id}/update", {"phase": "act"})
            await client.post(f"/tasks/{task_id}/finish", {"outcome": "completed"})
            found = await following
        *events, last = found
        plain = await client.get(f"/tasks/{task_id}/events", headers=_PLAIN)
        assert [data for _, _, data in events] == plain["events"]
        assert [name for name, _, _ in events] == [one["kind"] for one in plain["events"]]
        assert last[0] == "end"
        assert last[2] == {"task_id": task_id, "status": "COMPLETED"}
        assert int(last[1] or 0) == plain["events_next_offset"]


async def test_a_stream_goes_on_where_it_was_cut(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        for number in range(5):
            await client.post(f"/tasks/{task_id}/update", {"note": f"note {number}"})
        await client.post(f"/tasks/{task_id}/finish", {"outcome": "completed"})
        async with client.events(f"/tasks/{task_id}/events") as response:
            found = await _all(response)
        for cut, (_, given, _) in enumerate(found[:-1]):
            event_id, none = str(given), dict[str, str]()
            for path, headers in (
                ("", {"Last-Event-ID": event_id}),
                (f"?offset={event_id}", none),
                ("?offset=0", {"Last-Event-ID": event_id}),
            ):
                async with client.events(f"/tasks/{task_id}/events{path}", **headers) as response:
                    assert await _all(response) == found[cut + 1 :], (cut, path)


async def test_an_offset_that_is_none_is_refused(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        path = f"/tasks/{task_id}/events"
        wrong = (400, "invalid_arguments")
        for offset in ("x", "-1", "1e3", "9" * 30, "１"):
            assert await client.code("GET", path, params={"offset": offset}) == wrong
        assert await client.code("GET", path, headers={"Last-Event-ID": "x"}) == wrong
        await client.post(f"/tasks/{task_id}/finish", {"outcome": "completed"})
        for beyond in (10**6, 2**53 - 1):
            async with client.events(f"{path}?offset={beyond}") as response:
                assert [name for name, _, _ in await _all(response)] == ["end"]


async def test_a_task_that_is_removed_ends_its_stream(serving: Serving) -> None:
    import shutil

    async with serving() as client:
        task_id = await client.envelope()
        async with client.events(f"/tasks/{task_id}/events") as response:
            shutil.rmtree(client.engine.settings.root / task_id)
            found = await _all(response)
        assert found[-1][0] == "end"
        assert found[-1][2]["error"]["code"] == "task_not_found"
        assert await client.code("GET", f"/tasks/{NOBODY}/events") == (404, "task_not_found")


async def test_a_stream_ends_without_the_event_of_the_end(serving: Serving) -> None:
    """The program may have been killed between the record and its event."""
    async with serving() as client:
        task_id = await client.envelope()
        await client.post(f"/tasks/{task_id}/finish", {"outcome": "failed"})
        events = client.engine.settings.root / task_id / "events.jsonl"
        *kept, _ = events.read_bytes().splitlines(keepends=True)
        events.write_bytes(b"".join(kept))
        async with client.events(f"/tasks/{task_id}/events") as response, asyncio.timeout(WAIT_S):
            found = await _all(response)
        assert [name for name, _, _ in found] == [*(json.loads(x)["kind"] for x in kept), "end"]
        assert found[-1][2]["status"] == "FAILED"


async def test_names_of_other_programs_cannot_forge_events(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        forged = {"ts": 1, "kind": "x\n\nevent: end\ndata: {}", "data": {"a": "b\n\ndata: 1"}}
        with (client.engine.settings.root / task_id / "events.jsonl").open("a") as out:
            out.write(json.dumps(forged) + "\n")
        await client.post(f"/tasks/{task_id}/finish", {"outcome": "completed"})
        async with client.events(f"/tasks/{task_id}/events") as response:
            found = await _all(response)
        assert [data for name, _, data in found if name == "event"] == [forged]
        assert [name for name, _, _ in found].count("end") == 1


async def test_a_quiet_stream_has_heartbeats(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT_S", 0.1)
    async with serving() as client:
        task_id = await client.envelope()
        for path in (f"/tasks/{task_id}/events", "/events"):
            async with client.events(path) as response, asyncio.timeout(WAIT_S):
                while (await response.content.readline()) != b": still here\n":
                    pass


async def test_changes_of_all_tasks_come_after_ready(serving: Serving) -> None:
    async with serving() as client:
        await client.envelope("before")
        async with client.events("/events") as response, asyncio.timeout(WAIT_S):
            events = sse(response)
            name, _, data = await anext(events)
            assert (name, data) == ("ready", {"total": 1})
            task_id = await client.envelope("after")
            seen: dict[str, Any] = {}
            async for name, _, data in events:
                assert name == "tasks"
                seen |= {one["task_id"]: one for one in data["tasks"]}
                if task_id in seen:
                    break
            assert seen[task_id]["view"]["standing"] == "running"
            assert seen[task_id]["objective"] == "after"
        async with client.events("/events") as one, client.events("/events") as two:
            assert (await anext(sse(one)))[2] == {"total": 2}
            assert (await anext(sse(two)))[2] == {"total": 2}
        feed = client.server._app
        assert feed is not None
        await until(lambda: not feed._feed._listeners)


async def test_a_listener_that_comes_right_after_the_last_one_left_hears_everything(
    serving: Serving,
) -> None:
    async with serving() as client, asyncio.timeout(WAIT_S):
        feed = change_feed.ChangeFeed(client.engine)
        for number in range(3):
            with feed.listening() as listener:
                assert b"ready" in (await listener.next() or b"")
                await client.envelope(f"number {number}")
                while f"number {number}".encode() not in (await listener.next() or b""):
                    assert not listener.is_closed
        await feed.close()


async def test_a_listener_that_does_not_keep_up_is_dropped(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "MOST_WAITING", 3)
    async with serving() as client:
        feed = change_feed.ChangeFeed(client.engine)
        with feed.listening() as slow, feed.listening() as quick:
            assert b"ready" in (await slow.next() or b"")
            assert b"ready" in (await quick.next() or b"")
            for _ in range(4):
                feed._send(b"x")
                assert await quick.next() == b"x"
            assert slow.is_closed
            assert not quick.is_closed
        await feed.close()


async def test_a_large_result_is_streamed_whole(serving: Serving, site: Any) -> None:
    async with serving(allow_private=(f"127.0.0.1:{site.port}",)) as client:
        body = {"kind": "crawl", "args": {"url": site.url + "/", "max_pages": 2, **STATIC}}
        task_id = (await client.post("/tasks", body, 201))["task_id"]
        assert await client.code("GET", f"/tasks/{await client.envelope()}/result") == (
            404,
            "result_missing",
        )
        await client.post(f"/tasks/{task_id}/wait")
        _grow(client, task_id, 20_000)
        async with client.events(f"/tasks/{task_id}/result") as response:
            assert response.headers["Content-Type"] == "application/json"
            assert "Content-Length" not in response.headers
            whole = await response.read()
        assert len(whole) > 20 << 20
        assert len(json.loads(whole)["pages"]) > 20_000


async def test_a_result_that_nobody_reads_waits_in_the_file(serving: Serving, site: Any) -> None:
    async with serving(allow_private=(f"127.0.0.1:{site.port}",)) as client:
        body = {"kind": "crawl", "args": {"url": site.url + "/", "max_pages": 2, **STATIC}}
        task_id = (await client.post("/tasks", body, 201))["task_id"]
        await client.post(f"/tasks/{task_id}/wait")
        _grow(client, task_id, 20_000)
        read: list[int] = []
        monkey = pytest.MonkeyPatch()
        blocks = event_streams.file_blocks

        async def counted(file: Any) -> Any:
            async for block in blocks(file):
                read.append(len(block))
                yield block

        monkey.setattr(event_streams, "file_blocks", counted)
        try:
            async with client.raw() as (reader, writer):
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(client.head(f"GET /tasks/{task_id}/result HTTP/1.1"))
                await _at_rest(client.server, read)
                assert sum(read) < 12 << 20  # what the buffers of both ends hold
        finally:
            monkey.undo()


async def _at_rest(server: LocalServer, read: list[int], looks: int = 50) -> None:
    """Wait until nothing was read in so many looks, of a server that cannot write."""
    before, same = 0, 0
    async with asyncio.timeout(WAIT_S):
        while same < looks:
            await asyncio.sleep(0.01)
            same = same + 1 if is_held_up(server) and sum(read) == before else 0
            before = sum(read)


async def test_a_head_request_gets_no_body(serving: Serving) -> None:
    async with serving() as client:
        task_id = await client.envelope()
        for path in (f"/tasks/{task_id}/events", "/events", "/tasks"):
            async with client.session.head(client.url + path, headers=client.auth) as got:
                assert got.status == 200
                assert await got.read() == b""


_PLAIN = {"Accept": "application/json"}


def _grow(client: Client, task_id: str, pages: int) -> None:
    """Turn a task into one with many pages: its result names their file, as the runner writes."""
    folder = client.engine.settings.root / task_id
    result = json.loads((folder / "result.json").read_bytes())
    head = {"summary": result["summary"], "pages_file": "pages.jsonl", "pages_total": pages}
    (folder / "result.json").write_text(json.dumps(head, separators=(",", ":")))
    page = json.loads((folder / "pages.jsonl").read_bytes().splitlines()[0])
    text = "x" * 1_000
    with (folder / "pages.jsonl").open("a") as out:
        for number in range(pages):
            grown = {**page, "url": f"http://example.com/{number}", "content": text}
            out.write(json.dumps(grown) + "\n")
