"""The kind `crawl` with the engine's browser; the start URL defines the private access."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec

from engine.archive.task_archive import FILE_NAME, TaskArchive
from engine.archive.warc_members import whole_size
from engine.browser.chromium.browser_options import FetcherOptions
from engine.browser.chromium.consent_rules import ConsentRules
from engine.egress.egress_policy import Policy
from engine.kinds.consent_use import consent_rules_for
from engine.kinds.context import Context, reach, telling, within_domains, written_places
from engine.kinds.crawl.browser_connection import (
    UsedConnection,
    expect_connection,
    expect_proxy,
    expect_proxy_here,
    is_direct,
)
from engine.kinds.crawl.concurrency import most_tabs
from engine.kinds.crawl.crawl import OpenFetcher, crawl
from engine.kinds.crawl.crawl_args import ARGUMENTS, CrawlArgs, parse_crawl
from engine.kinds.crawl.crawl_cluster import check_cluster, crawling_cluster
from engine.kinds.profile_use import secrets_of, using_profile
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.kinds.traits import CRAWL_TRAITS
from engine.model.errors import HostUnavailable, NothingTaken, OnlyErrorAnswers, TaskFailed
from engine.model.tally import CrawlOutcome, StoppedBy, Tally
from engine.pages.fetch import EngineName, Fetcher
from engine.pages.static_engine import SHARED_AGENT, USER_AGENT, Sender, open_static
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import Scrub

MOST_NAMED: Final = 3  # hosts in one message


async def open_archive(
    args: CrawlArgs, context: Context, sign_in: SignIn | None
) -> TaskArchive | None:
    """Return the web archive of a task, if it was requested.

    That of a resumed task goes on in a copy, as its pages do.
    """
    if args.archive == "none":
        return None
    carried = 0
    if context.resumes:
        carried = await context.carry_artifact(FILE_NAME, whole_size)

    async def tell_full() -> None:
        note = f"The web archive has reached {args.max_archive_mb:,} MB; later answers are left out"
        await context.log("archive", note, max_archive_mb=args.max_archive_mb)

    archive = TaskArchive(
        context.append_artifact,
        Scrub(args.secrets),
        size_bytes=carried,
        most_bytes=args.max_archive_mb * 1_000_000,
        on_full=tell_full,
    )
    if sign_in is not None:
        sign_in.on_secrets.append(archive.conceal)
    return archive


def with_archive(head: Head, archive: TaskArchive | None) -> Head:
    """Add the archive's numbers to the summary of a result.

    Raises:
        EngineError: a record could not be written.
    """
    if archive is None:
        return head
    archive.check()
    return {**head, "summary": {**head["summary"], "archive": archive.summary()}}


def fetchers(
    policy: Policy,
    used: UsedConnection,
    tools: Tools,
    *,
    sign_in: SignIn | None = None,
    archive: TaskArchive | None = None,
    consent: ConsentRules | None = None,
) -> OpenFetcher:
    """Return the fetchers of one task, static or the engine's browser, both under `policy`.

    With `allowedDomains`, only these domains are allowed. Both send the cookies of `sign_in`, and
    `archive` records what they receive. The browser dismisses consent banners by `consent`, and
    `used` gets the connection to it.
    """
    context = used.context
    policy = within_domains(policy, context)

    def open_fetcher(engine: EngineName, args: CrawlArgs) -> AbstractAsyncContextManager[Fetcher]:
        both, clock, look = args.engine == "auto", context.monotonic, args.look
        if engine == "static":
            agent = look.agent or (SHARED_AGENT if both else USER_AGENT)
            sender = Sender(agent, look.locale, look.headers, sign_in)
            return open_static(
                policy,
                args.credentials,
                judge=both,
                sender=sender,
                monotonic=clock,
                archive=archive,
            )
        # A task that went on through Playwright stays there when its fetcher is opened again.
        is_piped = is_direct(args) and used.name != "playwright"
        used.name = "direct" if is_piped else "playwright"
        options = FetcherOptions(
            policy=policy,
            pages=most_tabs(args.concurrency),
            credentials=args.credentials,
            block_resources=args.block_resources,
            look=look,
            user_agent=SHARED_AGENT if both else None,
            secrets=args.secrets,
            task_id=context.task_id,
            sign_in=sign_in,
            archive=archive,
            consent=consent,
            direct=is_piped,
            on_fallback=used.fall_back if args.connection == "auto" else None,
        )
        return tools.browser.fetcher(options)

    return open_fetcher


def _parse(given: Mapping[str, Any]) -> CrawlArgs:
    return expect_connection(parse_crawl(given))


def _parse_here(given: Mapping[str, Any], tools: Tools) -> CrawlArgs:
    args = _parse(given)
    expect_proxy_here(args, tools.settings)
    return check_cluster(args, tools.settings)


async def _crawl(args: CrawlArgs, context: Context, tools: Tools) -> Head:
    consent = await consent_rules_for(dismiss=args.dismiss_consent)
    named = written_places(args.urls)
    policy = reach(tools.settings, args.url, *named, proxy=args.proxy)
    async with telling(context, policy), using_profile(args.profile, context, tools) as sign_in:
        args = with_secrets(args, sign_in, policy)
        archive = await open_archive(args, context, sign_in)
        used = UsedConnection(context)
        open_fetcher = fetchers(
            policy, used, tools, sign_in=sign_in, archive=archive, consent=consent
        )
        async with crawling_cluster(args, context, tools, policy, named) as workers:
            outcome = await crawl(args, context, open_fetcher, sign_in, workers, tools.host_turns)
    head = used.add_to(with_archive({"summary": outcome.summary()}, archive))
    expect_hosts(outcome, context, head)
    expect_a_page(outcome, context)
    return head


def with_secrets(args: CrawlArgs, sign_in: SignIn | None, policy: Policy) -> CrawlArgs:
    """Return the arguments with those of a sign-in and of the policy's proxy among the secrets.

    Raises:
        InvalidArguments: the connection does not serve the proxy.
    """
    expect_proxy(args, policy.proxy)
    return msgspec.structs.replace(args, secrets=(*args.secrets, *secrets_of(sign_in, policy)))


def expect_hosts(outcome: CrawlOutcome, context: Context, head: Head) -> None:
    """Raise an error if a host was given up, whose other pages are missing in the result.

    Raises:
        TaskFailed: with the code of `HostUnavailable`, and with `head`.
    """
    if not outcome.hosts_given_up or context.stopping:
        return
    hosts = ", ".join(one.partition("://")[2] for one in outcome.hosts_given_up[:MOST_NAMED])
    failed = HostUnavailable(host=hosts, reason=outcome.host_error)
    raise TaskFailed(failed.code, str(failed), head)


def expect_a_page(outcome: CrawlOutcome, context: Context) -> None:
    """Raise an error if all pages of a crawl failed.

    Raises:
        OnlyErrorAnswers: the site answered all of them with an error status.
        NothingTaken: at least one of them was not loaded.
    """
    if outcome.succeeded or not outcome.failed or context.stopping:
        return
    reason = outcome.first_error
    if outcome.failed > 1:  # the others may have other reasons
        reason = f"{reason} (the first of {outcome.failed} failed pages)"
    if outcome.not_loaded:
        raise NothingTaken(reason=reason)
    raise OnlyErrorAnswers(reason=reason)


def _partial(
    args: CrawlArgs, pages: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, duration_ms: int
) -> Head:
    scope = args.scope or f"{args.address.origin}/**"
    return {"summary": Tally(pages).outcome(scope, duration_ms, stopped_by).summary()}


PAGE_COLUMNS: Final = (
    *(
        Column("url", 50, brief=True),
        Column("final_url", 50),
        Column("status", 8, brief=True),
        Column("title", 40, brief=True),
    ),
    *(
        Column("depth", 7, brief=True),
        Column("links_found", 11),
        Column("response_ms", brief=True),
        Column("render_ms"),
    ),
    *(Column("redirects", 40), Column("bytes", 10), Column("transferred_bytes", 10)),
    *(Column("engine_used"), Column("worker", 20), Column("settled", 9), Column("truncated", 10)),
    *(Column("empty", 7), Column("redacted", 9), Column("screenshot", 30), Column("attempts", 9)),
    *(Column("earlier_errors", 40), Column("error_code", 12)),
    *(Column("error", 40, brief=True), Column("content", 60, bulky=True)),
    Column("links", 60, bulky=True),
    *(Column("facts.content_type", 16), Column("facts.charset", 9), Column("facts.language", 9)),
    *(Column("facts.canonical", 50), Column("facts.robots", 20), Column("facts.description", 50)),
    *(Column("facts.h1", 40), Column("facts.h1_count", 9), Column("facts.words", 9)),
    *(Column("facts.links_internal"), Column("facts.links_external")),
    *(Column("facts.links_nofollow"), Column("facts.images", 9)),
    *(Column("facts.images_without_alt"), Column("facts.structured_data", 30)),
    *(Column("facts.content_hash", 18), Column("consent.cmp", 20), Column("consent.result", 12)),
)
CRAWL = KindSpec(
    CRAWL_TRAITS.name,
    _parse,
    _crawl,
    _partial,
    traits=CRAWL_TRAITS,
    form=KindForm(
        "Crawl a site",
        summary="pages, by the links of a first one",
        options_title="Crawl (and crawl_sitemap)",
        listed="{0} addresses, crawl of {1}",
    ),
    arguments=ARGUMENTS,
    defaults=defaults_of(CrawlArgs),
    columns=PAGE_COLUMNS,
    parse_here=_parse_here,
)
