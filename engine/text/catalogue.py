"""Messages by id, in the chosen language."""

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
    """Set the language: its messages, and numbers as `1{group}234{point}5`.

    `told` translates an English reason.
    """
    _SPOKEN.clear()
    _SPOKEN.update(texts)
    _GROUP[0], _POINT[0], _TOLD[0] = group, point, told


def retold(reason: str) -> str:
    """Translate a reason that this program wrote to the chosen language.

    Ledgers hold reasons in English; unknown reasons are returned unchanged.
    """
    return _TOLD[0](reason)


def say(message_id: str, /, **fields: object) -> str:
    """Fill in a message's fields; an unknown id raises `KeyError` (a bug)."""
    return (_SPOKEN.get(message_id) or ENGLISH[message_id]).format(**fields)


def count(number: int) -> str:
    """Format a count: 12480 → `12,480`."""
    return f"{number:,}".replace(",", _GROUP[0])


def decimal(number: float, digits: int) -> str:
    """Format a decimal: 1234.56 with one digit → `1,234.6`."""
    whole, _, rest = f"{number:,.{digits}f}".partition(".")
    return whole.replace(",", _GROUP[0]) + (_POINT[0] + rest if rest else "")
