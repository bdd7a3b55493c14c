"""WebSocket messages of seed 002, on a real socket, with a real browser at their end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.commands.conftest import do, task
from tests.server.http.conftest import Serving


async def test_a_command_task_runs_to_its_end_over_a_socket(serving: Serving, site: Any) -> None:
    async with (
        serving(allow_private=(f"127.0.0.1:{site.port}",)) as client,
        client.socket() as socket,
    ):
        given = task(
            do("goto", url=site.url + "/"),
            do("evaluate", script="return document.title"),
            metadata={"requestId": "req-abc-123"},
        )
        await socket.send_json({"type": "task_submit", "id": "m1", "task": given})
        response = await socket.receive_json()
        assert (response["type"], response["id"]) == ("task_submit_response", "m1")
        assert response["success"] is True
        submitted = response["task"]
        assert submitted["metadata"] == {"requestId": "req-abc-123"}
        assert submitted["status"] in ("queued", "running")
        await client.post(f"/tasks/{submitted['id']}/wait")
        await socket.send_json({"type": "task_status", "id": 2, "taskId": submitted["id"]})
        response = await socket.receive_json()
        assert (response["type"], response["id"]) == ("task_status_response", 2)
        done = response["task"]
        assert done["status"] == "completed", done
        assert [one["status"] for one in done["commands"]] == ["success", "success"]
        assert done["metadata"] == {"requestId": "req-abc-123"}
        meta = (await client.get(f"/tasks/{submitted['id']}"))["meta"]
        assert meta["engine"]["route"] == "http"


async def test_mistakes_come_back_in_the_response(serving: Serving) -> None:
    async with serving() as client, client.socket() as socket:
        await socket.send_json({"type": "task_submit", "id": "x", "task": {"task_name": ""}})
        response = await socket.receive_json()
        assert response["type"] == "task_submit_response"
        assert response["success"] is False
        assert response["error"]["code"] == "invalid_arguments"
        assert len(response["error"]["problems"]) >= 2
        await socket.send_json({"type": "task_status", "taskId": "task_1_1"})
        response = await socket.receive_json()
        assert response["type"] == "task_status_response"
        assert response["error"]["code"] == "task_not_found"
        assert "id" not in response


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not_json"),
        ("{", "not_json"),
        ("[]", "not_json"),
        ("null", "not_json"),
        ("[" * 100_000, "json_too_deep"),
        ("{}", "unknown_message_type"),
        ('{"type": "no_such"}', "unknown_message_type"),
        ('{"type": ["task_submit"]}', "unknown_message_type"),
        ('{"type": "task_submit", "id": {}}', "invalid_arguments"),
        ('{"type": "task_submit", "id": true}', "invalid_arguments"),
        ('{"type": "task_submit", "id": "' + "x" * 201 + '"}', "invalid_arguments"),
        ('{"type": "task_submit"}', "invalid_arguments"),
        ('{"type": "task_submit", "task": 3}', "invalid_arguments"),
        ('{"type": "task_submit", "caller": {}}', "invalid_arguments"),
        ('{"type": "task_status"}', "invalid_arguments"),
        ('{"type": "task_status", "taskId": 3}', "invalid_arguments"),
        ('{"type": "task_status", "taskId": "../x"}', "not_a_task_id"),
    ],
    ids=lambda value: value[:45],
)
async def test_a_wrong_message_is_answered_and_the_socket_stays(
    serving: Serving, text: str, code: str
) -> None:
    async with serving() as client, client.socket("/") as socket:
        await socket.send_str(text)
        response = await socket.receive_json()
        assert response["success"] is False
        assert response["error"]["code"] == code
        await socket.send_json({"type": "task_status", "taskId": "0" * 16})
        assert (await socket.receive_json())["error"]["code"] == "task_not_found"


async def test_a_mistake_in_a_message_has_the_name_of_its_field(serving: Serving) -> None:
    async with serving() as client, client.socket("/") as socket:
        for sent, path in (({}, "taskId"), ({"taskId": 3}, "taskId"), ({"results": 3}, "results")):
            await socket.send_json({"type": "task_status", **sent})
            error = (await socket.receive_json())["error"]
            assert path in [one["path"] for one in error["problems"]]
            assert "task_id" not in error["message"]


async def test_a_binary_message_is_answered_and_the_socket_stays(serving: Serving) -> None:
    async with serving() as client, client.socket() as socket:
        await socket.send_bytes(b"\x00\xff")
        assert (await socket.receive_json())["error"]["code"] == "not_text"
        await socket.send_str("{}")
        assert (await socket.receive_json())["error"]["code"] == "unknown_message_type"


async def test_a_message_that_is_too_large_closes_the_socket(serving: Serving) -> None:
    async with serving() as client:
        async with client.socket() as socket:
            await socket.send_str(json.dumps({"type": "x" * (1 << 20)}))
            closed = await socket.receive()
            assert closed.type.name == "CLOSE"
            assert closed.data == 1009
        async with client.socket() as socket:
            await socket.send_str(json.dumps({"type": "task_status", "id": "x" * (1 << 19)}))
            assert (await socket.receive_json())["error"]["code"] == "invalid_arguments"


async def test_a_failure_of_the_program_is_typed(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving() as client, client.socket() as socket:

        async def fail(*_: Any, **__: Any) -> None:
            raise KeyError("planned")

        monkeypatch.setattr(client.engine.tasks, "command_task", fail)
        await socket.send_json({"type": "task_status", "taskId": "0" * 16})
        response = await socket.receive_json()
        assert (response["type"], response["error"]["code"]) == (
            "task_status_response",
            "internal_error",
        )


async def test_a_handshake_that_is_none_is_typed(serving: Serving) -> None:
    async with serving() as client:
        for key in ("x", None):
            head = client.head(
                "GET /ws HTTP/1.1",
                Connection="Upgrade",
                Upgrade="websocket",
                Sec_WebSocket_Version="13",
                Sec_WebSocket_Key=key,
            )
            status, _, data = await client.sent(head)
            assert (status, data["error"]["code"]) == (400, "bad_websocket_request")


async def test_a_socket_elsewhere_is_refused(serving: Serving) -> None:
    import aiohttp

    async with serving() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.socket("/tasks")
        assert refused.value.status in (403, 404)


async def test_many_messages_at_once_are_answered_in_order(serving: Serving) -> None:
    async with serving() as client, client.socket() as socket, asyncio.timeout(60):
        for number in range(300):
            await socket.send_json({"type": "task_status", "id": number, "taskId": "0" * 16})
        ids = [(await socket.receive_json())["id"] for _ in range(300)]
        assert ids == list(range(300))
