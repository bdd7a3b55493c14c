"""Task folders with results in them, as another program would leave them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QColor, QImage

START = 1_780_000_000_000


def put_task(
    home: Path, number: int, kind: str = "crawl", status: str = "COMPLETED", **meta: Any
) -> Path:
    """A task's folder with its meta.json."""
    task_id = f"{number:016x}"
    folder = home / "tasks" / task_id
    folder.mkdir(parents=True)
    told: dict[str, Any] = {
        "task_id": task_id,
        "kind": kind,
        "status": status,
        "created_at": START - number * 1000,
        "started_at": START - number * 1000 + 1,
        "args_summary": {"url": "http://site.test/"},
        **meta,
    }
    if status == "RUNNING":  # by a process that lives: this one
        told |= {"pid": os.getpid(), "created_at": time.time() * 1000}
        told["started_at"] = told["created_at"]
    if status in ("COMPLETED", "FAILED", "CANCELLED"):
        told.setdefault("ended_at", START + 5000)
    (folder / "meta.json").write_text(json.dumps(told))
    return folder


def page(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "url": f"http://site.test/{number}",
        "status": 200,
        "title": f"Page {number}",
        "content": f"text of page {number}",
        "depth": number % 3,
        "response_ms": 10.0 + number,
        "render_ms": 20.0,
        "bytes": 1000 + number,
        **fields,
    }


def put_pages(folder: Path, *pages: dict[str, Any], result: bool = True) -> None:
    """The pages of a crawl, and the result that was made of them."""
    lines = "".join(json.dumps(one) + "\n" for one in pages)
    (folder / "pages.jsonl").write_text(lines)
    if result:
        summary = {"total_pages": len(pages), "duration_ms": 8123, "stopped_by": "frontier"}
        whole = {"summary": summary, "pages": pages}
        (folder / "result.json").write_text(json.dumps(whole))


def put_picture(folder: Path, name: str, width: int = 40, height: int = 30) -> None:
    """A real picture among the task's artifacts."""
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("#4488cc"))
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # PySide6's stub omits this overload
    (folder / "artifacts").mkdir(exist_ok=True)
    (folder / "artifacts" / name).write_bytes(bytes(buffer.data().data()))
