"""A window with everything open that a person may see, one scene after the other."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path

from PySide6.QtWidgets import QDialog, QListWidget, QStackedWidget, QTabWidget, QWidget

from gui.startup.session import Session
from tests.gui.result_ledgers import page, put_pages, put_picture, put_task
from tests.gui.text_walk import said_by
from tests.gui.windows import app

DIALOGS = ("new", "settings", "shortcuts", "statistics", "help", "news", "palette", "save_view")
EVENTS = ("started", "progress", "log", "completed", "failed", "tool_call", "guard", "budget")
WORD = re.compile(r"[A-Za-z]{3,}")
_SETTLE_S = 0.1  # what is read in threads for a new scene has come by then


def fill(home: Path) -> None:
    """Tasks of several kinds and states; their texts are names and addresses, no sentences."""
    now = time.time() * 1000
    done = put_task(home, 1, engine={"name": "NORD"}, objective="ZIEL")
    put_pages(done, page(1, title="T1"), page(2, status=404, title="T2"))
    put_picture(done, "page.png")
    error = {"code": "E404", "message": "XYZ"}
    put_task(home, 2, "commands", "FAILED", error=error, ended_at=now)
    put_task(home, 3, status="CANCELLED", engine={"name": "SUED"})
    put_task(home, 4, status="RUNNING", engine={"name": "OST"}, budget_status="exceeded")
    put_task(home, 5, "browser_task", "PENDING", created_at=now)
    put_task(home, 6, status="RUNNING", engine={"name": "RAND"}, cancel_requested_at=now)
    lines = (json.dumps({"ts": now, "kind": kind, "data": {}}) + "\n" for kind in EVENTS)
    done.joinpath("events.jsonl").write_text("".join(lines))


def data_words(home: Path) -> set[str]:
    """The words of the ledger itself: they are shown as they are, in every language."""
    files = (one for one in home.rglob("*") if one.suffix in (".json", ".jsonl"))
    texts = [str(home), *(f"{one} {one.read_text('utf-8')}" for one in files), "artifacts/page.png"]
    return {word for text in texts for word in WORD.findall(text)}


async def scenes(session: Session) -> AsyncIterator[tuple[str, QWidget]]:
    """The whole window, its details with two tasks in every tab, and its dialogs."""
    window = session.window
    window.resize(1400, 900)
    window.acts["details"].setChecked(True)
    for task in (1, 2):
        window.table.select_ids([f"{task:016x}"])
        await asyncio.sleep(_SETTLE_S)
        (tabs, *_) = window.details.findChildren(QTabWidget)
        for at in range(tabs.count()):
            tabs.setCurrentIndex(at)
            await asyncio.sleep(_SETTLE_S)
            yield f"task {task}, tab {at}", window.details
    window.table.selectAll()
    await asyncio.sleep(_SETTLE_S)
    yield "several", window
    for key in DIALOGS:
        window.acts[key].trigger()
        await asyncio.sleep(_SETTLE_S)
        for dialog in _dialogs():
            _turn_pages(dialog)
            yield key, dialog
            dialog.close()


def _dialogs() -> list[QDialog]:
    return [one for one in app().topLevelWidgets() if isinstance(one, QDialog) and one.isVisible()]


def _turn_pages(dialog: QDialog) -> None:
    """What is made only when it is looked at is made."""
    for names in dialog.findChildren(QListWidget):
        for row in range(names.count()):
            names.setCurrentRow(row)
    for stack in dialog.findChildren(QStackedWidget):
        for at in range(stack.count()):
            stack.setCurrentIndex(at)


def said_in(widget: QWidget) -> Iterator[tuple[str, str]]:
    """Where and what: every text of this window or dialog, as a person reads or hears it."""
    for said in said_by([widget, *widget.findChildren(QWidget)]):
        if text := unescape(re.sub(r"</?p\b[^>]*>", "", said.text)).strip():
            yield said.where, text
