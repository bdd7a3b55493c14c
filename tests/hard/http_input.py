"""Requests and messages of every sort at the HTTP face: typed answers, and it still answers.

Hypothesis makes them: routes with wrong and right arguments, bodies of any JSON, bytes that are no
HTTP, and WebSocket messages. The long form sends 20,000.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import strategies as st

from engine.model.errors import EngineError
from engine.server.http_answers import BEFORE_VERBS, FAILED
from engine.server.http_routes import ROUTES, START, HttpRoute
from engine.server.websocket_messages import NOT_TEXT, UNKNOWN_TYPE
from engine.verbs import Param
from tests.hard.figures import Figures
from tests.server.http.conftest import Client, served

LONG, SHORT = 20_000, 300
PART = 1_000  # requests of one ledger, which would else grow without end
ANSWER_S = 30.0
NO_BROWSER = "/bin/false"  # what is accepted by chance must open no browser

_NAMES = st.sampled_from(sorted({param.name for route in ROUTES for param in route.params}))
_WORDS = st.sampled_from(
    [
        *("crawl", "browser_task", "commands", "running", "status:failed", "kind:", "age:<1h"),
        *("completed", "act", "0123456789abcdef", "task_1_1", "http://127.0.0.1:1/", "true", "-1"),
        *("../../etc/passwd", "\x00", "\ud800", "a" * 3_000, "9" * 400, "1e999", "NaN", ""),
    ]
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    _WORDS,
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | _NAMES, inner, max_size=4)
    ),
    max_leaves=12,
)
_FIELDS = st.sampled_from(["task_name", "task_intention", "commands", "metadata", "instanceId"])
_COMMAND = st.fixed_dictionaries(
    {},
    optional={
        "tool_name": st.sampled_from(["browser_navigate", "browser_execute", "none"]),
        "intention": st.text(max_size=5),
        "args": st.dictionaries(st.sampled_from(["action", "url", "script"]), _LEAVES, max_size=3),
    },
)
_TASK = st.dictionaries(_FIELDS, _JSON | st.lists(_COMMAND, max_size=3), max_size=5)
_BODIES = st.one_of(_JSON, st.dictionaries(_NAMES, _JSON, max_size=5), _TASK)
_IDS = st.sampled_from(["0123456789abcdef", "task_1_1", "x", "..", "%00", "é", "KNOWN", "a" * 900])
_QUERY = st.lists(st.tuples(_NAMES | st.text(max_size=5), _WORDS | st.text(max_size=8)), max_size=4)
_PATHS = st.sampled_from(
    sorted({route.path for route in ROUTES} | {"/tasks/{id}/result", "/openapi.json", "/mcp", "/"})
)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    task_id: str
    query: list[tuple[str, str]]
    body: Any


def _value(param: Param) -> st.SearchStrategy[Any]:
    """A value of the right type in most cases."""
    right = {
        "text": _WORDS | st.text(max_size=9),
        "number": st.integers(-1, 60) | st.integers(),
        "flag": st.booleans(),
        "json": st.dictionaries(st.text(max_size=8) | _NAMES, _JSON, max_size=4),
        "many": st.lists(_WORDS, max_size=3),
        "items": st.lists(_WORDS | st.fixed_dictionaries({"item": _WORDS}), max_size=3),
    }.get(param.shape, _LEAVES)
    return st.one_of(right, right, right, _JSON)


def _of_route(route: HttpRoute) -> st.SearchStrategy[Request]:
    """Requests with the arguments of their route."""
    body = st.fixed_dictionaries({}, optional={one.name: _value(one) for one in route.params})
    if route is START:
        body = body | _TASK
    names = st.sampled_from([one.name for one in route.params] or ["x"])
    query = st.lists(st.tuples(names, _WORDS), max_size=3)
    nothing: st.SearchStrategy[Any] = st.just([])
    by_query = query if route.by_query else nothing
    return st.builds(
        Request,
        st.just(route.method),
        st.just(route.path),
        st.one_of(st.just("KNOWN"), _IDS),
        by_query,
        st.none() if route.by_query else body,
    )


_WILD = st.builds(
    Request,
    st.sampled_from(["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW"]),
    _PATHS,
    _IDS,
    _QUERY,
    st.none() | _BODIES,
)
_MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["task_submit", "task_status", "x"]) | _LEAVES,
        "id": _LEAVES,
        "task": _TASK | _LEAVES,
        "taskId": _IDS | _LEAVES,
        "results": _LEAVES,
    },
)
_MESSAGES = st.one_of(
    _MESSAGE.map(lambda one: json.dumps(one)),
    _JSON.map(lambda one: json.dumps(one)),
    st.text(max_size=60),
    st.binary(max_size=60),
)
_HEADS = st.tuples(
    st.sampled_from([b"GET / HTTP/1.1\r\n", b"POST /tasks HTTP/1.1\r\n", b"", b"GET"]),
    st.binary(max_size=200),
    st.sampled_from([b"\r\n\r\n", b"\r\n", b""]),
).map(b"".join)
_KINDS: list[st.SearchStrategy[Any]] = [st.sampled_from(ROUTES).flatmap(_of_route)] * 5
_KINDS += [_WILD, _MESSAGES, _MESSAGES, _HEADS.map(bytearray)]
_SORTS = st.integers(0, len(_KINDS) - 1).flatmap(lambda at: _KINDS[at])


@dataclass
class Count:
    sent: int = 0
    sorts: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def known_codes() -> set[str]:
    """Every code that an answer may have, but that of a failure of the program."""
    found = {one.code for one in (*BEFORE_VERBS, NOT_TEXT, UNKNOWN_TYPE)}
    kinds = [EngineError]
    while kinds:
        kind = kinds.pop()
        found.add(kind.code)
        kinds += kind.__subclasses__()
    return found - {FAILED.code}


def measure(*, short: bool, rounds: int = 0) -> Figures:
    count = Count()
    total = rounds or (SHORT if short else LONG)
    for seed, first in enumerate(range(0, total, PART)):
        with tempfile.TemporaryDirectory(prefix="http-input-") as place, asyncio.Runner() as runner:
            part = min(PART, total - first)
            runner.run(_part(count, Path(place) / "home", part, seed))
    facts = {
        "sent": count.sent,
        **{f"{name}s": number for name, number in sorted(count.sorts.items())},
        "statuses": dict(sorted(count.statuses.items())),
        "codes seen": len(count.codes),
    }
    return Figures("G6", facts, [f"it broke: {one}" for one in count.broken[:20]])


async def _part(count: Count, home: Path, number: int, seed: int) -> None:
    """Send `number` inputs to one server, and see that it still answers."""
    async with served(home, browser_path=NO_BROWSER) as client:
        task_id = await client.envelope()
        for given in await asyncio.to_thread(_inputs, number, seed):
            await _send(count, client, given, task_id)
            count.sent += 1
        status, _ = await client.call("GET", "/tasks")
        if status != 200:
            count.broken.append(f"afterwards the list is answered with {status}")


def _inputs(number: int, seed: int) -> list[Any]:
    """Draw inputs, in a thread: Hypothesis does not run on a loop."""
    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(_SORTS)
    def draw(given: Any) -> None:
        found.append(given)

    draw()
    return found


async def _send(count: Count, client: Client, given: Any, known: str) -> None:
    async with asyncio.timeout(ANSWER_S):
        try:
            if isinstance(given, Request):
                await _request(count, client, given, known)
            elif isinstance(given, bytearray):
                await _bytes(count, client, bytes(given))
            else:
                await _message(count, client, given)
        except (OSError, ValueError, TimeoutError, AssertionError) as error:
            count.broken.append(f"{given!r:.300}: {type(error).__name__} {error}")


async def _request(count: Count, client: Client, given: Request, known: str) -> None:
    count.sorts["request"] += 1
    path = given.path.replace("{id}", known if given.task_id == "KNOWN" else given.task_id)
    body = given.body
    if path.endswith("/wait"):
        body = {"timeout_ms": 1}
    data = b"" if body is None else json.dumps(body).encode()
    if path.endswith("/finish"):
        data = b"{}"  # the known task must stay
    query = [(name, value.encode("utf-8", "replace").decode()) for name, value in given.query]
    headers = {**client.auth, "Content-Type": "application/json", "Accept": "application/json"}
    async with client.session.request(
        given.method, client.url + path, params=query, data=data, headers=headers
    ) as answer:
        count.statuses[answer.status] += 1
        text = await answer.read()
        if answer.status >= 400 and given.method != "HEAD" and path != "/mcp":
            _check(count, f"{given!r:.300}", json.loads(text)["error"])
        elif answer.status >= 500:
            count.broken.append(f"{given!r:.300}: {answer.status}")


async def _message(count: Count, client: Client, given: str | bytes) -> None:
    count.sorts["message"] += 1
    async with client.socket() as socket:
        if isinstance(given, bytes):
            await socket.send_bytes(given)
        else:
            await socket.send_str(given.encode("utf-8", "replace").decode())
        found = await socket.receive_json()
    if not found["success"]:
        _check(count, f"{given!r:.300}", found["error"])


async def _bytes(count: Count, client: Client, given: bytes) -> None:
    """What is no request is answered typed or waits for more; then the client leaves."""
    count.sorts["byte string"] += 1
    async with client.raw() as (reader, writer):
        writer.write(given)
        writer.write_eof()
        answer = await reader.read()
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        count.statuses[status] += 1
        if status >= 400:
            _check(count, f"{given!r:.300}", json.loads(body.split(b"HTTP/1.1")[0])["error"])


def _check(count: Count, given: str, error: dict[str, Any]) -> None:
    count.codes[error["code"]] += 1
    if error["code"] not in known_codes() or not {"title", "message"} <= error.keys():
        count.broken.append(f"{given}: {error}")
