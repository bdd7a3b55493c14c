"""The cost of the network filter for a crawl: the same pages with it, past it, and without it.

Three ways to the same site: `open`, the browser without any proxy; `start`, as a crawl of
this machine is (its own place lies in the bypass); `fenced`, everything through the proxy,
as from a public site. A fourth way, `proxied`, goes through a tinyproxy of this machine, where it
is installed. Each page brings a style sheet and three scripts of its own and asks
for one more thing. The site answers after `--delay-ms`, as one does that is not far away.
With `--tls` all of it is https with a throw-away certificate. CPU is user + system of the
whole process tree; `own` is the engine's process, the proxy's thread included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.bench.crawl import CONCURRENCY, SIDE_LIMIT_S, cpu_s
from tests.bench.report import report
from tests.bench.sides import Race

SIDES = ("open", "start", "fenced", "proxied")
TINYPROXY = shutil.which("tinyproxy")
PACE_FENCED, PACE_START = 0.90, 0.98  # of the pages per second without a fence
PARTS = ("a.css", "b.js", "c.js", "d.js", "e.json")
_HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n"
)
_KINDS = {"css": "text/css", "js": "text/javascript", "json": "application/json"}


def body_of(path: str) -> tuple[str, bytes]:
    """What stands at `path`: page N, or a part of it (`/N/b.js`) of 8 KiB."""
    number, _, part = path.strip("/").partition("/")
    if part:
        kind = _KINDS[part.rpartition(".")[2]]
        return kind, (b'""' if kind.endswith("json") else b"/*" + b"x" * 8_188 + b"*/")
    here = int(number or 0)
    links = "".join(f"<a href='/{here * 4 + step}'>next</a>" for step in (1, 2, 3, 4))
    scripts = "".join(f"<script src='/{here}/{part}'></script>" for part in PARTS[1:4])
    text = f"<title>{here}</title><link rel=stylesheet href='/{here}/{PARTS[0]}'>{links}"
    ask = f"<script>fetch('/{here}/{PARTS[4]}').then(() => document.body.append('done'))</script>"
    return "text/html", (text + "<p>" + "words and more words " * 200 + scripts + ask).encode()


async def serve(delay_s: float, tls: bool, folder: Path) -> None:
    """The site, until the process is ended; prints its address."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                kind, body = body_of(head.split(b" ")[1].decode())
                await asyncio.sleep(delay_s)
                writer.write(_HEAD.format(kind, len(body)).encode() + body)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            writer.close()

    context = _certified(folder) if tls else None
    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=context)
    scheme = "https" if tls else "http"
    print(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def _certified(folder: Path) -> ssl.SSLContext:
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=bench"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def sides() -> tuple[str, ...]:
    """The ways that can be measured here."""
    return SIDES if TINYPROXY else SIDES[:-1]


def prepare(side: str) -> None:
    """Change the engine of this process so that it goes this way."""
    import engine.browser.chromium.tab_pool as pool_module
    from engine.egress.egress_policy import Policy
    from engine.egress.proxy_listener import ProxyListener

    pool: Any = pool_module

    fenced = pool.open_context

    async def open_context(*given: Any, **options: Any) -> Any:
        return await fenced(*given, **options, ignore_https_errors=True)

    pool.open_context = open_context
    if side == "open":
        # A property in the place of another.
        ProxyListener.bypass = property(lambda self: "*")  # type: ignore[assignment]
    if side == "fenced":
        Policy.loopback_places = lambda self: ()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def tinyproxy() -> Iterator[str]:
    """The address of a running tinyproxy."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        setting = Path(folder, "tinyproxy.conf")
        setting.write_text(f"Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 300\n")
        free.close()
        program = subprocess.Popen(
            [str(TINYPROXY), "-d", "-c", str(setting)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not _listens(port):
                time.sleep(0.01)  # no event to wait for: another process begins to listen
            yield f"http://127.0.0.1:{port}"
        finally:
            program.terminate()
            program.wait()


async def crawl(url: str, pages: int, proxy: str = "none") -> dict[str, float]:
    """Crawl that many pages with the engine and its ledger."""
    from engine.model.config import Settings
    from engine.service.engine import Engine

    with tempfile.TemporaryDirectory() as home:
        engine = Engine(Settings.at(home=Path(home)), accepts=True)
        await engine.open()
        try:
            await engine.warm()
            began, cpu, own = time.perf_counter(), cpu_s(), time.process_time()
            args = {"url": f"{url}/", "engine": "browser", "max_pages": pages, "max_depth": 100}
            args |= {
                "proxy": proxy,
                "delay_ms": 0,
                "concurrency": CONCURRENCY,
                "respect_robots": False,
            }
            task = await engine.requests.start("crawl", args)
            ended = await engine.tasks.wait(task.task_id, SIDE_LIMIT_S * 1000)
            kept = Path(home, "tasks", task.task_id, "pages.jsonl").read_bytes().splitlines()
            assert ended.status == "COMPLETED", ended
            seconds = time.perf_counter() - began
        finally:
            await engine.close()
    whole = sum("done" in str(json.loads(line).get("content")) for line in kept)
    return {
        "pages_s": len(kept) / seconds,
        "cpu_ms": (cpu_s() - cpu) / len(kept) * 1000,
        "own_ms": (time.process_time() - own) / len(kept) * 1000,
        "whole": whole,
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench egress", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--pages", type=int, default=150)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.serve:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(serve(given.delay_ms / 1000, given.tls, Path(folder)))
    elif given.side:
        prepare(given.side)
        with tinyproxy() if given.side == "proxied" else nullcontext("none") as proxy:
            print(json.dumps(asyncio.run(crawl(given.url, given.pages, proxy))))
    else:
        words = [sys.executable, "-m", "tests.bench", "egress", "--serve"]
        words += ["--delay-ms", str(given.delay_ms), *(["--tls"] if given.tls else [])]
        race = Race("egress", sides(), SIDE_LIMIT_S)
        return _tell(race.run(words, given.rounds, given.pages), given)
    return 0


def _tell(measured: dict[str, list[dict[str, float]]], given: argparse.Namespace) -> int:
    def ratio(side: str, key: str) -> float:
        pairs = zip(measured[side], measured["open"], strict=True)
        return statistics.median(one[key] / other[key] for one, other in pairs)

    keys = ("pages_s", "cpu_ms", "own_ms", "whole")
    rows = [
        (side, *(statistics.median(told[key] for told in measured[side]) for key in keys))
        for side in sides()
    ]
    facts = {
        **{name: getattr(given, name) for name in ("rounds", "pages", "delay_ms", "tls")},
        "pace_fenced": ratio("fenced", "pages_s"),
        "pace_start": ratio("start", "pages_s"),
        "cpu_fenced": ratio("fenced", "cpu_ms"),
        "cpu_start": ratio("start", "cpu_ms"),
        "pace_proxied": ratio("proxied", "pages_s") if TINYPROXY else None,
        "pace_fenced_target": PACE_FENCED,
        "pace_start_target": PACE_START,
    }
    report("egress", ("way", "pages/s", "CPU ms/page", "own ms/page", "whole"), rows, facts)
    kept = facts["pace_fenced"] >= PACE_FENCED and facts["pace_start"] >= PACE_START
    return 0 if kept else 1
