"""Answer the dialogs of a page (alert, confirm, prompt, beforeunload) as a task wants it.

A page that asks whether to leave it is left, as if nobody had asked, unless the task says `stay`.
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
MAX_KEPT: Final = 20  # of one command; a page may ask without end
MAX_HELD: Final = 20_000  # characters of one message, until it is taken
MAX_MESSAGE: Final = 1_000  # characters that are told of it
LEAVING: Final = "beforeunload"


@dataclass(slots=True)
class Dialogs:
    """The answer that dialogs get, dismissed unless told otherwise, and what they said.

    `stay` keeps pages that ask whether to leave them; `expected` says that this is no failure.
    """

    accept: bool = False
    text: str | None = None
    stay: bool = False
    expected: bool = False
    kept_the_page: bool = False  # a page asked, and was not left, against what a command wanted
    _seen: list[dict[str, Any]] = field(default_factory=list)
    _scope: asyncio.Timeout | None = None

    async def answer(self, dialog: Dialog) -> None:
        """Answer one dialog; it may be gone with its page already."""
        accepts = not self.stay if dialog.type == LEAVING else self.accept
        if len(self._seen) < MAX_KEPT:
            said = dialog.message[:MAX_HELD]
            answered = "accepted" if accepts else "dismissed"
            self._seen.append({"type": dialog.type, "message": said, "answer": answered})
        keeps = dialog.type == LEAVING and not accepts and not self.expected
        self.kept_the_page = self.kept_the_page or keeps  # before the navigation hears of it
        try:
            async with asyncio.timeout(ANSWER_S):
                if not accepts:
                    await dialog.dismiss()
                elif dialog.type == "prompt":
                    await dialog.accept(dialog.default_value if self.text is None else self.text)
                else:
                    await dialog.accept()
        except (TimeoutError, Error):
            return  # answered by the page's own end
        if keeps and self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """One command; `TimeoutError` as soon as a page is kept that it wanted to leave."""
        self.kept_the_page = False
        try:
            async with asyncio.timeout(None) as self._scope:
                yield
        finally:
            self._scope = None

    def take(self, hide: Callable[[str], str]) -> list[dict[str, Any]]:
        """What was said since the last call; `hide` sees a message before it is cut."""
        seen, self._seen = self._seen, []
        return [{**each, "message": hide(each["message"])[:MAX_MESSAGE]} for each in seen]
