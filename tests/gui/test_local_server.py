"""The HTTP server inside the window's process: on Qt's loop, without a stall, with a clean end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from engine.server.local_server import LocalServer
from tests.support.engines import opened


async def test_the_server_runs_on_qts_loop_and_ends_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("GRACE_S", "CANCEL_S"):  # nobody who waited for one would end in time
        monkeypatch.setattr(f"engine.server.local_server.{limit}", 600.0)
    async with opened(home) as engine:
        server = LocalServer(engine)
        for _ in range(2):
            await server.start()
            token = json.loads(server.token_file.read_text())["token"]
            headers = {"Authorization": f"Bearer {token}"}
            async with aiohttp.ClientSession(server.url, headers=headers) as session:
                async with session.post("/tasks", json={"objective": "x"}) as made:
                    assert made.status == 201
                    task_id = (await made.json())["task_id"]
                async with session.ws_connect("/ws") as socket:
                    await socket.send_json({"type": "task_status", "taskId": task_id})
                    assert (await socket.receive_json())["error"]["code"] == "invalid_arguments"
                async with session.get(f"/tasks/{task_id}/events") as stream:
                    assert await stream.content.readline() == b"event: started\n"
                    async with asyncio.timeout(60):
                        await server.stop()
                    await stream.read()
            assert not server.is_running
