"""The kind `oc_session_snapshot`: the state of a session, for a later continuation.

It captures the open tabs of agents, or given addresses. Cookies and storage are the session itself:
they are read only on request, and stored only in `artifacts/session-state.json` in the task's
folder (readable by its owner alone, in the shape of Playwright's storage_state), because the
redactor removes them from every other place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from engine.browser.chromium.browser_options import PLAIN, BrowserLook, InstanceOptions
from engine.egress.egress_policy import Policy
from engine.kinds.arguments import (
    KEYS_HINT,
    PAGE_TIMEOUT,
    PROXY,
    Argument,
    FormField,
    Table,
    each,
    entries,
    flag,
    long_text,
    missing,
    optional,
    proxy_from,
    proxy_problems,
    proxy_secrets,
    read_all,
    redact_content,
    text,
    web_address,
)
from engine.kinds.context import Context, UnitStopped, reach, telling, within_domains
from engine.kinds.look_arguments import LOOK, look_from, look_given, look_problems
from engine.kinds.profile_use import PROFILE, secrets_of, using_profile
from engine.kinds.remote_browser_use import REMOTE_BROWSER, remote_place
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.kinds.traits import SNAPSHOT_TRAITS
from engine.model import redact
from engine.model.addresses import address_of
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.proxies import ProxyChoice
from engine.model.records import SESSION_STATE, Units
from engine.model.tally import StoppedBy
from engine.secrets.given_secrets import Hidden, of_address

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.interact.agent_tab import AgentTab
    from engine.browser.page.screenshot import Look  # imports Playwright


MAX_MEMO: Final = 4_096  # characters of one text of the memo, as OpenChrome's goals have


class GivenTab(msgspec.Struct, frozen=True):
    """A tab that was given by its address; credentials in it are removed.

    `secrets` are the secrets in the typed address, which are masked in page content.
    """

    url: str
    title: str | None = None
    secrets: tuple[Hidden, ...] = ()


class SnapshotArgs(msgspec.Struct, frozen=True):
    """Validated arguments of a snapshot.

    Without `tabs` (None) the snapshot covers the open tabs of this process' agents; given addresses
    are stored (redacted), and opened only with `visit`.
    """

    objective: str
    current_step: str = ""
    next_actions: tuple[str, ...] = ()
    completed_steps: tuple[str, ...] | None = None
    notes: str | None = None
    label: str | None = None
    tabs: tuple[GivenTab, ...] | None = None
    visit: bool = False
    screenshot: bool = True
    include_cookies: bool = False
    include_storage: bool = False
    timeout_ms: int = 30_000
    redact_content: bool = True
    profile: str | None = None
    remote_browser: str | None = None
    proxy: ProxyChoice | None = None
    look: BrowserLook = PLAIN
    secrets: tuple[Hidden, ...] = ()

    @property
    def wants_state(self) -> bool:
        return self.include_cookies or self.include_storage


_memo = long_text(MAX_MEMO)


def _memos(given: object) -> tuple[str, ...]:
    return tuple(map(_memo, entries(given)))


def _step(given: object) -> str:
    """Read a text that may be empty: before the first step there is none."""
    return "" if given == "" else str(_memo(given))


def _tabs(given: object) -> tuple[GivenTab, ...]:
    return each(_tab, entries(given))


def _tab(given: object) -> GivenTab:
    if not isinstance(given, Mapping):
        return GivenTab(_plain(given), secrets=_secrets_in(given))
    unknown = [name for name in given if name not in ("url", "title")]
    if unknown or "url" not in given:
        raise ValueError("must have addresses, or objects with url and title")
    title = given.get("title")
    read = None if title is None else str(text(title))
    return GivenTab(_plain(given["url"]), read, _secrets_in(given["url"]))


def _secrets_in(given: object) -> tuple[Hidden, ...]:
    return tuple(of_address(given)) if isinstance(given, str) else ()


def _plain(given: object) -> str:
    address = address_of(web_address(given))
    assert address is not None
    return address.url


ARGUMENTS: Table = {
    "objective": Argument(_memo, FormField("Objective", "first", editor="prose")),
    "current_step": Argument(
        _step,
        FormField("Current step", "limits", editor="line"),
        help="The step that is being done.",
    ),
    "currentStep": Argument(_step, field="current_step"),
    "next_actions": Argument(
        _memos,
        FormField("Next actions", "limits", editor="lines", hint="One per line."),
        help="A next step.",
        option="repeated",
    ),
    "nextActions": Argument(_memos, field="next_actions"),
    "completed_steps": Argument(
        optional(_memos),
        FormField("What is done", editor="lines", hint="One per line."),
        help="A completed step.",
        option="repeated",
    ),
    "completedSteps": Argument(optional(_memos), field="completed_steps"),
    "tabs": Argument(
        optional(_tabs),
        FormField(
            "Addresses of its tabs",
            "limits",
            editor="lines",
            hint="One per line; without any, the tabs that agents have open here.",
        ),
        help="Address of a tab.",
        option="repeated",
    ),
    "notes": Argument(optional(_memo), FormField("Notes", editor="prose"), help="Notes."),
    "label": Argument(optional(text), FormField("Label in the result", editor="line")),
    "timeout_ms": PAGE_TIMEOUT,
    "visit": Argument(flag, FormField("Open these addresses", "loading"), help="Open these tabs."),
    "screenshot": Argument(flag, FormField("A screenshot of every tab", "content")),
    "include_cookies": Argument(
        flag,
        FormField("Also cookies (they are secrets)", "content"),
        help="Keep their cookies, in a file.",
    ),
    "include_storage": Argument(
        flag,
        FormField("Also what sites store (may be secret)", "content"),
        help="Keep their local storage, too.",
    ),
    "profile": PROFILE,
    "remote_browser": REMOTE_BROWSER,
    "includeCookies": Argument(flag, field="include_cookies"),
    "includeStorage": Argument(flag, field="include_storage"),
    "redact_content": redact_content(KEYS_HINT),
    **PROXY,
    **LOOK,
}


def parse_snapshot(given: Mapping[str, Any]) -> SnapshotArgs:
    """Parse the arguments of a session snapshot.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "a session snapshot")
    if "objective" not in given:
        problems.append(missing("objective", "what the session is for"))
    if fields.get("visit") and not fields.get("tabs"):
        problems.append(Problem("visit", "not_together", "needs tabs with addresses to open"))
    if fields.get("profile"):
        # They would leave the profile, and its encryption.
        asked = [name for name in ("include_cookies", "include_storage") if fields.get(name)]
        why = "does not go with profile, whose cookies no task folder holds"
        problems.extend(Problem(name, "not_together", why) for name in asked)
    if fields.get("profile") and not fields.get("visit"):
        problems.append(Problem("profile", "not_together", "needs addresses to open (visit)"))
    if fields.get("tabs") is not None and not fields.get("visit"):
        asked = [name for name in ("include_cookies", "include_storage") if fields.get(name)]
        needs = "needs living tabs: leave tabs out, or visit them"
        problems.extend(Problem(name, "not_together", needs) for name in asked)
    problems.extend(proxy_problems(fields))
    if fields.get("proxy") and not fields.get("visit"):
        problems.append(Problem("proxy", "not_together", "needs visit"))
    if fields.get("remote_browser") and not fields.get("visit"):
        problems.append(Problem("remote_browser", "not_together", "needs visit"))
    if not fields.get("visit"):
        problems.extend(look_given(fields, "needs tabs that are visited"))
    problems.extend(look_problems(fields))
    if problems:
        raise InvalidArguments(tuple(problems))
    look, hidden = look_from(fields, [tab.url for tab in fields.get("tabs") or ()])
    proxy = proxy_from(fields)
    return SnapshotArgs(look=look, secrets=hidden, proxy=proxy, **fields)


LOOK_S: Final = 30.0
SLACK_S: Final = 10.0
MAX_STATE: Final = 32 * 1024 * 1024  # bytes of the stored state of one browser


class Living(Protocol):
    """A readable tab. `told` has the fields that need no access to the page."""

    @property
    def told(self) -> dict[str, Any]: ...

    async def look(self, args: SnapshotArgs) -> Look:
        """Read the state of the tab. Raises EngineError."""
        ...


class Browser(Protocol):
    """One browser with its own cookies and tabs; `agent` is its agent's id, if any."""

    @property
    def agent(self) -> str: ...

    @property
    def tabs(self) -> Sequence[Living]: ...

    async def cookies(self) -> list[dict[str, Any]]:
        """Read its cookies. Raises EngineError."""
        ...


OpenBrowsers = Callable[[SnapshotArgs], AbstractAsyncContextManager[Sequence[Browser]]]


async def snapshot(args: SnapshotArgs, ctx: Context, browsers: OpenBrowsers) -> dict[str, Any]:
    """Store the session; return the head of the result. A stop keeps the finished part.

    Raises:
        BrowserMissing, BrowserFailed: tabs were to be visited, and no browser is available.
    """
    work = _Snapshot(args, ctx)
    try:
        if args.tabs is not None and not args.visit:
            await work.keep_given(args.tabs)
        else:
            async with browsers(args) as opened:
                await work.keep_living(opened)
    except UnitStopped:
        return work.head()
    return work.head()


class _Snapshot:
    def __init__(self, args: SnapshotArgs, ctx: Context) -> None:
        self._args, self._ctx = args, ctx
        self._taken_at = ctx.now_ms()
        self._done = self._failed = self._total = 0
        self._states: list[dict[str, Any]] = []

    async def keep_given(self, tabs: Sequence[GivenTab]) -> None:
        self._total = len(tabs)
        for tab in tabs:
            record: dict[str, Any] = {"url": redact.url(tab.url), "visited": False}
            if tab.title is not None:
                record["title"] = display(redact.text(tab.title), 500)
            async with self._ctx.unit(record["url"], LOOK_S):
                await self._keep(record)

    async def keep_living(self, browsers: Sequence[Browser]) -> None:
        self._total = sum(len(browser.tabs) for browser in browsers)
        for number, browser in enumerate(browsers, 1):
            origins: dict[str, list[dict[str, str]]] = {}
            for tab in browser.tabs:
                await self._look_at(tab, origins)
            if self._args.wants_state:
                await self._keep_state(number, browser, origins)

    async def _look_at(self, tab: Living, origins: dict[str, list[dict[str, str]]]) -> None:
        record = dict(tab.told)
        try:
            label = str(record.get("tab") or record.get("url"))
            async with self._ctx.unit(label, LOOK_S + self._args.timeout_ms / 1_000 + SLACK_S):
                look = await tab.look(self._args)
        except EngineError as failed:
            self._failed += 1
            await self._keep({**record, "error": display(redact.text(str(failed)), 500)})
            return
        if look.origin and look.storage:
            origins[look.origin] = look.storage
        record |= {"title": look.title, "scroll": {"x": look.scroll_x, "y": look.scroll_y}}
        record |= {"final_url" if self._args.visit else "url": look.url}
        if look.status:
            record["status"] = look.status
        if look.png is not None:
            name = f"tab-{self._done + 1:03d}.png"
            record["screenshot"] = await self._ctx.artifact(name, look.png)
        await self._keep(record)

    async def _keep(self, record: dict[str, Any]) -> None:
        self._done += 1
        said = str(record.get("final_url") or record.get("url") or record.get("tab"))
        said = f"{said}: {record['error']}" if "error" in record else said
        await self._ctx.page(record, Units(self._done, self._total, said, self._failed))

    async def _keep_state(
        self, number: int, browser: Browser, origins: Mapping[str, list[dict[str, str]]]
    ) -> None:
        told: dict[str, Any] = {"agent": browser.agent} if browser.agent else {}
        try:
            async with self._ctx.unit("cookies and storage", LOOK_S):
                cookies = await browser.cookies() if self._args.include_cookies else []
        except EngineError as failed:
            self._states.append({**told, "error": display(redact.text(str(failed)), 500)})
            return
        stored = [{"origin": origin, "localStorage": held} for origin, held in origins.items()]
        data = msgspec.json.encode({"cookies": cookies, "origins": stored})
        if len(data) > MAX_STATE:
            self._states.append({**told, "error": "it is larger than 32 MiB"})
            return
        name = f"{SESSION_STATE}.json" if number == 1 else f"{SESSION_STATE}-{number}.json"
        file = await self._ctx.artifact(name, data)
        self._states.append({**told, "file": file, "bytes": len(data)})

    def head(self) -> dict[str, Any]:
        told = snapshot_head(self._ctx.task_id, self._args)
        told["captured_at"] = self._taken_at
        if self._args.wants_state:
            told["states"] = self._states
        return told


def snapshot_head(task_id: str, args: SnapshotArgs) -> dict[str, Any]:
    """Return the fields that every snapshot's head has: the redacted memo."""
    memo: dict[str, Any] = {
        "objective": redact.text(args.objective),
        "current_step": redact.text(args.current_step),
        "next_actions": _texts(args.next_actions),
    }
    if args.completed_steps is not None:
        memo["completed_steps"] = _texts(args.completed_steps)
    if args.notes is not None:
        memo["notes"] = redact.text(args.notes)
    told: dict[str, Any] = {"snapshot_id": f"snap-{task_id}", "memo": memo}
    if args.label is not None:
        told["label"] = redact.text(args.label)
    return told


def _texts(given: Iterable[str]) -> list[str]:
    return [redact.text(one) for one in given]


AcquireTab = Callable[[float], "AbstractAsyncContextManager[AgentTab]"]


class OpenTab:
    """An open tab. `acquire` waits until no other task uses it."""

    def __init__(
        self, told: dict[str, Any], acquire: AcquireTab, visit: GivenTab | None = None
    ) -> None:
        self._told = told
        self._acquire = acquire
        self._visit = visit

    @property
    def told(self) -> dict[str, Any]:
        return self._told

    async def look(self, args: SnapshotArgs) -> Look:
        async with self._acquire(LOOK_S) as tab:
            from engine.browser.page.screenshot import capture  # imports Playwright

            status = await self._go(tab, args) if self._visit is not None else None
            async with tab.within(LOOK_S):
                return await capture(
                    tab,
                    storage=args.include_storage,
                    screenshot=args.screenshot,
                    redact_content=args.redact_content,
                    status=status,
                )

    async def _go(self, tab: AgentTab, args: SnapshotArgs) -> int:
        assert self._visit is not None
        async with tab.within(args.timeout_ms / 1_000):
            return (await tab.go(self._visit.url, args.timeout_ms, anew=True)).status


class OpenBrowser:
    """The tabs and cookies of one browser context."""

    def __init__(self, agent: str, instance: Instance, tabs: Sequence[OpenTab]) -> None:
        self.agent = agent
        self.tabs = tabs
        self._instance = instance

    async def cookies(self) -> list[dict[str, Any]]:
        return await self._instance.cookies(LOOK_S)


async def visited(instance: Instance, policy: Policy, args: SnapshotArgs) -> OpenBrowser:
    """Return a browser that opens each given address when it is captured.

    Raises:
        BrowserGone: the browser died.
    """
    from engine.browser.interact.agent_tab import open_tab  # imports Playwright

    tab = await open_tab(1, instance, policy)
    tab.mask.add_given((*_secrets(args), *instance.options.secrets))

    @asynccontextmanager
    async def acquire(_: float) -> AsyncIterator[AgentTab]:
        yield tab

    tabs = [
        OpenTab({"url": tab.mask.text(given.url), "visited": True}, acquire, given)
        for given in args.tabs or ()
    ]
    return OpenBrowser("", instance, tabs)


async def _snapshot(args: SnapshotArgs, context: Context, tools: Tools) -> Head:
    @asynccontextmanager
    async def browsers(args: SnapshotArgs) -> AsyncIterator[Sequence[Browser]]:
        if not args.visit:
            yield _living(tools)
            return
        policy = reach(tools.settings, *(tab.url for tab in args.tabs or ()), proxy=args.proxy)
        policy = within_domains(policy, context)
        async with using_profile(args.profile, context, tools) as sign_in:
            secrets = (*_secrets(args), *secrets_of(sign_in, policy))
            options = InstanceOptions(
                policy,
                look=args.look,
                secrets=secrets,
                task_id=context.task_id,
                sign_in=sign_in,
                remote=remote_place(args.remote_browser, tools.settings),
            )
            opened = tools.browser.instance(options)
            async with opened as instance, telling(context, policy):
                yield [await visited(instance, policy, args)]

    return await snapshot(args, context, browsers)


def _living(tools: Tools) -> list[Browser]:
    """Return the browsers of this process' agents, each with its tabs."""
    found: list[Browser] = []
    for agent_id, held in tools.living():
        tabs = [OpenTab({"tab": each.tab.id, "agent": agent_id}, each.locked) for each in held]
        if tabs:
            found.append(OpenBrowser(agent_id, held[0].tab.instance, tabs))
    return found


def _captures_nothing(args: SnapshotArgs, tools: Tools) -> bool:
    return not args.tabs if args.tabs is not None else not _living(tools)


def _partial(
    args: SnapshotArgs, _: Iterable[Mapping[str, Any]], __: StoppedBy, lasted_ms: int
) -> Head:
    return snapshot_head("", args)


def _secrets(args: SnapshotArgs) -> list[Hidden]:
    given = [one for tab in args.tabs or () for one in tab.secrets]
    return [*args.secrets, *given, *proxy_secrets(args.proxy)]


SNAPSHOT = KindSpec(
    SNAPSHOT_TRAITS.name,
    parse_snapshot,
    _snapshot,
    _partial,
    secrets=_secrets,
    captures_nothing=_captures_nothing,
    traits=SNAPSHOT_TRAITS,
    form=KindForm(
        "Session snapshot",
        summary="where a piece of work stands, to go on later",
        options_title="Session snapshot",
        nothing="No address is given, and no agent has a tab open in this program: "
        "the snapshot will list no tabs.",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(SnapshotArgs),
    columns=(
        *(
            Column("url", 50, brief=True),
            Column("final_url", 50),
            Column("title", 40, brief=True),
            Column("status", 8, brief=True),
        ),
        *(Column("screenshot", 30), Column("error", 40, brief=True)),
    ),
)
