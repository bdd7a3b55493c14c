"""Write MathML in one line, as Unicode's linear format of mathematics does: `(a+b)/√(x)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_MAX_DEPTH: Final = 64
_UNSHOWN: Final = frozenset({"annotation", "annotation-xml", "mphantom"})
_TOKENS: Final = frozenset({"mi", "mn", "mo", "ms", "mtext"})
_INVISIBLE: Final = re.compile("[\u2061-\u2064]")  # "apply", "times" and the like
_BLANKS: Final = re.compile(r"[ \t\n\f\r]+")
_OPERATORS: Final = {
    "msup": "^",
    "mover": "^",
    "msub": "_",
    "munder": "_",
    "msubsup": "_^",
    "munderover": "_^",
    "mfrac": "/",
}


def formula_text(node: LexborNode, depth: int = 0) -> str:
    """Return the formula of an element in one line."""
    name = node.tag or ""
    if name in _UNSHOWN:
        return ""
    children = [] if name in _TOKENS or depth > _MAX_DEPTH else list(node.iter())
    if not children:
        text = _BLANKS.sub(" ", _INVISIBLE.sub("", node.text()))
        return text if name == "mtext" else text.strip()
    parts = [formula_text(child, depth + 1) for child in children]
    if name == "mtable":
        return f"[{'; '.join(parts)}]"
    if name == "mtr":
        return ", ".join(parts)
    if name == "msqrt":
        return "√" + _grouped("".join(parts))
    if name == "mroot" and len(parts) == 2:
        return f"√({parts[1]}&{parts[0]})"
    signs = _OPERATORS.get(name, "")
    if signs and len(parts) == len(signs) + 1:
        return _grouped(parts[0]) + "".join(
            sign + _grouped(part) for sign, part in zip(signs, parts[1:], strict=True)
        )
    return "".join(parts)


def _grouped(text: str) -> str:
    """Return a part of a formula in brackets, unless it is one number, name or sign."""
    is_one = len(text) == 1 or text.isalnum() or _NUMBER.fullmatch(text) is not None
    return text if is_one else f"({text})"


_NUMBER: Final = re.compile(r"\d+[.,]\d+")
