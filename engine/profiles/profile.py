"""A profile: what is known of a named sign-in, without its cookies and stored site data.

`sites` are the hosts that it is for; each includes its subdomains. Nothing of a profile is used on
another site. `login_pages` are pages that asked for a password during the sign-in: a task that is
led to one of them is no longer signed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from engine.model import redact
from engine.model.addresses import Address, address_of
from engine.profiles.storage_state import State, host_of, is_within, of_sites

MAX_NAME: Final = 40  # characters
NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME - 1}}}", re.ASCII)
# Device names, which Windows opens instead of a file.
_DEVICES: Final = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]", re.ASCII)
MAX_SITES: Final = 50
MAX_PAGES: Final = 20  # login pages that are kept
_SIGN_OUT: Final = re.compile(
    r"[/=:](?:user[_-]?)?(?:log|sign)[_-]?(?:out|off)(?:-oidc)?(?:$|[/.?&;])"
    r"|/abmelden(?:$|[/.?;])",
    re.IGNORECASE | re.ASCII,
)

# Names of elements that do it; as short as the label of a button.
_SIGN_OUT_NAME: Final = re.compile(
    r"\b(?:(?:log|sign)[ -]?(?:out|off)|abmelden|ausloggen|logout|d[ée]connexion|"
    r"se d[ée]connecter|cerrar sesi[óo]n|esci|disconnetti|uitloggen|afmelden|wyloguj)\b",
    re.IGNORECASE,
)
_NAME_CHARS: Final = 60


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A named sign-in; times in ms since 1970.

    `url` is where the sign-in began. `check_url` is a page that only a signed-in visitor sees, and
    `check_selector` an element that it has then; with `asks_always` it has a field for a password
    even then. `signed_in` is the result of the last check or task. `encrypted` tells whether the
    state is encrypted with a key of the system's keyring.
    """

    name: str
    url: str
    sites: tuple[str, ...]
    login_pages: tuple[str, ...] = ()
    check_url: str = ""
    check_selector: str | None = None
    asks_always: bool = False
    created_at: int
    signed_in_at: int
    checked_at: int | None = None
    signed_in: bool | None = None
    encrypted: bool = False

    def covers(self, host: str) -> bool:
        """Return whether the profile is for this host."""
        return any(is_within(host, site) for site in self.sites)

    @property
    def shown_check(self) -> str:
        """The page of the check as people and programs see it.

        The last page of a sign-in may have its code or token in the address.
        """
        return redact.url(self.check_url or self.url)

    def is_login_page(self, address: Address) -> bool:
        """Return whether this page asked for the password when the profile was made."""
        return page_key(address) in self.login_pages


class SignInSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser showed of a sign-in. `everything` is the state of all sites.

    `asks` tells whether the last page had a field for a password.
    """

    sites: tuple[str, ...]
    login_pages: tuple[str, ...]
    last_url: str
    asks: bool
    everything: dict[str, Any]

    def __repr__(self) -> str:
        return f"SignInSeen({', '.join(self.sites)})"  # never the cookies


class ProfileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A validated request for a new profile, or for a new sign-in of `before`.

    `url` is where the sign-in begins, `sites` are the hosts that it is for (without any, those that
    were seen), and `named` addresses of these, which may be private. `check_url` tells whether it
    is signed in (default: the last page), by the element `check_selector`.
    """

    name: str
    url: str
    sites: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    check_url: str | None = None
    check_selector: str | None = None
    before: Profile | None = None


def profile_of(seen: SignInSeen, asked: ProfileRequest, now_ms: int) -> tuple[Profile, State]:
    """Return the profile that a sign-in made, and its state."""
    before = asked.before
    known = before.sites if before and not asked.sites else ()
    hosts = asked.sites or tuple(dict.fromkeys((*known, *seen.sites)))[:MAX_SITES]
    check_url, selector = asked.check_url, asked.check_selector
    if check_url is None and before is not None and before.check_url:
        check_url, selector = before.check_url, selector or before.check_selector
    last = address_of(seen.last_url)
    if last is not None and page_key(last) in seen.login_pages:
        last = None
    found = check_url or (last.url if last is not None else asked.url)
    profile = Profile(
        name=asked.name,
        url=asked.url,
        sites=hosts,
        login_pages=seen.login_pages or (before.login_pages if before else ()),
        check_url=found,
        check_selector=selector,
        asks_always=seen.asks and last is not None and found == last.url,
        created_at=before.created_at if before else now_ms,
        signed_in_at=now_ms,
    )
    return profile, of_sites(seen.everything, hosts)


def profile_name(given: object) -> str:
    """Read the name of a profile. Raises ValueError with the reason."""
    if not isinstance(given, str) or not NAME.fullmatch(given):
        raise ValueError(
            "must be the name of a profile: lower-case letters, digits, - and _, "
            f"at most {MAX_NAME}"
        )
    if _DEVICES.fullmatch(given):
        raise ValueError("is the name of a device on Windows; choose another one")
    return given


def page_key(address: Address) -> str:
    """Return the page without query and fragment, which differ for each visitor."""
    return address.origin + address.path


def is_sign_out(address: Address) -> bool:
    """Return whether opening this address probably signs the visitor out."""
    return _SIGN_OUT.search(address.asked, len(address.origin)) is not None


def names_sign_out(name: str) -> bool:
    """Return whether an element with this name probably signs the visitor out."""
    return len(name) <= _NAME_CHARS and _SIGN_OUT_NAME.search(name) is not None


def site_hosts(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts of these addresses, each once, in their order."""
    found = (address_of(url) for url in urls)
    return tuple(dict.fromkeys(host_of(one) for one in found if one is not None))[:MAX_SITES]
