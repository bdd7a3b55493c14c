"""A server process for the benchmark's sites: one port for each, with optional delays.

The process reads its sites as JSON from standard input and prints their addresses. Each site
answers `/.control` (POST: new delays, counters to zero; GET: how often each path was asked for).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

# As sites do it: data is asked for anew, and what has a version in its name is kept.
_FRESH, _KEPT = {"Cache-Control": "no-cache"}, {"Cache-Control": "max-age=3600"}


@dataclass
class Site:
    """What one port serves.

    `folders` maps a prefix to a folder, `files` a path to its text. `fallback` is the file that
    answers what is nowhere (a history-routed application). `slow` maps a prefix to seconds.
    The first answer for `failing` percent of the pages is an error or a dropped connection.
    """

    name: str
    folders: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    fallback: str = ""
    slow: dict[str, float] = field(default_factory=dict)
    failing: int = 0


@dataclass(frozen=True)
class Served:
    """A site that runs at `url`."""

    name: str
    url: str

    def slow(self, **seconds: float) -> None:
        """Set the delay for each prefix (`api=1.2` is for `/api/`), and forget what was counted."""
        told = {f"/{prefix}/": delay for prefix, delay in seconds.items()}
        request = urllib.request.Request(f"{self.url}/.control", json.dumps(told).encode())
        urllib.request.urlopen(request, timeout=10).close()

    def asked(self) -> Counter[str]:
        """How often each path was asked for since the last `slow`."""
        with urllib.request.urlopen(f"{self.url}/.control", timeout=10) as answer:
            return Counter(json.load(answer))


@contextmanager
def serve(sites: Sequence[Site]) -> Iterator[dict[str, Served]]:
    """Run a server process for `sites` while the block lasts."""
    words = [sys.executable, "-m", "tests.bench.real_sites.server"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([asdict(site) for site in sites]) + "\n")
            process.stdin.flush()
            urls = json.loads(process.stdout.readline())
            yield {name: Served(name, url) for name, url in urls.items()}
        finally:
            process.terminate()


class _Handler:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._asked: Counter[str] = Counter()
        self._failed: set[str] = set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == "/.control":
            return await self._control(request)
        self._asked[path] += 1
        await asyncio.sleep(self._delay_s(path))
        answer = self._find(path)
        if answer is not None and path.endswith(("/", ".html")) and self._fails(path):
            if zlib.crc32(path.encode()) % 2 and request.transport is not None:
                request.transport.abort()
            return web.Response(status=503, text="Busy")
        return answer or web.Response(status=404, text="Not found")

    async def _control(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response(self._asked)
        self._site.slow = json.loads(await request.text())
        self._asked.clear()
        self._failed.clear()
        return web.Response()

    def _delay_s(self, path: str) -> float:
        delays = [s for prefix, s in self._site.slow.items() if path.startswith(prefix)]
        if not delays:
            return 0.0
        # A little of its own for each path, so that answers come in another order than asked.
        return max(delays) + (zlib.crc32(path.encode()) % 50) / 1_000

    def _fails(self, path: str) -> bool:
        first = path not in self._failed
        self._failed.add(path)
        return first and zlib.crc32(path[::-1].encode()) % 100 < self._site.failing

    def _find(self, path: str) -> web.StreamResponse | None:
        if path.endswith("/"):
            path += "index.html"
        if (given := self._site.files.get(path)) is not None:
            return self._made(path, given)
        for prefix, folder in sorted(self._site.folders.items(), key=lambda one: -len(one[0])):
            place = Path(folder) / path.removeprefix(prefix)
            if path.startswith(prefix) and ".." not in path and place.is_file():
                return web.FileResponse(place, headers=_headers(path))
        if self._site.fallback and "." not in path.rpartition("/")[2]:
            return self._made("/index.html", self._site.files[self._site.fallback])
        if self._site.fallback and path.endswith("/index.html"):
            return self._made("/index.html", self._site.files[self._site.fallback])
        return None

    @staticmethod
    def _made(path: str, body: str) -> web.Response:
        kind = {
            "json": "application/json",
            "js": "text/javascript",
            "html": "text/html",
            "md": "text/markdown",
        }
        content_type = kind.get(path.rpartition(".")[2], "text/plain")
        return web.Response(
            text=body, content_type=content_type, charset="utf-8", headers=_headers(path)
        )


def _headers(path: str) -> dict[str, str]:
    if path.endswith(".txt"):  # as servers are set up that know their files
        return _FRESH | {"Content-Type": "text/plain; charset=utf-8"}
    return _KEPT if path.endswith((".js", ".css")) else _FRESH


async def _serve(sites: Sequence[dict[str, Any]]) -> None:
    urls = {}
    for given in sites:
        site = Site(**given)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", _Handler(site))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        listener = web.TCPSite(runner, "127.0.0.1", 0)
        await listener.start()
        urls[site.name] = f"http://127.0.0.1:{runner.addresses[0][1]}"
    print(json.dumps(urls), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.stdin.readline())))
