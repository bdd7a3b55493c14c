"""Redaction of secrets in everything that is stored, logged, shown or exported.

There are two rules. `text`, `value` and `url` are for the program's own texts: arguments, events,
errors, logs, addresses. They detect secrets by key (`password`, `Authorization`, …), by position in
an address (`user:pass@`, `?token=…`), also inside a longer text, and by the form of service keys.
`content` and `page` are for text that a site published: only strict key forms and the exact secret
values given to the task (`secrets.given_secrets`) are removed, and counted.

A reference to a secret, `{"secret": "env:NAME"}`, holds no secret and is kept. Redaction is
idempotent.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote_plus

MARK: Final = "[redacted]"
SUMMARY_BYTES: Final = 2_048  # OpenChrome's limit, in UTF-8 bytes
WORDS: Final = (
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "session",
)
_QUERY_WORDS: Final = (*WORDS, "accesskey", "privatekey", "signature", "sessid")
_QUERY_NAMES: Final = frozenset(
    {"auth", "bearer", "jwt", "otp", "pass", "passcode", "passphrase", "pwd", "sid", "sig"}
)
_MAYBE_NAMES: Final = frozenset(
    {"code", "key"}
)  # also common names of harmless values: decided by the value
_MAX_DEPTH: Final = 64
_SHORT_KEY: Final = 64  # characters
_NUMBERS: Final = frozenset({int, float, bool, type(None)})

_NOT_WORD = re.compile(r"[\W_]+")
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
# A header whose value an environment variable holds: `Authorization: Bearer env:TOKEN`.
HEADER_REFERENCE: Final = re.compile(
    r"\s*(?P<lead>[^:\s]{1,200}:[ \t]*(?:(?:bearer|basic|token|apikey|key)[ \t]+)?)"
    r"env:(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\s*",
    re.ASCII | re.IGNORECASE,
)
_HEADERS: Final = "headers"  # the argument with a task's own headers
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~%+/=-]{20,}")
# Browsers accept no, one or two slashes after these schemes, of either kind.
_USER = re.compile(
    r"(?P<scheme>\b(?:https?|wss?|ftps?):[/\\]*|\b[a-z][a-z0-9+.-]{0,30}://|^//)[^/\\?#\s]*@", re.I
)
# Typed addresses: browsers drop these characters anywhere, and accept spaces in the password.
_EDGE: Final = "".join(map(chr, range(33)))
_DROPPED = re.compile(r"[\t\n\r]")
_TYPED_USER = re.compile(
    r"(?P<scheme>(?:https?|wss?|ftps?):[/\\]*|[a-z][a-z0-9+.-]{0,30}://)[^/\\?#]*@", re.I
)
_PAIR = re.compile(r"(?P<lead>[?&;#])(?P<name>[^=&;#?\s\"<>]{1,200})=(?P<value>[^&#\s\"<>]*)")
_JWT = re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*")
_HEADER = re.compile(
    r"(?P<lead>\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?"
    r"|\b(?:set-)?cookie[\"']?\s*:\s*[\"']?"
    r"|\b(?:bearer|basic)\s+(?=[\w.~+/=-]{8})(?=(?-i:\S*[\d=]|\S+[A-Z])))"
    r"(?P<value>(?!(?:(?:bearer|basic|token)\s+)?\[redacted\])[^\s,;\"']+(?:;\s*[^\s;\"']+)*)",
    re.I,
)
_ASSIGNED = re.compile(
    r"(?P<lead>[\"']?\b[\w-]{0,40}(?:password|passwd|secret|token|api[_-]?key|credential)[\w-]{0,40}"
    r"[\"']?\s*[=:]\s*)(?P<value>\"(?!\[redacted\]|env:\w+\")(?:[^\"\\]|\\.)*\"?"
    r"|'(?!\[redacted\]|env:\w+')(?:[^'\\]|\\.)*'?|(?![\"'{\[]|env:)[^\s,;&\"'{}\[\]]+)",
    re.I,
)

# `https://example.com/reset-password: HTTP 404` is an address and what came of it.
_IN_PATH = re.compile(r"://[^\s?#\"'<>,;|()\[\]{}&\\]*/[\w.~%-]*")
_AFTER_ADDRESS = re.compile(r"[\w-]*: ")
_MAX_ADDRESS: Final = 2_048  # characters

_CLOSED = re.compile(r"[\"'][\])]+(?=\s|\Z)")  # the end of a selector's attribute

# Keys with a distinctive prefix, wherever they occur.
_KEY = re.compile(
    r"\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|[sr]k_(?:live|test)_\w{16,}|sk-(?=[\w-]*\d)[\w-]{24,}"
    r"|AIza[\w-]{35}|npm_\w{30,})"
)
_KEY_SIGNS: Final = (
    *(
        "AKIA",
        "ASIA",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "xapp-",
        "k_live_",
        "k_test_",
        "sk-",
        "AIza",
        "npm_",
    ),
)
_BEGIN = re.compile(r"-----BEGIN[ A-Z0-9]{0,40} PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END[ A-Z0-9]{0,40} PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = re.compile(r"[\w+/=\\\s:,.-]*")  # the rest of a block whose end was cut off

_LEADS: Final = ("", '"', "'")  # beginnings of a sentence before a quotation
_RESTS: Final = (" x", '" x')  # continuations of a sentence after it

# Without one of the words the pattern cannot match; this check is 15 times as fast on the text of
# a page. They contain no "i", which casefold() does not cover as re.IGNORECASE does.
_HEADER_WORDS: Final = ("author", "cook", "bearer", "bas")
_ASSIGNED_WORDS: Final = ("passw", "secret", "token", "key", "credent")
# A second check: "base" and "key" occur in half of all pages, "key:" in few.
_LIKE_HEADER = re.compile(r"(?:authorization[\"']?|cookie[\"']?)\s*[:=]|(?:bearer|basic)\s", re.I)
_LIKE_ASSIGNED = re.compile(
    r"(?:password|passwd|secret|token|api[_-]?key|credential)[\w-]{0,40}[\"']?\s*[=:]", re.I
)


# Page content loses only unmistakable keys, each in the form that its service documents. A key may
# follow an escape (`%3D`, `\n`), where there is no word boundary.
_STRICT_KEY = re.compile(
    r"(?:\b|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|gh[oprsu]_(?=[A-Za-z_]*\d)\w{30,}|github_pat_(?=[A-Za-z_]*\d)\w{30,}"
    r"|glpat-[\w-]{20,}|xox[abeoprs]-\d[\w-]{9,}|xapp-\d-[\w-]{10,}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|sk-(?:ant|proj|svcacct|admin|or)-(?=[\w-]*\d)[\w-]{24,}|sk-(?=[A-Za-z]*\d)[A-Za-z0-9]{32,}"
    r"|AIza[\w-]{35}|npm_(?=[A-Za-z]*\d)[A-Za-z0-9]{36}\b)"
)
_STRICT_JWT = re.compile(r"eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){1,3}")
# A line of a key block, between white space, marks of a program, or markup.
_KEY_DATA = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{16,}={0,2}(?![\w+/])")
_CUT_BLOCK = re.compile(
    r"(?:(?:\s|\\[nr])*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]*"
    r"|[A-Za-z0-9+/]{16,}={0,2}))*(?:(?:\s|\\[nr])*[A-Za-z0-9+/]{1,15}={1,2}|\n[A-Za-z0-9+/]{1,15}\Z)?"
)
_BLOCK_CHARS: Final = 32 * 1024  # a block longer than this is no key
# The destination of a Markdown link, with its address.
_LINK_TO = re.compile(r"(?<=\]\()<?(?P<address>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)")
# Links with a character that every address with a secret has. Faster than the pattern above,
# because it examines each position once.
_DOUBTFUL_LINK = re.compile(r"\]\(<?(?:[^\s<>\]=@]|\](?!\())*+[=@]")
# Address attributes of elements in serialised markup.
_LEADS_TO = re.compile(r'(?<=\s)(?:href|src|action|formaction|cite|poster)="(?P<address>[^"]*)"')
# Fields of a record (page, action, command, tab) with page content, and fields with addresses. All
# other fields are the program's own.
CONTENT: Final = frozenset(
    {"title", "description", "content", "links", "result", "fields"}
    | {"name", "text", "values", "selector", "alternatives", "frame", "landmark"}
    | {"target", "target_alternatives"}
)
_PUBLISHED_IN_HEAD: Final = frozenset({"title", "variables"})  # both hold labels of fields
ADDRESSES: Final = frozenset({"url", "final_url", "href", "src"})


@dataclass(frozen=True, slots=True)
class Summary:
    """Arguments in the form in which they may be stored.

    `stored` is the value of `args_summary` (at most 2,048 UTF-8 bytes, else `{_truncated,
    _bytes}`); `whole` is the same before truncation. `was_redacted`: a secret was removed, so these
    arguments cannot start the task again.
    """

    stored: dict[str, Any]
    whole: dict[str, Any]
    was_redacted: bool

    @property
    def was_cut(self) -> bool:
        return self.stored is not self.whole


def summarise(args: Mapping[str, Any]) -> Summary:
    """Redact and truncate a request's arguments (seed 000: redacted, 2 KiB)."""
    given = dict(args)
    whole = value(given)
    size = len(_utf8(whole))
    stored = whole if size <= SUMMARY_BYTES else {"_truncated": True, "_bytes": size}
    return Summary(stored=stored, whole=whole, was_redacted=whole != given)


def value(given: Any, key: str = "", depth: int = 0) -> Any:
    """Replace every secret in `given` at any depth; other values are unchanged."""
    if key and is_secret_key(key) and not _holds_nothing(given):
        return MARK
    if isinstance(given, str):
        return _header(given) if key == _HEADERS else text(given)
    if not isinstance(given, Mapping | list | tuple):
        return given
    if depth > _MAX_DEPTH:
        return MARK  # deeper values are never read again and could hide a secret
    if isinstance(given, Mapping):
        return {text(str(name)): value(item, str(name), depth + 1) for name, item in given.items()}
    inner = key if key == _HEADERS else ""
    return [value(item, inner, depth + 1) for item in given]


def _header(given: str) -> str:
    """Return a header of a request with its name alone, or with the reference to its value."""
    name, colon, rest = given.partition(":")
    if HEADER_REFERENCE.fullmatch(given) or not (colon and rest.strip()):
        return given if colon else text(given)
    return f"{text(name)}: {MARK}"


def is_secret_key(key: str) -> bool:
    """Return whether values under this key are secret."""
    return _is_known_key(key) if len(key) <= _SHORT_KEY else _is_secret_key(key)


def _is_secret_key(key: str) -> bool:
    plain = _NOT_WORD.sub("", key).lower()
    return any(word in plain for word in WORDS)


_is_known_key = lru_cache(maxsize=256)(_is_secret_key)  # records share the same twenty keys


def url(address: str) -> str:
    """Return an address without user, password and token-like query values."""
    if "@" in address:
        address = _USER.sub(r"\g<scheme>", _without_typed_user(address))
    return _PAIR.sub(_pair, address) if "=" in address else address


def text(given: str) -> str:
    """Return a text (log line, error, note) with everything that looks like a secret removed."""
    clean = url(given)
    if "eyJ" in clean:
        clean = _JWT.sub(MARK, clean)
    if _has_key_sign(clean):
        clean = _KEY.sub(MARK, clean)
    if " PRIVATE KEY" in clean:
        clean = without_key_blocks(clean)
    if ":" in clean or "=" in clean or " " in clean:
        level = clean.casefold()
        if any(word in level for word in _HEADER_WORDS) and _LIKE_HEADER.search(clean):
            clean = _without_values(_HEADER, clean)
        if any(word in level for word in _ASSIGNED_WORDS) and _LIKE_ASSIGNED.search(clean):
            clean = _without_values(_ASSIGNED, clean)
    return clean


def quoted(given: str) -> str:
    """Quote `given` in a sentence so that `text` removes no word after it.

    A word after "Password:" would count as a secret, so such an end becomes an ellipsis.
    """
    clean = text(given)
    told = [lead + clean + rest for lead in _LEADS for rest in _RESTS]
    if all(text(one) == one for one in told):
        return clean
    return clean.rstrip(" \t:=\"')]") + "…"


Clean = Callable[[str], tuple[str, int]]
"""Takes something out of a text: the text without it, and how often it stood there.

What it takes out of a line it also takes out where other lines stand around.
"""


def _has_key_sign(given: str) -> bool:
    for sign in _KEY_SIGNS:  # noqa: SIM110 - most texts are short: `any` takes twice as long
        if sign in given:
            return True
    return False


def content(given: str) -> tuple[str, int]:
    """Remove strict key forms from page content; return the text and their count."""
    count = 0
    if _has_key_sign(given):
        given, count = _STRICT_KEY.subn(MARK, given)
    if "eyJ" in given:
        given, found = _without(_STRICT_JWT, _is_jwt, given)
        count += found
    if " PRIVATE KEY" in given:
        given, found = _without_published_blocks(given)
        count += found
    return given, count


def page(given: Mapping[str, Any], clean: Clean = content) -> tuple[dict[str, Any], int]:
    """Redact the record of a page, action or command; return the count of removed content secrets.

    Content fields pass `clean`. Other fields also pass the stricter rule, without counting.
    """
    walk, ours, kept = _Published(clean), _Published(clean), {}
    for name, item in given.items():
        if name in CONTENT:
            kept[name] = walk.value(item)
        elif type(item) in _NUMBERS and not is_secret_key(name):
            kept[name] = item
        elif name == "final_url" and "url" in kept and item == given["url"]:
            kept[name] = kept["url"]
        elif isinstance(item, str) and name != "html":
            kept[name] = clean(value(item, name))[0]
        else:
            kept[name] = ours.value(value(item, name), name)
    return kept, walk.count


def published(given: Any, clean: Clean = content) -> tuple[Any, int]:
    """Redact any JSON value of a page, as `page` does; return it and the count."""
    walk = _Published(clean)
    return walk.value(given), walk.count


class _Published:
    """Traversal of a page's value; `count` is the number of secrets removed so far."""

    def __init__(self, clean: Clean) -> None:
        self.count = 0
        self._clean = clean
        self._names: dict[str, str] = {}  # a list of links repeats two names 20,000 times

    def value(self, given: Any, key: str = "", depth: int = 0) -> Any:
        if key and is_secret_key(key) and not _holds_nothing(given):
            return MARK  # a key set by a script, never text of the page
        if isinstance(given, str):
            if key in ADDRESSES:
                return self._clean(text(given))[0]
            if key == "html":
                given = markup_targets(given)[0]
            return self._counted(given)
        if not isinstance(given, Mapping | list | tuple):
            return given
        if depth > _MAX_DEPTH:
            return MARK
        if isinstance(given, Mapping):
            return {
                self._name(str(name)): self.value(item, str(name), depth + 1)
                for name, item in given.items()
            }
        if self._are_clean_links(given):
            return [*given]
        return [self.value(item, key, depth + 1) for item in given]

    def _are_clean_links(self, given: Sequence[Any]) -> bool:
        """Return whether these are a crawl's links without any secret.

        All links are checked at once, one line each: one by one takes five times as long.
        """
        if not given or not all(
            type(link) is dict
            and len(link) == 2
            and isinstance(link.get("href"), str)
            and isinstance(link.get("text"), str)
            for link in given
        ):
            return False
        hrefs = [link["href"] for link in given]
        addresses = "\n".join(hrefs)
        lines = "\n".join([addresses, *[link["text"] for link in given], "href", "text"])
        return (
            text(addresses) == addresses
            and not ("@" in addresses and any(text(href) != href for href in hrefs if "@" in href))
            and self._clean(lines) == (lines, 0)
        )

    def _name(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = self._counted(name)
        return self._names[name]

    def _counted(self, given: str) -> str:
        kept, count = self._clean(given)
        self.count += count
        return kept


def head(given: Mapping[str, Any]) -> dict[str, Any]:
    """Redact the head of a result, except fields that were redacted as page content."""
    return {
        name: item if name in _PUBLISHED_IN_HEAD else value(item, name)
        for name, item in given.items()
    }


def stored(given: Mapping[str, Any]) -> dict[str, Any]:
    """Redact a page record whose content was redacted before."""
    return page(given, lambda text: (text, 0))[0]


def link_targets(given: str) -> tuple[str, int]:
    """Remove secrets from link addresses in Markdown; return the text and their count."""
    return _strict_addresses(_LINK_TO, given) if _DOUBTFUL_LINK.search(given) else (given, 0)


def markup_targets(given: str) -> tuple[str, int]:
    """Remove secrets from element addresses in markup; return the text and their count."""
    return _strict_addresses(_LEADS_TO, given) if "<" in given else (given, 0)


def _strict_addresses(pattern: re.Pattern[str], given: str) -> tuple[str, int]:
    count = 0

    def strict(found: re.Match[str]) -> str:
        nonlocal count
        before = found["address"]
        after = url(before) if "=" in before or "@" in before else before
        count += after != before
        return found[0].replace(before, after, 1)

    return pattern.sub(strict, given), count


def secret_values(address: str) -> list[str]:
    """Return the values of secret names in an address' query and fragment, as written."""
    return [found["value"] for found in _PAIR.finditer(address) if _is_secret_pair(found)]


def _without(
    pattern: re.Pattern[str], is_one: Callable[[str], bool], given: str
) -> tuple[str, int]:
    count = 0

    def instead(found: re.Match[str]) -> str:
        nonlocal count
        if not is_one(found[0]):
            return found[0]
        count += 1
        return MARK

    return pattern.sub(instead, given), count


def _is_jwt(given: str) -> bool:
    """Return whether the token's header names its algorithm or type."""
    header = given.partition(".")[0]
    try:
        told = json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and ("alg" in told or "typ" in told)


def _without_published_blocks(given: str) -> tuple[str, int]:
    """Remove private keys and count them; mere BEGIN or END lines stay."""
    parts: list[str] = []
    at = count = 0
    for begin in _BEGIN.finditer(given):
        if begin.start() < at:
            continue
        until = _block_end(given, begin.end())
        if until:
            parts += [given[at : begin.start()], MARK]
            at, count = until, count + 1
    return "".join([*parts, given[at:]]), count


def _block_end(given: str, at: int) -> int:
    """Return the end of the key block that begins at `at`; 0 where there is none."""
    end = _END.search(given, at, at + _BLOCK_CHARS)
    again = _BEGIN.search(given, at, at + _BLOCK_CHARS)
    if end is not None and (again is None or end.start() < again.start()):
        return end.end() if _KEY_DATA.search(given, at, end.start()) else 0
    cut = _CUT_BLOCK.match(given, at)
    if cut is None or _KEY_DATA.search(given, at, cut.end()) is None:
        return 0
    return cut.end()


def without_key_blocks(given: str) -> str:
    """Remove private keys, each to its END line or to the end of its key data."""
    parts: list[str] = []
    at, ends = 0, [end.end() for end in _END.finditer(given)][::-1]
    while begin := _BEGIN.search(given, at):
        while ends and ends[-1] < begin.end():
            ends.pop()
        parts += [given[at : begin.start()], MARK]
        at = ends.pop() if ends else _key_lines(given, begin.end())
    return "".join([*parts, given[at:]])


def _key_lines(given: str, at: int) -> int:
    found = _KEY_LINES.match(given, at)
    return at if found is None else found.end()


def _holds_nothing(given: Any) -> bool:
    """Return whether the value is empty, a boolean, or a reference to a secret."""
    if given is None or isinstance(given, bool) or given in ("", MARK):
        return True
    if isinstance(given, Mapping):
        return set(given) == {"secret"} and _is_reference(given["secret"])
    return _is_reference(given)


def _is_reference(given: object) -> bool:
    return isinstance(given, str) and _REFERENCE.fullmatch(given) is not None


def _without_typed_user(given: str) -> str:
    """Remove the part that a browser would send as user and password."""
    typed = given.lstrip(_EDGE)
    found = _TYPED_USER.match(_DROPPED.sub("", typed))
    if found is None:
        return given
    return found["scheme"] + typed.split("@", found[0].count("@"))[-1]


def _pair(found: re.Match[str]) -> str:
    if not found["value"] or not _is_secret_pair(found):
        return found[0]
    return f"{found['lead']}{found['name']}={MARK}"


def _is_secret_pair(found: re.Match[str]) -> bool:
    plain = _NOT_WORD.sub("", unquote_plus(found["name"])).lower()
    if plain in _QUERY_NAMES or any(word in plain for word in _QUERY_WORDS):
        return True
    return plain in _MAYBE_NAMES and _RANDOM.fullmatch(found["value"]) is not None


def _assigned(found: re.Match[str]) -> str:
    return found["lead"] + MARK


def _ends_address(found: re.Match[str]) -> bool:
    """Return whether the name is the end of an address' path, with the next words behind it."""
    if _AFTER_ADDRESS.fullmatch(found["lead"]) is None:
        return False
    at, given = found.start(), found.string
    mark = given.rfind("://", max(0, at - _MAX_ADDRESS), at)
    if not given[max(0, mark - 5) : max(0, mark)].lower().endswith(("http", "https")):
        return False
    return _IN_PATH.fullmatch(given, mark, at) is not None


def _without_values(pattern: re.Pattern[str], given: str) -> str:
    parts, kept = list[str](), 0
    at = 0
    while (found := pattern.search(given, at)) is not None:
        if _ends_quotation(given, found):
            at = found.start("value") + 1
            continue
        if _ends_address(found):
            at = found.start("value")
            continue
        parts += given[kept : found.start()], _assigned(found)
        kept = at = found.end()
    return "".join((*parts, given[kept:]))


def _ends_quotation(given: str, found: re.Match[str]) -> bool:
    """Return whether the quote after the name closes a quotation that began before it.

    The selector `textbox[name="Password:"]` holds no value: such a mark would make it useless.
    """
    if _CLOSED.match(given, found.start("value")) is None:
        return False
    quote = given[found.start("value")]
    return given.count(quote, 0, found.start("value")) % 2 == 1


def _utf8(given: Any) -> bytes:
    as_text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), default=str)
    return as_text.encode("utf-8", "backslashreplace")
