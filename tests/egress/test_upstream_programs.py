"""Proxies that people run, where they are installed: tinyproxy and microsocks."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from engine.sample.site import Answer, Request
from tests.egress.test_upstream_tasks import FAST, USER, code_of, run, shop
from tests.support.engines import opened
from tests.support.ports import free_port
from tests.support.serving import served
from tests.trust.test_given_credentials import leaks

WORD: Final = USER[1]  # which the pages of `shop` repeat
START_S: Final = 60.0
ENGINES: Final = ("static", "browser")


@contextmanager
def running(words: Sequence[str], port: int) -> Iterator[None]:
    """A proxy program that accepts connections on `port`."""
    program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(int(START_S / 0.05)):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            with suppress(subprocess.TimeoutExpired):
                program.wait(0.05)
        yield
    finally:
        program.terminate()
        program.wait()


@pytest.fixture
def tinyproxy(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and its log; CONNECT is for port 443 only, as Debian has it."""
    program = shutil.which("tinyproxy")
    if program is None:
        pytest.skip("tinyproxy is not installed")
    log = tmp_path / "tinyproxy.log"
    setting = tmp_path / "tinyproxy.conf"
    lines = ("Listen 127.0.0.1", "Timeout 60", f'LogFile "{log}"', "LogLevel Info")
    (tmp_path / "filter").write_text("^filtered\\.example$\n")
    rest = ("MaxClients 50", f"BasicAuth ann {WORD}", "ConnectPort 443")
    refused = f'Filter "{tmp_path / "filter"}"'
    with free_port() as port:
        setting.write_text("\n".join((f"Port {port}", *lines, *rest, refused)) + "\n")
        with running([program, "-d", "-c", str(setting)], port):
            yield f"http://127.0.0.1:{port}", log


@pytest.fixture
def microsocks() -> Iterator[str]:
    program = shutil.which("microsocks")
    if program is None:
        pytest.skip("microsocks is not installed")
    with free_port() as port:
        words = [program, "-i", "127.0.0.1", "-p", str(port), "-u", "ann", "-P", WORD]
        with running(words, port):
            yield f"socks5://127.0.0.1:{port}"


@pytest.mark.parametrize("engine_name", ENGINES)
async def test_a_crawl_through_tinyproxy(
    home: Path, kept_browser: object, tinyproxy: tuple[str, Path], engine_name: str
) -> None:
    url, log = tinyproxy
    given = {"proxy": url, "proxy_username": "ann", "proxy_password": {"secret": "env:WORD"}}
    environ, browser = {"WORD": WORD}, os.environ.get("OC_BROWSER")
    with served(shop) as front:
        async with opened(home, environ=environ, browser_path=browser) as engine:
            args = {"url": f"{front}/", "engine": engine_name, **FAST}
            record = await run(engine, "crawl", {**args, **given})
            wrong = await run(engine, "crawl", {**args, **given, "proxy_username": "bob"})
    assert record.status == "COMPLETED", record
    assert f"GET {front}/" in log.read_text()
    assert code_of(wrong) == "proxy_refused_user"
    assert leaks(home) == []


def errors(request: Request) -> Answer:
    """A site that answers with errors, and a start page."""
    status = {"/busy": 503, "/no": 403}.get(request.path, 200)
    links = b"<a href=/busy>busy</a><a href=/no>no</a>"
    links += b"<a href=http://filtered.example/>f</a><a href=http://gone.invalid/>g</a>"
    return Answer(b"<title>A page</title>" + links, status=status)


@pytest.mark.parametrize("engine_name", ENGINES)
async def test_pages_that_tinyproxy_makes_itself_are_no_answers_of_the_site(
    home: Path, kept_browser: object, tinyproxy: tuple[str, Path], engine_name: str
) -> None:
    url, _ = tinyproxy
    given = {"proxy": url, "proxy_username": "ann", "proxy_password": {"secret": "env:WORD"}}
    environ, browser = {"WORD": WORD}, os.environ.get("OC_BROWSER")
    more = {"respect_robots": False, "scope": "**", "max_pages": 10}
    with served(errors) as front:
        async with opened(home, environ=environ, browser_path=browser) as engine:
            args = {"url": f"{front}/", "engine": engine_name, **FAST, **more, **given}
            record = await run(engine, "crawl", args)
    lines = (home / "tasks" / record.task_id / "pages.jsonl").read_text().splitlines()
    found = {
        page["url"].removeprefix(front): (page.get("error_code"), page.get("status"))
        for page in map(json.loads, lines)
    }
    assert found == {
        "/": (None, 200),
        "/busy": ("http", 503),
        "/no": ("http", 403),
        "http://filtered.example/": ("proxy_refused", None),
        "http://gone.invalid/": ("proxy", None),
    }


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_a_crawl_through_microsocks(
    home: Path, kept_browser: object, microsocks: str, scheme: str, engine_name: str
) -> None:
    url = microsocks.replace("socks5", scheme)
    given = {"proxy": url, "proxy_username": "ann", "proxy_password": {"secret": "env:WORD"}}
    environ, browser = {"WORD": WORD}, os.environ.get("OC_BROWSER")
    with served(shop) as front:
        async with opened(home, environ=environ, browser_path=browser) as engine:
            args = {"url": f"{front}/", "engine": engine_name, **FAST}
            record = await run(engine, "crawl", {**args, **given})
            wrong = await run(engine, "crawl", {**args, **given, "proxy_username": "bob"})
    assert record.status == "COMPLETED", record
    assert code_of(wrong) == "proxy_refused_user"
    assert leaks(home) == []
