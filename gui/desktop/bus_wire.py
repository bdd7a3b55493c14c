"""D-Bus messages as bytes, after the D-Bus specification 0.43: pure, no socket, no loop.

Our own, because QtDBus cannot be used from Python for this: it sends every number as a signed
one (PySide6 6.11), and notification daemons refuse a signed `replaces_id`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
HEADER_BYTES = 16
MAX_BYTES = 4 * 1024 * 1024  # the specification allows 128 MiB; nobody we talk to needs one
_LITTLE = ord("l")
_VERSION = 1
_NUMBERS = {
    "y": "B",
    "b": "I",
    "n": "h",
    "q": "H",
    "i": "i",
    "u": "I",
    "x": "q",
    "t": "Q",
    "d": "d",
}
_ALIGNED = {"s": 4, "o": 4, "a": 4, "(": 8, "{": 8} | {
    sign: struct.calcsize(form) for sign, form in _NUMBERS.items()
}
_CLOSING = {"(": ")", "{": "}"}
# Names of header fields by their number in the specification, with their types.
_FIELDS = {
    1: ("path", "o"),
    2: ("interface", "s"),
    3: ("member", "s"),
    4: ("error", "s"),
    5: ("reply_to", "u"),
    6: ("destination", "s"),
    7: ("sender", "s"),
    8: ("signature", "g"),
}


class BadMessage(ValueError):
    """Bytes that are no D-Bus message, or a value that does not fit its signature."""


class Variant(msgspec.Struct, frozen=True):
    """A value that carries its own type."""

    signature: str
    value: Any


class Message(msgspec.Struct, frozen=True):
    """One message; fields that do not apply are empty."""

    kind: int
    serial: int = 0
    path: str = ""
    interface: str = ""
    member: str = ""
    error: str = ""
    reply_to: int = 0
    destination: str = ""
    sender: str = ""
    signature: str = ""
    body: tuple[Any, ...] = ()


def pack(message: Message) -> bytes:
    """The message as it goes over the wire. Raises BadMessage."""
    body, fields = bytearray(), []
    try:
        for part, value in zip(types_in(message.signature), message.body, strict=True):
            _put(body, part, value)
        for number, (name, sign) in _FIELDS.items():
            if value := getattr(message, name):
                fields.append((number, Variant(sign, value)))
        out = bytearray((_LITTLE, message.kind, 0, _VERSION))
        out += struct.pack("<II", len(body), message.serial)
        _put(out, "a(yv)", fields)
    except (struct.error, TypeError, AttributeError, ValueError) as error:
        raise BadMessage(str(error)) from error
    _pad(out, 8)
    return bytes(out + body)


def length_of(header: bytes) -> int:
    """How many bytes a message has, from its first 16. Raises BadMessage."""
    order = _order(header)
    body, _, fields = struct.unpack_from(f"{order}III", header, 4)
    whole = HEADER_BYTES + fields + (-fields % 8) + body
    if whole > MAX_BYTES:
        raise BadMessage(f"a message of {whole} bytes")
    return int(whole)


def unpack(data: bytes) -> Message:
    """The message in `data`, which holds exactly one. Raises BadMessage."""
    order = _order(data)
    try:
        serial = struct.unpack_from(f"{order}I", data, 8)[0]
        reader = _Reader(data, order, 12)
        known = {
            _FIELDS[number][0]: variant.value
            for number, variant in reader.take("a(yv)")
            if number in _FIELDS
        }
        reader.align(8)
        body = tuple(reader.take(part) for part in types_in(known.get("signature", "")))
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise BadMessage(str(error)) from error
    return Message(kind=data[1], serial=serial, body=body, **known)


def types_in(signature: str) -> Iterator[str]:
    """The complete types that a signature strings together. Raises BadMessage."""
    at = 0
    while at < len(signature):
        end = _end_of_type(signature, at)
        yield signature[at:end]
        at = end


def _end_of_type(signature: str, at: int) -> int:
    while at < len(signature) and signature[at] == "a":
        at += 1
    if at >= len(signature):
        raise BadMessage(f"the signature {signature} breaks off")
    closing = _CLOSING.get(signature[at])
    at += 1
    if closing is None:
        return at
    while signature[at : at + 1] != closing:
        at = _end_of_type(signature, at)  # refuses a signature that ends before that
    return at + 1


def _order(data: bytes) -> str:
    if len(data) < HEADER_BYTES or data[0] not in b"lB" or data[3] != _VERSION:
        raise BadMessage("no D-Bus message")
    return "<" if data[0] == _LITTLE else ">"


def _pad(out: bytearray, to: int) -> None:
    out += bytes(-len(out) % to)


def _put(out: bytearray, sign: str, value: Any) -> None:
    head = sign[0]
    _pad(out, _ALIGNED.get(head, 1))
    if head in _NUMBERS:
        out += struct.pack(f"<{_NUMBERS[head]}", value)
    elif head in "sog":
        data = value.encode()
        out += struct.pack("<B" if head == "g" else "<I", len(data)) + data + b"\0"
    elif head == "v":
        _put(out, "g", value.signature)
        _put(out, value.signature, value.value)
    elif head == "a":
        _put_list(out, sign[1:], value)
    else:
        for part, one in zip(types_in(sign[1:-1]), value, strict=True):
            _put(out, part, one)


def _put_list(out: bytearray, sign: str, values: Any) -> None:
    at = len(out)
    out += bytes(4)
    _pad(out, _ALIGNED.get(sign[0], 1))
    start = len(out)
    for value in values.items() if isinstance(values, dict) else values:
        _put(out, sign, value)
    struct.pack_into("<I", out, at, len(out) - start)


class _Reader:
    """Takes one value after the other out of a message."""

    def __init__(self, data: bytes, order: str, at: int) -> None:
        self._data, self._order, self._at = data, order, at

    def align(self, to: int) -> None:
        self._at += -self._at % to

    def take(self, sign: str) -> Any:
        head = sign[0]
        self.align(_ALIGNED.get(head, 1))
        if head in _NUMBERS:
            number = self._number(_NUMBERS[head])
            return bool(number) if head == "b" else number
        if head in "sog":
            return self._text(self._number("B" if head == "g" else "I"))
        if head == "v":
            inner = self.take("g")
            return Variant(inner, self.take(inner))
        if head == "a":
            return self._list(sign[1:])
        return tuple(self.take(part) for part in types_in(sign[1:-1]))

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack_from(self._order + form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _text(self, size: int) -> str:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise IndexError("a text breaks off")
        self._at += size + 1
        return data.decode()

    def _list(self, sign: str) -> Any:
        size = self._number("I")
        self.align(_ALIGNED.get(sign[0], 1))
        end, found = self._at + size, []
        while self._at < end:
            found.append(self.take(sign))
        return dict(found) if sign[0] == "{" else found
