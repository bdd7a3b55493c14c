"""Who may use the server: host, origin, token, and what a body may be, before any route."""

from __future__ import annotations

import asyncio
import io
import json
import logging

import pytest

from engine.server import access
from engine.server.access import Access
from tests.server.http.conftest import Serving, answer

EVIL = "http://evil.example"


async def test_without_the_token_nothing_but_the_page_is_served(serving: Serving) -> None:
    async with serving() as client:
        for path in ("/tasks", "/openapi.json", "/events", "/mcp", "/nothing"):
            for given in (None, "Bearer wrong", f"Basic {client.token}", client.token, "Bearer "):
                status, headers, data = await client.sent(
                    client.head(f"GET {path} HTTP/1.1", Authorization=given)
                )
                assert (status, data["error"]["code"]) == (401, "not_authorized"), (path, given)
                assert headers["www-authenticate"] == "Bearer"
        async with client.session.get(client.url + "/") as page:
            assert page.status == 200
            assert client.token not in await page.text()


async def test_the_page_needs_host_and_origin_like_everything_else(serving: Serving) -> None:
    async with serving() as client:
        line = "GET / HTTP/1.1"
        assert (await client.sent(client.head(line, Host="evil.example")))[0] == 421
        assert (await client.sent(client.head(line, Origin=EVIL)))[0] == 403
        status, _, data = await client.sent(client.head("POST / HTTP/1.1", Authorization=None))
        assert (status, data["error"]["code"]) == (401, "not_authorized")


async def test_a_rebound_host_is_refused(serving: Serving) -> None:
    async with serving() as client:
        port = client.server.port
        for host in (
            *("evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", ""),
            *(f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}", f"127.0.0.1:{port}@x"),
        ):
            status, _, data = await client.sent(client.head(Host=host))
            assert (status, data["error"]["code"]) == (421, "wrong_host"), host
        status, _, _ = await client.sent(client.head("GET /tasks HTTP/1.0", Host=None))
        assert status == 421
        for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert (await client.sent(client.head(Host=host)))[0] == 200


async def test_a_foreign_origin_is_refused_even_with_the_token(serving: Serving) -> None:
    async with serving() as client:
        port = client.server.port
        for origin in (
            *(EVIL, "null", "", "file://", f"http://127.0.0.1:{port + 1}", "http://localhost"),
            *(f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port}.evil.example"),
        ):
            status, _, data = await client.sent(client.head(Origin=origin))
            assert (status, data["error"]["code"]) == (403, "foreign_origin"), origin
        for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
            status, headers, _ = await client.sent(client.head(Origin=origin))
            assert status == 200
            assert not [name for name in headers if name.startswith("access-control-allow")]


async def test_a_preflight_is_refused(serving: Serving) -> None:
    async with serving() as client:
        head = client.head(
            "OPTIONS /tasks HTTP/1.1",
            Authorization=None,
            Origin=client.url,
            Access_Control_Request_Method="POST",
        )
        status, headers, data = await client.sent(head)
        assert (status, data["error"]["code"]) == (403, "preflight_refused")
        assert not [name for name in headers if name.startswith("access-control-")]


async def test_a_token_in_the_address_is_refused_and_never_logged(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving() as client:
        for query in (
            *(f"token={client.token}", "access_token=x", "API_KEY=x", f"q={client.token}"),
            f"q={''.join(f'%{ord(one):02x}' for one in client.token)}",
        ):
            assert await client.code("GET", f"/tasks?{query}") == (400, "token_in_address")
            head = client.head(
                f"GET /ws?{query} HTTP/1.1",
                Authorization=None,
                **_handshake(),
            )
            status, _, data = await client.sent(head)
            assert (status, data["error"]["code"]) == (400, "token_in_address")
        await client.get("/tasks")
        async with client.socket() as socket:
            await socket.send_str("{}")
            await socket.receive_json()
    assert client.token not in caplog.text


async def test_a_body_must_be_json(serving: Serving) -> None:
    async with serving() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"):
            got = await client.code("POST", "/tasks", data=b"{}", headers={"Content-Type": kind})
            assert got == (415, "unsupported_media_type"), kind
        untyped = client.head("POST /tasks HTTP/1.1", Content_Length="2") + b"{}"
        assert (await client.sent(untyped))[0] == 415
        assert await client.code("POST", "/tasks", data=b"{", headers=_JSON) == (400, "not_json")
        assert await client.code("POST", "/tasks", data=b"\xff", headers=_JSON) == (400, "not_json")
        assert await client.code("POST", "/tasks", data=b"NaN", headers=_JSON) == (400, "not_json")
        wrong = (400, "invalid_arguments")
        assert await client.code("POST", "/tasks", data=b"[]", headers=_JSON) == wrong
        assert not await client.engine.tasks.list()


async def test_a_deep_body_is_refused(serving: Serving) -> None:
    async with serving() as client:
        for deep in (b"[" * 500_000, b'{"a":' * 65 + b"1" + b"}" * 65, b"[" * 66 + b"]" * 66):
            got = await client.code("POST", "/tasks", data=deep, headers=_JSON)
            assert got == (400, "json_too_deep")


async def test_a_large_body_is_refused_before_it_is_read(serving: Serving) -> None:
    async with serving() as client:
        head = client.head(
            "POST /tasks HTTP/1.1", Content_Type="application/json", Content_Length=str(50 << 20)
        )
        status, _, data = await client.sent(head)  # not one byte of the body was sent
        assert (status, data["error"]["code"]) == (413, "body_too_large")
        big = io.BytesIO(json.dumps({"name": "x" * (50 << 20)}).encode())
        got = await client.code("POST", "/tasks", data=big, headers=_JSON)
        assert got == (413, "body_too_large")
        await client.get("/tasks")


async def test_a_large_body_of_unknown_length_is_refused_while_it_comes(serving: Serving) -> None:
    async def blocks():
        for _ in range(64):
            yield b" " * (1 << 16)

    async with serving() as client:
        got = await client.code("POST", "/tasks", data=blocks(), headers=_JSON)
        assert got == (413, "body_too_large")
        await client.get("/tasks")


async def test_a_body_that_trickles_is_refused(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "BODY_S", 0.2)
    async with serving() as client, client.raw() as (reader, writer):
        head = {"Content_Type": "application/json", "Content_Length": "20"}
        writer.write(client.head("POST /tasks HTTP/1.1", **head) + b'{"a')
        status, _, data = await answer(reader)
        assert (status, data["error"]["code"]) == (408, "body_timeout")


async def test_a_client_that_leaves_while_it_sends_starts_nothing(serving: Serving) -> None:
    async with serving() as client:
        async with client.raw() as (_, writer):
            head = {"Content_Type": "application/json", "Content_Length": "30"}
            writer.write(client.head("POST /tasks HTTP/1.1", **head) + b'{"objective": "x"')
            await writer.drain()
        await asyncio.sleep(0.05)
        assert (await client.get("/tasks"))["count"] == 0


async def test_every_answer_has_the_security_headers(serving: Serving) -> None:
    async with serving() as client:
        for data in (
            client.head(),
            client.head("GET /nothing HTTP/1.1"),
            client.head("PUT /tasks HTTP/1.1"),
            client.head(Authorization=None),
            client.head(Host="x"),
            client.head("GET /ws HTTP/1.1", Origin=EVIL, **_handshake()),
            b"not http at all\r\n\r\n",
        ):
            _, headers, _ = await client.sent(data)
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert headers["content-security-policy"].startswith("default-src 'none'")
            assert not [name for name in headers if name.startswith("access-control-")]
            assert "server" not in headers


async def test_a_socket_needs_host_origin_and_token(serving: Serving) -> None:
    async with serving() as client:
        head = _handshake()
        for changed, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": EVIL}, 403),
            ({"Origin": "null"}, 403),
            ({"Authorization": None}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": None, "Sec_WebSocket_Protocol": "bearer.wrong"}, 401),
        ):
            got, _, data = await client.sent(client.head("GET /ws HTTP/1.1", **head, **changed))
            assert got == status, changed
            assert data["error"]["code"]


async def test_a_browser_gives_a_socket_the_token_as_a_subprotocol(serving: Serving) -> None:
    async with serving() as client:
        bearer = f"bearer.{client.token}"
        for offered, chosen in ((["octask", bearer], "octask"), ([bearer], bearer)):
            async with client.socket(headers={}, protocols=offered) as socket:
                assert socket.protocol == chosen
                await socket.send_str('{"type": "task_status", "taskId": "0123456789abcdef"}')
                assert (await socket.receive_json())["error"]["code"] == "task_not_found"


def test_the_token_is_in_no_text_of_the_access() -> None:
    assert "secret-token" not in repr(Access(8123, "secret-token"))


async def test_two_tokens_or_two_hosts_are_refused(serving: Serving) -> None:
    async with serving() as client:
        twice = client.head().replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer x\r\n\r\n")
        assert (await client.sent(twice))[0] == 401
        hosts = client.head().replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n")
        assert (await client.sent(hosts))[0] in (400, 421)


_JSON = {"Content-Type": "application/json"}


def _handshake() -> dict[str, str]:
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
