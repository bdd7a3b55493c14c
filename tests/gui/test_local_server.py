"""The HTTP server inside the window's process: on Qt's loop, without a stall, with a clean end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp

from engine.server.local_server import LocalServer
from tests.support.engines import opened


async def test_the_server_runs_on_qts_loop_and_ends_there(home: Path) -> None:
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
                    began = asyncio.get_running_loop().time()
                    await server.stop()
                    assert asyncio.get_running_loop().time() - began < 3
                    await stream.read()
            assert not server.is_running
