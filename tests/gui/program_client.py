"""A host beside the window: the SDK's client in a process of its own, as `main` of this module.

It reads the token's file, as hosts do, plays one of `PLAYS` and prints what it found as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp import Client

NAME = "trial-host"
OBJECTIVE = "Book a flight"


async def play(file: Path, name: str, *words: str) -> Any:
    """Play `name` in another process, and return what it printed."""
    command = [sys.executable, "-m", "tests.gui.program_client", str(file), name, *words]
    child = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await child.communicate()
    assert child.returncode == 0, err.decode()[-4_000:]
    return json.loads(out)


@asynccontextmanager
async def connected(file: Path, name: str = NAME, **options: Any) -> AsyncIterator[Client]:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import Implementation

    access = json.loads(file.read_text("utf-8"))
    headers = {"Authorization": f"Bearer {access['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        wire = streamable_http_client(access["url"] + "/mcp", http_client=http)
        who = Implementation(name=name, version="1")
        async with Client(wire, client_info=who, **options) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    found = dict(answer.structured_content or {})
    return found if not answer.is_error else {"refused": found["error"]["code"]}


async def envelope(file: Path, mode: str = "auto") -> Any:
    """Open an envelope, find it, and cancel it."""
    async with connected(file, mode=mode) as client:
        tools = (await client.list_tools()).tools
        asked = {"kind": "browser_task", "args": {"objective": OBJECTIVE}}
        task_id = (await call(client, "oc_task_start", **asked))["task_id"]
        listed = (await call(client, "oc_task_list"))["tasks"]
        got = await call(client, "oc_task_get", task_id=task_id)
        await call(client, "oc_task_cancel", task_id=task_id)
        ended = await call(client, "oc_task_get", task_id=task_id)
        return {
            "tools": len(tools),
            "task_id": task_id,
            "listed": [one["task_id"] for one in listed],
            "status": got["status"],
            "then": ended["status"],
        }


async def crawl(file: Path, url: str) -> Any:
    """Start a crawl of one page, and wait for it."""
    async with connected(file) as client:
        args = {"url": url, "max_pages": 1, "engine": "static", "delay_ms": 0}
        task_id = (await call(client, "oc_task_start", kind="crawl", args=args))["task_id"]
        return await call(client, "oc_task_wait", task_id=task_id)


async def handles(file: Path, url: str) -> Any:
    """As `crawl`, with the Tasks extension: the answer of the start is a handle."""
    from tests.server.test_mcp_tasks import Tasks, ask

    tasks = Tasks(polls=False)
    async with connected(file, extensions=[tasks]) as client:
        args = {"url": url, "max_pages": 9, "engine": "static", "delay_ms": 60_000}
        await client.call_tool("oc_task_start", {"kind": "crawl", "args": args})
        task_id = tasks.handles[0]["taskId"]
        first = await ask(client.session, "tasks/get", task_id)
        await ask(client.session, "tasks/cancel", task_id)
        while (found := await ask(client.session, "tasks/get", task_id))["status"] == "working":
            await asyncio.sleep(0.05)
        return {"task_id": task_id, "first": first["status"], "then": found["status"]}


async def secret(file: Path, name: str) -> Any:
    """Start a crawl whose password is a variable; None or the code of the refusal."""
    async with connected(file) as client:
        args = {"url": "https://example.com", "username": "ann", "max_pages": 1}
        args["password"] = {"secret": f"env:{name}"}
        answer = await client.call_tool("oc_task_start", {"kind": "crawl", "args": args})
        found = dict(answer.structured_content or {})
        return found["error"]["problems"][0]["code"] if answer.is_error else None


async def waiting(file: Path) -> Any:
    """Wait for a task that does not end; what ended the wait."""
    try:
        async with connected(file) as client:
            asked = {"kind": "browser_task", "args": {"objective": OBJECTIVE}}
            task_id = (await call(client, "oc_task_start", **asked))["task_id"]
            return await call(client, "oc_task_wait", task_id=task_id, timeout_ms=600_000)
    except Exception as error:  # noqa: BLE001 - whatever the SDK makes of a server that ended
        return type(error).__name__


async def verification(file: Path, step: str, url: str) -> Any:
    """Play one of the seeds' verifications as it stands; `url` is a site without end."""
    from tests.server import test_mcp_verification as steps

    @asynccontextmanager
    async def hosting(side: str, **options: Any) -> AsyncIterator[Client]:
        async with connected(file, "mcp", **options) as client:
            yield client

    site = SimpleNamespace(url=url, answers={})
    await getattr(steps, step)("window", "auto", hosting, [], site)
    return True


PLAYS: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {
    "envelope": envelope,
    "crawl": crawl,
    "handles": handles,
    "secret": secret,
    "waiting": waiting,
    "verification": verification,
}


def main(words: Sequence[str]) -> None:
    file, name, *more = words
    print(json.dumps(asyncio.run(PLAYS[name](Path(file), *more))))


if __name__ == "__main__":
    main(sys.argv[1:])
