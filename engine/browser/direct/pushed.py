"""The page script of a tab, installed once for new documents; each pushes its result by a binding.

It begins with its document, in the isolated world in which a call would run it, and waits there by
the same rules. So a page costs one command, its navigation, and one event, its result.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec
from playwright.async_api import Error

from engine.browser.direct.devtools_connection import CLOSED, CRASHED
from engine.browser.page.extraction_options import WORLD, extraction_options, taking_script
from engine.browser.page.failures import PageTooLarge
from engine.pages.fetch import IDLE_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.browser.direct.direct_page import DirectPage
    from engine.browser.page.idle_report import IdleReport
    from engine.pages.fetch import PageOptions

PROBE_S: Final = 1.0  # after that it is checked whether the script runs in the document at all
_NAME: Final = f"octask{secrets.token_hex(8)}"
_BINDING: Final = "Runtime.bindingCalled"
_GONE: Final = "Inspected target navigated or closed"
_SCRIPT: Final = """((name, ask) => {
  if (window !== window.top) return;
  ask.began = performance.now(); // since the beginning of the navigation
  ask.limitMs -= ask.began;
  const push = globalThis[name];
  const tell = (told) => push(JSON.stringify(told));
  globalThis[`${name}Ask`] = ask;
  ask.reportsIdle &&= /^https?:$/.test(location.protocol); // no page in between, and no error page
  ask.onIdle = push;
  const failed = (description) => ({ exceptionDetails: { exception: { description } } });
  TAKE(ask).then(
    (value) => tell({ result: { value } }),
    (wrong) => tell(failed(`${wrong?.stack ?? wrong}`)),
  );
})"""


class PushedExtraction:
    """Results that the documents of one tab push, in the form of `Runtime.callFunctionOn`."""

    def __init__(self, page: DirectPage, pending: str, idle: IdleReport) -> None:
        self._idle = idle
        self._page = page
        self._pending = pending
        self._installed: tuple[PageOptions, Sequence[str]] | None = None
        self._script_id = ""
        self._first = ""  # the first document of the page that is loaded
        self._pushed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        page.on("committed", self._on_committed)
        page.on("crash", lambda _: self._fail(Error(CRASHED)))
        page.on("close", lambda _: self._fail(Error(CLOSED)))

    @classmethod
    async def attach(cls, page: DirectPage, pending: str, idle: IdleReport) -> PushedExtraction:
        """Prepare a tab to push, and to record in `idle` when its page is that; unbounded.

        Raises:
            playwright.Error: the tab is gone.
        """
        made = cls(page, pending, idle)
        page.session.on(_BINDING, made._on_binding)
        page.session.on("dropped", made._on_dropped)
        binding = {"name": _NAME, "executionContextName": WORLD}
        await page.session.send("Runtime.addBinding", binding)
        return made

    async def prepare(self, options: PageOptions, held: Sequence[str]) -> None:
        """Install the script for the next documents, unless it is installed; unbounded.

        Raises:
            playwright.Error: the tab is gone.
        """
        self._first = ""
        if self._installed == (options, held):
            return
        session = self._page.session
        if self._script_id:
            old = {"identifier": self._script_id}
            session.begin("Page.removeScriptToEvaluateOnNewDocument", old)
        ask = extraction_options(
            options.timeout_ms, options, self._pending, held, cut_off=False, written=False
        )
        source = _SCRIPT.replace("TAKE", taking_script())
        script = {"source": f"{source}({json.dumps(_NAME)}, {json.dumps(ask)})", "worldName": WORLD}
        made = await session.send("Page.addScriptToEvaluateOnNewDocument", script)
        self._script_id, self._installed = str(made["identifier"]), (options, list(held))

    async def extraction(self, left_ms: float, *, cut_off: bool) -> dict[str, Any] | None:
        """Wait for the result of the current document; None if its script does not run. Unbounded.

        Raises:
            playwright.Error: another document has replaced it, or the tab is gone.
            PageTooLarge: the result is above the limit of a message.
        """
        pushed, document = self._pushed, self._page.document
        clock = asyncio.get_running_loop().time
        deadline = clock() + left_ms / 1000

        def limit() -> str:
            rest_ms = max(deadline - clock(), 0) * 1000
            return f"one.limitMs = performance.now() - one.began + {rest_ms}"

        self._first = self._first or document
        if cut_off or document != self._first:  # what the script cannot know
            changes = [limit()]
            if cut_off:
                event = json.dumps(f"{self._pending}!")
                changes += ["one.cutOff = true", f"document.dispatchEvent(new Event({event}))"]
            if not await self._change(changes):
                return None
        done, _ = await asyncio.wait({pushed}, timeout=PROBE_S)
        # Whatever its own clock says, the limit is that of the engine's.
        if not done and not await self._change([limit()]):
            return None
        result = await asyncio.shield(pushed)
        # Chromium holds commands back while it opens another document, which may have come by now.
        if self._pushed is not pushed:
            raise Error(_GONE)
        return _decoded(result)

    async def _change(self, statements: Sequence[str]) -> bool:
        """Change the options of the running script; return whether there is one."""
        session = self._page.session
        named = {"frameId": self._page.target_id, "worldName": WORLD}
        world = await session.send("Page.createIsolatedWorld", named)
        body = "; ".join(statements)
        running = f"globalThis.{_NAME}Ask"
        expression = f"((one) => {{ if (!one) return false; {body}; return true; }})({running})"
        asked = {
            "expression": expression,
            "contextId": world["executionContextId"],
            "returnByValue": True,
        }
        answer = await session.send("Runtime.evaluate", asked)
        return answer.get("result", {}).get("value") is True

    def _on_binding(self, event: dict[str, Any]) -> None:
        if event["name"] != _NAME or self._pushed.done():
            return
        payload = event["payload"]
        if payload in IDLE_STATES:
            self._idle.record(payload)
        else:
            self._pushed.set_result(str(payload))

    def _on_committed(self, _: object) -> None:
        self._fail(Error(_GONE))
        self._pushed = asyncio.get_running_loop().create_future()

    def _on_dropped(self, event: str) -> None:
        if event == _BINDING:  # no other binding is called in this session
            self._fail(PageTooLarge())

    def _fail(self, why: Exception) -> None:
        if not self._pushed.done():
            self._pushed.set_exception(why)
            self._pushed.exception()  # it may be nobody's


def _decoded(pushed: str) -> dict[str, Any]:
    try:
        return dict(msgspec.json.decode(pushed))
    except (msgspec.DecodeError, UnicodeError):
        return dict(json.loads(pushed))  # half of a surrogate pair, from a page's text
