"""Answer the dialogs of a page (alert, confirm, prompt, beforeunload) as a task wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
    """The answer that dialogs get, dismissed unless told otherwise, and what they said."""

    accept: bool = False
    text: str | None = None
    _seen: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, dialog: Dialog) -> None:
        """Answer one dialog; it may be gone with its page already."""
        if len(self._seen) < MAX_KEPT:
            said = dialog.message[:MAX_HELD]
            answered = "accepted" if self.accept else "dismissed"
            self._seen.append({"type": dialog.type, "message": said, "answer": answered})
        try:
            async with asyncio.timeout(ANSWER_S):
                if not self.accept:
                    await dialog.dismiss()
                elif dialog.type == "prompt":
                    await dialog.accept(dialog.default_value if self.text is None else self.text)
                else:
                    await dialog.accept()
        except (TimeoutError, Error):
            return  # answered by the page's own end

    @property
    def kept_the_page(self) -> bool:
        """Whether a page asked before it was left, and was not left for the answer."""
        refused = (each["answer"] == "dismissed" for each in self._seen if each["type"] == LEAVING)
        return any(refused)

    def take(self, hide: Callable[[str], str]) -> list[dict[str, Any]]:
        """What was said since the last call; `hide` sees a message before it is cut."""
        seen, self._seen = self._seen, []
        return [{**each, "message": hide(each["message"])[:MAX_MESSAGE]} for each in seen]
