"""Run one command on an instance; every failure has one of the command error codes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol

from playwright.async_api import Error

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import TooManyInstances
from engine.browser.interact.command_errors import (
    CommandFailed,
    CommandTimeout,
    InstanceDisconnected,
)
from engine.browser.interact.command_failures import CRASHED, as_failure, gone, no_frame, too_slow
from engine.browser.interact.command_pages import INTERACT, NAVIGATE
from engine.browser.interact.command_reading import CONTENT, EXECUTE
from engine.browser.interact.command_target import Call, Stage, Tool, missing_frame
from engine.browser.page.failures import TOO_HEAVY
from engine.egress.egress_policy import without_credentials
from engine.model.display import display
from engine.model.errors import BrowserGone, EngineError

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance


# Wait for the navigation that a command began, so that its form is really sent.
#
# Playwright waits after clicks and keys into a field; not after keyboard, select and scripts.

ARRIVE_S: Final = 2.0  # enough to send the request; the next command waits for a slow response
ASKED_MS: Final = 50  # extra time for history.back(), which goes through the browser
_TURN = "new Promise((done) => setTimeout(() => setTimeout(done, {}), 0))"
_ENDS = ("Page.frameNavigated", "Page.navigatedWithinDocument", "Page.frameStoppedLoading")


@asynccontextmanager
async def awaiting_navigation(instance: Instance) -> AsyncIterator[None]:
    """Run a command that may navigate; wait for the requested page.

    With the dialog answer `stay`, the wait ends when the page has had the time for its dialog.
    """
    page = instance.current
    if page is None:
        yield
        return
    wire, frame = instance.wire(page), instance.frame_id(page)
    requested, arrived = asyncio.Event(), asyncio.Event()

    def on_requested(event: Mapping[str, Any]) -> None:
        if event["frameId"] == frame and event.get("disposition") == "currentTab":
            requested.set()
            arrived.clear()

    def on_end(event: Mapping[str, Any]) -> None:
        if (event.get("frame") or {}).get("id", event.get("frameId")) == frame:
            arrived.set()

    await wire.send("Page.enable")
    listeners = {"Page.frameRequestedNavigation": on_requested} | dict.fromkeys(_ENDS, on_end)
    for name, listener in listeners.items():
        wire.on(name, listener)
    try:
        yield
        turn = _TURN.format(ASKED_MS if instance.dialogs.stay else 0)
        with contextlib.suppress(Error, TimeoutError):  # gone: navigated, or closed
            async with asyncio.timeout(ARRIVE_S):
                await wire.send("Runtime.evaluate", {"expression": turn, "awaitPromise": True})
                if requested.is_set():
                    await arrived.wait()
    finally:
        for name, listener in listeners.items():
            wire.remove_listener(name, listener)


_WAITED_FOR: Final = frozenset({"click", "press"})  # by Playwright, except for pages with a dialog
_MAY_LEAVE: Final = frozenset(
    {"check", "uncheck", "keyboard", "type", "select", "drag", "upload", "evaluate"}
)
# Playwright's own limit comes first, because its error names the awaited condition.
LOOK_S: Final = 1.0
KEPT: Final = "the page asked whether to leave it, and it was told to stay"
GRACE_S: Final = 0.2
MOST_OF_ADDRESS: Final = 200  # characters
LAST_READ_S: Final = 4.0  # a failed assertion reports the actual value, so its last read may finish


class Command(Protocol):
    """What is executed of one command: a tool, its action, and the checked arguments."""

    @property
    def tool(self) -> str: ...

    @property
    def action(self) -> str: ...

    @property
    def args(self) -> Mapping[str, Any]: ...

    @property
    def timeout_ms(self) -> int: ...


async def run_command(step: Command, stage: Stage, number: int) -> Any:
    """Run one command and return its result as plain JSON.

    Raises:
        CommandFailed: with a command error code, and a reason of one line.
    """
    call = Call(stage, step.args, step.timeout_ms, number)
    tool = TOOLS[step.tool][step.action]
    try:
        if stage.instance is None or step.tool == "browser_instance":
            return await tool(call)
        stage.instance.crash = None
        grace_s = LAST_READ_S if step.action == "expect" else GRACE_S
        async with stage.instance.within(step.timeout_ms / 1000 + grace_s):
            async with (
                stage.instance.dialogs.watched(),
                _navigation_wait(stage.instance, step.action),
            ):
                found = await tool(call)
            return _with_notes(call, found)
    except TimeoutError:
        raise await _timeout_failure(stage, call) from None
    except Error as failed:
        failure = await _failure_of(stage, failed, call)
        raise await _or_missing_frame(call, failure) from failed


async def _or_missing_frame(call: Call, failure: CommandFailed) -> CommandFailed:
    """Return the failure; or a missing frame, if that was the cause of a timeout."""
    if not call.frames or not isinstance(failure, CommandTimeout):
        return failure
    try:
        async with asyncio.timeout(LOOK_S):
            frame = await missing_frame(call, await call.stage.page())
    except (TimeoutError, Error):
        return failure
    return no_frame(frame, call.timeout_ms) if frame else failure


def _with_notes(call: Call, result: dict[str, Any]) -> dict[str, Any]:
    """Add dialogs and selector notes to the result.

    The notes name the alternative that was used, or the number of matches if more than one.
    """
    reply = dict(result)
    instance = call.stage.instance
    if instance is not None and (dialogs := instance.dialogs.take(call.stage.scrub.hide)):
        reply["dialogs"] = dialogs
    warnings: list[str] = []
    if call.used:
        met = f"{call.met:,} elements" if call.met else "nothing"
        reply["used_selector"] = call.used
        warnings.append(f"the first selector met {met}; used {call.used}")
    elif call.matches > 1:
        reply["matches"] = call.matches
        warnings.append(f"{call.matches:,} elements match the selector; the first was used")
    if call.used_target:
        met = f"{call.target_met:,} elements" if call.target_met else "nothing"
        reply["used_target"] = call.used_target
        warnings.append(f"the first target met {met}; used {call.used_target}")
    elif call.target_matches > 1:
        reply["target_matches"] = call.target_matches
        warnings.append(f"{call.target_matches:,} elements match the target; the first was used")
    if call.frame_matches > 1:
        reply["frame_matches"] = call.frame_matches
        warnings.append(f"{call.frame_matches:,} frames match; the first was used")
    if call.note:
        warnings.append(call.note)
    if warnings:
        reply["warning"] = "; and ".join(warnings)
    return reply


def subject_of(args: Mapping[str, Any], about: str = "", at: str = "") -> str:
    """Return the subject of a command for its error: selector, condition, address or page."""
    named = args.get("selector") or about or without_credentials(args.get("url", "")) or at
    return " >> ".join(filter(None, (*args.get("frame", ()), named)))


def _subject(call: Call) -> str:
    instance = call.stage.instance
    page = instance.current if instance is not None else None
    at = page.url if page is not None and page.url != "about:blank" else ""
    at = display(call.stage.scrub.text(at), MOST_OF_ADDRESS)
    whole = subject_of(call.args, call.about, at)
    return f"{whole} (1 of {call.matches:,})" if call.matches > 1 else whole


def needs_page(step: Command) -> bool:
    """Return whether this command acts on the task's own instance."""
    return step.tool != "browser_instance"


async def _timeout_failure(stage: Stage, call: Call) -> CommandFailed:
    """Return why a command timed out; close a page that hangs, which would go on using CPU."""
    if _is_gone(stage):
        return gone()
    if _was_navigation_stopped(stage):
        return CommandFailed(KEPT)
    if (crash := _crash(stage)) is not None:
        return crash
    failure = too_slow(call.waited_ms, _subject(call))  # without the time of the check below
    await stage.drop_hung_page()
    return failure


async def _failure_of(stage: Stage, failed: Error, call: Call) -> CommandFailed:
    if _is_gone(stage):
        return gone()
    if _was_navigation_stopped(stage):
        return CommandFailed(KEPT)
    failure = _crash(stage) or as_failure(failed, call.waited_ms, _subject(call), stage.scrub.text)
    if str(failure) != CRASHED:
        return failure
    await stage.drop_hung_page()  # the command may learn of the crash before the instance
    heavy = stage.instance is not None and stage.instance.chromium.load.took_too_much()
    return CommandFailed(TOO_HEAVY) if heavy else failure


def _crash(stage: Stage) -> CommandFailed | None:
    """Return the page's crash while the command ran."""
    crash = stage.instance.crash if stage.instance is not None else None
    return CommandFailed(str(crash)) if crash is not None else None


def _was_navigation_stopped(stage: Stage) -> bool:
    """Return whether a page stayed although the command tried to navigate."""
    return stage.instance is not None and stage.instance.dialogs.kept_the_page


def _navigation_wait(instance: Instance, action: str) -> AbstractAsyncContextManager[None]:
    """Wait for the command's navigation where Playwright does not."""
    waits = action in _MAY_LEAVE or (instance.dialogs.stay and action in _WAITED_FOR)
    return awaiting_navigation(instance) if waits else nullcontext()


def _is_gone(stage: Stage) -> bool:
    return stage.instance is not None and not stage.instance.alive


async def _list(call: Call) -> Any:
    return {"instances": [_describe(call.stage, each.id) for each in call.stage.instances.living()]}


async def _launch(call: Call) -> Any:
    options = InstanceOptions(
        policy=call.stage.own_policy(),
        headed=call.args.get("headed", False),
        windows=call.args.get("windows", False),
        width=call.args.get("width", 1280),
        height=call.args.get("height", 800),
        remote=call.stage.remote,
    )
    try:
        opened = await call.stage.instances.launch(options)
    except TooManyInstances:
        raise CommandFailed("too many instances are open; close one first") from None
    except BrowserGone as died:
        raise InstanceDisconnected(str(died)) from died
    except EngineError as failed:
        raise CommandFailed(str(failed)) from failed
    return _describe(call.stage, opened.id)


async def _close(call: Call) -> Any:
    instance_id = str(call.args["instanceId"])
    if not await call.stage.instances.close(instance_id):
        raise CommandFailed("there is no living instance of this id")
    return {"instanceId": instance_id, "closed": True}


async def _status(call: Call) -> Any:
    own = call.stage.instance.id if call.stage.instance else ""
    return _describe(call.stage, str(call.args.get("instanceId", own)))


def _describe(stage: Stage, instance_id: str) -> dict[str, Any]:
    found = stage.instances.get(instance_id)
    reply: dict[str, Any] = {"instanceId": instance_id, "connected": found is not None}
    if found is not None:
        reply |= {"headed": found.headed, "pages": [page.url for page in found.pages]}
    return reply


_INSTANCE: Final[Mapping[str, Tool]] = {
    "list": _list,
    "launch": _launch,
    "close": _close,
    "status": _status,
}
TOOLS: Final[Mapping[str, Mapping[str, Tool]]] = {
    "browser_navigate": NAVIGATE,
    "browser_interact": INTERACT,
    "browser_content": CONTENT,
    "browser_execute": EXECUTE,
    "browser_instance": _INSTANCE,
}
