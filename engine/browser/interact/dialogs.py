"""Answer the dialogs of a page (alert, confirm, prompt, beforeunload) as the task sets.

A `beforeunload` dialog is accepted, unless the task sets `stay`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playwright.async_api import Error

if TYPE_CHECKING:
    from playwright.async_api import Dialog

ANSWER_S: Final = 2.0
MAX_KEPT: Final = 20  # for each command; a page may open dialogs without end
MAX_HELD: Final = 20_000  # characters of one message while it is queued
MAX_MESSAGE: Final = 1_000  # characters of it in the result
LEAVING: Final = "beforeunload"


@dataclass(slots=True)
class Dialogs:
    """The answer to dialogs, by default to dismiss them, and their messages.

    `stay` dismisses `beforeunload` dialogs; `expected` marks that as no failure.
    """

    accept: bool = False
    text: str | None = None
    stay: bool = False
    expected: bool = False
    kept_the_page: bool = False  # a dismissed `beforeunload` dialog stopped a navigation
    _seen: list[dict[str, Any]] = field(default_factory=list)
    _scope: asyncio.Timeout | None = None

    async def answer(self, dialog: Dialog) -> None:
        """Answer one dialog, which may have closed with its page."""
        accepts = not self.stay if dialog.type == LEAVING else self.accept
        if len(self._seen) < MAX_KEPT:
            message = dialog.message[:MAX_HELD]
            answered = "accepted" if accepts else "dismissed"
            self._seen.append({"type": dialog.type, "message": message, "answer": answered})
        keeps = dialog.type == LEAVING and not accepts and not self.expected
        self.kept_the_page = self.kept_the_page or keeps  # set before the navigation fails
        try:
            async with asyncio.timeout(ANSWER_S):
                if not accepts:
                    await dialog.dismiss()
                elif dialog.type == "prompt":
                    await dialog.accept(dialog.default_value if self.text is None else self.text)
                else:
                    await dialog.accept()
        except (TimeoutError, Error):
            return  # closed with the page
        if keeps and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Watch one command; raise `TimeoutError` when a page stays against its navigation."""
        self.kept_the_page = False
        try:
            async with asyncio.timeout(None) as self._scope:
                yield
        finally:
            self._scope = None

    def take(self, hide: Callable[[str], str]) -> list[dict[str, Any]]:
        """Return and clear the dialogs; `hide` masks a message before it is cut."""
        seen, self._seen = self._seen, []
        return [{**each, "message": hide(each["message"])[:MAX_MESSAGE]} for each in seen]
