"""A profile: what is known of a named sign-in, without its cookies and stored site data.

`sites` are the hosts that it is for; each includes its subdomains. Nothing of a profile is used on
another site. `login_pages` are pages that asked for a password during the sign-in: a task that is
led to one of them is no longer signed in.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from engine.model import redact
from engine.model.addresses import Address, address_of, parse
from engine.secrets.given_secrets import Hidden

MAX_NAME: Final = 40  # characters
NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MAX_NAME - 1}}}", re.ASCII)
# Device names, which Windows opens instead of a file.
_DEVICES: Final = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]", re.ASCII)
MAX_SITES: Final = 50
MAX_PAGES: Final = 20  # login pages that are kept
MAX_HIDDEN: Final = 500
LEAST_HIDDEN, MOST_HIDDEN = 12, 8_192  # characters of a value that is masked
# Values such as `theme-dark` occur in pages as well; a token has digits and letters.
_IS_A_TOKEN: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])\S+", re.DOTALL).fullmatch
LEAST_RANDOM, LEAST_VARIED = 16, 6  # characters of a token, and different ones in it
_BETWEEN: Final = re.compile(r"[^A-Za-z0-9]+")
# Parts of words and times with something between them: `iphone-15-pro`, `2026-11-27T15:30:00Z`.
_IS_A_WORD: Final = re.compile(
    r"([A-Z]?[a-z]{1,20}|[A-Z]{1,20})?[0-9]{0,4}|[0-9]{1,4}[A-Za-z]{1,3}[0-9]{0,4}"
).fullmatch
_RENEWED: Final = ("value", "expires")  # of a cookie that a site replaces
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


def is_within(host: str, site: str) -> bool:
    """Return whether `host` is this site or one of its subdomains."""
    return host == site or host.endswith(f".{site}")


def page_key(address: Address) -> str:
    """Return the page without query and fragment, which differ for each visitor."""
    return address.origin + address.path


def is_sign_out(address: Address) -> bool:
    """Return whether opening this address probably signs the visitor out."""
    return _SIGN_OUT.search(address.asked, len(address.origin)) is not None


def names_sign_out(name: str) -> bool:
    """Return whether an element with this name probably signs the visitor out."""
    return len(name) <= _NAME_CHARS and _SIGN_OUT_NAME.search(name) is not None


def host_of(address: Address) -> str:
    """Return the host of an address, without its port."""
    found = parse(address.url)
    return "" if found is None else found.host


def site_hosts(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts of these addresses, each once, in their order."""
    found = (address_of(url) for url in urls)
    return tuple(dict.fromkeys(host_of(one) for one in found if one is not None))[:MAX_SITES]


# The state: cookies and stored data of sites, in the form of Playwright's storage state.

State = dict[str, Any]


def of_sites(state: Mapping[str, Any], sites: Iterable[str]) -> State:
    """Return the part of a state that belongs to these sites; the rest is dropped."""
    wanted = tuple(sites)
    cookies = [one for one in state.get("cookies", ()) if is_cookie_of(one, wanted)]
    origins = [
        one
        for one in state.get("origins", ())
        if (address := address_of(str(one.get("origin", "")))) is not None
        and any(is_within(host_of(address), site) for site in wanted)
    ]
    return {"cookies": cookies, "origins": origins}


def is_cookie_of(cookie: Mapping[str, Any], sites: Iterable[str]) -> bool:
    """Return whether a browser may send this cookie to one of these sites."""
    domain = str(cookie.get("domain", ""))
    host = domain.removeprefix(".").lower()
    shared = domain.startswith(".")
    return any(is_within(host, site) or (shared and is_within(site, host)) for site in sites)


def set_cookie(line: str, host: str) -> dict[str, str]:
    """Return the cookie that a Set-Cookie line of `host` sets; for another site it is none."""
    pair, *attributes = line.split(";")
    name, _, value = pair.partition("=")
    domain = host
    for attribute in attributes:
        key, _, given = attribute.partition("=")
        site = given.strip().removeprefix(".").lower()
        if key.strip().lower() == "domain" and site and site != host:
            domain = f".{site}" if is_within(host, site) else ""
    return {"name": name.strip(), "value": value.strip().strip('"'), "domain": domain}


def has_nothing(state: Mapping[str, Any]) -> bool:
    return not state.get("cookies") and not state.get("origins")


def renewed(
    state: Mapping[str, Any], cookies: Iterable[Mapping[str, Any]], began: Mapping[str, Any]
) -> State:
    """Return the state with the newest values of its own cookies; others are not added.

    Of a browser that `began` with another state, only the cookies that changed there are taken.
    Sites replace the cookie of a session from time to time, after which the old one is refused. A
    cookie that the site has deleted keeps its old value here.
    """
    old = {_cookie_id(one): one for one in began.get("cookies", ())}
    newest = {_cookie_id(one): one for one in cookies}
    kept = []
    for cookie in state.get("cookies", ()):
        found, before = newest.get(_cookie_id(cookie)), old.get(_cookie_id(cookie), {})
        taken = {} if found is None else {name: found[name] for name in _RENEWED if name in found}
        changed = {name: value for name, value in taken.items() if before.get(name) != value}
        kept.append({**cookie, **changed})
    return {**state, "cookies": kept}


def unchanged_since(state: Mapping[str, Any], began: Mapping[str, Any]) -> State:
    """Return the part of a state whose cookies have the values of `began`."""
    old = {_cookie_id(one): one.get("value") for one in began.get("cookies", ())}
    cookies = [
        one for one in state.get("cookies", ()) if old.get(_cookie_id(one)) == one.get("value")
    ]
    return {**state, "cookies": cookies}


def _cookie_id(cookie: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what makes a cookie the same one with another value."""
    domain = str(cookie.get("domain")).removeprefix(".")
    return str(cookie.get("name")), domain, str(cookie.get("path", "/"))


def hidden_values(state: Mapping[str, Any]) -> list[Hidden]:
    """Return the values of a state that look like tokens, which no output may repeat."""
    found: dict[str, None] = {}
    for cookie in state.get("cookies", ()):
        found.update(dict.fromkeys(tokens_in(cookie.get("value"))))
    for stored in _texts([_stored(origin) for origin in state.get("origins", ())]):
        found.update(dict.fromkeys(tokens_in(stored)))
    # The longest first: a session's key is longer than a name.
    longest = sorted(found, key=len, reverse=True)[:MAX_HIDDEN]
    return [Hidden(value, redact.MARK) for value in longest]


def _stored(origin: Mapping[str, Any]) -> list[object]:
    return [origin.get("localStorage"), origin.get("indexedDB")]


def tokens_in(value: object) -> list[str]:
    """Return the tokens in a stored value, which may be JSON or percent-encoded."""
    if not isinstance(value, str):
        return []
    ways = {value, unquote(value)}
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
        ways.update(_texts(msgspec.json.decode(value)))
    return [one for one in ways if LEAST_HIDDEN <= len(one) <= MOST_HIDDEN and _IS_A_TOKEN(one)]


def is_random(token: str) -> bool:
    """Return whether a token is no text that a page may have for another reason."""
    plain = unquote(token)
    varied = len(plain) >= LEAST_RANDOM and len(set(plain)) >= LEAST_VARIED
    parts = _BETWEEN.split(plain)
    return varied and (len(parts) == 1 or not all(map(_IS_A_WORD, parts)))


def _texts(given: object) -> list[str]:
    """Return all texts in a JSON value."""
    waiting, found = [given], list[str]()
    while waiting and len(found) < MAX_HIDDEN:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return found
