"""The update check: what is sent, which answers count, and which versions are newer."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version as Reference

from engine.model.build_info import BuildInfo
from engine.model.errors import UpdateCheckFailed
from engine.service import update_check
from engine.service.update_check import (
    MAX_BYTES,
    Update,
    find_update,
    is_newer,
    read_answer,
    secure_page,
    version_of,
)
from tests.support.update_server import PAGE, certificate, update_server

numbers = st.lists(st.integers(0, 12), min_size=2, max_size=4).map(lambda n: ".".join(map(str, n)))
stages = st.sampled_from(["", "a1", "a2", "b1", "b10", "rc1", "rc2"])
versions = st.builds("".join, st.tuples(numbers, stages))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def certificate_file(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def server(certificate_file, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate_file))
    with update_server(certificate_file) as seen:
        yield seen


def build(url, version="0.1.0"):
    return BuildInfo(version, "abc", "zip", url)


async def test_a_newer_version_is_found_with_one_plain_request(server):
    assert await find_update(build(server.url)) == Update("99.1", PAGE)
    ((method, path, headers),) = server.requests
    assert (method, path) == ("GET", "/latest.json")
    assert headers == {
        "Host": f"127.0.0.1:{server.port}",
        "User-Agent": "openchrome-monitor/0.1.0",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


async def test_no_credentials_of_a_netrc_file_are_sent(server, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    await find_update(build(server.url))
    assert "Authorization" not in server.requests[0][2]


async def test_the_same_version_is_no_update(server):
    assert await find_update(build(server.url, "99.1.0")) is None


async def test_a_redirect_is_followed_without_the_cookie_of_the_first_answer(server):
    server.status, server.headers = 302, {"Location": "/moved"}
    assert await find_update(build(server.url)) == Update("99.1", PAGE)
    assert [path for _, path, _ in server.requests] == ["/latest.json", "/moved"]
    assert "Cookie" not in server.requests[1][2]


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (302, {"Location": "http://127.0.0.1:9/"}, "not a secure one"),
        (302, {"Location": "file:///etc/passwd"}, "cannot be followed"),
        (302, {"Location": "/latest.json"}, "cannot be followed"),
        (302, {}, "cannot be followed"),  # to itself
        (404, {}, "HTTP 404"),
        (500, {}, "HTTP 500"),
    ],
)
async def test_other_answers_fail_with_their_reason(server, status, headers, reason):
    server.status, server.headers = status, headers
    with pytest.raises(UpdateCheckFailed, match=reason):
        await find_update(build(server.url))


async def test_an_address_without_https_is_never_requested():
    with pytest.raises(UpdateCheckFailed, match="not a secure one"):
        await find_update(build("http://127.0.0.1:9/latest.json"))


async def test_an_answer_above_the_limit_is_refused(server):
    server.body += b" " * MAX_BYTES
    with pytest.raises(UpdateCheckFailed, match="too large"):
        await find_update(build(server.url))


async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate_file, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with (
        update_server(certificate_file) as seen,
        pytest.raises(UpdateCheckFailed, match="cannot be trusted"),
    ):
        await find_update(build(seen.url))
    assert not seen.requests


async def test_a_silent_server_ends_the_check(server, monkeypatch):
    monkeypatch.setattr(update_check, "LIMIT_S", 0.2)
    server.held = threading.Event()
    try:
        with pytest.raises(UpdateCheckFailed, match="in time"):
            await find_update(build(server.url))
    finally:
        server.held.set()


async def test_a_closed_port_fails_with_a_sentence():
    with pytest.raises(UpdateCheckFailed, match="cannot be reached"):
        await find_update(build("https://127.0.0.1:9/latest.json"))


async def test_the_proxy_of_the_system_is_used_and_its_password_is_told_to_nobody(
    server, monkeypatch
):
    asked = []

    async def pass_on(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"HTTP/1.1 200 ok\r\n\r\n")
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    proxy = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    monkeypatch.setenv("https_proxy", f"http://ann:hunter2@127.0.0.1:{port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert await find_update(build(server.url)) == Update("99.1", PAGE)
    assert asked[0].startswith(f"CONNECT 127.0.0.1:{server.port}".encode())
    proxy.close()
    await proxy.wait_closed()
    with pytest.raises(UpdateCheckFailed) as failed:
        await find_update(build(server.url))
    assert "hunter2" not in str(failed.value)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert await find_update(build(server.url)) == Update("99.1", PAGE)


async def _copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 5000,
        b'{"version": 2, "page": "https://example.org/"}',
        b'{"version": "2.0", "page": null}',
        b'{"version": "2.0", "page": "http://example.org/"}',
        b'{"version": "2.0", "page": "javascript:alert(1)"}',
        b'{"version": "2.0", "page": "https://a:b@example.org/"}',
        b'{"version": "<b>2.0", "page": "https://example.org/"}',
        b'{"version": "2.0\\n", "page": "https://example.org/"}',
    ],
)
def test_a_malformed_answer_is_refused(content):
    with pytest.raises(UpdateCheckFailed):
        read_answer(content)


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=5), st.lists))
def test_any_other_json_is_refused(value):
    for content in (value, {"version": value, "page": value}):
        with pytest.raises(UpdateCheckFailed):
            read_answer(json.dumps(content).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content):
    try:
        found = read_answer(content)
    except UpdateCheckFailed:
        return
    assert found.page.startswith("https://")


@given(versions, versions)
def test_versions_have_the_order_of_the_packages(offered, current):
    new, own = Reference(offered), Reference(current)
    wanted = new > own and (own.is_prerelease or not new.is_prerelease)
    assert is_newer(offered, current) == wanted


@given(versions)
def test_no_version_is_newer_than_itself(version):
    assert not is_newer(version, version)
    assert version_of(version) is not None


@given(st.text(max_size=20), versions)
def test_what_is_no_version_is_never_offered(text, version):
    if version_of(text) is None:
        assert not is_newer(text, version)
        assert not is_newer(version, text)
    else:
        assert str(Reference(text))


@pytest.mark.parametrize(
    "text", ["", "1", "v1.0", "1.0.dev1", "1.0-beta", "1.0 ", "1.0\n", "١.٢", "1." + "9" * 5000]
)
def test_other_spellings_are_no_versions(text):
    assert version_of(text) is None


def test_only_https_pages_without_a_user_may_be_opened():
    assert secure_page("https://example.org/a b") == "https://example.org/a%20b"
    for refused in (
        "http://example.org/",
        "file:///etc/passwd",
        "https://u@example.org/",
        "https://example.org/" + "a" * 3000,
        "example.org",
        "",
    ):
        assert secure_page(refused) is None
