"""Compare what a field holds with what was typed into it: pages move, cut and format typed text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from engine.model import redact

# Characters of a secret between two looks at the focus: a page that moves it to another field gets
# no more of them than this, which is less than the shortest part of a secret that is masked.
CHUNK: Final = 2
SHORTEST_PART: Final = 3
MAX_SHOWN: Final = 80
MAX_COMPARED: Final = 1_000
SETTLE_S: Final = 0.02  # a page may change a field just after the key
NOT_CHECKED: Final = "the field was gone after typing, so its content was not checked"
SPREAD: Final = "the page passed the text on to the next fields"


class Expected(NamedTuple):
    """The content that a field must have: `text` between the parts that it had before.

    `after` is None if the position of the caret is unknown; `before` is then the whole old content.
    """

    text: str
    before: str = ""
    after: str | None = ""

    def contents(self) -> Iterator[str]:
        """Yield every content that is correct."""
        if self.after is not None:
            yield self.before + self.text + self.after
            return
        for at in range(len(self.before), -1, -1):
            yield self.before[:at] + self.text + self.before[at:]


class Verdict(NamedTuple):
    """The difference between a field's content and the expected one, as a sentence or empty."""

    failed: bool = False
    sentence: str = ""


def judge(
    expected: Expected,
    found: Mapping[str, Any],
    *,
    secret: bool,
    hide: Callable[[str], str] = redact.text,
) -> Verdict:
    """Judge what `held.js` found after typing.

    Args:
        secret: name the two lengths only.
        hide: removes known secrets from a content before it is cut.
    """
    if found["focus"] == "gone":
        return Verdict(sentence=NOT_CHECKED)
    if found["kind"] == "none":
        return Verdict()
    held = _lines(str(found["text"]))
    wanted = [_lines(one) for one in expected.contents()]
    if held in wanted:
        return Verdict()
    if found["kind"] == "text" and _words(held) in map(_words, wanted):
        return Verdict()
    if any(_is_reformatted(one, held) for one in wanted):
        both = _both(wanted[0], held, secret, hide)
        return Verdict(sentence=f"the page changed what was typed: {both}")
    if _is_spread(expected.text, held, str(found["spread"])):
        return Verdict(sentence=SPREAD)
    return Verdict(failed=True, sentence=_both(wanted[0], held, secret, hide))


def parts_of(secret: str, found: Mapping[str, Any], typed: int) -> list[str]:
    """Return the parts of a secret that a page may repeat after it changed or cut the secret."""
    held = str(found.get("text", ""))
    parts = [secret[:typed]] if typed < len(secret) else []
    if _is_reformatted(secret, held):
        parts.append(held)
    one, other = secret[:MAX_COMPARED].casefold(), held[:MAX_COMPARED].casefold()
    match = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    parts.append(held[match.b : match.b + match.size])
    return [part for part in parts if len(part.strip()) >= SHORTEST_PART and part != secret]


def chunks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a secret that are typed at once, each with its beginning."""
    for at in range(0, len(text), CHUNK):
        yield at, text[at : at + CHUNK]


def stopped(found: Mapping[str, Any], typed: int, of: int) -> str:
    """Return why typing must stop before the next part of a secret; empty if it need not."""
    if found["kind"] == "none" or found["focus"] in ("here", "box"):
        return ""
    why = "the field went away" if found["focus"] == "gone" else "the page took the focus away"
    return f"{why} after {typed} of {of} characters; nothing more was typed"


def _both(wanted: str, held: str, secret: bool, hide: Callable[[str], str]) -> str:
    if secret:
        return f"the field holds a text of length {len(held):,} instead of {len(wanted):,}"
    return f"the field holds {_shown(held, hide)} instead of {_shown(wanted, hide)}"


def _shown(text: str, hide: Callable[[str], str]) -> str:
    text = hide(text)
    text = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return f'"{redact.quoted(text)}"'


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _words(text: str) -> str:
    return " ".join(text.split())


def _core(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _is_reformatted(wanted: str, held: str) -> bool:
    """Return whether only case, white space and punctuation differ."""
    if not (core := _core(wanted)):
        return "".join(wanted.split()) == "".join(held.split())
    return core == _core(held)


def _is_spread(text: str, held: str, spread: str) -> bool:
    """Return whether the field holds the beginning and the fields after it the rest."""
    core = _core(text)
    begins = bool(_core(held)) and core.startswith(_core(held))
    return begins and _core(spread).startswith(core)
