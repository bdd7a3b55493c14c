"""Messages by id, said in the language that a face has chosen."""

from __future__ import annotations

from collections.abc import Mapping

from engine.messages import ENGLISH

_SPOKEN: dict[str, str] = {}
_GROUP = [","]


def use(texts: Mapping[str, str], *, group: str = ",") -> None:
    """Say these messages instead of the English ones, with `group` between thousands."""
    _SPOKEN.clear()
    _SPOKEN.update(texts)
    _GROUP[0] = group


def say(message_id: str, /, **fields: object) -> str:
    """The message with its fields filled in; an unknown id raises `KeyError` (a bug)."""
    return (_SPOKEN.get(message_id) or ENGLISH[message_id]).format(**fields)


def count(number: int) -> str:
    """12480 → `12,480`."""
    return f"{number:,}".replace(",", _GROUP[0])
