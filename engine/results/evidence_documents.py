"""Parts of an evidence bundle: each record names a file, which holds the document itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.ledger.reader import LedgerReader
from engine.model.records import ARTIFACTS_NAME

_TEXTS: Final = (".html", ".json", ".jsonl")
_NETWORK: Final = "network"
_OF_REQUEST: Final = ("method", "url", "status", "error")  # what is the same in each run


def part_file(row: Mapping[str, Any]) -> str:
    """Name of a part's file among the task's artifacts, without its folder; empty without one."""
    given = row.get("file")
    if not isinstance(given, str) or not isinstance(row.get("part"), str):
        return ""
    return given.removeprefix(f"{ARTIFACTS_NAME}/")


def text_file(row: Mapping[str, Any]) -> str:
    """Name of the file (`artifacts/…`) that holds the text of a part; empty without a text."""
    name = part_file(row)
    return f"{ARTIFACTS_NAME}/{name}" if name.endswith(_TEXTS) else ""


def compared_text(reader: LedgerReader, task_id: str, row: Mapping[str, Any]) -> str | None:
    """Return the text by which two bundles are compared; None for what is no part of one.

    Of requests it is what they asked for and got, in the order of their addresses: times differ
    in every run. Of pictures, and where the file is missing, it is the hash of the record.
    """
    if not part_file(row):
        return None
    name = text_file(row)
    data = reader.read_artifact(task_id, part_file(row)) if name else None
    if data is None:
        return str(row.get("sha256", ""))
    text = data.decode("utf-8", "replace")
    return _requests(data) or text if row["part"] == _NETWORK else text


def _requests(data: bytes) -> str:
    try:
        entries = msgspec.json.decode(data)["entries"]
        return "\n".join(sorted(map(_request, entries)))
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        return ""


def _request(entry: Mapping[str, Any]) -> str:
    return " ".join(str(entry[name]) for name in _OF_REQUEST if entry.get(name) is not None)
