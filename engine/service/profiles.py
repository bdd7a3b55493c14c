"""Profiles of the engine's home: sign in by hand, import, check, list and remove."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from engine.browser.chromium.browser_options import FetcherOptions, InstanceOptions
from engine.egress.egress_policy import Policy
from engine.kinds.context import Clock, upstream_proxy
from engine.kinds.crawl.signed_out import is_signed_in
from engine.kinds.spec import Tools
from engine.model.addresses import Address, address_of
from engine.model.errors import EngineError, InvalidArguments, PageError, Problem
from engine.model.records import TaskRecord, Unreadable
from engine.pages.custom_fields import FieldRule, is_selector
from engine.pages.fetch import Fetched, PageOptions
from engine.profiles.profile import (
    MAX_SITES,
    Profile,
    ProfileRequest,
    SignInSeen,
    profile_name,
    profile_of,
    site_hosts,
)
from engine.profiles.profile_store import ProfileStore
from engine.profiles.sign_in import SignedOut, SignIn
from engine.profiles.storage_state import (
    State,
    cookie_hosts,
    host_of,
    of_sites,
    read_cookie_file,
)

if TYPE_CHECKING:
    from engine.browser.chromium.browser_instance import Instance
    from engine.browser.interact.sign_in_watch import SignInWatch

LOOK_S: Final = 1.0
OPEN_S: Final = 60.0
CHECK_MS: Final = 30_000


class ProfileExists(EngineError):
    """A profile of this name exists; it was left unchanged."""

    code = "profile_exists"
    title = "There is such a profile already"
    sentence = "The profile {profile} exists already."
    advice_text = (
        "Sign in again under Tools → Profiles… or with `octask profile renew {profile}`, remove "
        "it, or choose another name."
    )


class SignInNeedsScreen(EngineError):
    """A window to sign in was requested, but no display is available."""

    code = "sign_in_needs_screen"
    title = "There is no screen"
    sentence = "A window to sign in needs a screen, and there is none here."
    advice_text = (
        "Sign in where there is a screen, take cookies from a file (`octask profile import`), or "
        "run a command task that signs in and has `save_profile`."
    )


class ProfileUnchecked(EngineError):
    """The page that tells whether a profile is signed in could not be loaded."""

    code = "profile_unchecked"
    title = "The profile could not be checked"
    sentence = "{url} could not be loaded: {reason}. Whether {profile} is signed in is unknown."
    advice_text = "Try again later; the profile itself is stored."


class OpenSignIn:
    """A browser window in which a person signs in."""

    def __init__(self, request: ProfileRequest, instance: Instance, watch: SignInWatch) -> None:
        self.request = request
        self._instance = instance
        self._watch = watch

        self.done = asyncio.Event()  # set by a person who is signed in, and keeps the window

    async def until_done(self) -> None:
        """Wait until the person closes the last window, or says that it is `done`."""
        while not (self._instance.gone.is_set() or self.done.is_set()):
            await self._watch.look()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._instance.gone.wait()
            except TimeoutError:
                continue

    async def seen(self) -> SignInSeen:
        """Read the sign-in."""
        return await self._watch.read()


class CookieFile(msgspec.Struct, frozen=True):
    """The cookies of a file, and the sites that they are for."""

    sites: tuple[str, ...]
    state: State

    def __repr__(self) -> str:
        return f"CookieFile({', '.join(self.sites)})"  # never the cookies


def _sites_to_take(request: ProfileRequest) -> tuple[str, ...]:
    """Return the sites of whose cookies in a file a profile is made."""
    return request.sites or site_hosts([request.url])


class Profiles:
    """The profiles of one home; each call that may wait runs on a thread."""

    def __init__(self, tools: Tools, clock: Clock) -> None:
        self._tools = tools
        self._clock = clock
        self._store = ProfileStore(tools.settings.home)

    async def all(self) -> list[Profile | Unreadable]:
        """Return all profiles by name, and those that cannot be read."""
        return await asyncio.to_thread(self._store.all)

    async def get(self, name: str) -> Profile:
        """Return one profile. Raises NotAnId, RecordNotFound, RecordUnreadable."""
        return await asyncio.to_thread(self._store.read, name)

    async def remove(self, name: str) -> None:
        """Delete a profile and its cookies. Raises as `get`, and LedgerWriteFailed."""
        await asyncio.to_thread(self._store.remove, name)

    async def request(
        self,
        name: str,
        url: str,
        *,
        sites: tuple[str, ...] = (),
        check_url: str | None = None,
        check_selector: str | None = None,
        renews: bool = False,
    ) -> ProfileRequest:
        """Validate a request for a sign-in; with `renews` an empty `url` is that of the profile.

        Raises:
            InvalidArguments: with every mistake.
            ProfileExists: there is one of this name, and the request does not renew it.
            RecordNotFound: there is none to renew.
            ProfilesNotWritable: the sign-in could not be stored.
        """
        problems: list[Problem] = []
        try:
            profile_name(name)
        except ValueError as wrong:
            raise InvalidArguments((Problem("name", "invalid_value", str(wrong)),)) from None
        before = await self._before(name, renews=renews)
        typed = url or (before.url if before else "")
        address, check = address_of(typed), address_of(check_url or typed)
        if address is None:
            problems.append(Problem("url", "invalid_value", "must be a web address"))
        if check is None:
            problems.append(Problem("check_url", "invalid_value", "must be a web address"))
        if check_selector is not None and not is_selector(check_selector):
            problems.append(Problem("check_selector", "invalid_value", "is not a CSS selector"))
        hosts = tuple(map(_site, sites))
        if None in hosts or len(hosts) > MAX_SITES:
            why = f"must be names of hosts, such as example.com, at most {MAX_SITES}"
            problems.append(Problem("site", "invalid_value", why))
        if problems or address is None:
            raise InvalidArguments(tuple(problems))
        await asyncio.to_thread(self._store.require_writable, name)
        return ProfileRequest(
            name=name,
            url=address.url,
            sites=tuple(host for host in hosts if host is not None),
            check_url=check.url if check_url and check else None,
            check_selector=check_selector,
            before=before,
            named=tuple(url for site in sites for url in _addresses(site)),
        )

    async def _before(self, name: str, *, renews: bool) -> Profile | None:
        def read() -> Profile | None:
            if renews:
                return self._store.read(name)
            if self._store.has(name):
                raise ProfileExists(profile=name)
            return None

        return await asyncio.to_thread(read)

    @asynccontextmanager
    async def signing_in(self, request: ProfileRequest) -> AsyncIterator[OpenSignIn]:
        """Open a browser window at the address, which begins with the profile's earlier sign-in.

        Raises:
            SignInNeedsScreen, BrowserMissing, BrowserFailed, BrowserGone
            PageError: the address cannot be opened.
        """
        # Imported here, because it imports Playwright.
        from engine.browser.page.failures import NoScreen

        proxy = upstream_proxy(self._tools.settings, None)
        policy = Policy.for_start(request.url, named=request.named, proxy=proxy)
        sign_in = await self._earlier(request)
        options = InstanceOptions(policy, headed=True, asks_person=True, sign_in=sign_in)
        try:
            opened = await self._tools.instances.launch(options)
        except NoScreen as failed:
            raise SignInNeedsScreen() from failed
        try:
            from engine.browser.interact.sign_in_watch import SignInWatch

            watch = SignInWatch(opened)
            await watch.start()
            await watch.open(request.url, OPEN_S)
            yield OpenSignIn(request, opened, watch)
        finally:
            await self._tools.instances.close(opened.id)

    async def _earlier(self, request: ProfileRequest) -> SignIn | None:
        """Return the earlier sign-in; a new one needs none that cannot be read."""
        before = request.before
        if before is None:
            return None
        try:
            state = await asyncio.to_thread(self._store.state, before.name)
        except EngineError:
            return None
        return SignIn(before, state)

    async def save(self, request: ProfileRequest, seen: SignInSeen) -> Profile:
        """Store a sign-in as the profile of the request.

        Raises:
            ProfileEmpty, ProfileTooLarge, KeyringFailed, LedgerWriteFailed: nothing was written.
        """
        found, state = profile_of(seen, request, self._clock.now_ms())
        return await asyncio.to_thread(self._store.save, found, state)

    async def read_file(self, file: Path) -> CookieFile:
        """Read the cookies of a file that `take` can store; see `read_cookie_file` for errors."""

        def read() -> CookieFile:
            if not file.is_file():  # the read of a pipe could not be called off
                raise InvalidArguments((Problem("file", "no_file", "is not a file"),))
            state = read_cookie_file(file)
            return CookieFile(cookie_hosts(state), state)

        return await asyncio.to_thread(read)

    def require_cookies(self, request: ProfileRequest, found: CookieFile) -> None:
        """Raise InvalidArguments if a file has nothing that `take` would store."""
        sites = _sites_to_take(request)
        kept = of_sites(found.state, sites)
        if not kept["cookies"] and not kept["origins"]:
            named = ", ".join(sites)
            raise InvalidArguments((Problem("file", "no_cookies", f"has no cookies for {named}"),))

    async def take(self, request: ProfileRequest, everything: State) -> Profile:
        """Store the cookies of a file as a profile; without sites, those of its address.

        Raises as `save`.
        """
        sites = _sites_to_take(request)
        seen = SignInSeen(
            sites=sites,
            login_pages=(),
            last_url="",
            asks=False,
            everything=everything,
        )
        return await self.save(msgspec.structs.replace(request, sites=sites), seen)

    async def check(self, name: str) -> Profile:
        """Load the profile's own page, and return the profile with the result.

        Raises:
            ProfileUnchecked: the page could not be loaded.
            KeyLost, KeyringFailed, BrowserMissing, BrowserFailed, and as `get`.
        """
        profile, state = await asyncio.to_thread(
            lambda: (self._store.read(name), self._store.state(name))
        )
        sign_in = SignIn(profile, state)
        url = profile.check_url or profile.url
        proxy = upstream_proxy(self._tools.settings, None)
        named = [address for site in profile.sites for address in _addresses(site)]
        policy = Policy.for_start(url, named=named, proxy=proxy)
        options = FetcherOptions(policy, pages=1, secrets=tuple(sign_in.secrets), sign_in=sign_in)
        try:
            async with self._tools.browser.fetcher(options) as fetcher:

                async def load(address: Address, rules: tuple[FieldRule, ...]) -> Fetched:
                    options = PageOptions(timeout_ms=CHECK_MS, fields=rules)
                    return await fetcher.fetch(address.url, options)

                signed_in = await is_signed_in(profile, load)
        except PageError as failed:
            raise ProfileUnchecked(
                url=profile.shown_check, reason=str(failed), profile=name
            ) from failed
        now_ms, cookies = self._clock.now_ms(), sign_in.cookies

        def note() -> Profile:
            if signed_in and sign_in.has_changed:
                self._store.renew(name, cookies, sign_in.stored)
            return self._store.note_check(profile, now_ms, signed_in=signed_in)

        return await asyncio.to_thread(note)


def signed_out_profile(record: TaskRecord) -> str | None:
    """Return the profile of a task that ended because a site took it for signed out."""
    name = record.args_summary.get("profile")
    if record.error is None or record.error.code != SignedOut.code or not isinstance(name, str):
        return None
    return name


def _addresses(site: str) -> tuple[str, ...]:
    """Return the addresses of a typed site: a host, with or without a port, or an address."""
    return (site,) if "://" in site else (f"http://{site}", f"https://{site}")


def _site(given: str) -> str | None:
    """Return the host of a typed site."""
    address = address_of(_addresses(given)[0])
    return None if address is None else host_of(address) or None
