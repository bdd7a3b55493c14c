"""Parsing of a kind's arguments by a table, with every mistake reported at once.

It also has the arguments that several kinds share, such as user and password.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from engine.model import addresses
from engine.model.addresses import Credentials, address_of, credentials_of, is_blank_in_front
from engine.model.errors import InvalidArguments, Problem
from engine.model.proxies import NONE, ProxyChoice, UpstreamProxy, bypass_text, proxy_text

if TYPE_CHECKING:
    from engine.secrets.given_secrets import Hidden

MAX_ENTRIES = 200
MAX_ADDRESSES = 5_000
MAX_TEXT_CHARS = 2_048
BLANK_IN_FRONT = "must not have a space or a line break in its user, password or host"
ADDRESS_HINT = "A missing https:// is added, for this machine and IP addresses http://."
KEYS_HINT = "Private keys, signed tokens and keys of well-known services."
COUNTED_KEYS_HINT = "Private keys, signed tokens and keys of well-known services, counted."
ONLY_WEB = "only http and https addresses can be opened"


Reading = Callable[[object], Any]  # returns the value, or raises ValueError with the reason


# Sections of a form, in their order: the first two are always shown, the others can be unfolded.
Section = Literal["first", "limits", "scope", "loading", "content", "identity", "proxy", "more"]
Editor = Literal["", "line", "prose", "lines", "number", "seconds", "choice", "check", "several"]


class FormField(NamedTuple):
    """Presentation of an argument in a form, in English.

    Without `editor`, the reader of the argument selects the widget. `shade` is the placeholder,
    `none` the text of an unset number, and `options` maps values to labels. `sets` names the value
    of another argument that goes with an option: (option, argument, value).
    """

    label: str
    section: Section = "more"
    editor: Editor = ""
    hint: str = ""
    shade: str = ""
    none: str = ""
    options: tuple[tuple[str, str], ...] = ()
    suffix: str = ""
    sets: tuple[tuple[str, str, bool], ...] = ()


class Argument(NamedTuple):
    """One row of a table: the reader, the presentation, and the target field.

    Without `form`, forms omit the argument; without `help`, the command line has no option for it.
    An option is given once with a value, repeated, or used as a switch without a value. `field` is
    empty if it is called as the argument.
    """

    read: Reading
    form: FormField | None = None
    help: str = ""
    option: Literal["value", "repeated", "switch"] = "value"
    field: str = ""


Table = Mapping[str, Argument]


def read_all(
    given: Mapping[str, Any], table: Table, of: str
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the fields that `given` sets, and a `Problem` for every mistake.

    The path of a problem is the argument's name. Two names of one field are accepted together if
    their values are equal. `of` completes the message "is not an argument of …".

    Raises:
        InvalidArguments: `given` is not an object.
    """
    if not isinstance(given, Mapping):
        raise InvalidArguments((Problem("", "wrong_type", "the arguments must be an object"),))
    fields: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in given.items():
        row = table.get(str(name))
        if row is None:
            unknown = _did_you_mean(str(name), table, of)
            problems.append(Problem(_short(str(name)), "unknown_argument", unknown))
            continue
        problem = _read(str(name), value, row, fields)
        problems.extend([problem] if problem else [])
    return fields, problems


def missing(name: str, what: str) -> Problem:
    """Return the problem for the missing argument `name`; `what` describes its purpose."""
    return Problem(name, "missing", f"is needed: {what}")


def _read(name: str, value: object, row: Argument, fields: dict[str, Any]) -> Problem | None:
    try:
        read = row.read(value)
    except ValueError as wrong:
        return Problem(name, "invalid_value", str(wrong))
    field = row.field or name
    if fields.setdefault(field, read) != read:
        return Problem(name, "given_twice", f"contradicts {field}")
    return None


def _did_you_mean(name: str, table: Table, of: str) -> str:
    near = difflib.get_close_matches(name[:64], table, n=1)
    unknown = f"is not an argument of {of}"
    return f"{unknown}; did you mean {near[0]}?" if near else unknown


def _short(name: str) -> str:
    """Shorten and sanitize an untrusted name for use in a message."""
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:64])
    return shown + "…" * (len(name) > 64)


@dataclass(frozen=True, slots=True)
class Whole:
    """Reader of an integer from `low` to `high`; booleans are rejected."""

    low: int
    high: int

    def __call__(self, given: object) -> int:
        if isinstance(given, bool) or not isinstance(given, int):
            raise ValueError("must be a whole number")
        if not self.low <= given <= self.high:
            raise ValueError(f"must be between {self.low:,} and {self.high:,}")
        return given


def whole(low: int, high: int) -> Whole:
    """Return a reader of an integer from `low` to `high`."""
    return Whole(low, high)


@dataclass(frozen=True, slots=True)
class WholeOr:
    """Reader of an integer from `low` to `high`, or of the text `word`."""

    low: int
    high: int
    word: str

    def __call__(self, given: object) -> int | str:
        if given == self.word:
            return self.word
        if isinstance(given, str):
            raise ValueError(f"must be a whole number or {self.word}")
        return Whole(self.low, self.high)(given)


def flag(given: object) -> bool:
    """Read a boolean, without conversion from other types."""
    if not isinstance(given, bool):
        raise ValueError("must be true or false")
    return given


@dataclass(frozen=True, slots=True)
class OneOf:
    """Reader of one of a set of texts; `others` maps alternative spellings."""

    choices: tuple[str, ...]
    others: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, given: object) -> str:
        if isinstance(given, str):
            given = self.others.get(given, given)
        if given not in self.choices or not isinstance(given, str):
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return given


def one_of(*choices: str) -> OneOf:
    """Return a reader of one of the given texts."""
    return OneOf(choices)


def text(given: object) -> str:
    """Read a non-blank text of at most 2,048 characters."""
    return _text(given, MAX_TEXT_CHARS)


def long_text(limit: int) -> Reading:
    """Return a reader of a non-blank text of at most `limit` characters."""
    return lambda given: _text(given, limit)


def _text(given: object, limit: int) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be a text that is not empty")
    if len(given) > limit:
        raise ValueError(f"must not be longer than {limit:,} characters")
    return given.strip()


def texts(given: object) -> tuple[str, ...]:
    """Read a list of at most 200 texts."""
    return tuple(map(text, entries(given)))


def entries(given: object) -> list[object]:
    """Read a list of at most 200 entries."""
    if not isinstance(given, (list, tuple)):
        raise ValueError("must be a list of texts")
    if len(given) > MAX_ENTRIES:
        raise ValueError(f"must not have more than {MAX_ENTRIES} entries")
    return list(given)


@dataclass(frozen=True, slots=True)
class Maybe:
    """Reader that accepts null, and otherwise applies `read`."""

    read: Reading

    def __call__(self, given: object) -> Any:
        return None if given is None else self.read(given)


def optional(read: Reading) -> Maybe:
    """Return a reader that accepts null, and otherwise applies `read`."""
    return Maybe(read)


def web_addresses(given: object) -> tuple[str, ...]:
    """Read a list of at most 5,000 web addresses."""
    if not isinstance(given, (list, tuple)):
        raise ValueError("must be a list of texts")
    if len(given) > MAX_ADDRESSES:
        raise ValueError(f"must not have more than {MAX_ADDRESSES:,} entries")
    return each(web_address, given)


def each(read: Reading, given: Sequence[object]) -> tuple[Any, ...]:
    """Read every entry of a list; the reason of a wrong one names it by its number, from 1.

    Raises:
        ValueError: of the first wrong entry.
    """
    found = []
    for number, one in enumerate(given, 1):
        try:
            found.append(read(one))
        except ValueError as wrong:
            if len(given) == 1:
                raise
            raise ValueError(f"entry {number}: {wrong}") from None
    return tuple(found)


def web_address(given: object) -> str:
    """Read an http or https address unchanged, credentials included."""
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be a web address")
    if address_of(given) is not None:
        if is_blank_in_front(given):
            raise ValueError(BLANK_IN_FRONT)
        return given
    if addresses.scheme_of(given) not in {"", *addresses.PORTS}:
        raise ValueError(ONLY_WEB)
    raise ValueError("is not a web address; it must look like https://example.com/")


def redact_content(hint: str) -> Argument:
    """Return the argument that switches the redaction of keys in page content."""
    form = FormField("Redact keys in page content", "content", hint=hint)
    return Argument(flag, form, help="Redact keys of services in page content.")


WAIT_FOR_FORM = FormField("Wait for selector", "loading", editor="line", shade="main article")
WAIT_FOR = Argument(
    optional(text),
    WAIT_FOR_FORM,
    help="Wait until an element matches this CSS selector.",
)
PAGE_TIMEOUT = Argument(
    whole(100, 600_000),
    FormField("Page timeout (ms)", "loading"),
    help="Page timeout in ms; the page is taken as it is then.",
)


class SecretText:
    """Reader of a text that is used unchanged, surrounding blanks included."""

    def __call__(self, given: object) -> str:
        if not isinstance(given, str) or not given:
            raise ValueError("must be a text that is not empty")
        if len(given) > MAX_TEXT_CHARS:
            raise ValueError(f"must not be longer than {MAX_TEXT_CHARS:,} characters")
        return given


PASSWORDS: Final = ("password", "proxy_password")  # `env:NAME` alone names where one is
REFERENCED: Final = ("username", "password", "proxy_username", "proxy_password")


def _bypasses(given: object) -> tuple[str, ...]:
    return tuple(map(bypass_text, entries(given)))


PASSWORD_HINT: Final = 'Not kept. Or where it is: {"secret": "env:NAME"}'
CREDENTIALS: Final[Table] = {
    "username": Argument(
        optional(text),
        FormField("User", "identity", editor="line"),
        help="User name for HTTP authentication of the site.",
    ),
    "password": Argument(
        Maybe(SecretText()),
        FormField("Password", "identity", editor="line", hint=PASSWORD_HINT),
        help="env:NAME, the variable that holds the password; never the password itself.",
    ),
}


PROXY: Final[Table] = {
    "proxy": Argument(
        optional(proxy_text),
        FormField(
            "Proxy",
            "proxy",
            editor="line",
            shade="socks5://host:1080",
            hint="http, https, socks5 or socks5h address; env: HTTPS_PROXY; none: direct."
            " Empty: the default.",
        ),
        help="Proxy of all connections: http://, https://, socks5:// or socks5h://HOST:PORT, env"
        " (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), or none (default: OC_PROXY).",
    ),
    "proxy_username": Argument(
        optional(text),
        FormField("Proxy user", "proxy", editor="line"),
        help="User name for the proxy.",
    ),
    "proxy_password": Argument(
        Maybe(SecretText()),
        FormField("Proxy password", "proxy", editor="line", hint=PASSWORD_HINT),
        help="env:NAME, the variable that holds the proxy's password; never the password itself.",
    ),
    "proxy_bypass": Argument(
        _bypasses,
        FormField(
            "Proxy exceptions",
            "proxy",
            editor="lines",
            hint="One per line: a host, .example.com, a host with a port, or a network.",
        ),
        help="Connect to this host directly: HOST, .DOMAIN, HOST:PORT or a network.",
        option="repeated",
    ),
}


def proxy_problems(fields: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a proxy's user, password and exceptions."""
    given = [name for name in PROXY if fields.get(name)]
    if "proxy" not in given:
        return [Problem(name, "not_together", "needs proxy") for name in given]
    if fields["proxy"] == NONE and len(given) > 1:
        return [Problem(name, "not_together", "does not go with proxy none") for name in given[1:]]
    if "proxy_password" in given and "proxy_username" not in given:
        return [Problem("proxy_password", "not_together", "needs proxy_username")]
    return []


def proxy_from(fields: dict[str, Any]) -> ProxyChoice | None:
    """Remove the proxy from `fields` and return it; None: as in the settings."""
    proxy, username, password, bypass = (fields.pop(name, None) for name in PROXY)
    if not proxy:
        return None
    return ProxyChoice(proxy, username or "", password or "", tuple(bypass or ()))


def proxy_secrets(proxy: ProxyChoice | UpstreamProxy | None) -> tuple[Hidden, ...]:
    """Return the secrets of a proxy, which its own error pages and sites may repeat."""
    from engine.secrets.given_secrets import of_credentials

    if proxy is None or not proxy.password:
        return ()
    return tuple(of_credentials(Credentials("", proxy.username, proxy.password)))


def credential_problems(fields: Mapping[str, Any], typed: str | None) -> list[Problem]:
    """Return the problems of `fields` with respect to the typed address."""
    asked = [name for name in CREDENTIALS if fields.get(name) is not None]
    if asked and not typed:
        return [Problem(name, "not_together", "needs url") for name in asked]
    if asked and credentials_of(typed or "") is not None:
        why = "does not go with a user or password in the address"
        return [Problem(name, "not_together", why) for name in asked]
    if asked == ["password"]:
        return [Problem("password", "not_together", "needs username")]
    return []


def credentials_from(
    fields: dict[str, Any], typed: str
) -> tuple[Credentials | None, tuple[Hidden, ...]]:
    """Remove the credentials from `fields`; return them and all secrets."""
    # The contracts read their requests by this table and have no credentials.
    from engine.secrets.given_secrets import of_address, of_credentials

    username, password = fields.pop("username", None), fields.pop("password", None)
    address = address_of(typed)
    if username is None or address is None:
        return credentials_of(typed), tuple(of_address(typed))
    given = Credentials(address.origin, username, password or "")
    return given, (*of_address(typed), *of_credentials(given))
