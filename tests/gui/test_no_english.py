"""The German window shows no English sentence, not even in errors."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QDialog, QTabWidget, QWidget

from engine.contracts.completing import (
    CompletionCheck,
    CompletionObstacle,
    CompletionVerdict,
)
from engine.export.exporter import Order
from engine.model.errors import LedgerUnusable, LedgerWriteFailed, LockTimeout, NothingTaken
from engine.service.forms import startable
from engine.text import messages
from engine.text.messages import ENGLISH
from gui.commands.exporting import ExportDialog, Wanted
from gui.commands.force_complete import ForceDialog
from gui.details.result_window import ResultWindow
from gui.filters.filter_bar import FilterHelp
from gui.i18n.language import speak, texts
from gui.start.request_tabs import FORM, JSON
from gui.start.start_dialog import StartDialog
from gui.startup.failure_reports import CrashDialog
from gui.startup.session import Session
from tests.gui.result_ledgers import page, put_pages, put_task
from tests.gui.spoken_scenes import said_in
from tests.gui.task_views import task_id
from tests.gui.test_forcing import short_of_76
from tests.gui.test_result_tabs import settled
from tests.gui.windows import app, opened

# Two of these make a sentence; none of them is German.
TELLING = frozenset(
    {
        *("the", "is", "are", "of", "and", "not", "with", "its", "it", "has", "have", "must"),
        *("cannot", "there", "this", "that", "been", "to", "by", "for", "or", "be", "where"),
        *("when", "what", "which", "while", "at", "from", "no", "into", "than", "then", "they"),
        *("them", "does", "did", "done", "only"),
    }
)
WORDS = re.compile(r"[\w’']+")  # the name of a test in a path is one word
# Trees of JSON, files as they are; a header has the cells of its list, which are looked at there.
DATA = ("QTreeView.", "QHeaderView.cell", "PlainHeader.cell", "QPlainTextEdit.text")
OPERATORS = re.compile(r"\b(OR|AND|NOT)\b")
REASONS = (
    "No page could be taken: the server did not answer",
    "command 2 of 3 (XYZ): not done within 1.5 s: #x (there is no such element)",
    "orphaned: process 41 is gone",
    "The task went over its budget and was told to end there.",
    "An unexpected KeyError ended the task; the log has the details: /home/ada/monitor.log",
)
WRONG = {
    "kind": "crawl",
    "args": {"url": "nix", "max_pages": -1, "delay_ms": "x", "engine": 7, "zzz": 1},
    "policy": {"maxToolCalls": 0, "allowedDomains": ["%"], "zzz": 1},
    "contract": {"expected_total": -3, "items": "x", "zzz": 2},
    "enforce": True,
}
BROKEN = ('{"kind": }', "[1, 2", "", '{"kind": "zzz"}', '{"kind": "crawl", "args": 3}', "17", "{}")
ASKED = ("cancel_matching", "rerun_many", "export_list", "about", "doctor", "list_mode")


@pytest.fixture
def german(qapp: object) -> Iterator[None]:
    before = QLocale()
    speak(app(), "de")
    yield
    speak(app(), "en")
    messages.use({})
    QLocale.setDefault(before)
    app().setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def fill(home: Path) -> None:
    """What went wrong in every way that this program words itself."""
    now = time.time() * 1000
    for number, reason in enumerate(REASONS, 1):
        error = {"code": "E1", "message": reason}
        folder = put_task(home, number, status="FAILED", error=error, ended_at=now)
        refused = {"phase": "egress", "place": "x.test:80", "reason": "private address"}
        lines = ({"kind": "log", "data": refused}, {"kind": "failed", "data": {"error": error}})
        text = "".join(json.dumps({"ts": now, **line}) + "\n" for line in lines)
        (folder / "events.jsonl").write_text(text)
        wrong = ("the connection was cut", "Blocked by robots.txt", "name not found")
        put_pages(folder, *(page(at, error=why) for at, why in enumerate(wrong)))
    torn = put_task(home, 8)
    (torn / "meta.json").write_text('{"task_id": ')
    put_task(home, 9, status="RUNNING", engine={"name": "OST"})


def english_in(text: str) -> bool:
    """Is it a sentence, or a part of one, in English?"""
    words = {word.casefold() for word in WORDS.findall(OPERATORS.sub("", text))}
    return len(words & TELLING) >= 2


async def found_in(widget: QWidget, scene: str) -> list[tuple[str, str, str]]:
    await asyncio.sleep(0.05)
    said = [(where, text) for where, text in said_in(widget) if not where.startswith(DATA)]
    return [(scene, where, text[:160]) for where, text in said if english_in(text)]


def told(found: list[tuple[str, str, str]]) -> str:
    """Each text once, with the first place where it was found."""
    return "\n".join(
        map(str, {text: (scene, where, text) for scene, where, text in found}.values())
    )


async def dialogs(session: Session) -> AsyncIterator[tuple[str, QDialog]]:
    """All those that ask before something is done, one after the other."""
    window = session.window
    for key in ASKED:
        window.acts[key].trigger()
        (dialog,) = await settled(_open)
        yield key, dialog
        dialog.close()
        await settled(lambda: not _open())
    names = {task_id(1): "NORD"}
    bars = (
        CompletionCheck(subject=task_id(1), verdict=CompletionVerdict.NEVER, obstacle=bar)
        for bar in CompletionObstacle
    )
    for prospect in (short_of_76(), *bars):
        yield "force", ForceDialog([prospect], names, [], window)
    yield "crash", CrashDialog("XYZ", Path("log.txt"), window)
    yield "filter help", FilterHelp(lambda _: None, window)


def _open() -> list[QDialog]:
    return [one for one in app().topLevelWidgets() if isinstance(one, QDialog) and one.isVisible()]


async def test_no_dialog_asks_in_english(german: None, tmp_path: Path) -> None:
    fill(tmp_path / "home")
    found = []
    async with opened(tmp_path / "home") as session:
        async for key, dialog in dialogs(session):
            found += await found_in(dialog, key)
        assert not found, told(found)


async def test_mistakes_in_a_request_are_told_in_german(german: None, tmp_path: Path) -> None:
    fill(tmp_path / "home")
    async with opened(tmp_path / "home") as session:
        session.window.acts["new"].trigger()
        (dialog,) = await settled(_open)
        assert isinstance(dialog, StartDialog)
        found = []
        for kind in startable():
            dialog.form.choose(kind)
            dialog.ask()
            found += await found_in(dialog, f"{kind}, nothing given")
        dialog.tabs.setCurrentIndex(JSON)
        for text in (*BROKEN, json.dumps(WRONG)):
            dialog.json.text.setPlainText(text)
            dialog.ask()
            found += await found_in(dialog, text)
        dialog.tabs.setCurrentIndex(FORM)
        found += await found_in(dialog, "all that is wrong, in its place")
        assert dialog.banner.isVisible()
        dialog.close()
        assert not found, told(found)


async def test_why_something_failed_is_told_in_german(german: None, tmp_path: Path) -> None:
    fill(tmp_path / "home")
    async with opened(tmp_path / "home") as session:
        window, found = session.window, []
        window.resize(1400, 900)
        (tabs,) = window.details.findChildren(QTabWidget)[:1]
        for number in (*range(1, len(REASONS) + 1), 8, 9):
            window.table.select_ids([task_id(number)])
            for at in filter(tabs.isTabVisible, range(tabs.count() if number in (1, 8) else 2)):
                tabs.setCurrentIndex(at)
                found += await found_in(window, f"task {number}, tab {at}")
        for error in (
            LedgerWriteFailed(reason="No space left on device", path="/l"),
            LedgerUnusable(path="/l", reason="this folder may not be read by you"),
            LockTimeout(task_id="1", waited_s=15),
            NothingTaken(reason="the server did not answer"),
        ):
            window.trouble.show_error(error)
            found += await found_in(window.banner, error.code)
        for text in ("stat:failed", "status:fail", "took:soon", "(", 'a"', "host:"):
            window.filter_bar.set_text(text)
            found += await found_in(window.filter_bar, text)
        assert not found, told(found)


async def test_a_result_is_shown_in_german(german: None, tmp_path: Path) -> None:
    fill(tmp_path / "home")
    async with opened(tmp_path / "home") as session:
        session.window.table.select_ids([task_id(1)])
        session.window.acts["open_result"].trigger()
        (viewer,) = await settled(lambda: session.window.findChildren(ResultWindow))
        await settled(lambda: viewer.pages.model.total and not viewer.pages.is_reading)
        found = []
        for at in range(viewer.tabs.count()):
            viewer.tabs.setCurrentIndex(at)
            found += await found_in(viewer, viewer.tabs.tabText(at))
        viewer.close()
        assert not found, told(found)


async def test_an_html_report_is_in_german_and_data_in_english(
    german: None, tmp_path: Path
) -> None:
    head = {"total_pages": 2, "duration_ms": 89_218, "stopped_by": "max_pages"}
    folder = put_task(tmp_path / "home", 1)
    put_pages(folder, page(0), page(1, error="Blocked by robots.txt"))
    (folder / "result.json").write_text(json.dumps({"summary": head}))
    async with opened(tmp_path / "home") as session:
        written = {}
        view = session.window.model.view_of(task_id(1))
        assert view is not None
        for form in ("html", "json"):
            wanted = Wanted((view,), "")
            dialog = ExportDialog(session.window.desk, wanted, session.window)
            dialog.show()
            dialog.choose(form)
            dialog.export_to(tmp_path / f"a.{form}")
            await settled(dialog.folder.isVisible)
            written[form] = (tmp_path / f"a.{form}").read_text()
            dialog.close()
        lines = re.sub("<style>.*</style>|<[^>]+>", "\n", written["html"], flags=re.DOTALL)
        assert not [line for line in lines.splitlines() if english_in(line)]
        for text in ('<html lang="de">', "Fertig", "Seiten insgesamt", "89,2 s", "Titel"):
            assert text in written["html"], text
        assert "Everything that the task kept." in written["json"]


async def test_the_list_of_tasks_is_a_german_report(german: None, tmp_path: Path) -> None:
    put_task(tmp_path / "home", 1)
    async with opened(tmp_path / "home") as session:
        view = session.window.model.view_of(task_id(1))
        assert view is not None
        order = Order("", "html", language="de")
        place = tmp_path / "list.html"
        await session.bridge.engine.exports.list_to_file((view,), order, place)
        written = place.read_text()
        assert "<h1>Aufgaben</h1>" in written
        assert "<p>1 Zeile</p>" in written
        assert ">tasks<" not in written


def test_notes_of_exports_are_told_in_german_and_what_others_say_is_not_mixed() -> None:
    told = texts("de").told
    ended = ENGLISH["export.partial.ended"].format(status="CANCELLED")
    assert "„Abgebrochen“" in told(ended)
    assert "„Wohin“" in told(ENGLISH["export.partial.live"].format(status="Wohin"))
    for theirs in ("The query returned no rows", "Differences"):
        assert told(theirs) == theirs


def test_english_sentences_are_known_from_german_ones_and_from_data() -> None:
    for text in (
        "is not there",
        "It has ended",
        "must be one of a, b",
        "the server did not answer",
    ):
        assert english_in(text), text
    for text in ("Es ist nicht da", "status:failed OR kind:crawl", "page timeout", "Was es war"):
        assert not english_in(text), text
