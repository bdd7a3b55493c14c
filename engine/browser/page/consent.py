"""Dismiss consent banners of pages by autoconsent's rules: opt out, and never in.

The content script runs in an isolated world of each document, of frames too, and sends messages
through a binding that only this world has. They are data of a renderer: checked and counted. It
looks for banners by itself, but rejects one only when it is asked to, after the page was read: the
rejection may reload the page, or lead elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
from playwright.async_api import Error

from engine.browser.chromium.consent_rules import ConsentRules
from engine.browser.page.extraction_options import compact, script
from engine.model import addresses
from engine.model.display import display

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Page

WORLD: Final = "openchrome-monitor-consent"
BINDING: Final = "openchromeMonitorConsent"
OPT_OUT_S: Final = 5.0  # for the opt-out of a banner that is shown
POPUP_S: Final = 1.0  # for the banner of a consent manager, or of a page that is loaded again
MOST_VAIN: Final = 3  # such waits without a banner; it was answered on an earlier page
MOST_FAILED: Final = 3  # rejections of a manager's banners on a site; the others stay
MAX_ROUNDS: Final = 2  # for a page: second steps, and banners of a page that is loaded again
EVAL_S: Final = 1.0  # the script waits no longer for an answer
ATTACH_S: Final = 2.0
MAX_CHARS: Final = 64 * 1024  # for each message; the longest snippet has 1,000
MAX_MESSAGES: Final = 500  # for each page
MAX_NAME: Final = 100
# The script writes two lines for each of 200 rules, which took 150 ms of CPU a page, and are no
# messages of the page.
_NO_CONSOLE: Final = "const console = new Proxy({}, { get: () => () => {} });"
_FUNCTION: Final = re.compile(r"(?:async\s*)?(?:\(\)\s*=>|function\b)").match
_OPT_OUT: Final = "autoconsentReceiveMessage({ type: 'optOut' })"
CONFIG: Final = {
    "enabled": True,
    "autoAction": "",  # it waits for `_OPT_OUT`
    "disabledCmps": [],
    "enablePrehide": False,
    "enableCosmeticRules": True,
    "enableHeuristicDetection": False,
    "heuristicMode": "off",
    "detectRetries": 20,
    "logs": {"errors": False},
}


class _Message(msgspec.Struct):
    type: Literal["cmpDetected", "popupFound", "clicked", "optOutResult", "autoconsentDone", "eval"]
    cmp: str = ""
    result: Any = None
    is_cosmetic: bool = msgspec.field(default=False, name="isCosmetic")
    id: str = ""
    code: str = ""


class ConsentBanners:
    """The rules for the banners of one task, and what the pages of one context showed."""

    def __init__(self, rules: ConsentRules) -> None:
        self._rules = rules
        # By site and consent manager:
        self._answered: set[tuple[str, str]] = set()
        self._vain: Counter[tuple[str, str]] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()

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

    def note_vain(self, site: str, name: str) -> None:
        """Record that it showed none while it was waited for."""
        self._vain[site, name] += 1

    def may_reject(self, site: str, name: str) -> bool:
        """Return whether its banners can be rejected, as far as is known."""
        return self._failed[site, name] < MOST_FAILED

    def note(self, site: str, name: str, *, answered: bool) -> None:
        """Record whether its banner was rejected."""
        if answered:
            self._answered.add((site, name))
            self._failed[site, name] = 0
        else:
            self._failed[site, name] += 1


class _Banner(NamedTuple):
    wire: CDPSession
    context_id: int
    name: str  # of its consent manager

    @property
    def context(self) -> tuple[int, int]:
        """Its key in the sets of `TabConsent`."""
        return id(self.wire), self.context_id


class TabConsent:
    """The content script in one tab; `outcome` is the last banner of the current page."""

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
        self._is_before = False  # the tab still shows the page before
        self._moved = asyncio.Event()  # another document came
        self._popup = asyncio.Event()  # a banner is shown that was not rejected
        self._ended = asyncio.Event()  # the round: all have a result, or something else came
        self._begin_page()

    def _begin_page(self) -> None:
        self.outcome = {}
        self.is_replaced = False  # a rejection led to another document, maybe of the same page
        self._messages = self._rounds = 0
        self._asked: set[tuple[int, int]] = set()  # contexts, each to reject its banner once
        self._open: set[tuple[int, int]] = set()  # those of this round that have no result
        self._is_cut_short = False  # one of them is gone
        self._has_clicked = False
        self._result: bool | None = None
        self._rejected_at = ""  # the address of the page then
        self._begin_document("")

    def _begin_document(self, address: str) -> None:
        self._address = address  # without the fragment
        self._name = ""  # of a consent manager that is part of it
        self._shown: list[_Banner] = []  # banners that were not rejected
        self._popup.clear()

    @classmethod
    async def attach(cls, banners: ConsentBanners, page: Page, wire: CDPSession) -> TabConsent:
        """Add the script to every later document of a tab.

        Raises:
            TimeoutError, playwright.Error: the tab is gone.
        """
        made = cls(banners, page, wire)
        made._listen(wire)
        wire.on("Page.frameNavigated", made._on_document)
        given = {"source": banners.source, "worldName": WORLD}
        async with asyncio.timeout(ATTACH_S):
            await _connect(wire)
            await wire.send("Page.addScriptToEvaluateOnNewDocument", given)
        page.on("framenavigated", made._on_navigated)
        return made

    def begin(self) -> None:
        """Forget the last page, before the next one is opened."""
        self._old, self._seen = self._seen, set()
        self._frames, self._frame_ids, self._main_worlds = {}, {}, {}
        self._is_before = True
        self._begin_page()

    async def reject(self, until_s: float) -> bool:
        """Reject the banners of a page that was read; return whether to read the page again.

        After that it may have others, which are rejected by another call: the second step of the
        first ones, or those of a document that took the place of the first.

        Args:
            until_s: the end of the page's time limit, on the loop's clock.
        """
        site = _site_of(self._page.url)
        await self._wait_for_banner(site, until_s)
        banners = [one for one in self._shown if self._banners.may_reject(site, one.name)]
        if not banners or self._rounds == MAX_ROUNDS:
            self._conclude(site)
            return False
        self._shown = [one for one in self._shown if one not in banners]
        self._popup.clear()
        self._ended.clear()
        self.outcome = {"cmp": banners[0].name, "result": "failed"}
        self.is_replaced = self._is_cut_short = self._has_clicked = False
        self._rounds, self._result, self._rejected_at = self._rounds + 1, None, self._here()
        self._open = {one.context for one in banners}
        self._asked |= self._open
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout_at(_limit_s(until_s, OPT_OUT_S)):
                for one in banners:
                    given = {"expression": _OPT_OUT, "contextId": one.context_id}
                    await one.wire.send("Runtime.evaluate", given)
                await self._ended.wait()
        return True

    def _here(self) -> str:
        return self._page.url.partition("#")[0]

    async def returns_to(self, url: str, until_s: float) -> bool:
        """Wait for the page at `url`, to which an interim page may lead back."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(_limit_s(until_s, POPUP_S)):
                while not is_same_page(self._address, url):
                    self._moved.clear()
                    await self._moved.wait()
        return is_same_page(self._address, url)

    async def give_up(self) -> None:
        """Record that the page without its banner cannot be read; stop what its rejection loads."""
        self.outcome = {**self.outcome, "result": "failed"}
        self._banners.note(_site_of(self._rejected_at), self.outcome["cmp"], answered=False)
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(EVAL_S):
                await self._wire.send("Page.stopLoading")

    async def _wait_for_banner(self, site: str, until_s: float) -> None:
        # A second step, or the banner of a page that is loaded again, may take its time.
        is_first_step = self._is_failed and (self._is_cut_short or self._result is True)
        follows = self.is_replaced or is_first_step
        is_new = self._name != "" and not self._rounds
        if self._shown or not (follows or (is_new and self._banners.may_show(site, self._name))):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(_limit_s(until_s, POPUP_S)):
                await self._popup.wait()
        if not self._shown and not follows:
            self._banners.note_vain(site, self._name)

    @property
    def _is_failed(self) -> bool:
        return self.outcome.get("result") == "failed"

    def _conclude(self, site: str) -> None:
        """Decide what became of the page's last banner, if no other one is shown now.

        Many banners reload their page when a button is clicked, which ends the script before it can
        confirm the rejection: if the page shows none then, it was rejected.
        """
        if not self.outcome:
            return
        name, is_back = self.outcome["cmp"], self.is_replaced and self._here() == self._rejected_at
        if self._shown or self._result is False:
            self.outcome = {"cmp": name, "result": "failed"}
        elif self._is_failed and is_back and self._has_clicked and self._result is None:
            self.outcome = {"cmp": name, "result": "opted_out"}
        if self._rounds:
            self._banners.note(site, name, answered=not self._is_failed)

    def _listen(self, wire: CDPSession) -> None:
        wire.on("Runtime.bindingCalled", partial(self._on_called, wire))
        wire.on("Runtime.executionContextCreated", partial(self._on_context, wire))
        wire.on("Runtime.executionContextDestroyed", partial(self._on_destroyed, wire))

    def _on_context(self, wire: CDPSession, event: dict[str, Any]) -> None:
        """Note to which frame a context belongs: snippets run in that frame's own world."""
        context = event["context"]
        about, number = context.get("auxData") or {}, int(context["id"])
        # A number is unique within one process only: a later page may have the one of an earlier.
        self._old.discard((id(wire), number))
        self._asked.discard((id(wire), number))
        frame_id = str(about.get("frameId", ""))
        if about.get("isDefault") is True:
            self._main_worlds[id(wire), frame_id] = number
        elif context.get("name") == WORLD and len(self._frame_ids) < MAX_MESSAGES:
            self._frame_ids[id(wire), number] = frame_id

    def _on_destroyed(self, wire: CDPSession, event: dict[str, Any]) -> None:
        context = id(wire), int(event["executionContextId"])
        self._shown = [one for one in self._shown if one.context != context]
        self._is_cut_short |= context in self._open
        self._close(context)

    def _close(self, context: tuple[int, int]) -> None:
        if context in self._open:
            self._open.remove(context)
            if not self._open:
                self._ended.set()

    async def _on_called(self, wire: CDPSession, event: dict[str, Any]) -> None:
        context = (id(wire), int(event.get("executionContextId", 0)))
        if event.get("name") != BINDING or context in self._old or self._is_before:
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
        else:
            self._take(message, wire, context[1])

    def _take(self, message: _Message, wire: CDPSession, context_id: int) -> None:
        name, context = display(message.cmp, MAX_NAME), (id(wire), context_id)
        if message.type == "cmpDetected":
            self._name = self._name or name
        elif message.type == "popupFound":
            self._show(_Banner(wire, context_id, name))
        elif message.type == "clicked":
            self._has_clicked |= context in self._asked
        elif message.type == "optOutResult":
            self._result = message.result is True and self._result is not False
            self._close(context)
        elif message.type == "autoconsentDone":
            self.outcome = {"cmp": name, "result": "hidden" if message.is_cosmetic else "opted_out"}

    def _show(self, banner: _Banner) -> None:
        """Note a banner; the script of a context rejects the first one that it finds only."""
        if banner.context in self._asked | {one.context for one in self._shown}:
            return
        self._name = banner.name
        self.outcome = {"cmp": banner.name, "result": "failed"}
        self._shown.append(banner)
        self._popup.set()
        self._ended.set()  # it may be the second step of one that waits for it

    def _on_document(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        if frame.get("parentId"):
            return
        self._begin_document(str(frame["url"]))
        self._is_before = False
        self.is_replaced = self._rounds > 0
        self._moved.set()
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


def is_same_page(url: str, of: str) -> bool:
    """Return whether an address is another one `of` the same page: with more in its query.

    A fragment that applications use as a path (`#/`, `#!`) counts.
    """
    given, wanted = addresses.parse(url), addresses.parse(of)
    if given is None or wanted is None or given.origin != wanted.origin:
        return False
    routes = [one.fragment if one.fragment[:2] in ("#/", "#!") else "" for one in (given, wanted)]
    queries = [set(one.query.removeprefix("?").split("&")) - {""} for one in (given, wanted)]
    return given.path == wanted.path and routes[0] == routes[1] and queries[1] <= queries[0]


def _limit_s(until_s: float, most_s: float) -> float:
    return min(until_s, asyncio.get_running_loop().time() + most_s)


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
