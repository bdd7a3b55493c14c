"""What a page requested while it was watched: a summary of each request, never a body.

The shape follows a HAR's entries where it can. Addresses and headers pass the redactor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from playwright.async_api import Error

from engine.model import redact
from engine.model.display import display

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Response, WebSocket

MAX_ENTRIES: Final = 2_000
MAX_URL: Final = 2_000  # characters; what a data: address holds is no address
MAX_HEADERS: Final = 60
MAX_HEADER: Final = 500


class NetworkLog:
    """Watches a page from now on, for `window_ms`; times are ms since the beginning."""

    def __init__(
        self,
        page: Page,
        window_ms: int,
        monotonic: Callable[[], float],
        hide: Callable[[str], str] = str,
    ) -> None:
        """`hide` takes out of a text what must not be kept, before the text is cut."""
        self._page = page
        self._hide = hide
        self._window_ms = window_ms
        self._monotonic = monotonic
        self._began = monotonic()
        self._entries: dict[Any, dict[str, Any]] = {}
        self._finished: list[Request] = []
        self._total = 0
        self._handlers = {
            "request": self._on_request,
            "response": self._on_response,
            "requestfinished": self._on_finished,
            "requestfailed": self._on_failed,
            "websocket": self._on_websocket,
        }
        for event, handler in self._handlers.items():
            page.on(event, handler)  # type: ignore[call-overload]  # one for each name

    @property
    def left_s(self) -> float:
        """Seconds until the window has passed."""
        return max(0.0, self._window_ms / 1_000 - (self._monotonic() - self._began))

    @property
    def is_cut(self) -> bool:
        return self._total > len(self._entries)

    @property
    def total(self) -> int:
        return self._total

    def close(self) -> None:
        """Watch no longer; a living tab goes on."""
        for event, handler in self._handlers.items():
            self._page.remove_listener(event, handler)

    async def encoded(self) -> bytes:
        """The log as the file that keeps it."""
        for request in self._finished:
            await self._measure(request)
        told = {
            "window_ms": self._window_ms,
            "total": self._total,
            "entries": [self._clean(entry) for entry in self._entries.values()],
        }
        return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"

    def _clean(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Once more: a field may have come to hold a secret since."""
        clean: dict[str, Any] = {}
        for name, value in entry.items():
            clean[name] = self._hide(value) if isinstance(value, str) else value
            if isinstance(value, dict):
                clean[name] = {self._hide(one): self._hide(said) for one, said in value.items()}
        return clean

    def _now_ms(self) -> float:
        return round((self._monotonic() - self._began) * 1_000, 1)

    def _add(self, key: object, entry: dict[str, Any]) -> None:
        at_ms = self._now_ms()
        if at_ms > self._window_ms:
            return
        self._total += 1
        if len(self._entries) < MAX_ENTRIES:
            self._entries[key] = {**entry, "started_ms": at_ms}

    def _on_request(self, request: Request) -> None:
        entry: dict[str, Any] = {
            "url": self._address(request.url),
            "method": display(request.method, 20),
            "type": request.resource_type,
            "request_headers": self._headers(request.headers),
        }
        if request.redirected_from is not None:
            entry["redirected_from"] = self._address(request.redirected_from.url)
        self._add(request, entry)

    def _on_response(self, response: Response) -> None:
        entry = self._entries.get(response.request)
        if entry is not None:
            headers = response.headers
            entry["status"] = response.status
            entry["mime"] = display(headers.get("content-type", ""), 100)
            entry["response_headers"] = self._headers(headers)

    def _on_finished(self, request: Request) -> None:
        entry = self._entries.get(request)
        if entry is not None:
            timing = request.timing
            self._finished.append(request)
            if timing["responseStart"] >= 0:
                entry["ttfb_ms"] = round(timing["responseStart"], 1)
            if timing["responseEnd"] >= 0:
                entry["duration_ms"] = round(timing["responseEnd"], 1)

    def _on_failed(self, request: Request) -> None:
        entry = self._entries.get(request)
        if entry is not None:
            entry["error"] = display(request.failure or "failed", 200)

    def _on_websocket(self, socket: WebSocket) -> None:
        self._add(socket, {"url": self._address(socket.url), "method": "GET", "type": "websocket"})

    async def _measure(self, request: Request) -> None:
        try:
            sizes = await request.sizes()
        except Error:
            return  # its page is gone, and its sizes with it
        self._entries[request]["bytes"] = sizes["responseBodySize"]

    def _address(self, url: str) -> str:
        if url.startswith(("data:", "blob:")):
            return display(self._hide(url[:MAX_URL]), 60)
        return display(redact.text(self._hide(url)), MAX_URL)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers without secrets: known by their name, by their look, or given."""
        some = {name: self._hide(value) for name, value in list(headers.items())[:MAX_HEADERS]}
        kept: dict[str, str] = redact.value(some)
        return {display(name, 100): display(str(value), MAX_HEADER) for name, value in kept.items()}
