"""A folder of tasks beside the window's own: added by hand or by a drop, and changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, QObject

from engine.model.display import display
from engine.service.engine import Engine
from engine.service.router.connection_state import Beside
from gui.ledgers.open_ledgers import MOST

if TYPE_CHECKING:
    from engine.service.router.folder_check import Found
    from gui.window.main_window import MainWindow


def attach(window: MainWindow) -> LedgerActions:
    """Add the actions."""
    return LedgerActions(window)


class LedgerActions(QObject):
    """Owns the dialogs about ledgers beside. What looks at a disk does it in a thread."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._beside = window, window.beside
        text, short = self.tr("Add a folder of tasks &beside this one…"), self.tr("Add a folder…")
        act = window.acts.add("add_root", text, ["Ctrl+Shift+B"], "folder", short)
        act.triggered.connect(self.ask_for_one)
        self._beside.add_wanted.connect(self.ask_for_one)
        self._beside.change_wanted.connect(self.ask_to_change)

    def ask_for_one(self) -> None:
        """Ask for a folder, and what it is to be called."""
        from gui.style.folders import ask_folder

        start = str(Path(self._window.bridge.look_at_health().root).parent)
        ask_folder(self._window, self.tr("Add a folder of tasks"), start, self.ask_to_add)

    def ask_to_add(self, folder: Path) -> None:
        """Look at this folder, and ask what it is to be called."""
        if len(self._beside.states) >= MOST:
            title = self.tr("There is no room for another ledger")
            most = self.tr("At most {0} can stand beside the window’s own.").format(MOST)
            self._window.news_bar.tell(title, most)
            return
        own = Path(self._window.bridge.look_at_health().root)
        others = [own, *(one.path for one in self._beside.states)]

        async def look(_: Engine) -> Found:
            from engine.service.router.folder_check import look_at

            return await asyncio.to_thread(look_at, folder, others)

        self._window.bridge.ask(look, self._ask_how, name="look at a ledger")

    def ask_to_change(self, label: str) -> None:
        """Ask what this ledger is to be called, and whether it is only watched."""
        state = self._beside.state_of(label)
        if state is None:
            return
        from gui.ledgers.ledger_dialog import LedgerCard

        card = LedgerCard(state.beside, self._beside.labels - {label}, self._window)
        card.ask_to_change(visits=self._beside.visits(label))

        def change(wanted: Beside) -> None:
            self._beside.change(label, wanted, keep=card.keep.isChecked())

        card.when_chosen(change)

    def take_drop(self, mime: QMimeData, otherwise: Callable[[], object]) -> None:
        """If one folder with tasks was dropped, ask what is meant; else do `otherwise`."""
        urls = mime.urls()
        if len(urls) != 1 or not urls[0].isLocalFile():
            otherwise()
            return
        folder = Path(urls[0].toLocalFile())

        async def look(_: Engine) -> Path | None:
            from engine.service.router.folder_check import ledger_at

            return await asyncio.to_thread(ledger_at, folder)

        def then(found: Path | None) -> None:
            if found is None:
                otherwise()
            else:
                self._ask_what_is_meant(found)

        self._window.bridge.ask(look, then, name="look at what was dropped")

    def _ask_how(self, found: Found) -> None:
        from gui.ledgers.ledger_dialog import LedgerCard

        beside = Beside(found.path, self._beside.free_label(found.path))
        card = LedgerCard(beside, self._beside.labels, self._window)
        card.ask_to_add(Path(self._window.bridge.look_at_health().root), found.tasks)
        card.when_chosen(self._beside.add)

    def _ask_what_is_meant(self, folder: Path) -> None:
        from gui.style.question import Question

        question = Question(self._window)
        question.ask(self.tr("A folder of tasks"), self.tr("How shall these tasks be shown?"))
        question.add_text(display(str(folder)), "muted")
        instead = self.tr(
            "Instead of this one: this window leaves its own folder; what runs here ends as when "
            "the window is closed."
        )
        beside = self.tr("Beside this one: its tasks stand in the same list.")
        question.add_text(f"{beside}\n{instead}")
        question.add_button("", self.tr("Cancel"))
        question.add_button("instead", self.tr("Instead of this one"))
        question.add_button("beside", self.tr("Beside this one"), default=True)
        question.answer = ""  # Esc means neither
        acts = {"beside": self.ask_to_add, "instead": self._window.folder_wanted.emit}

        def act(answer: str) -> None:
            question.deleteLater()
            if answer:
                acts[answer](folder)

        question.when_answered(act)
        question.open()
