"""MCP hosts: the SDK's own client on each way to the server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from engine.model.config import Settings
from engine.server.mcp_server import McpServer
from engine.service.engine import Engine
from tests.support.far_limits import be_patient

Hosting = Callable[..., AbstractAsyncContextManager[Client]]
SIDES = ("memory", "stdio", "serve")
MODES = ("auto", "legacy")
WAIT_S = 150.0  # a crowded machine may take its time


class TaskHandle(types.Result):
    """What a start of long work returns to a client that names the extension."""

    result_type: str = "task"
    model_config = {**types.Result.model_config, "extra": "allow"}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def places() -> list[str]:
    """Private `host:port` that the operator allows; a test adds those of its pages."""
    return []


@pytest.fixture
def hosting(home: Path, places: list[str]) -> Hosting:
    """`async with hosting("stdio", mode="legacy") as client:`."""

    @asynccontextmanager
    async def make(side: str, **options: Any) -> AsyncIterator[Client]:
        if side == "stdio":
            async with Client(_stdio(home, places), **options) as client:
                yield client
            return
        if side == "serve":
            async with _served(home, places) as way, Client(way, **options) as client:
                yield client
            return
        settings = Settings.at(home=home)
        async with in_memory(settings, places) as face, Client(face.server, **options) as client:
            yield client

    return make


@asynccontextmanager
async def in_memory(settings: Settings, places: Sequence[str] = ()) -> AsyncIterator[McpServer]:
    from dataclasses import replace

    engine = Engine(replace(settings, allow_private=tuple(places)), accepts=True)
    await engine.open()
    face = McpServer(engine)
    try:
        yield face
    finally:
        await face.close()
        await engine.close()


@asynccontextmanager
async def _served(home: Path, places: Sequence[str]) -> AsyncIterator[Any]:
    """`octask serve` in a process, and the way to its MCP with the token from its file."""
    allowed = [word for place in places for word in ("--allow-private", place)]
    words = ("-P", "-m", "engine.cli", "serve", "--json", "--home", str(home), *allowed)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    try:
        assert process.stdout is not None
        told = json.loads(await process.stdout.readline())
        token = json.loads(Path(told["token_file"]).read_text())["token"]
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http:
            yield streamable_http_client(f"{told['url']}/mcp", http_client=http)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(WAIT_S):
            await process.wait()


def _stdio(home: Path, places: Sequence[str]) -> StdioServerParameters:
    allowed = [word for place in places for word in ("--allow-private", place)]
    return StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "engine.cli", "mcp", "--home", str(home), *allowed],
        env=dict(os.environ),
    )


def data(result: CallToolResult) -> dict[str, Any]:
    """The structured content of an answer that is no error."""
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def error(result: CallToolResult) -> dict[str, Any]:
    """The error that a call was answered with."""
    assert result.is_error, result.content
    return dict(result.structured_content["error"])


def place_of(url: str) -> str:
    """The `host:port` of a local address."""
    return url.split("/")[2]
