"""Remove the values of password, code and card fields from kept markup.

Pages write such values into the markup themselves, and some frameworks do so with every key.
"""

from __future__ import annotations

import re
from typing import Final

from engine.model import redact

# The browser's serialization: attributes in double quotes; a cut may end anywhere.
_FIELD: Final = re.compile(r'<input\b(?:[^>"]++|"[^"]*+(?:"|$))*+', re.IGNORECASE)
_SECRET: Final = re.compile(
    r'\s(?:type="password"|autocomplete="[^"]*'
    r'(?:\bcc-|\bone-time-code\b|\b(?:current|new)-password\b)[^"]*")',
    re.IGNORECASE,
)
_VALUE: Final = re.compile(r'(?<=\s)value="[^"]*+(?:"|$)', re.IGNORECASE)


def without_secret_values(html: str) -> str:
    """Mask secret values in `html`, which a browser serialized."""
    return _FIELD.sub(_field, html)


def _field(found: re.Match[str]) -> str:
    if not _SECRET.search(found[0]):
        return found[0]
    return _VALUE.sub(f'value="{redact.MARK}"', found[0])
