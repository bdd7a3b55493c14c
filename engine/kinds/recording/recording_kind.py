"""The kind `recording`: collect an operator's actions in a browser window, or in a headless one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import msgspec

from engine.browser.chromium.browser_options import PLAIN, BrowserLook, InstanceOptions
from engine.browser.chromium.browser_session import TooManyInstances
from engine.browser.page.failures import NoScreen
from engine.browser.recording.recorder_messages import Closed, Happening, OpenRecorder, Recorder
from engine.browser.remote.remote_address import RemoteBrowserUnreachable
from engine.egress.egress_policy import Policy
from engine.kinds.arguments import (
    ADDRESS_HINT,
    CREDENTIALS,
    KEYS_HINT,
    PROXY,
    Argument,
    FormField,
    Table,
    credential_problems,
    credentials_from,
    flag,
    missing,
    one_of,
    optional,
    proxy_from,
    proxy_problems,
    proxy_secrets,
    read_all,
    redact_content,
    text,
    web_address,
    whole,
)
from engine.kinds.context import Context, UnitStopped, reach, telling, within_domains
from engine.kinds.look_arguments import LOOK, look_from, look_problems
from engine.kinds.profile_use import PROFILE, secrets_of, using_profile
from engine.kinds.recording.recording_actions import Action, Masks, Scribe
from engine.kinds.remote_browser_use import REMOTE_BROWSER, remote_place
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.kinds.traits import RECORDING_TRAITS
from engine.ledger import changes
from engine.ledger.ledger import Ledger
from engine.ledger.machine import wall_ms
from engine.model import redact
from engine.model.addresses import Credentials, address_of
from engine.model.errors import BrowserFailed, EngineError, InvalidArguments, Problem, UnitTimeout
from engine.model.kind_traits import traits_of
from engine.model.proxies import ProxyChoice
from engine.model.records import Status, TaskRecord, Units, Unreadable
from engine.model.tally import StoppedBy
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import Hidden

Screenshots = Literal["each", "navigation", "none"]
MAX_DURATION_MS = 24 * 3_600_000


class RecordingArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a recording. `url` is without credentials.

    Without `duration_ms` it continues until it is stopped, cancelled, or the window is closed.
    """

    url: str
    credentials: Credentials | None = None
    label: str | None = None
    duration_ms: int | None = None
    headless: bool = False
    keep_text: bool = False
    screenshots: Screenshots = "navigation"
    width: int = 1280
    height: int = 800
    redact_content: bool = True
    secrets: tuple[Hidden, ...] = ()
    profile: str | None = None
    remote_browser: str | None = None
    proxy: ProxyChoice | None = None
    look: BrowserLook = PLAIN


ARGUMENTS: Table = {
    "url": Argument(
        web_address, FormField("Address", "first", hint=ADDRESS_HINT, shade="example.com/docs")
    ),
    "label": Argument(
        optional(text),
        FormField("Title of its exports", "limits", editor="line"),
        help="Label, also the name of exports.",
    ),
    "duration_ms": Argument(
        optional(whole(100, MAX_DURATION_MS)),
        FormField("Duration", "limits", editor="seconds", none="until it is stopped"),
        help="End after this time in ms (default: when it is stopped or its window is closed).",
    ),
    "screenshots": Argument(
        one_of("each", "navigation", "none"),
        FormField(
            "Screenshots",
            "limits",
            options=(
                ("navigation", "Of every new page"),
                ("each", "After every action"),
                ("none", "None"),
            ),
        ),
        help="Screenshots that are taken.",
    ),
    "headless": Argument(
        flag,
        FormField("Headless (no visible window)", "limits"),
        help="Run without a visible window; another program drives it.",
        option="switch",
    ),
    "headed": Argument(flag),
    "width": Argument(whole(200, 8_000), FormField("Window width", suffix=" px")),
    "height": Argument(whole(200, 8_000), FormField("Window height", suffix=" px")),
    "profile": PROFILE,
    "remote_browser": REMOTE_BROWSER,
    **CREDENTIALS,
    "keep_text": Argument(
        flag,
        FormField(
            "Keep what is typed",
            "content",
            hint="Without this only the length of what is typed is kept; never passwords.",
        ),
        help="Keep typed text; never passwords and card numbers.",
        option="switch",
    ),
    "redact_content": redact_content(KEYS_HINT),
    **PROXY,
    **LOOK,
}


def parse_recording(given: Mapping[str, Any]) -> RecordingArgs:
    """Parse the arguments of a recording.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a recording")
    if "url" not in given:
        problems.append(missing("url", "the address to start at"))
    headed = fields.pop("headed", None)
    if headed is not None and fields.setdefault("headless", not headed) == headed:
        problems.append(Problem("headed", "given_twice", "contradicts headless"))
    problems.extend(credential_problems(fields, fields.get("url")))
    problems.extend(proxy_problems(fields))
    problems.extend(look_problems(fields))
    if problems:
        raise InvalidArguments(tuple(problems))
    typed = fields.pop("url")
    address = address_of(typed)
    assert address is not None  # validated by web_address
    credentials, secrets = credentials_from(fields, typed)
    proxy = proxy_from(fields)
    look, hidden = look_from(fields, (address.url,))
    if look.size is not None:
        fields["width"], fields["height"] = look.size
    secrets = (*secrets, *hidden, *proxy_secrets(proxy))
    return RecordingArgs(
        url=address.url,
        credentials=credentials,
        secrets=secrets,
        look=look,
        proxy=proxy,
        **fields,
    )


OPEN_S: Final = 60.0
PICTURE_S: Final = 10.0
STILL_S: Final = 1.0  # maximum wait for a page to load before its action is stored
MAX_ACTIONS: Final = 10_000


async def record(
    args: RecordingArgs,
    context: Context,
    open_recorder: OpenRecorder,
    sign_in: SignIn | None = None,
) -> dict[str, Any]:
    """Record until the end; return the head of the result without actions.

    New tokens of `sign_in` are masked as well.

    Raises:
        PageError: the start address cannot be opened.
        BrowserMissing, BrowserFailed, BrowserGone, NoDisplay
        RemoteBrowserUnreachable: the connection to the browser was lost.
    """
    began_ms, began = context.now_ms(), context.monotonic()
    async with open_recorder(args, context.now_ms) as recorder:
        recording = _Recording(args, context, recorder)
        if sign_in is not None:
            sign_in.on_secrets.append(recording.conceal)
        stopped_by = await recording.run()
        head = recording.head()
    lasted_ms = round((context.monotonic() - began) * 1000)
    return _head(args, context.task_id, stopped_by, lasted_ms) | {"started_at": began_ms, **head}


class _Recording:
    def __init__(self, args: RecordingArgs, context: Context, recorder: Recorder) -> None:
        self._args = args
        self._context = context
        self._recorder = recorder
        self._masks = Masks(
            keep_text=args.keep_text, given=args.secrets, key_shapes=args.redact_content
        )
        self._scribe = Scribe(self._masks)
        self._artifacts: list[dict[str, Any]] = []
        self._is_lost = False

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        """Mask these values, too, from now on."""
        self._masks.conceal(hidden)

    async def run(self) -> str:
        """Open the start address and record; return the reason for the end."""
        try:
            async with self._context.unit(self._args.url, OPEN_S):
                await self._recorder.open(self._args.url)
            ended = await self._listen()
        except UnitStopped:
            ended = self._context.stop_reason
        for happening in self._recorder.rest():
            await self._take(happening, pictures=False)
        for action in self._scribe.close():
            await self._keep(action)
        if self._is_lost and self._args.remote_browser is not None:
            reason = "the connection to it is lost"
            raise RemoteBrowserUnreachable(address=self._args.remote_browser, reason=reason)
        return ended

    async def _listen(self) -> str:
        limit_s = (self._args.duration_ms or MAX_DURATION_MS) / 1000
        deadline = asyncio.get_running_loop().time() + limit_s
        while self._scribe.count < MAX_ACTIONS:
            left_s = deadline - asyncio.get_running_loop().time()
            wait_s = min(left_s, STILL_S) if self._scribe.is_loading else left_s
            try:
                async with self._context.unit("recording", max(0.0, wait_s)):
                    happening = await self._recorder.next()
            except UnitTimeout:
                if wait_s == left_s:
                    return "duration"
                for action in self._scribe.close():
                    await self._finish(action, pictures=True)
                continue
            if isinstance(happening, Closed):
                self._is_lost = happening.lost
                return "closed"
            await self._take(happening, pictures=True)
        return "max_actions"

    async def _take(self, happening: Happening, *, pictures: bool) -> None:
        if isinstance(happening, Closed):
            return
        for action in self._scribe.take(happening):
            await self._finish(action, pictures=pictures)

    async def _finish(self, action: Action, *, pictures: bool) -> None:
        wanted = self._args.screenshots
        moved = action.type in ("navigate", "navigated")
        if pictures and (wanted == "each" or (wanted == "navigation" and moved)):
            await self._picture(action)
        await self._keep(action)

    async def _picture(self, action: Action) -> None:
        """Take a screenshot after the action; a stop interrupts it."""
        try:
            async with self._context.unit("picture", PICTURE_S):
                shot = await self._recorder.screenshot(
                    action.tab, self._masks.echoes, bare=self._args.keep_text
                )
        except (UnitStopped, UnitTimeout):
            return
        if shot is not None:
            action.screenshot = await self._context.artifact(f"{action.n:04}.png", shot)
            self._artifacts.append(_artifact(action.screenshot, action.n))

    async def _keep(self, action: Action) -> None:
        units = Units(done=action.n, message=action.words())
        await self._context.page(msgspec.to_builtins(action), units)

    def head(self) -> dict[str, Any]:
        """Return the fields of the head that exist only in memory."""
        network = self._recorder.network()
        for failure in network["failures"]:
            failure["url"] = self._masks.hide_url(failure["url"])
        return {
            "action_count": self._scribe.count,
            "dropped": self._recorder.dropped,
            "windows_refused": self._scribe.windows,
            "variables": list(self._masks.variables.values()),
            "network": network,
            "artifacts": self._artifacts,
        }


def partial_head(
    args: RecordingArgs,
    task_id: str,
    actions: Iterable[Mapping[str, Any]],
    stopped_by: str,
    lasted_ms: int,
) -> dict[str, Any]:
    """Build a head from the actions on disk, after an interrupted recording."""
    kept = list(actions)
    names = {str(one["variable"]): bool(one.get("secret")) for one in kept if "variable" in one}
    return {
        **_head(args, task_id, stopped_by, lasted_ms),
        "action_count": len(kept),
        "windows_refused": sum(one.get("type") == "window" for one in kept),
        "variables": [{"name": name, "secret": secret} for name, secret in names.items()],
        "artifacts": [
            _artifact(str(one["screenshot"]), one["n"]) for one in kept if "screenshot" in one
        ],
    }


def _head(args: RecordingArgs, task_id: str, stopped_by: str, lasted_ms: int) -> dict[str, Any]:
    return {
        "recording_id": f"rec-{task_id}",
        "label": args.label,
        "url": redact.url(args.url),
        "keep_text": args.keep_text,
        "headed": not args.headless,
        "viewport": {"width": args.width, "height": args.height},
        "stopped_by": stopped_by,
        "duration_ms": lasted_ms,
    }


def _artifact(path: str, action: int) -> dict[str, Any]:
    return {"path": path, "kind": "screenshot", "action": action}


CLOSE_S = 0.5  # a stopped task must be settled within 2 s; the rest closes in the background


async def _record(args: RecordingArgs, context: Context, tools: Tools) -> Head:
    policy = within_domains(reach(tools.settings, args.url, proxy=args.proxy), context)
    try:
        async with (
            telling(context, policy),
            using_profile(args.profile, context, tools) as sign_in,
        ):
            secrets = (*args.secrets, *secrets_of(sign_in, policy))
            args = msgspec.structs.replace(args, secrets=secrets)
            return await record(
                args,
                context,
                lambda args, now_ms: _opened(args, now_ms, policy, tools, sign_in),
                sign_in,
            )
    except NoScreen as failed:
        raise NoDisplay() from failed


@asynccontextmanager
async def _opened(
    args: RecordingArgs,
    now_ms: Callable[[], int],
    policy: Policy,
    tools: Tools,
    sign_in: SignIn | None,
) -> AsyncIterator[Recorder]:
    options = InstanceOptions(
        policy=policy,
        headed=not args.headless,
        asks_person=not args.headless,
        credentials=args.credentials,
        look=args.look,
        secrets=args.secrets,
        width=args.width,
        height=args.height,
        sign_in=sign_in,
        remote=remote_place(args.remote_browser, tools.settings),
    )
    try:
        instance = await tools.instances.launch(options)
    except TooManyInstances:
        raise BrowserFailed(reason="too many instances are open; close one first") from None
    from engine.browser.recording.recorder import (
        PageRecorder,  # imports Playwright, so only on first use
    )

    try:
        yield PageRecorder(instance, now_ms, has_sign=not args.headless)
    finally:
        await tools.instances.retire(instance.id, CLOSE_S)


def _partial(
    args: RecordingArgs, actions: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, lasted_ms: int
) -> Head:
    return partial_head(args, "", actions, stopped_by, lasted_ms)


RECORDING = KindSpec(
    RECORDING_TRAITS.name,
    parse_recording,
    _record,
    _partial,
    traits=RECORDING_TRAITS,
    form=KindForm(
        "Record what you do",
        summary="what somebody does in a browser window",
        options_title="Recording",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(RecordingArgs),
    columns=(
        *(
            Column("n", 6, brief=True),
            Column("action", 50, brief=True),
            Column("type", 12),
            Column("ts", 16),
            Column("tab", 5),
        ),
        *(
            Column("url", 50, brief=True),
            Column("role", 12),
            Column("name", 30),
            Column("selector", 40),
        ),
        *(Column("found_by", 10), Column("alternatives", 40), Column("count", 7)),
        *(Column("button", 8), Column("on", 6), Column("key", 12), Column("append", 8)),
        *(
            Column("dialog", 12),
            Column("answer", 10),
            Column("target", 30),
            Column("target_alternatives", 40),
            Column("files", 30),
        ),
        *(Column("text", 30, brief=True), Column("variable", 16), Column("screenshot", 30)),
    ),
)


_NOTE: Final = {"phase": "stop", "note": "asked to end in good order"}


def request_stop(ledger: Ledger, task_id: str) -> TaskRecord:
    """Store the stop request in meta.json, where the runner reads it like a cancel.

    A pending recording becomes CANCELLED (it has no actions), an ended one is returned unchanged.

    Raises:
        NotStoppable: the task is not a recording.
        NotATaskId, TaskNotFound, TaskUnreadable, LockTimeout, LedgerWriteFailed.
    """
    record = ledger.read(task_id)
    if not isinstance(record, Unreadable):
        if not traits_of(record.kind).stoppable:
            raise NotStoppable(task_id=task_id, kind=record.kind)
        if record.status == Status.PENDING:
            return ledger.request_cancel(task_id, "stopped before it had begun")
        if record.is_terminal:
            return record

    def ask(raw: dict[str, Any]) -> None:
        if raw.get("status") == Status.RUNNING:
            changes.engine_of(raw).setdefault("stop_requested_at", wall_ms())

    found = ledger.mutate(task_id, ask, durable=True)
    if not found.is_terminal:
        ledger.note(task_id, [("log", _NOTE)])
    return found


class NoDisplay(EngineError):
    """A window was requested, but no display is available."""

    code = "no_display"
    title = "There is no screen"
    # The message has the advice, because it is all that is stored of an error that ends a task.
    sentence = (
        "A recording with a window needs a screen, and there is none here. "
        "Record without a window (--headless), or start it where there is a screen."
    )


class NotStoppable(EngineError):
    """A stop was requested for a task that only supports cancel."""

    code = "not_stoppable"
    title = "This task can only be cancelled"
    sentence = "Task {task_id} is of the kind {kind}: only a recording can be stopped."
    advice_text = "Cancel it instead; what it has finished is kept."


class NotARecording(EngineError):
    """An export as a command task or trace was requested for another kind of task."""

    code = "not_a_recording"
    title = "This is no recording"
    sentence = "Task {task_id} is of the kind {kind}, not a recording."
    advice_text = "Look for recordings with `octask list --kind recording`."


class NothingToReplay(EngineError):
    """A recording without any action that a command can replay."""

    code = "nothing_to_replay"
    title = "There is nothing to replay"
    sentence = "Recording {task_id} holds no action that can be replayed."
    advice_text = "Record again, and do in the page what is to be replayed."
