"""A tab over the pipe: navigation by the rules of Playwright, and the page's events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from playwright.async_api import Error
from playwright.async_api import TimeoutError as PlaywrightTimeout

from engine.browser.direct.devtools_connection import CLOSED, CRASHED, Emitter, Session

DIALOG_S: Final = 2.0
GOTO_MS: Final = 30_000.0  # as with Playwright


class DirectFrame:
    """The main frame of a tab, which has no parent."""

    parent_frame: Final = None


class DirectRequest:
    """A request for the document of a tab, or one hop of its redirects."""

    def __init__(self, url: str, frame: DirectFrame, before: DirectRequest | None) -> None:
        self.url = url
        self.frame = frame
        self.redirected_from = before
        self.failure: str | None = None
        self._answered: asyncio.Future[DirectResponse | None] = (
            asyncio.get_running_loop().create_future()
        )

    def is_navigation_request(self) -> bool:
        return True

    async def response(self) -> DirectResponse | None:
        """Wait for the answer; None if the request failed. Unbounded."""
        return await asyncio.shield(self._answered)

    def answer(self, told: Mapping[str, Any]) -> None:
        """Take the answer as Chromium describes it."""
        if not self._answered.done():
            self._answered.set_result(DirectResponse(self, told))

    def fail(self, why: str) -> None:
        """Record that the document, or the rest of it, does not come."""
        self.failure = why
        if not self._answered.done():
            self._answered.set_result(None)


class DirectResponse:
    """The answer to a request: its status and headers."""

    def __init__(self, request: DirectRequest, told: Mapping[str, Any]) -> None:
        self.request = request
        self.url = request.url
        self.status = int(told["status"])
        self.headers = {name.lower(): str(one) for name, one in told["headers"].items()}


class DirectDialog:
    """An open dialog, which blocks its page until it is answered."""

    def __init__(self, session: Session, told: Mapping[str, Any]) -> None:
        self._session = session
        self.type = str(told["type"])

    async def accept(self) -> None:
        """Answer it with its main button; unbounded."""
        await self._session.send("Page.handleJavaScriptDialog", {"accept": True})

    async def dismiss(self) -> None:
        """Answer it with its other button; unbounded."""
        await self._session.send("Page.handleJavaScriptDialog", {"accept": False})


class _Moved(NamedTuple):
    """The end of a navigation: its document ("" within the same one), address, and error."""

    document: str
    url: str
    error: str = ""

    def ends(self, document: str) -> bool:
        """Return whether it ends the navigation to this document, also by another one."""
        if not document:
            return not self.document
        return self.document == document or bool(self.document and not self.error)


class DirectPage(Emitter):
    """A tab with its session; `DirectContext.new_page` opens it."""

    def __init__(self, context: Emitter, root: Session, session: Session, target_id: str) -> None:
        super().__init__()
        self.context = context
        self._root = root  # the browser's own session
        self.session = session
        self.target_id = target_id
        self.main_frame = DirectFrame()
        self.url = "about:blank"
        self.gone = asyncio.Event()
        self.document = ""  # the id of the one that is shown
        self._requests: dict[str, DirectRequest] = {}  # for documents, the last of each
        self._moved: list[_Moved] = []  # since the navigation in progress began
        self._news = asyncio.Event()
        self._broken = ""  # why nothing can be loaded any more
        session.on("Page.frameNavigated", self._on_navigated)
        session.on("Page.navigatedWithinDocument", self._on_moved_within)
        session.on("Page.javascriptDialogOpening", self._on_dialog)
        session.on("Inspector.targetCrashed", self._on_crash)
        session.on("Network.requestWillBeSent", self._on_request)
        session.on("Network.responseReceived", self._on_response)
        session.on("Network.loadingFailed", self._on_failed)

    def is_closed(self) -> bool:
        return self.gone.is_set()

    async def goto(
        self, url: str, *, wait_until: str = "commit", timeout: float = GOTO_MS
    ) -> DirectResponse | None:
        """Open an address and wait until its document is committed, for `timeout` ms.

        Raises:
            playwright.TimeoutError: it did not come in time.
            playwright.Error: with Chromium's `net::ERR_…`, or the tab is gone.
        """
        assert wait_until == "commit"
        try:
            async with asyncio.timeout(timeout / 1000):
                return await self._goto(url)
        except TimeoutError as late:
            raise PlaywrightTimeout(f"Timeout {timeout:.0f}ms exceeded.") from late

    async def _goto(self, url: str) -> DirectResponse | None:
        shown = self._requests.get(self.document)
        self._requests = {} if shown is None else {self.document: shown}
        self._moved = []
        told = await self.session.send(
            "Page.navigate",
            {"url": url, "frameId": self.target_id, "referrerPolicy": "unsafeUrl"},
        )
        if told.get("isDownload"):
            raise Error("Download is starting")
        if told.get("errorText"):
            raise Error(f"{told['errorText']} at {url}")
        document = str(told.get("loaderId", ""))
        moved = await self._moved_to(document)
        if moved.document != document:
            raise Error(
                f'Navigation to "{url}" is interrupted by another navigation to "{moved.url}"'
            )
        if moved.error:
            raise Error(moved.error)
        request = self._requests.get(document)
        return None if request is None or not document else await request.response()

    async def _moved_to(self, document: str) -> _Moved:
        """Wait for the end of the navigation to this document, or for another document."""
        while True:
            ends = [one for one in self._moved if one.ends(document)]
            if ends:
                return ends[0]
            if self._broken:
                raise Error(self._broken)
            self._news.clear()
            await self._news.wait()

    async def wait_for_url(self, url: str, *, wait_until: str, timeout: float) -> None:
        """Wait until the tab shows this address, for `timeout` ms.

        Raises:
            playwright.TimeoutError: it does not.
            playwright.Error: the tab is gone.
        """
        assert wait_until == "commit"
        try:
            async with asyncio.timeout(timeout / 1000):
                while self.url != url:
                    if self._broken:
                        raise Error(self._broken)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError as late:
            raise PlaywrightTimeout(f"Timeout {timeout:.0f}ms exceeded.") from late

    async def close(self) -> None:
        """Close the tab, without asking its page, and wait for its end; unbounded.

        Raises:
            playwright.Error: it is gone already.
        """
        await self._root.send("Target.closeTarget", {"targetId": self.target_id})
        await self.gone.wait()

    def end(self) -> None:
        """Take note of the end of the tab."""
        if not self.gone.is_set():
            self.gone.set()
            self._break(CLOSED)
            self.emit("close", self)

    def _break(self, why: str) -> None:
        self._broken = self._broken or why
        for request in self._requests.values():
            request.fail(why)
        self._news.set()

    def _note(self, moved: _Moved) -> None:
        self._moved.append(moved)
        self._news.set()

    def _on_navigated(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        if frame["id"] != self.target_id:
            return
        self.document = str(frame["loaderId"])
        self.url = str(frame["url"]) + str(frame.get("urlFragment", ""))
        self._note(_Moved(self.document, self.url))
        self.emit("committed", self.document)
        self.emit("framenavigated", self.main_frame)

    def _on_moved_within(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self.target_id:
            self.url = str(event["url"])
            self._note(_Moved("", self.url))
            self.emit("framenavigated", self.main_frame)

    def _on_request(self, event: dict[str, Any]) -> None:
        number = event["requestId"]
        is_document = number == event["loaderId"] and event.get("type") == "Document"
        if not is_document or event.get("frameId") != self.target_id:
            return
        before = self._requests.get(number)
        if before is not None and (answer := event.get("redirectResponse")) is not None:
            before.answer(answer)
        self._requests[number] = DirectRequest(
            str(event["request"]["url"]), self.main_frame, before
        )

    def _on_response(self, event: dict[str, Any]) -> None:
        request = self._requests.get(event["requestId"])
        if request is not None:
            request.answer(event["response"])

    def _on_failed(self, event: dict[str, Any]) -> None:
        number = event["requestId"]
        request = self._requests.get(number)
        if request is None:
            return
        request.fail(str(event.get("errorText") or event.get("blockedReason") or ""))
        if number != self.document:
            self._note(_Moved(number, self.url, request.failure or "failed"))
        self.emit("requestfailed", request)

    def _on_dialog(self, event: dict[str, Any]) -> None:
        dialog = DirectDialog(self.session, event)
        if self.hears("dialog"):
            self.emit("dialog", dialog)
        else:
            self.run(_dismiss(dialog))

    def _on_crash(self, _: object) -> None:
        self.session.end(CRASHED)
        self._break(CRASHED)
        self.emit("crash", self)


async def _dismiss(dialog: DirectDialog) -> None:
    try:
        async with asyncio.timeout(DIALOG_S):
            await dialog.dismiss()
    except (Error, TimeoutError):
        return  # closed with its page
