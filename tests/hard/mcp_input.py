"""Bad input to `octask mcp`: messages changed at random, wrong values in every tool, broken bytes.

Each request gets one typed answer, none of them an error that the program did not expect; the
process survives and answers afterwards. The long form sends 20,000 messages.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.server.tool_table import TOOLS, Tool
from fixtures.hostile_ledger import HOSTILE_TEXTS
from tests.hard.figures import Figures

LONG, SHORT = 20_000, 400
AT_ONCE = 50  # requests without an answer so far
ANSWER_S = 60.0
SEED = 20_26
VERSION = "2025-06-18"
MODERN = "2026-07-28"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 2**53, 2**70, 1e308, 0.5, "", " ", "\0", "x" * 5_000),
    *([], {}, [[]], {"": None}, ["a", 1], {"secret": "env:PATH"}, {"secret": 7}),
    *("0123456789abcdef", "../../etc/passwd", "task_1_x", "status:((", "http://127.0.0.1:1/"),
    *HOSTILE_TEXTS,
)
METHODS = (
    *("tools/call", "tools/list", "resources/read", "resources/list", "prompts/get", "ping"),
    *("tasks/get", "tasks/cancel", "tasks/update", "completion/complete", "initialize", "x/y"),
    *("resources/subscribe", "subscriptions/listen", "logging/setLevel", "server/discover"),
)
BROKEN = (
    *(b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"{}" * 50, b"[" * 5_000, b"\0" * 100),
    *(b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b"x" * 100_000),
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
)


@dataclass
class Count:
    """What was sent and answered, by sort."""

    sent: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)


def measure(*, short: bool) -> Figures:
    count, began = Count(), time.monotonic()
    number = SHORT if short else LONG
    with tempfile.TemporaryDirectory(prefix="mcp-input-") as place:
        asyncio.run(_send_all(count, Path(place), number))
    facts: dict[str, Any] = {"messages": sum(count.sent.values()), **count.sent}
    facts |= {f"answer {code}": times for code, times in count.answers.most_common(12)}
    facts["seconds"] = round(time.monotonic() - began, 1)
    return Figures("bad input:", facts, count.misses[:20])


async def _send_all(count: Count, home: Path, number: int) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "engine.cli", "mcp", "--home", str(home)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "OPENCHROME_HOME": str(home)},
        limit=16 * 1024 * 1024,
    )
    assert server.stdin is not None
    assert server.stderr is not None
    pending: dict[int, str] = {}
    free = asyncio.Semaphore(AT_ONCE)
    reading = asyncio.create_task(_read(server, pending, free, count))
    heard = asyncio.create_task(server.stderr.read())
    try:
        for message_id, sort, line in _messages(random.Random(SEED), number):
            if message_id is not None:
                async with asyncio.timeout(ANSWER_S):
                    await free.acquire()
                pending[message_id] = line[:300].decode(errors="replace")
            count.sent[sort] += 1
            server.stdin.write(line + b"\n")
            await server.stdin.drain()
        async with asyncio.timeout(ANSWER_S):
            while pending:
                await asyncio.sleep(0.05)
    except TimeoutError:
        count.misses += [f"no answer to {one}" for one in list(pending.values())[:5]]
    except ConnectionError:
        count.misses.append(f"the server is gone ({server.returncode})")
    server.stdin.close()
    try:
        async with asyncio.timeout(ANSWER_S):
            await server.wait()
    except TimeoutError:
        count.misses.append("the server did not end with its input")
        server.kill()
    await reading
    said = await heard
    if server.returncode or b"Traceback" in said:
        end = said[-600:].decode(errors="replace")
        count.misses.append(f"the server ended with {server.returncode}: {end}")


async def _read(
    server: asyncio.subprocess.Process,
    pending: dict[int, str],
    free: asyncio.Semaphore,
    count: Count,
) -> None:
    assert server.stdout is not None
    while line := await server.stdout.readline():
        answer = json.loads(line)
        if "method" in answer:
            continue  # a notification
        asked = pending.pop(answer.get("id"), None) if _is_ours(answer.get("id")) else ""
        code = _code(answer)
        count.answers[code] += 1
        if code in ("internal_error", "untyped"):
            count.misses.append(f"{code}: {line[:300]!r} to {asked}")
        if asked:
            free.release()


def _is_ours(message_id: object) -> bool:
    return type(message_id) is int


def _code(answer: dict[str, Any]) -> str:
    """Return the code of an answer: of our error, of the protocol's, or `ok`."""
    if isinstance(wrong := answer.get("error"), dict):
        typed = type(wrong.get("code")) is int and isinstance(wrong.get("message"), str)
        return str(wrong["code"]) if typed else "untyped"
    result = answer.get("result")
    if not isinstance(result, dict):
        return "untyped"
    if result.get("isError"):
        return str(result.get("structuredContent", {}).get("error", {}).get("code", "untyped"))
    return "ok"


def _messages(chance: random.Random, number: int) -> Iterator[tuple[int | None, str, bytes]]:
    """Yield the id of the awaited answer (None: none is due), the sort, and the line."""
    info = {"name": "fuzz", "version": "1"}
    hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info}
    yield 0, "hello", _line(0, "initialize", hello)
    yield None, "hello", json.dumps(_note("notifications/initialized")).encode()
    for each in range(1, number):
        sort = chance.choices(("tool", "method", "broken"), (7, 2, 1))[0]
        if sort == "broken":
            yield None, sort, chance.choice(BROKEN).replace(b"\n", b" ")
        elif sort == "tool":
            yield each, sort, _line(each, "tools/call", _tool_call(chance))
        else:
            method = chance.choice(METHODS)
            params = _object(chance)
            # A subscription has no end, and parameters in a list are no message of MCP.
            awaited = method != "subscriptions/listen" and isinstance(params, dict)
            yield each if awaited else None, sort, _line(each, method, params)


def _line(message_id: int, method: str, params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
    return json.dumps(message).encode()


def _note(method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method}


def _tool_call(chance: random.Random) -> dict[str, Any]:
    tool = chance.choice([*TOOLS.values()])
    arguments: Any = _arguments(chance, tool)
    if chance.random() < 0.05:
        arguments = chance.choice(VALUES)
    name: Any = tool.name if chance.random() < 0.98 else chance.choice(VALUES)
    return {"name": name, "arguments": arguments}


def _arguments(chance: random.Random, tool: Tool) -> dict[str, Any]:
    properties = tool.input_schema["properties"]
    wanted = [*tool.input_schema.get("required", ())]
    wanted += [name for name in properties if name not in wanted and chance.random() < 0.3]
    found = {name: _value(chance, properties[name]) for name in wanted}
    if "timeout_ms" in properties:  # a wait must end within the test
        found["timeout_ms"] = chance.choice((1, 50, 100, -1, "x"))
    if chance.random() < 0.1:
        found[str(chance.choice(VALUES))[:50]] = chance.choice(VALUES)
    return found


def _value(chance: random.Random, schema: dict[str, Any]) -> Any:
    """Return a value that the schema allows, or one that it may not."""
    if chance.random() < 0.4:
        return chance.choice(VALUES)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "integer":
            return chance.choice((0, 1, 5, 100, schema.get("minimum", 0)))
        case "boolean":
            return chance.random() < 0.5
        case "array":
            return [chance.choice(VALUES) for _ in range(chance.randrange(3))]
        case "object":
            names = [*schema.get("properties", {"a": {}})]
            return {
                name: chance.choice(VALUES) for name in chance.sample(names, min(2, len(names)))
            }
    return chance.choice(VALUES)


def _object(chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(({}, []))
    names = ("name", "uri", "taskId", "arguments", "cursor", "ref", "level", "protocolVersion")
    found = {name: chance.choice(VALUES) for name in chance.sample(names, 3)}
    if chance.random() < 0.5:
        found["_meta"] = chance.choice(
            (
                {"io.modelcontextprotocol/protocolVersion": MODERN},
                {"progressToken": chance.choice(VALUES)},
                chance.choice(VALUES),
            )
        )
    return found
