"""Completion and recognition of typed or pasted web addresses."""

from __future__ import annotations

import re
from ipaddress import ip_address

from engine.model import addresses

MAX_CHARS = 2000  # Longer clipboard texts are no addresses
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
MAX_FOUND = 500  # Addresses of a text that are offered
_IN_PROSE = re.compile(r"https?://[^\s<>\"“”„«»]+", re.IGNORECASE)
_ENDS = ".,;:!?'"  # Signs that end a sentence rather than an address
_HOST = re.compile(r"^[\w-]+(\.[\w-]+)+$")


def complete(typed: str) -> str:
    """Add a missing scheme: `example.com` → `https://example.com`.

    Localhost and IP addresses rarely support TLS, so they get http.
    """
    text = typed.strip()
    if not text or _SCHEME.match(text):
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
    found: dict[str, None] = {}
    for word in _IN_PROSE.findall(text):
        url = address_in(_without_sentence(word))
        if url:
            found.setdefault(url)
        if len(found) == MAX_FOUND:
            break
    return list(found)


def _without_sentence(word: str) -> str:
    """Drop the punctuation of the sentence; `(see https://a.example/b_(c))` keeps `b_(c)`."""
    while word:
        last = word[-1]
        opened = {")": "(", "]": "["}.get(last)
        loose = opened is not None and word.count(last) > word.count(opened)
        if last not in _ENDS and not loose:
            return word
        word = word[:-1]
    return word
