"""The kind `oc_evidence_bundle`: its arguments and parts, of a page or an open tab of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.browser.chromium.browser_options import PLAIN, BrowserLook, InstanceOptions
from engine.browser.page.bundle_parts import (
    PART_S,
    PARTS,
    Camera,
    Opened,
    Part,
    Piece,
    Taking,
)
from engine.cluster.cluster_address import WorkerLost
from engine.kinds.arguments import (
    ADDRESS_HINT,
    COUNTED_KEYS_HINT,
    CREDENTIALS,
    PAGE_TIMEOUT,
    PROXY,
    WAIT_FOR,
    Argument,
    FormField,
    Table,
    credential_problems,
    credentials_from,
    entries,
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
from engine.kinds.cluster_use import (
    CLUSTER,
    LOADS,
    WAIT_S,
    WAIT_UNIT,
    Wish,
    cluster_of,
    common_problems,
    has_a_secret,
    unserved,
    using_cluster,
)
from engine.kinds.consent_use import DISMISS_CONSENT, consent_rules_for
from engine.kinds.context import Context, UnitStopped, domains_of, reach, telling, within_domains
from engine.kinds.look_arguments import LOOK, look_from, look_given, look_problems
from engine.kinds.profile_use import PROFILE, secrets_of, using_profile
from engine.kinds.spec import Column, Head, HeldTab, KindForm, KindSpec, Tools, defaults_of
from engine.kinds.traits import EVIDENCE_TRAITS
from engine.model import redact
from engine.model.addresses import Credentials, address_of
from engine.model.config import Settings
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem, TaskFailed
from engine.model.proxies import ProxyChoice
from engine.model.records import ARTIFACTS_NAME, Units
from engine.model.tally import StoppedBy
from engine.secrets.given_secrets import Hidden

if TYPE_CHECKING:
    from engine.browser.interact.agent_tab import AgentTab
    from engine.cluster.cluster_pages import ClusterPages, TakenBundle
    from engine.cluster.page_records import Terms


class EvidenceArgs(msgspec.Struct, frozen=True):
    """Validated arguments of an evidence bundle. `url` is without credentials.

    `tab` is an open tab of an agent, which is used without a new load. Requests are recorded for
    `network_window_ms` from the beginning.
    """

    url: str | None = None
    credentials: Credentials | None = None
    tab: str | None = None
    include: tuple[Part, ...] = ("dom", "screenshot")
    network_window_ms: int = 5_000
    full_page: bool = True
    wait_for: str | None = None
    timeout_ms: int = 30_000
    label: str | None = None
    redact_content: bool = True
    secrets: tuple[Hidden, ...] = ()
    profile: str | None = None
    proxy: ProxyChoice | None = None
    dismiss_consent: bool = False
    cluster: str | None = None
    look: BrowserLook = PLAIN


def _include(given: object) -> tuple[str, ...]:
    """Read a list of parts, each once, in canonical order; one text may name several."""
    named = entries([given] if isinstance(given, str) else given)
    read = one_of(*PARTS)
    chosen = {read(name) for each in named for name in _names(each)}
    if not chosen:
        raise ValueError(f"must name at least one of {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in chosen)


def _names(given: object) -> list[object]:
    if not isinstance(given, str):
        return [given]
    return [name.strip() for name in given.split(",") if name.strip()]


ARGUMENTS: Table = {
    "url": Argument(
        optional(web_address),
        FormField("Address", "first", hint=ADDRESS_HINT, shade="example.com/docs"),
    ),
    "tab": Argument(optional(text)),
    "include": Argument(
        _include,
        FormField(
            "What to keep",
            "limits",
            editor="several",
            options=(
                ("dom", "The page as HTML"),
                ("screenshot", "A screenshot"),
                ("phash", "Visual fingerprint"),
                ("network", "Network requests"),
                ("console", "Console messages"),
            ),
        ),
        help="Parts: dom, screenshot, phash, network, console (default: dom, screenshot).",
        option="repeated",
    ),
    "label": Argument(optional(text), FormField("Label in the result", "limits", editor="line")),
    "network_window_ms": Argument(
        whole(0, 60_000),
        FormField("Record requests for (ms)", "content"),
        help="Record network requests for this time in ms.",
    ),
    "timeout_ms": PAGE_TIMEOUT,
    "wait_for": WAIT_FOR,
    "cluster": CLUSTER,
    "dismiss_consent": DISMISS_CONSENT,
    "profile": PROFILE,
    **CREDENTIALS,
    "full_page": Argument(
        flag,
        FormField("Full-page screenshot", "content"),
        help="Take a screenshot of the full page.",
    ),
    "redact_content": redact_content(COUNTED_KEYS_HINT),
    **PROXY,
    **LOOK,
}


def parse_evidence(given: Mapping[str, Any]) -> EvidenceArgs:
    """Parse the arguments of an evidence bundle.

    Raises:
        InvalidArguments: with a `Problem` for every mistake; its path is the argument's name.
    """
    fields, problems = read_all(given, ARGUMENTS, "an evidence bundle")
    has_url, has_tab = given.get("url") is not None, given.get("tab") is not None
    if not has_url and not has_tab:
        problems.append(missing("url", "the address of the page, or tab"))
    if has_url and has_tab:
        problems.append(Problem("tab", "not_together", "does not go with url"))
    if fields.get("profile") and not has_url:
        problems.append(Problem("profile", "not_together", "needs url"))
    if has_tab:
        problems.extend(look_given(fields, "does not go with tab"))
    problems.extend(look_problems(fields))
    problems.extend(credential_problems(fields, fields.get("url")))
    problems.extend(proxy_problems(fields))
    for name in ("proxy", "dismiss_consent", "cluster"):
        if fields.get(name) and has_tab:
            problems.append(Problem(name, "not_together", "does not go with tab"))
    if problems:
        raise InvalidArguments(tuple(problems))
    typed = fields.pop("url", None)
    address = address_of(typed) if typed else None
    credentials, secrets = credentials_from(fields, typed or "")
    proxy = proxy_from(fields)
    look, hidden = look_from(fields, () if address is None else (address.url,))
    if address is None:
        return EvidenceArgs(**fields)
    secrets = (*secrets, *hidden, *proxy_secrets(proxy))
    return EvidenceArgs(
        url=address.url,
        credentials=credentials,
        secrets=secrets,
        look=look,
        proxy=proxy,
        **fields,
    )


FILES: Final[Mapping[Part, str]] = {
    "dom": "dom.html",
    "screenshot": "screenshot.png",
    "phash": "phash.json",
    "network": "network.json",
    "console": "console.jsonl",
}
OPEN_S: Final = 30.0  # time limit for a tab that is busy with its agent


class TabMissing(EngineError):
    """The requested tab of an agent does not exist in this process."""

    code = "tab_missing"
    title = "There is no such tab"
    sentence = "No agent of this process has the tab {tab} open."
    advice_text = "Look at the open tabs, or give an address instead."


OpenCamera = Callable[[EvidenceArgs, Callable[[], float]], AbstractAsyncContextManager[Camera]]


async def evidence(args: EvidenceArgs, ctx: Context, open_camera: OpenCamera) -> dict[str, Any]:
    """Collect the parts; return the head of the result.

    Raises:
        TaskFailed: the page did not open, or all parts failed; the collected ones are stored.
        BrowserMissing, BrowserFailed: no browser is available.
    """
    bundle = _Bundle(args, ctx)
    try:
        async with open_camera(args, ctx.monotonic) as camera:
            await bundle.fill(camera)
    except UnitStopped:
        return bundle.head()
    if (failed := bundle.failure) is not None:
        code = failed.failure if isinstance(failed, TaskFailed) else failed.code
        raise TaskFailed(code, str(failed), bundle.head())
    return bundle.head()


class _Bundle:
    def __init__(self, args: EvidenceArgs, ctx: Context) -> None:
        self._args, self._ctx = args, ctx
        self._taken_at = ctx.now_ms()
        self._opened: Opened | None = None
        self._unopened: EngineError | None = None
        self._errors: list[EngineError] = []
        self._size = self._redacted = 0
        self._worker = ""

    @property
    def failure(self) -> EngineError | None:
        """The error that makes the whole bundle a failure, if any."""
        if self._unopened is not None:
            return self._unopened
        all_failed = len(self._errors) == len(self._args.include)
        return self._errors[0] if all_failed else None

    async def fill(self, camera: Camera) -> None:
        self._taken_at = self._ctx.now_ms()  # not before a browser or a worker is there
        taking = Taking(camera, self._args, self._ctx.unit, self._ctx.monotonic)
        await taking.open()
        self._opened, self._unopened = taking.opened, taking.unopened
        self._worker = camera.worker
        if taking.unopened is not None:
            await self._ctx.log("evidence", f"the page did not open: {taking.unopened}")
        for number, part in enumerate(self._args.include, 1):
            await self._keep(number, part, await taking.take(part))

    async def _keep(self, number: int, part: Part, taken: Piece | EngineError) -> None:
        record: dict[str, Any] = {"part": part}
        if isinstance(taken, EngineError):
            self._errors.append(taken)
            record["error"] = display(redact.text(str(taken)), 500)
        else:
            record |= await self._file(part, taken)
        if self._worker:
            record["worker"] = self._worker
        said = f"{part}: {record['error']}" if "error" in record else part
        units = Units(number, len(self._args.include), said, len(self._errors))
        await self._ctx.page(record, units)

    async def _file(self, part: Part, piece: Piece) -> dict[str, Any]:
        file = await self._ctx.artifact(FILES[part], piece.data)
        self._size += len(piece.data)
        self._redacted += int(piece.told.get("redacted", 0))
        record = {
            "file": file,
            "bytes": len(piece.data),
            "sha256": sha256(piece.data).hexdigest(),
            **piece.told,
        }
        return {**record, "truncated": True} if piece.truncated else record

    def head(self) -> dict[str, Any]:
        told = bundle_head(self._ctx.task_id, self._args, self._size)
        told["captured_at"] = self._taken_at
        if self._redacted:
            told["redacted"] = self._redacted
        if self._worker:
            told["worker"] = self._worker
        if self._opened is not None:
            told |= {
                "final_url": self._opened.url,
                "title": self._opened.title,
                "status": self._opened.status or None,
                "settled": self._opened.settled,
            }
            if self._opened.consent:
                told["consent"] = self._opened.consent
        return told


def bundle_head(task_id: str, args: EvidenceArgs, size_bytes: int) -> dict[str, Any]:
    """Return the fields that every bundle's head has; `path` is relative to the task's folder."""
    told: dict[str, Any] = {
        "bundle_id": f"bundle-{task_id}",
        "path": f"{ARTIFACTS_NAME}/",
        "size_bytes": size_bytes,
    }
    if args.url is not None:
        told["url"] = redact.url(args.url)
    if args.tab is not None:
        told["tab"] = args.tab
    if args.label is not None:
        told["label"] = redact.text(args.label)
    return told


def size_of(parts: Iterable[Mapping[str, Any]]) -> int:
    """Return the size in bytes of the parts on disk."""
    return sum(part["bytes"] for part in parts if isinstance(part.get("bytes"), int))


async def _evidence(args: EvidenceArgs, context: Context, tools: Tools) -> Head:
    rules = await consent_rules_for(dismiss=args.dismiss_consent)

    @asynccontextmanager
    async def open_camera(
        args: EvidenceArgs, monotonic: Callable[[], float]
    ) -> AsyncIterator[Camera]:
        async with _on_cluster(args, context, tools) as taken:
            if taken is not None:
                yield taken
                return
        async with (
            _tab_for(args, context, tools) as tab,
            telling(context, tab.instance.options.policy),
        ):
            from engine.browser.page.evidence import camera_on

            async with camera_on(tab, args, monotonic, PART_S, rules) as camera:
                yield camera

    return await evidence(args, context, open_camera)


def _cluster_problems(args: EvidenceArgs, settings: Settings) -> list[Problem]:
    """Return the arguments that no cluster serves."""
    problems = common_problems(args, settings)
    if args.tab is not None:
        problems.append(unserved("tab"))
    if not problems and (args.secrets or has_a_secret(args.url)):
        problems.append(unserved("url"))
    return problems


def _parse_here(given: Mapping[str, Any], tools: Tools) -> EvidenceArgs:
    args = parse_evidence(given)
    cluster_of(args.cluster, _cluster_problems(args, tools.settings), tools.settings)
    return args


@asynccontextmanager
async def _on_cluster(
    args: EvidenceArgs, context: Context, tools: Tools
) -> AsyncIterator[TakenBundle | None]:
    """Take the bundle on a worker of the task's cluster, if it has one.

    Raises:
        WorkerLost: several workers were lost with it.
        PageError, BrowserGone: a worker could not open a page; and as `using_cluster`.
    """
    if args.url is None:
        yield None
        return
    url = args.url

    def terms(held: Mapping[str, tuple[str, ...]]) -> Terms:
        from engine.cluster.page_records import Terms

        budgets = domains_of(context)
        return Terms(start=url, held=dict(held), look=args.look, budgets=budgets)

    policy = reach(tools.settings, url, proxy=args.proxy)
    wish = Wish(args.cluster, _cluster_problems(args, tools.settings), terms, most_local=1)
    async with AsyncExitStack() as stack:
        if cluster_of(wish.named, wish.problems, tools.settings) is not None:
            await stack.enter_async_context(telling(context, policy))
        workers = await stack.enter_async_context(using_cluster(wish, context, tools, policy))
        yield None if workers is None else await _taken(args, context, workers)


async def _taken(args: EvidenceArgs, context: Context, workers: ClusterPages) -> TakenBundle:
    """Take the bundle; on another worker, if the first one is lost."""
    lost, reported = 0, -1
    while True:
        try:
            async with AsyncExitStack() as stack:
                async with context.unit(WAIT_UNIT, WAIT_S):
                    await stack.enter_async_context(workers.room())
                if reported != lost:  # after each lost worker, not after one without room
                    reported = lost
                    await context.reached("A worker takes the bundle")
                async with context.unit("take the bundle on a worker", WAIT_S):
                    return await workers.bundle(args)
        except WorkerLost as failed:
            lost += failed.began
            if lost == LOADS:
                raise


@asynccontextmanager
async def _tab_for(args: EvidenceArgs, context: Context, tools: Tools) -> AsyncIterator[AgentTab]:
    """Yield the given tab when it is free, or one in a new browser.

    Raises:
        TabMissing: no agent of this process has such a tab.
    """
    if args.url is None:
        async with _held(args.tab or "", tools).locked(OPEN_S) as tab:
            yield tab
        return
    policy = within_domains(reach(tools.settings, args.url, proxy=args.proxy), context)
    async with (
        using_profile(args.profile, context, tools) as sign_in,
        tools.browser.instance(
            InstanceOptions(
                policy,
                credentials=args.credentials,
                look=args.look,
                secrets=(*args.secrets, *secrets_of(sign_in, policy)),
                task_id=context.task_id,
                sign_in=sign_in,
            )
        ) as instance,
    ):
        from engine.browser.interact.agent_tab import (
            open_tab,  # imports Playwright, so only on first use
        )

        yield await open_tab(1, instance, policy)


def _held(tab_id: str, tools: Tools) -> HeldTab:
    for _, tabs in tools.living():
        for held in tabs:
            if held.tab.id == tab_id:
                return held
    raise TabMissing(tab=display(tab_id, 40))


def _partial(
    args: EvidenceArgs, parts: Iterable[Mapping[str, Any]], _: StoppedBy, lasted_ms: int
) -> Head:
    return bundle_head("", args, size_of(parts))


EVIDENCE = KindSpec(
    EVIDENCE_TRAITS.name,
    parse_evidence,
    _evidence,
    _partial,
    parse_here=_parse_here,
    traits=EVIDENCE_TRAITS,
    form=KindForm(
        "Capture evidence",
        summary="document, picture, requests and messages of a page",
        options_title="Evidence bundle",
        listed="{0} addresses, evidence of {1}",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(EvidenceArgs),
    columns=(
        *(
            Column("part", 14, brief=True),
            Column("file", 40, brief=True),
            Column("bytes", 12, brief=True),
            Column("sha256", 66),
        ),
        *(Column("truncated", 10), Column("error", 40, brief=True), Column("worker", 20)),
    ),
)
