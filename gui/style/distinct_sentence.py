"""A headline and its sentence, without saying the same twice.

Each error has a title for lists and a sentence that stands by itself, so the two often share
their words. Wherever one stands above the other, this decides what is left of each.
"""

from __future__ import annotations

import re
from typing import Final

_GOES_ON: Final = re.compile(r"\s*[:.!?…]+\s*")
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?=[\s,;]|\.?(?:\s|$))")


def said_once(title: str, sentence: str) -> tuple[str, str]:
    """What to show as the headline, and below it; either may be empty.

    `Cannot write: disk full` below `Cannot write` becomes `Disk full`; a sentence in which the
    title is a part of the grammar stands alone.
    """
    head = title.strip().rstrip(".")
    first, line_end, more = sentence.partition("\n")
    if not head or not re.search(rf"(?<!\w){re.escape(head)}(?!\w)", first, re.IGNORECASE):
        return title, sentence
    if first[: len(head)].casefold() != head.casefold():
        return "", sentence
    rest = first[len(head) :]
    goes_on = _GOES_ON.match(rest)
    if rest.strip() and goes_on is None:
        return "", sentence
    left = rest[goes_on.end() :] if goes_on else ""
    return title, (_begun(left) + line_end + more).strip("\n")


def _begun(text: str) -> str:
    """With a capital, if it begins with a word: names of files and addresses stay as they are."""
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text
