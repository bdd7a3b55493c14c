"""A site of three pages whose content a test changes, or which is down."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class ChangingSite:
    """Serves `pages` on a free port of this machine; with `down` each answer is an error."""

    def __init__(self) -> None:
        self.pages = {
            "/": "<p>Home <a href=/a>a</a><a href=/b>b</a></p>",
            "/a": "<p>First</p>",
            "/b": "<p>Second</p>",
        }
        self.down = False
        self.answers = threading.Event()  # while it is not set, every request waits
        self.answers.set()
        site = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answers.wait()
                body = site.pages.get(self.path)
                code = 503 if site.down else 404 if body is None else 200
                data = f"<html><title>{self.path}</title><body>{body}".encode()
                self.send_response(code)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with suppress(OSError):  # the browser may have left
                    self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
