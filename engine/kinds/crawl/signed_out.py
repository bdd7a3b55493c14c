"""Detection of pages that a site shows instead, because the profile is not signed in any more.

A page is suspect if it asks for a password, answers 401, is a page where the profile signed in, or
lies on another of its sites than the address that was asked for. Then the profile's own page is
loaded: the site decides by it. A page that may be seen by nobody is no reason to stop, so the same
page is not suspected twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

from engine.model.addresses import Address, address_of
from engine.pages.custom_fields import FieldRule
from engine.pages.extract import extract
from engine.pages.fetch import Fetched
from engine.profiles.profile import Profile, host_of, page_key
from engine.profiles.sign_in import SignedOut, SignIn

# Read of every page of a crawl with a profile; the name is no legal one of a custom field.
PASSWORD_FIELD: Final = FieldRule("?password", "input[type=password]", "type")
_CHECK_FIELD: Final = "?signed-in"
_UNAUTHORIZED: Final = 401
# A document whose markup the static engine returned unchanged.
_HAS_PASSWORD: Final = re.compile(r"<input\b[^>]*\btype\s*=\s*[\"']?password\b", re.IGNORECASE)

MOST_VAIN: Final = 20  # checks because of a field for a password, of a profile that is signed in

LoadCheck = Callable[[Address, tuple[FieldRule, ...]], Awaitable[Fetched]]


class SignInCheck:
    """Tells for each page of a crawl whether the site still takes the profile for signed in."""

    def __init__(self, sign_in: SignIn, load: LoadCheck) -> None:
        self._sign_in = sign_in
        self._load = load
        self._checking = asyncio.Lock()
        self._known: set[str] = set()  # suspect pages of a profile that was signed in
        self._vain = 0

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
            if page_key(landed) in self._known and not self._sign_in.lost:
                return
            if self._sign_in.lost or not await is_signed_in(self._sign_in.profile, self._load):
                self._sign_in.lost = True
                raise SignedOut(url=asked.url, profile=self._sign_in.profile.name)
            self._known.add(page_key(landed))
            self._vain += asks

    def _is_suspect(self, asked: Address, landed: Address, status: int, *, asks: bool) -> bool:
        profile = self._sign_in.profile
        if status == _UNAUTHORIZED:
            return True
        if profile.is_login_page(landed) and page_key(asked) != page_key(landed):
            return True
        if landed.origin != asked.origin and profile.covers(host_of(landed)):
            return True
        return asks and not profile.asks_always and self._vain < MOST_VAIN


async def is_signed_in(profile: Profile, load: LoadCheck) -> bool:
    """Load the profile's own page, and return whether it is shown to a visitor who is signed in.

    Raises:
        PageError, BrowserGone, UnitTimeout: it could not be loaded.
    """
    address = address_of(profile.check_url or profile.url)
    if address is None:
        return False
    selector = profile.check_selector
    rules = (FieldRule(_CHECK_FIELD, selector), PASSWORD_FIELD) if selector else (PASSWORD_FIELD,)
    fetched = await load(address, rules)
    asks = asks_for_password(fetched)
    landed = address_of(fetched.final_url)
    if not 200 <= fetched.status < 300 or landed is None:
        return False
    if profile.is_login_page(landed) and page_key(landed) != page_key(address):
        return False
    if selector:
        return _CHECK_FIELD in (await extract(fetched, "text", rules=rules[:1])).values
    return profile.asks_always or not asks


def asks_for_password(fetched: Fetched) -> bool:
    """Return whether the page has a field for a password, and remove the mark from its fields."""
    marked = fetched.values.pop(PASSWORD_FIELD.name, None) is not None
    return marked or (fetched.engine == "static" and _HAS_PASSWORD.search(fetched.html) is not None)
