"""Ways out that are no request of a page: certificates, and listeners' own ports."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Error

from engine.browser.chromium.browser_options import InstanceOptions
from fixtures.hostile.site import HostileSite
from tests.egress.conftest import PUBLIC, World
from tests.egress.test_every_request import serving_page

ASK = """async ([ports, canary]) => {
  const got = [];
  for (const port of ports)
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.0.0.2', 'localhost.', '0.0.0.0'])
      for (const url of [`http://${host}:${port}/http://${canary}/`, `http://${canary}@${host}:${port}/`])
        await fetch(url, {mode: 'no-cors'}).then(() => got.push(url), () => 0);
  return got;
}"""


def _certificate(folder: Path, canary: str) -> ssl.SSLContext:
    """Of an issuer that is not at hand: the certificate tells where it can be had."""
    extension = folder / "extension"
    extension.write_text(
        f"authorityInfoAccess=caIssuers;URI:http://{canary}/?how=issuer,OCSP;URI:http://{canary}/?how=ocsp\n"
        f"crlDistributionPoints=URI:http://{canary}/?how=crl\nsubjectAltName=DNS:tls.example\n"
    )

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder, timeout=90)

    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "a.key", "-out", "a.pem", "-subj", "/CN=a")
    openssl("req", *new, "-keyout", "b.key", "-out", "b.csr", "-subj", "/CN=tls.example")
    signed = ("-CA", "a.pem", "-CAkey", "a.key", "-set_serial", "7", "-extfile", "extension")
    openssl("x509", "-req", "-in", "b.csr", *signed, "-out", "b.pem", "-days", "30")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "b.pem", folder / "b.key")
    return context


async def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.case("R65")
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
async def test_certificate_urls_use_policy(world: World, trap: HostileSite, tmp_path: Path) -> None:
    context = await asyncio.to_thread(_certificate, tmp_path, trap.canary)
    server = await asyncio.start_server(_hang_up, "127.0.0.1", 0, ssl=context)
    world.names["tls.example"] = [PUBLIC]
    world.routes[PUBLIC] = server.sockets[0].getsockname()[1]
    policy = world.policy("https://tls.example/")
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(server.close)
        session = await stack.enter_async_context(world.browser())
        instance = await stack.enter_async_context(session.instance(InstanceOptions(policy)))
        tab = await instance.new_page()
        with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
            await tab.goto("https://tls.example/", timeout=100_000)
    assert trap.canary_hits == []
    assert not world.strangers


@pytest.mark.own_browser
@pytest.mark.case("R65")
async def test_no_page_can_speak_to_a_port_of_the_proxy(world: World, trap: HostileSite) -> None:
    """Neither its own listener, nor that of a task that may reach more, nor the browser's own."""
    private = world.policy(f"{trap.url}/", allow_private=[trap.canary])
    options = InstanceOptions(world.policy("http://more.example/"))
    async with (
        world.browser() as session,
        serving_page(world, "<p>here</p>"),
        session.instance(InstanceOptions(private)),
        session.instance(options) as instance,
    ):
        tab = await instance.new_page()
        await tab.goto("http://more.example/")
        ports = [listener.port for listener in session.proxy._listeners]
        assert len(ports) == 3
        assert await tab.evaluate(ASK, [ports, trap.canary]) == []
        assert not any(listener.invalid_requests for listener in session.proxy._listeners)
    assert trap.canary_hits == []
    assert not world.strangers
