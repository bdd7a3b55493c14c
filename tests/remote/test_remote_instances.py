"""A browser of another machine: pages come through this one, and it ends with its connection."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from playwright.async_api import Error

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.driver import alive
from engine.browser.remote import browser_server, remote_connection
from engine.browser.remote.browser_server import BrowserServer
from engine.browser.remote.remote_address import (
    RemoteBrowserToken,
    RemoteBrowserUnreachable,
    RemotePlace,
)
from engine.browser.remote.remote_connection import Message, connect, read_message, send
from engine.egress.egress_policy import Policy
from engine.model.errors import BrowserGone, ShuttingDown
from tests.remote.conftest import TOKEN, Lent, lending, options, until
from tests.support.update_server import certificate


def browser_of(lent: Lent) -> psutil.Process:
    """The first process of the browser that is lent."""
    family = lent.session._browser._family
    assert family is not None
    found: psutil.Process = family._root
    return found


async def test_pages_come_through_the_egress_of_this_machine(site: Any) -> None:
    """127.0.0.1 is this machine, and the browser opens nothing by itself."""
    session = BrowserSession()
    async with lending() as lent:
        places = f"127.0.0.1:{site.port}", f"localhost:{site.port}"
        async with session.instance(options(lent, *places)) as instance:
            page = await instance.new_page()
            await page.goto(f"http://localhost:{site.port}/shop/")
            assert instance._listener.peer(f"http://localhost:{site.port}/") == "127.0.0.1"
            answer = await page.goto(f"{site.url}/shop/")
            assert answer is not None
            assert answer.status == 200
            other = options(lent).policy
            instance.judge(page, other)
            with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
                await page.goto(f"{site.url}/shop/order")
            refused = instance.why(page)
            assert refused is not None
            assert "private address" in str(refused)
        await session.aclose()
        await lent.ended()
        assert lent.news == ["began", "ended"]


async def test_what_a_page_asks_for_beside_its_task_is_refused(site: Any) -> None:
    session = BrowserSession()
    async with lending() as lent:
        async with session.instance(options(lent, f"127.0.0.1:{site.port}")) as instance:
            page = await instance.new_page()
            await page.goto(f"{site.url}/shop/")
            asked = f"http://127.0.0.1:{lent.port}/"
            said = await page.evaluate("url => fetch(url).then(() => 'got', () => 'no')", asked)
            assert said == "no"
        await session.aclose()


async def test_a_browser_and_its_profile_end_with_the_connection(site: Any) -> None:
    session = BrowserSession()
    async with lending() as lent:
        instance = await session.open_instance(options(lent))
        process, profile = browser_of(lent), lent.session._browser._family.profile()
        folder = Path(lent.session._browser._folder)
        assert Path(profile).is_relative_to(folder)
        lent.session._writer.transport.abort()  # as a network that breaks
        await instance.gone.wait()
        await lent.ended()
        assert not alive(process)
        assert not folder.exists()
        with pytest.raises(BrowserGone):
            await instance.new_page()
        again = await session.open_instance(options(lent))  # a new one is started
        await again.close()
        await session.aclose()


async def test_a_browser_that_dies_is_told_to_its_task(site: Any) -> None:
    session = BrowserSession()
    async with lending() as lent:
        instance = await session.open_instance(options(lent))
        browser_of(lent).kill()
        await instance.gone.wait()
        await lent.ended()
        await session.aclose()


async def test_playwrights_own_port_answers_nobody_without_its_path() -> None:
    """Its server would tell the path to whoever asks for /json."""
    session = BrowserSession()
    async with lending() as lent:
        await (await session.open_instance(options(lent))).close()
        port = lent.session._browser.port
        for path in ("/json", "/", "/json/version"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert await _rest(reader) == b""
            writer.close()
        await session.aclose()


async def test_another_program_cannot_use_the_ports_of_a_lent_browser(site: Any) -> None:
    session = BrowserSession()
    async with lending() as lent:
        async with session.instance(options(lent, f"127.0.0.1:{site.port}")):
            (listener,) = lent.session._listeners.values()
            port = listener.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert await _rest(reader) == b""
            writer.close()
            assert not lent.session._waiting
        await session.aclose()
    assert not site.hits["/"]


async def test_a_flood_of_foreign_connections_does_not_keep_the_browser_waiting(site: Any) -> None:
    """One look at the system answers for all of them."""
    session = BrowserSession()
    async with lending() as lent:
        async with session.instance(options(lent, f"127.0.0.1:{site.port}")) as instance:
            page = await instance.new_page()
            (listener,) = lent.session._listeners.values()
            port = listener.sockets[0].getsockname()[1]
            looks, ports = 0, lent.session._browser.connections

            gate = threading.Event()

            def counted() -> Any:
                nonlocal looks
                looks += 1
                gate.wait(100)
                return ports()

            lent.session._browser.connections = counted
            foreign = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
            await until(lambda: lent.session._offered == 200)
            gate.set()
            await page.goto(f"{site.url}/shop/")
            assert {await _rest(reader) for reader, _ in foreign} == {b""}
            assert looks < 20
            for _, writer in foreign:
                writer.close()
        await session.aclose()


@pytest.mark.thorough
async def test_a_browser_without_work_is_given_back(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.chromium.browser_session.LEND_S", 0.0)
    session = BrowserSession()
    async with lending() as lent:
        place = f"127.0.0.1:{site.port}"
        for _ in range(2):  # and the next task gets another one
            async with session.instance(options(lent, place)) as instance:
                page = await instance.new_page()
                await page.goto(f"{site.url}/shop/")
            await lent.ended()
        assert lent.news == ["began", "ended"] * 2
        await session.aclose()


async def test_a_start_elsewhere_does_not_delay_one_here() -> None:
    """The server there accepts, and says nothing."""
    asked = asyncio.Event()
    held: list[asyncio.StreamWriter] = []

    def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        asked.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    place = Lent(BrowserServer(TOKEN, environ={}), server.sockets[0].getsockname()[1]).place
    session = BrowserSession()
    given = InstanceOptions(Policy(None))
    there = asyncio.create_task(session.open_instance(_at(given, place)))
    await asked.wait()
    here = await session.open_instance(given)
    assert not there.done()
    await here.close()
    await session.aclose()
    assert isinstance((await asyncio.gather(there, return_exceptions=True))[0], ShuttingDown)
    for writer in held:
        writer.close()
    server.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_a_closed_window_leaves_no_port_behind(site: Any) -> None:
    session = BrowserSession()
    async with lending() as lent:
        first = await session.open_instance(options(lent))
        second = await session.open_instance(options(lent))
        assert len(lent.session._listeners) == 2
        assert len(lent.server._sessions) == 1
        await first.close()
        await until(lambda: len(lent.session._listeners) == 1)
        await second.close()
        await until(lambda: not lent.session._listeners)
        await session.aclose()


async def test_a_wrong_token_starts_nothing() -> None:
    session = BrowserSession()
    async with lending() as lent:
        wrong = options(lent)
        place = RemotePlace(lent.place.address, TOKEN + "!")
        with pytest.raises(RemoteBrowserToken, match="it has another token"):
            await session.open_instance(_at(wrong, place))
        assert lent.news == ["refused"]
        await session.aclose()


def _at(given: Any, place: RemotePlace) -> Any:
    return msgspec.structs.replace(given, remote=place)


async def test_a_server_that_does_not_know_the_token_learns_nothing() -> None:
    heard: list[bytes] = []

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(remote_connection.GREETING + b"0" * 32 + b"\n")
        heard.append(await reader.readline())
        send(writer, Message(proof="0" * 64))
        heard.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(impostor, "127.0.0.1", 0)
    address = Lent(BrowserServer(TOKEN, environ={}), server.sockets[0].getsockname()[1]).place
    session = BrowserSession()
    async with lending() as lent:
        with pytest.raises(RemoteBrowserToken):
            await session.open_instance(_at(options(lent), address))
    await until(lambda: len(heard) == 2)
    assert TOKEN.encode() not in heard[0]
    assert heard[1] == b""
    server.close()
    await session.aclose()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"x" * 200_000])
async def test_what_is_no_browser_server_is_said(said: bytes) -> None:
    def other(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    place = Lent(BrowserServer(TOKEN, environ={}), server.sockets[0].getsockname()[1]).place
    session = BrowserSession()
    async with lending() as lent:
        with pytest.raises(RemoteBrowserUnreachable, match=r"cannot be used: .+\.$"):
            await session.open_instance(_at(options(lent), place))
    server.close()
    await session.aclose()


async def test_a_server_that_is_not_there_is_said() -> None:
    session = BrowserSession()
    async with lending() as lent:
        given = options(lent)
    with pytest.raises(RemoteBrowserUnreachable, match="connection refused"):
        await session.open_instance(given)
    assert session.status() == ("idle", "", "")  # the browser of this machine is another one
    await session.aclose()


async def test_no_more_browsers_are_lent_than_the_operator_said() -> None:
    session, other = BrowserSession(), BrowserSession()
    async with lending(most=1) as lent:
        instance = await session.open_instance(options(lent))
        with pytest.raises(RemoteBrowserUnreachable, match=r"all 1 browsers .* in use"):
            await other.open_instance(options(lent))
        await instance.close()
        await session.aclose()
        await other.aclose()


async def test_another_version_of_playwright_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = BrowserSession()
    async with lending() as lent:
        monkeypatch.setattr(browser_server, "playwright_version", lambda: "1.0")
        with pytest.raises(RemoteBrowserUnreachable, match=r"Playwright 1\.0 and this program 1\."):
            await session.open_instance(options(lent))
        await session.aclose()


async def test_a_browser_that_does_not_start_there_is_said_with_the_reason() -> None:
    session = BrowserSession()
    async with lending() as lent:
        lent.server._browser_path = "/no/such/program"
        with pytest.raises(RemoteBrowserUnreachable, match="/no/such/program is not a program"):
            await session.open_instance(options(lent))
        assert lent.news == ["failed"]
        await session.aclose()


async def test_a_client_that_leaves_during_the_start_leaves_no_browser() -> None:
    async with lending() as lent:
        pipe = await connect(lent.place, None, "browser")
        send(pipe[1], Message())
        await until(lambda: lent.server._sessions)
        pipe[1].transport.abort()
        await lent.ended()
        assert lent.news == []


async def test_a_cancelled_start_leaves_no_browser() -> None:
    session = BrowserSession()
    async with lending() as lent:
        starting = asyncio.create_task(session.open_instance(options(lent)))
        await until(lambda: lent.server._sessions)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await lent.ended()
        again = await session.open_instance(options(lent))
        await again.close()
        await session.aclose()


async def test_a_client_that_breaks_the_protocol_loses_its_browser() -> None:
    async with lending() as lent:
        pipe = await connect(lent.place, None, "browser")
        send(pipe[1], Message())
        assert (await read_message(pipe[0])).session
        pipe[1].write(b"[1]\n")
        await lent.ended()
        pipe[1].close()


LONG = "x" * 3_000_000


class Ending:
    """A server whose answers have no length: they end with the connection."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    @staticmethod
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + LONG.encode())
        await writer.drain()
        writer.close()


async def test_tls_carries_pages_and_needs_a_known_certificate(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await asyncio.start_server(Ending.answer, "127.0.0.1", 0)
    ends = Ending(server.sockets[0].getsockname()[1])
    places = (f"127.0.0.1:{site.port}", ends.url.removeprefix("http://"))
    file = certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(file)
    session = BrowserSession()
    async with lending(tls) as lent:
        place = RemotePlace(lent.place.address._replace(scheme="tls"), TOKEN)
        given = _at(options(lent, *places), place)
        with pytest.raises(RemoteBrowserUnreachable, match="its certificate is not valid here"):
            await session.open_instance(given)
        await session.aclose()
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        session = BrowserSession()
        async with session.instance(given) as instance:
            page = await instance.new_page()
            await page.goto(f"{site.url}/shop/")
            assert await page.title()
            await page.goto(f"{ends.url}/")  # what is written before the end arrives
            assert await page.evaluate("document.body.textContent.length") == len(LONG)
            assert len(lent.session._tasks) < 12
        await until(lambda: not lent.session._made)
        await session.aclose()
        await lent.ended()
    server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no 127.0.0.2")
async def test_another_address_of_the_machine_is_not_the_browser(site: Any) -> None:
    """Its port may be the same, which any program can bind to 127.0.0.2."""
    session = BrowserSession()
    async with lending() as lent:
        async with session.instance(options(lent, f"127.0.0.1:{site.port}")) as instance:
            page = await instance.new_page()
            going = asyncio.create_task(page.goto(f"{site.url}/hang"))  # it holds its connection
            await until(lambda: site.hits["/hang"])
            (listener,) = lent.session._listeners.values()
            port = listener.sockets[0].getsockname()[1]
            known = lent.session._browser.connections()
            ours = next(own for own, other in known if other == port)
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=("127.0.0.2", ours)
            )
            writer.write(f"GET {site.url}/secret HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert await _rest(reader) == b""
            writer.close()
            assert not going.done()
            going.cancel()
            await asyncio.wait({going})
        await session.aclose()
    assert not site.hits["/secret"]


async def test_many_strangers_at_once_keep_nobody_out() -> None:
    session = BrowserSession()
    async with lending() as lent:
        opening = (asyncio.open_connection("127.0.0.1", lent.port) for _ in range(200))
        pipes = await asyncio.gather(*opening)
        await until(lambda: len(lent.server._strangers) <= browser_server.MOST_STRANGERS)
        await (await session.open_instance(options(lent))).close()
        for _, writer in pipes:
            writer.close()
        await session.aclose()
