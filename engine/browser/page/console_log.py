"""What a page said on its console while it was watched, and which of its errors nobody caught."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.model import redact
from engine.model.display import display

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Page
    from playwright.async_api import Error as PageFailure

MAX_LINES: Final = 200  # the newest, as OpenChrome keeps them
MAX_TEXT: Final = 2_000


class ConsoleLog:
    """Watches a page from now on; times are ms since the beginning."""

    def __init__(
        self,
        page: Page,
        monotonic: Callable[[], float],
        *,
        key_shapes: bool = True,
        hide: Callable[[str], str] = str,
    ) -> None:
        """`hide` takes out of a text what must not be kept, before the text is cut."""
        self._hide = hide
        self._page = page
        self._monotonic = monotonic
        self._began = monotonic()
        self._lines: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._key_shapes = key_shapes
        self.total = 0
        page.on("console", self._on_console)
        page.on("pageerror", self._on_error)

    @property
    def is_cut(self) -> bool:
        return self.total > len(self._lines)

    @property
    def redacted(self) -> int:
        """How many key shapes were taken out of the lines that are kept."""
        return sum(line.get("redacted", 0) for line in self._lines)

    def close(self) -> None:
        """Watch no longer; a living tab goes on."""
        self._page.remove_listener("console", self._on_console)
        self._page.remove_listener("pageerror", self._on_error)

    def encoded(self) -> bytes:
        """The lines as the file that keeps them: one JSON object each."""
        hidden = ("text", "url")  # once more: a field may have come to hold a secret since
        lines = [
            {name: self._hide(said) if name in hidden else said for name, said in line.items()}
            for line in self._lines
        ]
        return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)

    def _on_console(self, message: ConsoleMessage) -> None:
        place = message.location
        line = {"type": display(message.type, 20), **self._said(message.text)}
        if place.get("url"):
            line["url"] = display(redact.text(self._hide(str(place["url"]))), 500)
        self._add(line, place.get("lineNumber"))

    def _on_error(self, failure: PageFailure) -> None:
        told = f"{failure.name}: {failure.message}"
        self._add({"type": "uncaught", **self._said(told)}, None)

    def _said(self, text: str) -> dict[str, Any]:
        """A page's own words; addresses in them, which the browser writes there too, lose more."""
        kept, count = redact.url(self._hide(text)), 0
        if self._key_shapes:
            kept, count = redact.content(kept)
        return {"text": display(kept, MAX_TEXT), **({"redacted": count} if count else {})}

    def _add(self, line: dict[str, Any], number: int | None) -> None:
        at_ms = round((self._monotonic() - self._began) * 1_000, 1)
        self.total += 1
        self._lines.append({"at_ms": at_ms, **line, **({"line": number} if number else {})})
