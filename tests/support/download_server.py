"""A stand-in for the server of Playwright's browsers, on a free port of this machine."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.browser.chromium import locate

DEBIAN = Path("/usr/lib/chromium/chromium-headless-shell")
PROGRAM = b"#!/bin/sh\necho 'Chromium 159.0.8154.6'\n"
PADDING = 4_000_000  # bytes after a small program, so that a download has a middle
SHELL, FULL = "chrome-headless-shell", "chrome"


def hide_browsers(monkeypatch: pytest.MonkeyPatch, data: Path) -> Path:
    """Hide the browsers and proxies of this machine; return the folder for downloaded ones."""
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    monkeypatch.setattr(locate, "_installed", lambda: iter(()))
    monkeypatch.setattr(locate, "HEADLESS_SHELL", "no-such-program")
    monkeypatch.setattr(locate, "_SHELL_NAMES", ())
    monkeypatch.setattr(locate, "_ON_PATH", (("Chrome", ()),))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return locate.downloads()


class DownloadServer:
    """Server of one archive for the headless shell and one for the full browser.

    `status` is the answer; `cut_at` ends the connection after so many bytes; while `held`, an
    archive stops in its middle. `asked` lists the paths of browsers that were requested.
    """

    def __init__(self, program: bytes = PROGRAM) -> None:
        self.status = 200
        self.cut_at: int | None = None
        self.go_on = threading.Event()
        self.go_on.set()
        self.in_the_middle = threading.Event()
        self.asked: list[str] = []
        self.archives = {name: packed(name, program) for name in (SHELL, FULL)}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def hold(self) -> None:
        """Stop the next archives in their middle, until `go_on` is set."""
        self.go_on.clear()

    def replace(self, program: bytes) -> None:
        self.archives = {name: packed(name, program) for name in (SHELL, FULL)}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name = SHELL if SHELL in request.path else FULL
        if "/cft/" not in request.path:  # FFmpeg
            request.send_error(404)
            return
        self.asked.append(request.path)
        if self.status != 200:
            request.send_error(self.status)
            return
        archive = self.archives[name]
        request.send_response(200)
        request.send_header("Content-Length", str(len(archive)))
        request.end_headers()
        self._send(request, archive)

    def _send(self, request: BaseHTTPRequestHandler, archive: bytes) -> None:
        middle = len(archive) // 2 if self.cut_at is None else self.cut_at
        try:
            request.wfile.write(archive[:middle])
            request.wfile.flush()
            self.in_the_middle.set()
            if self.cut_at is not None:
                request.close_connection = True
                return
            self.go_on.wait(120)
            request.wfile.write(archive[middle:])
        except OSError:
            request.close_connection = True  # the download was cancelled

    @contextmanager
    def running(self) -> Iterator[DownloadServer]:
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.go_on.set()
            self._http.shutdown()
            self._http.server_close()
            thread.join()


def packed(name: str, program: bytes) -> bytes:
    """Return the archive of a browser that is one small program."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        _add(archive, f"{name}-linux64/{name}", program)
        archive.writestr(f"{name}-linux64/padding", bytes(PADDING))
    return data.getvalue()


def packed_folder(name: str, program: Path) -> bytes:
    """Return the archive of a real browser: its folder, with its program renamed."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        _add(archive, f"{name}-linux64/{name}", program.read_bytes())
        for file in program.parent.rglob("*"):
            if file.is_file() and not file.name.startswith("chrom"):
                archive.write(file, f"{name}-linux64/{file.relative_to(program.parent)}")
    return data.getvalue()


def _add(archive: zipfile.ZipFile, name: str, program: bytes) -> None:
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o755 << 16
    archive.writestr(info, program)
