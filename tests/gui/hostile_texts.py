"""Texts that a stranger would write into a folder, and a ledger full of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from PySide6.QtGui import QColor, QImage

MARK = "Zq7"  # stands in every text below, so that a walk can tell theirs from ours
CANARY = QColor(254, 1, 203)  # no colour of ours
CANARY_SIDE = 40
MOST_CHARS = 900_000  # nearly all that a meta.json may hold


def paint_canary(folder: Path) -> Path:
    """A picture whose colour on the screen says that markup was rendered."""
    image = QImage(CANARY_SIDE, CANARY_SIDE, QImage.Format.Format_RGB32)
    image.fill(CANARY)
    file = folder / "canary.png"
    assert image.save(str(file))
    return file


def corpus(canary: Path) -> dict[str, str]:
    """One text for each way in which a text can be more than its letters."""
    picture = f'<img src="{canary}" width="{CANARY_SIDE}" height="{CANARY_SIDE}">'
    return {
        "markup": f"{MARK} {picture}<b>bold</b> <a href='file:///etc/passwd'>link</a>",
        "bare picture": f"{picture}{MARK}",
        "almost markup": f"{MARK} a <b> c",
        "markdown": f"![x]({canary}) **{MARK}** [y](file:///etc/passwd)",
        "entities": f"{MARK} &lt;b&gt; &amp; &#60;img&#62;",
        "ampersand": f"A&B {MARK} && &File",
        "breaks": f"{MARK}\nsecond\r\nthird\ttab\v\f\x85\u2028\u2029last",
        "escapes": f"\x1b[31m{MARK}\x1b]0;title\x07\x1b[2J\x08",
        "nothing": f"{MARK}\x00after",
        "overrides": f"\u202egpj.{MARK}.exe\u202c \u2066\u2067x\u2069 \u200e\u200f\u061c",
        "invisible": f"\u200b{MARK}\ufeff\u00ad\u2060\u180e\U000e0041",
        "right to left": f"{MARK} שלום עולם مرحبا 123",
        "surrogate": f"{MARK} \ud800 \udfff",
        "emoji": f"{MARK} 👩‍👩‍👧‍👦🏴‍☠️ e\u0301",
        "zalgo": MARK + "Z" + "\u0335\u0321\u0489" * 60,
        "formats": f"{MARK} %s %d %n %1 %L1 {{0}} {{task_id}} [*] \\n ${{HOME}}",
        "long": MARK + "W" * MOST_CHARS,
        "long line of breaks": MARK + "\n" * 4000,
    }


def ledger(root: Path, texts: dict[str, str]) -> list[str]:
    """One running task of another host for each text, which stands in each of its fields.

    Returns the ids, in the order of the texts.
    """
    root.mkdir(parents=True, exist_ok=True)
    ids = []
    for number, text in enumerate(texts.values(), 1):
        folder = root / f"{number:016x}"
        folder.mkdir()
        room = text if len(text) < 4000 else text[:4000]
        meta = _meta(folder.name, number, text, room)
        (folder / "meta.json").write_text(json.dumps(meta), "utf-8")
        (folder / "events.jsonl").write_text(_events(room), "utf-8")
        ids.append(folder.name)
    return ids


def _meta(task_id: str, number: int, text: str, room: str) -> dict[str, Any]:
    status = ("RUNNING", "FAILED", "PENDING", room)[number % 4]
    args = {"url": room, "label": room, "objective": room, room: [room, {room: room}]}
    long_field = ("url", "label", "sitemap_url")[number % 3]
    return {
        "task_id": task_id,
        "kind": room if number % 2 else "crawl",
        "status": status,
        "pid": room if number % 5 == 0 else os.getpid(),
        "created_at": 1_780_000_000_000 + number,
        "started_at": 1_780_000_000_001 + number,
        "args_summary": args | {long_field: text},
        "error": {"message": room, "code": room},
        "objective": room,
        "phase": room,
        "budget_status": room,
        "budget_exceeded": [room],
        "recommended_next": room,
        "cancel_requested_at": 1_780_000_000_002 if number % 3 == 0 else None,
        "engine": _engine(room, number),
        "result_path": room,
    }


def _engine(room: str, number: int) -> dict[str, Any]:
    links = ("run_id", "contract_id", "task_run_id", "parent_task_id")
    names = ("host", *links, "cancel_reason", "client", "route")
    more = {"name": room} if number % 2 else {}
    units = {"done": 1, "total": 9, "message": room}
    return dict.fromkeys(names, room) | {"command_task_id": room, "units": units} | more


def _events(room: str) -> str:
    told: list[dict[str, Any]] = [
        {"kind": room, "data": {room: room}},
        {"kind": "log", "data": {"phase": room, "note": room, room: [room]}},
        {"kind": "progress", "data": {"unitsDone": 1, "unitsTotal": room, "message": room}},
        {"kind": "failed", "data": {"error": {"code": room, "message": room}}},
        {"kind": "tool_call", "data": {"tool": room, "ok": False, "summary": room}},
        {"kind": "budget", "data": {"from": room, "to": room, room: [room]}},
        {"kind": "guard", "data": {"forced": {"by": room, "reason": room}, "reason": room}},
    ]
    return "".join(json.dumps({"ts": 1_780_000_000_003, **one}) + "\n" for one in told)
