"""Completion and recognition of typed or pasted web addresses."""

from __future__ import annotations

import re
from ipaddress import ip_address

from engine.model import addresses

MAX_CHARS = 2000  # Longer clipboard texts are no addresses
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
# Ends at quotes, invisible signs and full-width stops, at the middle of `[address](address)`
# and before the next address of a list.
_IN_PROSE = re.compile(
    r"https?://(?:(?!\]\(|[,;|]https?://)"
    r"[^\s<>\"`“”„«»‹›\x00-\x1f\x7f\u200b-\u200f\u2060\ufeff。，、；！？])+",
    re.IGNORECASE,
)
_NOT_PROSE = ("data:", "blob:", "javascript:")  # Content and scripts of a page that was dragged
_ENDS = ".,;:!?'‘’*|…"  # Signs that end a sentence or a mark-up rather than an address
_PAIRS = tuple(zip("([{（【「『《", ")]}）】」』》", strict=True))
_HOST = re.compile(r"^[\w-]+(\.[\w-]+)+$")


def complete(typed: str) -> str:
    """Add a missing scheme: `example.com` → `https://example.com`.

    Localhost and IP addresses rarely support TLS, so they get http. A path (`/login`) names no
    host and stays as it is.
    """
    text = typed.strip()
    if not text or _SCHEME.match(text) or (text[0] == "/" and text[:2] != "//"):
        return text
    text = text.lstrip("/")
    return f"{'http' if _is_near(text) else 'https'}://{text}"


def _is_near(text: str) -> bool:
    found = addresses.parse(f"http://{text}")
    host = "" if found is None else found.host.removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def address_in(text: str) -> str:
    """Return the completed web address of `text`, or an empty string."""
    text = text.strip()
    if not text or len(text) > MAX_CHARS or any(letter.isspace() for letter in text):
        return ""
    url = complete(text)
    found = addresses.parse(url)
    if found is None or not found.is_web:
        return ""
    return url if "://" in text or _HOST.match(found.host) or _is_near(found.host) else ""


def addresses_within(text: str) -> list[str]:
    """Return the http and https addresses that a text of other words contains, each once."""
    if text[:16].lower().startswith(_NOT_PROSE):
        return []
    words = dict.fromkeys(map(_without_sentence, _IN_PROSE.findall(text)))
    return list(dict.fromkeys(url for word in words if (url := address_in(word))))


def _without_sentence(word: str) -> str:
    """Drop the punctuation of the sentence; `(see https://a.example/b_(c))` keeps `b_(c)`."""
    loose = {closes: word.count(closes) - word.count(opens) for opens, closes in _PAIRS}
    end = len(word)
    while end:
        last = word[end - 1]
        if loose.get(last, 0) > 0:
            loose[last] -= 1
        elif last not in _ENDS:
            break
        end -= 1
    return word[:end]
