"""Detection of the pages that a site shows to a visitor who is not signed in.

A page is suspect if it asks for a password, answers 401, is a page where the profile signed in, or
lies on another site than the address that was asked for. Then the profile's own page is loaded,
which decides. The same address is not checked twice: some pages are not for this visitor either.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

from engine.model.addresses import Address, address_of, same_site
from engine.model.errors import PageError
from engine.pages.custom_fields import FieldRule
from engine.pages.extract import extract
from engine.pages.fetch import Fetched, is_passing_status
from engine.profiles.profile import Profile, page_key
from engine.profiles.sign_in import SignedOut, SignIn

# Read of every page of a crawl with a profile; the name is no legal one of a custom field.
PASSWORD_FIELD: Final = FieldRule("?password", "input[type=password]", "type")
_CHECK_FIELD: Final = "?signed-in"
_UNAUTHORIZED: Final = 401
# A document whose markup the static engine returned unchanged.
_HAS_PASSWORD: Final = re.compile(r"<input\b[^>]*\btype\s*=\s*[\"']?password\b", re.IGNORECASE)


LoadCheck = Callable[[Address, tuple[FieldRule, ...]], Awaitable[Fetched]]


class SignInCheck:
    """Check that each page of a crawl is one for a signed-in visitor."""

    def __init__(self, sign_in: SignIn, load: LoadCheck) -> None:
        self._sign_in = sign_in
        self._load = load
        self._checking = asyncio.Lock()
        # Each suspect page that was led to another one while the profile was signed in.
        self._known: set[tuple[str, str]] = set()

    async def expect_signed_in(self, asked: Address, fetched: Fetched) -> None:
        """Return if the page is one for a visitor who is signed in.

        Raises:
            SignedOut: the site has signed the profile out.
            PageError, BrowserGone, UnitTimeout: its own page could not be loaded to tell.
        """
        landed = address_of(fetched.final_url) or asked
        asks = asks_for_password(fetched)  # also takes the field out of the page's own
        if not self._is_suspect(asked, landed, fetched.status, asks=asks):
            return
        async with self._checking:
            # The same page for another address proves nothing: since then it may be shown instead.
            pair = asked.key, page_key(landed)
            if pair in self._known and not self._sign_in.lost:
                return
            if self._sign_in.lost or not await is_signed_in(self._sign_in.profile, self._load):
                self._sign_in.lost = True
                raise SignedOut(url=asked.url, profile=self._sign_in.profile.name)
            self._known.add(pair)

    def _is_suspect(self, asked: Address, landed: Address, status: int, *, asks: bool) -> bool:
        profile = self._sign_in.profile
        if status == _UNAUTHORIZED:
            return True
        if profile.is_login_page(landed) and page_key(asked) != page_key(landed):
            return True
        # A site may sign in at another one, which asks for the name first.
        if not same_site(asked, landed):
            return True
        return asks and not profile.asks_always


async def is_signed_in(profile: Profile, load: LoadCheck) -> bool:
    """Load the profile's own page, and return whether it is shown to a visitor who is signed in.

    Raises:
        PageError, BrowserGone, UnitTimeout: it could not be loaded, or not now.
    """
    address = address_of(profile.check_url or profile.url)
    if address is None:
        return False
    selector = profile.check_selector
    rules = (FieldRule(_CHECK_FIELD, selector), PASSWORD_FIELD) if selector else (PASSWORD_FIELD,)
    fetched = await load(address, rules)
    if is_passing_status(fetched.status):
        raise PageError("http", f"HTTP {fetched.status}", fetched.status)
    asks = asks_for_password(fetched)
    landed = address_of(fetched.final_url)
    if not 200 <= fetched.status < 300 or landed is None:
        return False
    if profile.is_login_page(landed) and page_key(landed) != page_key(address):
        return False
    if selector:
        return _CHECK_FIELD in (await extract(fetched, "text", rules=rules[:1])).values
    return same_site(landed, address) and (profile.asks_always or not asks)


def asks_for_password(fetched: Fetched) -> bool:
    """Return whether the page has a field for a password, and remove the mark from its fields."""
    marked = fetched.values.pop(PASSWORD_FIELD.name, None) is not None
    return marked or (fetched.engine == "static" and _HAS_PASSWORD.search(fetched.html) is not None)
