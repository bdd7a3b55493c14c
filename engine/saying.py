"""Messages by id, said in the language that a face has chosen."""

from __future__ import annotations

from collections.abc import Mapping

from engine.messages import ENGLISH

_SPOKEN: dict[str, str] = {}
_GROUP = [","]
_POINT = ["."]


def use(texts: Mapping[str, str], *, group: str = ",", point: str = ".") -> None:
    """Say these messages instead of the English ones; numbers as `1{group}234{point}5`."""
    _SPOKEN.clear()
    _SPOKEN.update(texts)
    _GROUP[0], _POINT[0] = group, point


def say(message_id: str, /, **fields: object) -> str:
    """The message with its fields filled in; an unknown id raises `KeyError` (a bug)."""
    return (_SPOKEN.get(message_id) or ENGLISH[message_id]).format(**fields)


def count(number: int) -> str:
    """12480 → `12,480`."""
    return f"{number:,}".replace(",", _GROUP[0])


def decimal(number: float, digits: int) -> str:
    """1234.56 with one digit → `1,234.6`."""
    whole, _, rest = f"{number:,.{digits}f}".partition(".")
    return whole.replace(",", _GROUP[0]) + (_POINT[0] + rest if rest else "")
