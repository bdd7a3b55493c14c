"""Where a tab goes, and who sent it there: the browser's own events, told apart.

A renderer (a link, a form, a script) first asks to go somewhere; what nobody asked for was
typed, reloaded, or taken from the history by the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from engine.kinds.recording.recorder_messages import How

_WEB: Final = ("http://", "https://")
_BY_REASON: Final[Mapping[str, How]] = {
    "anchorClick": "link",
    "formSubmissionGet": "form",
    "formSubmissionPost": "form",
}
_HISTORY: Final = ("historyDifferentDocument", "historySameDocument")


class Step(NamedTuple):
    """One change of address. `in_history`: back or forward, the browser's list tells which."""

    url: str
    how: How
    in_history: bool = False
    asked: str | None = None
    failed: bool = False


class Journey:
    """One tab's way. Feed it the DevTools events of its main frame, in their order."""

    def __init__(self, frame_id: str) -> None:
        self.url = ""
        self._frame_id = frame_id
        self._reason = ""
        self._kind = ""
        self._asked = ""

    def requested(self, event: Mapping[str, Any]) -> None:
        """`Page.frameRequestedNavigation`: the page itself wants to go somewhere."""
        if event.get("frameId") == self._frame_id:
            self._reason = str(event.get("reason", "script"))

    def started(self, event: Mapping[str, Any]) -> None:
        """`Page.frameStartedNavigating`."""
        if event.get("frameId") == self._frame_id:
            self._kind = str(event.get("navigationType", ""))
            self._asked = str(event.get("url", ""))

    def navigated(self, event: Mapping[str, Any]) -> Step | None:
        """`Page.frameNavigated`: another document; None where it is no web page."""
        frame = event["frame"]
        if frame.get("parentId") or frame.get("id") != self._frame_id:
            return None
        failed = bool(frame.get("unreachableUrl"))
        url = str(frame.get("unreachableUrl") or frame["url"] + frame.get("urlFragment", ""))
        return self._step(url, self._how(), failed=failed)

    def within(self, event: Mapping[str, Any]) -> Step | None:
        """`Page.navigatedWithinDocument`: the same document under another address."""
        if event.get("frameId") != self._frame_id:
            return None
        url = str(event.get("url", ""))
        typed = self._kind == "sameDocument" and not self._reason
        how: How = "typed" if typed else "in_page"
        if url == self.url and self._kind not in _HISTORY:
            return None  # a state without an address of its own
        return self._step(url, how, failed=False)

    def _how(self) -> How:
        if self._reason:
            return _BY_REASON.get(self._reason, "script")
        return "reload" if self._kind.startswith("reload") else "typed"

    def _step(self, url: str, how: How, *, failed: bool) -> Step | None:
        in_history = self._kind in _HISTORY
        asked = self._asked if how == "typed" and not in_history else ""
        self._reason = self._kind = self._asked = ""
        if not url.startswith(_WEB):
            return None
        self.url = url
        plain = asked if asked.startswith(_WEB) and asked != url else None
        return Step(url, "back" if in_history else how, in_history, plain, failed)
