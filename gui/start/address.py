"""What people type or copy when they mean a web address."""

from __future__ import annotations

import re
from ipaddress import ip_address

from engine.model import urls

MAX_CHARS = 2000  # longer texts from the clipboard are something else
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
_HOST = re.compile(r"^[\w-]+(\.[\w-]+)+$")


def complete(typed: str) -> str:
    """`example.com` → `https://example.com`; what has a scheme already stays as it is.

    This machine and bare numbers seldom speak TLS, so they get http.
    """
    text = typed.strip()
    if not text or _SCHEME.match(text):
        return text
    text = text.lstrip("/")
    return f"{'http' if _is_near(text) else 'https'}://{text}"


def _is_near(text: str) -> bool:
    found = urls.parse(f"http://{text}")
    host = "" if found is None else found.host.removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def address_in(text: str) -> str:
    """The web address that `text` is, ready to start with; empty when it is none."""
    text = text.strip()
    if not text or len(text) > MAX_CHARS or any(letter.isspace() for letter in text):
        return ""
    url = complete(text)
    found = urls.parse(url)
    if found is None or not found.is_web:
        return ""
    return url if "://" in text or _HOST.match(found.host) or _is_near(found.host) else ""
