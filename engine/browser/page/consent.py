"""Dismiss consent banners of pages by autoconsent's rules: opt out, and never in.

The content script runs in an isolated world of each document, of frames too, and sends messages
through a binding that only this world has. They are data of a renderer: checked and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from playwright.async_api import Error

from engine.browser.chromium.consent_rules import ConsentRules
from engine.browser.page.extraction_options import compact, script
from engine.model.display import display

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Page

WORLD: Final = "openchrome-monitor-consent"
BINDING: Final = "openchromeMonitorConsent"
OPT_OUT_S: Final = 5.0  # for the opt-out of a banner that is shown
POPUP_S: Final = 1.0  # for the banner of a consent manager that is part of the page
MOST_VAIN: Final = 3  # such waits without an answer; it was given on an earlier page, or never is
MAX_BANNERS: Final = 3  # that are rejected on the way to a page, each in another document
EVAL_S: Final = 1.0  # the script waits no longer for an answer
ATTACH_S: Final = 2.0
MAX_CHARS: Final = 64 * 1024  # for each message; the longest snippet has 1,000
MAX_MESSAGES: Final = 500  # for each page
MAX_NAME: Final = 100
# The script writes two lines for each of 200 rules, which took 150 ms of CPU a page, and are no
# messages of the page.
_NO_CONSOLE: Final = "const console = new Proxy({}, { get: () => () => {} });"
_FUNCTION: Final = re.compile(r"(?:async\s*)?(?:\(\)\s*=>|function\b)").match
CONFIG: Final = {
    "enabled": True,
    "autoAction": "optOut",
    "disabledCmps": [],
    "enablePrehide": False,
    "enableCosmeticRules": True,
    "enableHeuristicDetection": False,
    "heuristicMode": "off",
    "detectRetries": 20,
    "logs": {"errors": False},
}


class _Message(msgspec.Struct):
    type: Literal["cmpDetected", "popupFound", "optOutResult", "autoconsentDone", "eval"]
    cmp: str = ""
    result: Any = None
    is_cosmetic: bool = msgspec.field(default=False, name="isCosmetic")
    id: str = ""
    code: str = ""


class ConsentBanners:
    """The rules for the banners of one task, and what the pages of one context showed."""

    def __init__(self, rules: ConsentRules) -> None:
        self._rules = rules
        self._answered: set[tuple[str, str]] = set()
        self._vain: Counter[tuple[str, str]] = Counter()

    @cached_property
    def source(self) -> str:
        """The script of a document: autoconsent's own, connected with this program."""
        arguments = f"{json.dumps(BINDING)}, {json.dumps(self._rules.rules)}, {json.dumps(CONFIG)}"
        connect = f"({compact(script('consent'))})({arguments});"
        return (
            f"if (/^https?:$/.test(location.protocol)) {{ {_NO_CONSOLE} {connect}\n"
            f"{self._rules.script}\n}}"
        )

    def for_new_context(self) -> ConsentBanners:
        """Return the same rules for a context without the cookies of earlier answers."""
        made = ConsentBanners(self._rules)
        made.source = self.source
        return made

    def is_snippet(self, code: str) -> bool:
        """Return whether `code` calls a function of the installed script."""
        body = code.removeprefix("(").removesuffix(")()")
        return len(code) == len(body) + 4 and bool(_FUNCTION(body)) and body in self._rules.script

    def may_show(self, site: str, name: str) -> bool:
        """Return whether a consent manager of a site may still show its banner."""
        return (site, name) not in self._answered and self._vain[site, name] < MOST_VAIN

    def note(self, site: str, name: str, *, answered: bool) -> None:
        """Record whether its banner was answered."""
        if answered:
            self._answered.add((site, name))
        else:
            self._vain[site, name] += 1


class TabConsent:
    """The content script in one tab; `outcome` is the banner of the current page."""

    def __init__(self, banners: ConsentBanners, page: Page, wire: CDPSession) -> None:
        self.outcome: dict[str, str] = {}
        self._banners = banners
        self._page = page
        self._wire = wire
        self._frames: dict[Frame, CDPSession] = {}  # those of other processes
        self._seen: set[tuple[int, int]] = set()  # contexts that sent something
        self._old: set[tuple[int, int]] = set()  # likewise, of earlier pages
        self._frame_ids: dict[tuple[int, int], str] = {}  # of contexts
        self._main_worlds: dict[tuple[int, str], int] = {}  # contexts by frame
        self._messages = 0
        self._name = ""  # of a consent manager that is part of the document
        self._banner = (0, 0)  # the context that found the banner of `outcome`
        self._address = ""  # of the tab then
        self._is_open = False  # its rejection has no result
        self._is_gone = False  # its document ended
        self._finished = 0  # banners of the page
        self._script_id = ""
        self._is_stopped = False
        self._shown = asyncio.Event()
        self._ended = asyncio.Event()

    @classmethod
    async def attach(cls, banners: ConsentBanners, page: Page, wire: CDPSession) -> TabConsent:
        """Add the script to every later document of a tab.

        Raises:
            TimeoutError, playwright.Error: the tab is gone.
        """
        made = cls(banners, page, wire)
        made._listen(wire)
        wire.on("Page.frameNavigated", made._on_document)
        wire.on("Page.frameDetached", made._on_detached)
        async with asyncio.timeout(ATTACH_S):
            await _connect(wire)
            await made._install()
        page.on("framenavigated", made._on_navigated)
        return made

    async def _install(self) -> None:
        given = {"source": self._banners.source, "worldName": WORLD}
        added = await self._wire.send("Page.addScriptToEvaluateOnNewDocument", given)
        self._script_id, self._is_stopped = str(added["identifier"]), False

    async def _stop(self) -> None:
        """Reject no banner of later documents: each rejection may reload the page, without end."""
        self._is_stopped = True
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(EVAL_S):
                given = {"identifier": self._script_id}
                await self._wire.send("Page.removeScriptToEvaluateOnNewDocument", given)

    async def begin(self) -> None:
        """Forget the last page, before the next one is opened."""
        if self._is_stopped:
            with contextlib.suppress(Error, TimeoutError):  # the tab is gone
                async with asyncio.timeout(ATTACH_S):
                    await self._install()
        self._old, self._seen = self._seen, set()
        self._frames, self._frame_ids, self._main_worlds = {}, {}, {}
        self._messages, self._finished, self._name, self.outcome = 0, 0, "", {}
        self._banner, self._address = (0, 0), ""
        self._is_open = self._is_gone = False
        self._shown.clear()
        self._ended.clear()

    async def finish(self, until_s: float) -> bool:
        """Wait for the end of an opt-out, if the document has a banner; return whether it had one.

        The page has to be read again then. What is read may be another document, which may have
        a banner as well: it is waited for by another call.

        Args:
            until_s: the end of the page's time limit, on the loop's clock.
        """
        if not self._name or self._finished == MAX_BANNERS:
            return False
        site, name = _site_of(self._page.url), self._name
        now_s = asyncio.get_running_loop().time()
        if not self._shown.is_set():
            if not self._banners.may_show(site, name):
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(until_s, now_s + POPUP_S)):
                    await self._shown.wait()
            if not self._shown.is_set():
                self._banners.note(site, name, answered=False)
                return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(until_s, now_s + OPT_OUT_S)):
                await self._ended.wait()
        self._finished += 1
        self._name = ""
        if self.outcome.get("result") == "failed":
            self._banners.note(site, name, answered=False)
        return True

    def _listen(self, wire: CDPSession) -> None:
        wire.on("Runtime.bindingCalled", partial(self._on_called, wire))
        wire.on("Runtime.executionContextCreated", partial(self._on_context, wire))

    def _on_context(self, wire: CDPSession, event: dict[str, Any]) -> None:
        """Note to which frame a context belongs: snippets run in that frame's own world."""
        context = event["context"]
        about, number = context.get("auxData") or {}, int(context["id"])
        # A number is unique within one process only: a later page may have the one of an earlier.
        self._old.discard((id(wire), number))
        frame_id = str(about.get("frameId", ""))
        if about.get("isDefault") is True:
            self._main_worlds[id(wire), frame_id] = number
        elif context.get("name") == WORLD and len(self._frame_ids) < MAX_MESSAGES:
            self._frame_ids[id(wire), number] = frame_id

    async def _on_called(self, wire: CDPSession, event: dict[str, Any]) -> None:
        context = (id(wire), int(event.get("executionContextId", 0)))
        if event.get("name") != BINDING or context in self._old:
            return
        self._seen.add(context)
        self._messages += 1
        payload = str(event.get("payload", ""))
        if self._messages > MAX_MESSAGES or len(payload) > MAX_CHARS:
            return
        try:
            message = msgspec.json.decode(payload, type=_Message)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        if message.type == "eval":
            await self._evaluate(wire, context[1], message)
        elif message.type == "popupFound" and self._is_gone:
            self._take(message, context)
            await self._stop()
        else:
            self._take(message, context)

    def _take(self, message: _Message, context: tuple[int, int]) -> None:
        name = display(message.cmp, MAX_NAME)
        if message.type == "cmpDetected":
            self._name = self._name or name
        elif message.type == "popupFound":
            self._name = name
            if not self.outcome or self._is_gone:
                self.outcome = {"cmp": name, "result": "failed"}
                self._banner, self._address = context, _address_of(self._page.url)
                self._is_open, self._is_gone = True, False
                self._ended.clear()
            self._shown.set()
        elif message.type == "optOutResult":
            if message.result is True:
                self._answer(name, "opted_out")
            self._is_open = False
            self._ended.set()
        elif message.is_cosmetic:
            self._answer(name, "hidden")

    def _answer(self, name: str, result: str) -> None:
        self.outcome = {"cmp": name, "result": result}
        self._banners.note(_site_of(self._page.url), name, answered=True)

    def _on_document(self, event: dict[str, Any]) -> None:
        """Take the reload of a page during its opt-out as the banner's answer.

        Many reload their page when they are answered. One that is shown again is found again.
        """
        frame = event["frame"]
        if frame.get("parentId"):
            return
        self._name = ""
        self._shown.clear()
        if not self.outcome:
            return
        address = str(frame["url"])
        if self._is_stopped:
            self._end("failed")  # nothing looks for the banner of a further document
        elif self._is_open and address == self._address:
            self._end("opted_out")
        else:
            self._end(self.outcome["result"])
        if self._is_open and _site_of(address) != _site_of(self._address):
            self.outcome = {}  # the page of another site has no banner

    def _on_detached(self, event: dict[str, Any]) -> None:
        """Take the end of a frame during the opt-out of its banner as the banner's answer."""
        is_its_own = event["frameId"] == self._frame_ids.get(self._banner)
        if is_its_own and event.get("reason") != "swap" and not self._is_gone:
            self._end("opted_out" if self._is_open else self.outcome["result"])

    def _end(self, result: str) -> None:
        self.outcome = {**self.outcome, "result": result}  # a page that was taken keeps its own
        self._is_gone = True
        self._ended.set()

    async def _evaluate(self, wire: CDPSession, context_id: int, message: _Message) -> None:
        """Run a snippet of the installed script in the page's own world, and answer with a flag."""
        result = False
        with contextlib.suppress(Error, TimeoutError):
            frame_id = self._frame_ids.get((id(wire), context_id), "")
            world = self._main_worlds.get((id(wire), frame_id))
            if world is not None and self._banners.is_snippet(message.code):
                result = await _is_true(wire, message.code, world)
            told = json.dumps({"type": "evalResp", "id": message.id, "result": result})
            async with asyncio.timeout(EVAL_S):
                answer = {"expression": f"autoconsentReceiveMessage({told})"}
                await wire.send("Runtime.evaluate", {**answer, "contextId": context_id})

    async def _on_navigated(self, frame: Frame) -> None:
        """Start the script in a frame that has a process of its own."""
        if frame.parent_frame is None or not frame.url.startswith(("http://", "https://")):
            return
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(ATTACH_S):
                await self._attach_frame(frame)

    async def _attach_frame(self, frame: Frame) -> None:
        if self._is_stopped:
            return
        wire = self._frames.get(frame)
        if wire is None:
            wire = await self._page.context.new_cdp_session(
                frame
            )  # fails within the page's process
            self._frames[frame] = wire
            self._listen(wire)
            await _connect(wire)
        tree = await wire.send("Page.getFrameTree")
        options = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": WORLD}
        world = await wire.send("Page.createIsolatedWorld", options)
        source = self._banners.source
        given = {"expression": source, "contextId": world["executionContextId"]}
        await wire.send("Runtime.evaluate", given)


def _address_of(url: str) -> str:
    """Return the address of a document, as the browser reports it: without the fragment."""
    return url.partition("#")[0]


def _site_of(url: str) -> str:
    return url.split("/", 3)[2] if "//" in url else ""


async def _connect(wire: CDPSession) -> None:
    """Add the binding to each world of the script; without `enable` neither would take effect."""
    await wire.send("Page.enable")
    await wire.send("Runtime.enable")
    await wire.send("Runtime.addBinding", {"name": BINDING, "executionContextName": WORLD})


async def _is_true(wire: CDPSession, code: str, context_id: int) -> bool:
    """Evaluate `code` in a world of the page, which it may have changed: only true counts.

    The value is converted there, since the page may return one of any size.
    """
    asked = {
        "expression": f"(async () => !!(await {code}))()",
        "contextId": context_id,
        "awaitPromise": True,
        "returnByValue": True,
    }
    async with asyncio.timeout(EVAL_S):
        answer = await wire.send("Runtime.evaluate", {**asked, "timeout": EVAL_S * 1_000})
    return "exceptionDetails" not in answer and answer["result"].get("value") is True
