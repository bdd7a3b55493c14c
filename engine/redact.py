"""The one redactor, for every sink: what is stored, logged, shown or exported passes here.

It knows secrets by their key (`password`, `Authorization`, …), by their place in an
address (`user:pass@`, `?token=…`), also when the address stands inside a longer text, and by
the look of keys that services give out. A secret given by reference, `{"secret": "env:NAME"}`,
holds nothing and is kept. Redacting twice changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
_QUERY_NAMES: Final = frozenset({"auth", "bearer", "jwt", "pass", "pwd", "sid", "sig"})
_MAYBE_NAMES: Final = frozenset(
    {"code", "key"}
)  # a product's as often as a secret: the value tells
_MAX_DEPTH: Final = 64

_NOT_WORD = re.compile(r"[\W_]+")
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~%+/=-]{20,}")
# Browsers take one slash, two, or none after these schemes, and either kind.
_USER = re.compile(
    r"(?P<scheme>\b(?:https?|wss?|ftps?):[/\\]*|\b[a-z][a-z0-9+.-]{0,30}://|^//)[^/\\?#\s]*@", re.I
)
# What somebody typed as an address: browsers drop these signs from it wherever they stand,
# and take spaces for a part of the password.
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
    r"[\"']?\s*[=:]\s*)(?P<value>\"(?!\[redacted\])(?:[^\"\\]|\\.)*\"?"
    r"|'(?!\[redacted\])(?:[^'\\]|\\.)*'?|(?![\"'{\[]|env:)[^\s,;&\"'{}\[\]]+)",
    re.I,
)

# Keys that tell what they are by their first signs, whatever stands before them.
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
_KEY_LINES = re.compile(r"[\w+/=\\\s:,.-]*")  # what of a block stands there whose end was cut off

# Without one of these the pattern cannot match: a page's text is 15 times as quick that way.
# They hold no "i", of which letter-blind patterns take more forms than casefold() levels.
_HEADER_WORDS: Final = ("author", "cook", "bearer", "bas")
_ASSIGNED_WORDS: Final = ("passw", "secret", "token", "key", "credent")
# Nor without one of these: "base" and "key" stand in half of all pages, "key:" in few.
_LIKE_HEADER = re.compile(r"(?:authorization[\"']?|cookie[\"']?)\s*[:=]|(?:bearer|basic)\s", re.I)
_LIKE_ASSIGNED = re.compile(
    r"(?:password|passwd|secret|token|api[_-]?key|credential)[\w-]{0,40}[\"']?\s*[=:]", re.I
)


@dataclass(frozen=True, slots=True)
class Summary:
    """Arguments as they may be stored.

    `stored` is what `args_summary` holds (at most 2,048 UTF-8 bytes, else
    `{_truncated, _bytes}`); `whole` is the same before it was cut. `was_redacted` tells
    that something was taken out, so that these arguments cannot start the task again.
    """

    stored: dict[str, Any]
    whole: dict[str, Any]
    was_redacted: bool

    @property
    def was_cut(self) -> bool:
        return self.stored is not self.whole


def summarise(args: Mapping[str, Any]) -> Summary:
    """What may be kept of a request's arguments (seed 000: redacted, 2 KiB)."""
    given = dict(args)
    whole = value(given)
    size = len(_utf8(whole))
    stored = whole if size <= SUMMARY_BYTES else {"_truncated": True, "_bytes": size}
    return Summary(stored=stored, whole=whole, was_redacted=whole != given)


def value(given: Any, key: str = "", depth: int = 0) -> Any:
    """`given` with every secret in it replaced, however deep; other values are the same."""
    if key and is_secret_key(key) and not _holds_nothing(given):
        return MARK
    if isinstance(given, str):
        return text(given)
    if not isinstance(given, Mapping | list | tuple):
        return given
    if depth > _MAX_DEPTH:
        return MARK  # nothing that deep is read again, and it could hide anything
    if isinstance(given, Mapping):
        return {text(str(name)): value(item, str(name), depth + 1) for name, item in given.items()}
    return [value(item, "", depth + 1) for item in given]


def is_secret_key(key: str) -> bool:
    """Does a value under this key have to be hidden?"""
    plain = _NOT_WORD.sub("", key).lower()
    return any(word in plain for word in WORDS)


def url(address: str) -> str:
    """An address without user, password and token-like query values."""
    if "@" in address:
        address = _USER.sub(r"\g<scheme>", _without_typed_user(address))
    return _PAIR.sub(_pair, address) if "=" in address else address


def text(given: str) -> str:
    """Any text (a log line, an error, a note) without what a secret looks like in it."""
    clean = url(given)
    if "eyJ" in clean:
        clean = _JWT.sub(MARK, clean)
    if any(sign in clean for sign in _KEY_SIGNS):
        clean = _KEY.sub(MARK, clean)
    if " PRIVATE KEY" in clean:
        clean = _without_key_blocks(clean)
    if ":" in clean or "=" in clean or " " in clean:
        level = clean.casefold()
        if any(word in level for word in _HEADER_WORDS) and _LIKE_HEADER.search(clean):
            clean = _HEADER.sub(_assigned, clean)
        if any(word in level for word in _ASSIGNED_WORDS) and _LIKE_ASSIGNED.search(clean):
            clean = _ASSIGNED.sub(_assigned, clean)
    return clean


def _without_key_blocks(given: str) -> str:
    """`given` without private keys, each from its first line to its last or as far as it goes."""
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
    """Nothing, a switch, or the name of a place where the secret is."""
    if given is None or isinstance(given, bool) or given in ("", MARK):
        return True
    if isinstance(given, Mapping):
        return set(given) == {"secret"} and _is_reference(given["secret"])
    return _is_reference(given)


def _is_reference(given: object) -> bool:
    return isinstance(given, str) and _REFERENCE.fullmatch(given) is not None


def _without_typed_user(given: str) -> str:
    """`given` without what a browser that opened it would send as user and password."""
    typed = given.lstrip(_EDGE)
    found = _TYPED_USER.match(_DROPPED.sub("", typed))
    if found is None:
        return given
    return found["scheme"] + typed.split("@", found[0].count("@"))[-1]


def _pair(found: re.Match[str]) -> str:
    plain = _NOT_WORD.sub("", unquote_plus(found["name"])).lower()
    secret = plain in _QUERY_NAMES or any(word in plain for word in _QUERY_WORDS)
    secret = secret or (plain in _MAYBE_NAMES and _RANDOM.fullmatch(found["value"]) is not None)
    if not secret or not found["value"]:
        return found[0]
    return f"{found['lead']}{found['name']}={MARK}"


def _assigned(found: re.Match[str]) -> str:
    return found["lead"] + MARK


def _utf8(given: Any) -> bytes:
    as_text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), default=str)
    return as_text.encode("utf-8", "backslashreplace")
