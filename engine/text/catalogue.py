"""Messages by id, said in the language that a face has chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.text.messages import ENGLISH

_SPOKEN: dict[str, str] = {}
_GROUP = [","]
_POINT = ["."]
_TOLD: list[Callable[[str], str]] = [str]


def use(
    texts: Mapping[str, str],
    *,
    group: str = ",",
    point: str = ".",
    told: Callable[[str], str] = str,
) -> None:
    """Say these messages instead of the English ones; numbers as `1{group}234{point}5`.

    `told` is asked what a reason that was written in English is in the language.
    """
    _SPOKEN.clear()
    _SPOKEN.update(texts)
    _GROUP[0], _POINT[0], _TOLD[0] = group, point, told


def retold(reason: str) -> str:
    """Why something went wrong, as this program words it, in the language of the face.

    Such reasons stand in ledgers, in English, whoever wrote them; what is not of this program
    stays as it is.
    """
    return _TOLD[0](reason)


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
