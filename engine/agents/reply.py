"""Reply of a browser tool: text, the same as data, and an optional image. Bounded, JSON-safe."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.model.errors import EngineError, PageError

MOST_TEXT_BYTES = 256 * 1024
CUT = "\n… cut: the reply was longer than 256 KiB"


class Image(msgspec.Struct, frozen=True):
    """An image with its media type."""

    data: bytes
    mime_type: str = "image/png"


class ToolReply(msgspec.Struct, frozen=True):
    """One reply of a tool.

    With a task id, `task` is the envelope's state, and `warning` the reason why the call was not
    counted.
    """

    text: str
    data: dict[str, Any] = {}
    image: Image | None = None
    ok: bool = True
    task: dict[str, Any] | None = None
    warning: str | None = None


def reply(text: str, data: dict[str, Any], image: Image | None = None) -> ToolReply:
    """Build a reply whose text is at most 256 KiB."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > MOST_TEXT_BYTES:
        kept = encoded[: MOST_TEXT_BYTES - len(CUT.encode())]
        text = kept.decode("utf-8", "ignore") + CUT
    # Encode and decode, so that every caller gets plain JSON types.
    return ToolReply(text, msgspec.json.decode(msgspec.json.encode(data)), image)


def refusal(error: EngineError) -> ToolReply:
    """Convert an error to a reply, for hosts without exceptions."""
    advice = f" {error.advice}" if error.advice else ""
    told: dict[str, Any] = {"code": error.code, "title": error.title, "message": str(error)}
    if error.advice:
        told["advice"] = error.advice
    if isinstance(error, PageError):
        told["kind"] = error.kind
    fields = {name: value for name, value in error.fields.items() if name not in _OWN}
    if fields:
        told["fields"] = fields
    return ToolReply(
        f"{error.title}: {error}{advice}",
        {"error": told},
        ok=False,
        task=_object(error.fields.get("task")),
        warning=_text(error.fields.get("warning")),
    )


_OWN = frozenset({"task", "warning", "message"})


def _object(given: object) -> dict[str, Any] | None:
    return given if isinstance(given, dict) else None


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None
