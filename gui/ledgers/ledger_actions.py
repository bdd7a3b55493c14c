"""Actions for additional ledgers: add one, change one, explain what a read-only one forbids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QMimeData, QObject, Qt
from PySide6.QtWidgets import QCheckBox, QPushButton, QVBoxLayout, QWidget

from engine.model.display import display
from engine.model.ledger_ids import HERE, LONGEST, is_label
from engine.service.engine import Engine
from engine.service.router.ledger_paths import Beside
from gui.context.open_ledgers import MOST
from gui.context.window_context import WindowContext
from gui.i18n.ledger_names import number_of_tasks
from gui.style.editors import NameLine
from gui.style.question import Question
from gui.style.theme import TonedLabel, plain_label

if TYPE_CHECKING:
    from engine.service.router.ledger_paths import Found


# Dialog with label and read-only switch of a ledger, for adding and changing.

WIDTH = 520
_FIELD_HEIGHT = 28


class LedgerCard(Question):
    """Dialog for one additional ledger; `taken` are the labels of the others."""

    def __init__(
        self, beside: Beside, taken: Collection[str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._path, self._taken = beside.path, frozenset(taken)
        self.label = NameLine(beside.label, self)  # a refused label can be corrected at once
        self.label.setMaxLength(LONGEST)
        self.label.setMinimumHeight(_FIELD_HEIGHT)
        self.label.setAccessibleName(self.tr("What the ledger is called in this window"))
        self.watch_only = QCheckBox(self.tr("&Only watch: change nothing in it"), self)
        self.watch_only.setChecked(beside.watch_only)
        self.keep = QCheckBox(self.tr("&Show it at the next start as well, as chosen here"), self)
        self.keep.hide()
        self._note = TonedLabel("", "bad", self)
        self._note.setWordWrap(True)

    def ask_to_add(self, own_root: Path, tasks: int) -> None:
        """Set up for adding a ledger with `tasks` tasks to the one at `own_root`."""
        self.ask(self.tr("Add a folder of tasks"), self.tr("Show these tasks beside the others?"))
        self.add_text(self.tr("{0} ({1})").format(self._path, number_of_tasks(tasks)))
        if not tasks:
            self.add_text(self.tr("There are no tasks in it yet."), "warning")
        self._lay_out()
        words = self.tr("New tasks still start in {0}. Adding this folder changes nothing in it.")
        self.add_text(words.format(own_root), "muted")
        self._end_with(self.tr("Add"))

    def ask_to_change(self, *, visits: bool = False) -> None:
        """Set up for changing a ledger; `visits`: it is shown only until the window closes."""
        self.ask(self.tr("Change a ledger"), self.tr("How this ledger is shown"))
        self.add_text(str(self._path), "muted")
        self._lay_out()
        if visits:
            self.add_text(self.tr("It is shown until this window is closed."), "muted")
            self.body.addWidget(self.keep)
            self.keep.show()
        self._end_with(self.tr("Change"))

    def when_chosen(self, act: Callable[[Beside], object]) -> None:
        """Open the dialog, and call `act` with the choice unless it is cancelled."""

        def end(answer: str) -> None:
            self.deleteLater()
            if answer:
                act(self.chosen)

        self.when_answered(end)
        self.open()

    @property
    def chosen(self) -> Beside:
        """The ledger with the chosen label and switch."""
        return Beside(self._path, self._called, self.watch_only.isChecked())

    def _lay_out(self) -> None:
        name = plain_label(self.tr("&Label"), self)
        name.setBuddy(self.label)
        form = QVBoxLayout()
        form.setSpacing(4)
        for part in (name, self.label, self._note):
            form.addWidget(part)
        form.addSpacing(6)
        form.addWidget(self.watch_only)
        self.body.addLayout(form)

    def _end_with(self, verb: str) -> None:
        self.add_button("", self.tr("Cancel"))
        self._ok: QPushButton = self.add_button("ok", verb, default=True)
        self.answer = ""  # Esc changes nothing
        self.label.returnPressed.connect(self._ok.click)
        self.label.textChanged.connect(lambda _: self._judge())
        self._judge()
        self.label.setFocus(Qt.FocusReason.OtherFocusReason)
        self.label.selectAll()

    def _judge(self) -> None:
        trouble = self._trouble()
        self._ok.setEnabled(not trouble)
        self._note.show_text(trouble)
        self._note.setVisible(bool(trouble))

    @property
    def _called(self) -> str:
        return self.label.text().strip().lower()

    def _trouble(self) -> str:
        """Return the error of the label; "" if it is valid."""
        label = self._called
        if not label:
            return self.tr("A ledger needs a label.")
        if label == HERE:
            return self.tr("“{0}” is what the window’s own ledger is called.").format(HERE)
        if label in self._taken:
            return self.tr("Another ledger is called “{0}”.").format(display(label))
        if not is_label(label):
            return self.tr("Use small letters, digits and hyphens, and begin with no hyphen.")
        return ""


class LedgerActions(QObject):
    """Owner of the dialogs about additional ledgers; disk access runs in a thread."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._beside = ctx, ctx.ledgers
        text, short = self.tr("Add a folder of tasks &beside this one…"), self.tr("Add a folder…")
        act = ctx.actions.add("add_root", text, ["Ctrl+Shift+B"], "folder", short)
        act.triggered.connect(self.ask_for_one)
        ctx.services.wishes.dropped.connect(self.take_drop)
        self._beside.add_wanted.connect(self.ask_for_one)
        self._beside.change_wanted.connect(self.ask_to_change)

    def ask_for_one(self) -> None:
        """Choose a folder, then ask for its label."""
        from gui.style.folders import ask_folder

        start = str(Path(self._ctx.bridge.look_at_health().root).parent)
        ask_folder(self._ctx.parent, self.tr("Add a folder of tasks"), start, self.ask_to_add)

    def ask_to_add(self, folder: Path) -> None:
        """Examine this folder, then ask for its label."""
        if len(self._beside.states) >= MOST:
            title = self.tr("There is no room for another ledger")
            most = self.tr("At most {0} can stand beside the window’s own.").format(MOST)
            self._ctx.news_bar.tell(title, most)
            return
        own = Path(self._ctx.bridge.look_at_health().root)
        others = [own, *(one.path for one in self._beside.states)]

        async def look(_: Engine) -> Found:
            from engine.service.router.ledger_paths import look_at

            return await asyncio.to_thread(look_at, folder, others)

        self._ctx.bridge.ask(look, self._ask_label, name="look at a ledger")

    def ask_to_change(self, label: str) -> None:
        """Open the dialog for label and read-only switch of this ledger."""
        state = self._beside.state_of(label)
        if state is None:
            return
        card = LedgerCard(state.beside, self._beside.labels - {label}, self._ctx.parent)
        card.ask_to_change(visits=self._beside.visits(label))

        def change(wanted: Beside) -> None:
            self._beside.change(label, wanted, keep=card.keep.isChecked())

        card.when_chosen(change)

    def take_drop(self, mime: QMimeData, otherwise: Callable[[], object]) -> None:
        """Ask how to show a dropped folder with tasks; call `otherwise` for other drops."""
        urls = mime.urls()
        if len(urls) != 1 or not urls[0].isLocalFile():
            otherwise()
            return
        folder = Path(urls[0].toLocalFile())

        async def look(_: Engine) -> Path | None:
            from engine.service.router.ledger_paths import ledger_at

            return await asyncio.to_thread(ledger_at, folder)

        def then(found: Path | None) -> None:
            if found is None:
                otherwise()
            else:
                self._ask_how_to_show(found)

        self._ctx.bridge.ask(look, then, name="look at what was dropped")

    def _ask_label(self, found: Found) -> None:
        beside = Beside(found.path, self._beside.free_label(found.path))
        card = LedgerCard(beside, self._beside.labels, self._ctx.parent)
        card.ask_to_add(Path(self._ctx.bridge.look_at_health().root), found.tasks)
        card.when_chosen(self._beside.add)

    def _ask_how_to_show(self, folder: Path) -> None:
        from gui.style.question import Question

        question = Question(self._ctx.parent)
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
        question.answer = ""  # Esc does neither
        acts = {"beside": self.ask_to_add, "instead": self._ctx.open_folder}

        def act(answer: str) -> None:
            question.deleteLater()
            if answer:
                acts[answer](folder)

        question.when_answered(act)
        question.open()


CHANGES: Final = (
    *("cancel", "stop", "force_stop", "force", "resume"),
    *("delete", "delete_for_good"),
)
MOST_LOOKED_AT: Final = 500


class WatchOnly(QObject):
    """Explain disabled actions only: a selection may contain tasks of other ledgers."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        ctx.scope.changed.connect(self._explain)
        ctx.ledgers.changed.connect(self._explain)

    def _explain(self) -> None:
        reason, acts = self._reason(), self._ctx.actions
        keys = [key for key in CHANGES if not acts[key].isEnabled()] if reason else []
        acts.explain(dict.fromkeys(keys, reason))

    def _reason(self) -> str:
        """Return why the first read-only task of the selection cannot be changed, or ""."""
        ctx = self._ctx
        if not ctx.ledgers.states:
            return ""
        chosen = map(ctx.model.view_of, ctx.scope.ids()[:MOST_LOOKED_AT])
        locked = (view for view in chosen if view and not ctx.scope.may_change(view))
        view = next(locked, None)
        state = ctx.ledgers.state_of(view.ledger) if view is not None else None
        if state is None:
            return ""
        words = self.tr("“{0}” is only watched: nothing is changed in {1}.")
        return words.format(state.label, display(str(state.path)))
