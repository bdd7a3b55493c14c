"""A small site with everything that an archive has to keep: styles, images, fonts, data, frames."""

from __future__ import annotations

import gzip
import http.server
import json
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

SECRET = "s3cr3t-Pass-phrase"
BIG_BYTES = 24 * 1024 * 1024  # above what Chromium keeps of one body

RED = (200, 0, 0)


def png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """A picture in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    rows = (b"\0" + bytes(colour) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


CSS = b"body{background:rgb(1,120,60);color:#fff} @font-face{font-family:F;src:url(/font.woff2)}"
CSS += b" h1{font-family:F,serif} img{border:3px solid red}"
SCRIPT = b"""
fetch('/data.json').then(r => r.json()).then(found => {
  document.getElementById('got').textContent = found.words;
  return fetch('/ask', {method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({query: 'wren', more: [1, 2]})});
}).then(r => r.text()).then(text => { document.getElementById('posted').textContent = text; });
"""
WORKER = b"fetch('/from-worker.txt').then(r => r.text());"


def page(title: str, body: str) -> bytes:
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        "<link rel=stylesheet href=/site.css></head>"
        f"<body><h1>{title}</h1>{body}</body></html>"
    ).encode()


HOME = page(
    "Rich page",
    "<p>The quick brown text of the home page, which a replay has to show.</p>"
    "<img id=pic src=/picture.png width=64 height=48><img src=/tagged.png>"
    "<p id=got></p><p id=posted></p><iframe src=/frame></iframe>"
    "<a href=/second>Second</a> <a href=/moved>Moved</a><script src=/app.js></script>",
)
SECOND = page("Second page", "<p>Text of the second page.</p><img src=/tagged.png>")


BUSY = page("Busy", "<p>It has a worker.</p><script>new Worker('/worker.js')</script>")


class Rich:
    """What the site answers, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.extra: dict[str, tuple[int, Mapping[str, str], bytes]] = {}

    def answer(self, path: str, given: Mapping[str, str], body: bytes) -> Any:
        html, text = "text/html; charset=utf-8", "text/plain; charset=utf-8"
        kept = {"Cache-Control": "max-age=600"}
        if path in self.extra:
            return self.extra[path]
        if path == "/tagged.png":
            tag = {"ETag": '"one"', "Cache-Control": "no-cache"}
            if given.get("If-None-Match") == '"one"':
                return 304, tag, b""
            return 200, {"Content-Type": "image/png", **tag}, png(10, 10, (0, 0, 200))
        known: dict[str, tuple[int, Mapping[str, str], bytes]] = {
            "/": (200, {"Content-Type": html, "Set-Cookie": "sid=cookie-of-the-session"}, HOME),
            "/busy": (200, {"Content-Type": html}, BUSY),
            "/second": (200, {"Content-Type": html}, SECOND),
            "/moved": (302, {"Location": "/target"}, b"moved away"),
            "/target": (200, {"Content-Type": html}, page("Target", "<p>Text of the target.</p>")),
            "/frame": (200, {"Content-Type": html}, page("Frame", "<p>Text of the frame.</p>")),
            "/site.css": (
                200,
                {"Content-Type": "text/css", "Content-Encoding": "gzip", **kept},
                CSS,
            ),
            "/picture.png": (200, {"Content-Type": "image/png", **kept}, png(64, 48, RED)),
            "/font.woff2": (200, {"Content-Type": "font/woff2"}, b"wOF2" + bytes(200)),
            "/app.js": (200, {"Content-Type": "text/javascript"}, SCRIPT),
            "/worker.js": (200, {"Content-Type": "text/javascript"}, WORKER),
            "/from-worker.txt": (200, {"Content-Type": text}, b"for the worker"),
            "/data.json": (
                200,
                {"Content-Type": "application/json"},
                json.dumps({"words": "words that a script loaded"}).encode(),
            ),
            "/ask": (200, {"Content-Type": text}, b"answer to " + body),
            "/robots.txt": (200, {"Content-Type": text}, b"User-agent: *\nAllow: /\n"),
        }
        return known.get(path, (404, {"Content-Type": text}, b"not here"))


@contextmanager
def rich_site() -> Iterator[Rich]:
    """Serve the site on a free port."""
    site = Rich()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            site.asked[path] += 1
            size = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(size)
            status, headers, body = site.answer(path, dict(self.headers.items()), sent)
            if headers.get("Content-Encoding") == "gzip":
                body = gzip.compress(body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 304:
                size = len(body) + int(headers.get("X-Lacks", "0"))
                self.send_header("Content-Length", str(size))
                self.close_connection = size > len(body)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
