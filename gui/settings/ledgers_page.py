"""Settings page of the window's own ledger and of further ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QHeaderView, QTreeWidget, QTreeWidgetItem, QVBoxLayout

from engine.model.display import display
from engine.model.errors import EngineError
from engine.service.router.connection_state import Beside, LedgerState
from engine.text import words
from engine.text.catalogue import retold
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.i18n.ledger_names import state_word
from gui.settings.setting_parts import WidePart
from gui.style.completion_popup import Roomy
from gui.style.theme import plain_label, plain_tip

if TYPE_CHECKING:
    from engine.doctor import Finding
    from engine.model.records import Health
    from engine.service.engine import Engine

LABEL = Qt.ItemDataRole.UserRole
PATH = Qt.ItemDataRole.UserRole + 1  # The folder identifies a ledger across a change of its label
LIST_HEIGHT: Final = 170
_SIGNS: Final = {"ok": "✓", "warning": "⚠", "problem": "✖"}
_TONES: Final = {"ok": "good", "warning": "warning", "problem": "bad"}


class LedgersPart(WidePart):
    """List of ledgers whose changes apply immediately; folders are never changed here."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._beside = ctx.ledgers
        self._filling = False
        self._shown: tuple[object, ...] = ()
        self._chosen = ""  # Selected folder, since a renamed ledger is removed and added again
        self.list = self._make_list()
        self._add_ = self.add(self.tr("Add a folder…"))
        self._change = self.add(self.tr("Change…"))
        self._test = self.add(self.tr("Test"))
        self._remove = self.add(self.tr("Remove"))
        self.fill_up()
        self.watch_only = QCheckBox(
            self.tr("Only watch the chosen one: change nothing in it"), self
        )
        self._lay_out()
        self._connect()
        self.refresh()

    def _make_list(self) -> QTreeWidget:
        made = QTreeWidget(self)
        made.setRootIsDecorated(False)
        made.setUniformRowHeights(True)
        made.setItemDelegate(Roomy(made))
        tr = self.tr
        titles = (tr("Label"), tr("Folder"), tr("State"), tr("Tasks"), tr("Changes"))
        made.setHeaderLabels(list(titles))
        made.setAccessibleName(self.tr("Ledgers of this window"))
        made.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        made.setMinimumHeight(LIST_HEIGHT)
        header = made.header()
        header.setStretchLastSection(False)
        for at in range(made.columnCount()):
            header.setSectionResizeMode(at, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        return made

    def _lay_out(self) -> None:
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        lead = self.tr("The tasks of all these folders stand in one list.")
        stays = self.tr(
            "Removing a ledger only takes it out of this window: its folder, and everything in "
            "it, stays as it is."
        )
        column.insertWidget(0, plain_label(lead, self, wrap=True))
        column.insertWidget(1, self.list)
        column.insertWidget(3, self.watch_only)
        column.addWidget(plain_label(stays, self, tone="muted", wrap=True))

    def _connect(self) -> None:
        self.list.currentItemChanged.connect(lambda *_: self._show_chosen())
        self.watch_only.toggled.connect(self._tick)
        self.list.itemActivated.connect(lambda *_: self._change.click())
        self._add_.clicked.connect(self._beside.add_wanted)
        self._change.clicked.connect(lambda: self._beside.change_wanted.emit(self._label))
        self._test.clicked.connect(self._look)
        self._remove.clicked.connect(self._take_away)
        self._beside.changed.connect(self.refresh)
        # Connected to a method, because a lambda would outlive the page.
        self.ctx.bridge.health.connect(self.refresh)

    def terms(self) -> list[str]:
        paths = [str(one.path) for one in self._beside.states]
        return [*paths, self.tr("root"), self.tr("Label")]

    def refresh(self) -> None:
        """Update the list and keep the selection."""
        health, number = self.ctx.bridge.look_at_health(), self._beside.own_tasks
        shown = (self._beside.states, health.root, health.watcher, number)
        # Without a change the items stay, because the user may be about to click one.
        if shown == self._shown:
            return
        self._filling, self._shown = True, shown
        self.list.clear()
        self.list.addTopLevelItem(self._own_item(health, number))
        for state in self._beside.states:
            self.list.addTopLevelItem(self._item(state))
        for at in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(at)
            if item is not None and item.data(0, PATH) == self._chosen:
                self.list.setCurrentItem(item)
        self._filling = False
        self._show_ability()

    def _own_item(self, health: Health, number: int) -> QTreeWidgetItem:
        watching = {
            "live": self.tr("Live"),
            "polling": self.tr("Polling"),
            "gone": self.tr("Folder gone"),
            "silent": self.tr("No answer"),
        }
        state = watching.get(health.watcher, health.watcher)
        name, path = words.say("root.here"), display(health.root)
        starts = self.tr("new tasks start here")
        item = QTreeWidgetItem([name, path, state, words.count(number), starts])
        item.setData(0, LABEL, "")
        item.setData(0, PATH, "")
        return _dressed(item, path, retold(health.watcher_reason))

    def _item(self, state: LedgerState) -> QTreeWidgetItem:
        path = display(str(state.path))
        number = words.count(state.tasks)
        may = self.tr("only watched") if state.watch_only else self.tr("may be changed")
        item = QTreeWidgetItem([state.label, path, state_word(state), number, may])
        item.setData(0, LABEL, state.label)
        item.setData(0, PATH, str(state.path))
        return _dressed(item, path, retold(state.reason))

    @property
    def _label(self) -> str:
        return self._held(LABEL)

    def _held(self, role: int) -> str:
        item = self.list.currentItem()
        return str(item.data(0, role)) if item is not None else ""

    @property
    def _state(self) -> LedgerState | None:
        return self._beside.state_of(self._label) if self._label else None

    def _show_chosen(self) -> None:
        """Enable the actions for the selected ledger and show its problem."""
        self._show_ability()
        state = self._state
        if not self._filling:
            self._chosen = self._held(PATH)
            self.say(retold(state.reason) if state is not None else "", "warning")

    def _show_ability(self) -> None:
        if self._filling:
            return
        state = self._state
        beside, self._filling = state is not None, True
        self.watch_only.setChecked(state is not None and state.watch_only)
        self._filling = False
        for button in (self._change, self._test, self._remove, self.watch_only):
            button.setEnabled(beside)
            own = self.tr("Choose a ledger beside the window’s own.")
            button.setToolTip("" if beside else plain_tip(own))

    # Actions.

    def _tick(self, watch_only: bool) -> None:
        state = self._state
        if not self._filling and state is not None:
            wanted = Beside(state.path, state.label, watch_only)
            self._beside.change(state.label, wanted)

    def _take_away(self) -> None:
        state = self._state
        if state is None:
            return
        self._beside.remove(state.label)
        words_ = self.tr("“{0}” is no longer shown here. Nothing in {1} was touched.")
        self.say(words_.format(state.label, display(str(state.path))), "good")

    def _look(self) -> None:
        state = self._state
        if state is None:
            return
        self._test.setEnabled(False)
        self.say(self.tr("Looking…"))

        async def look(_: Engine) -> Sequence[Finding]:
            from engine.doctor import beside

            return await asyncio.to_thread(beside, state.path, watch_only=state.watch_only)

        self.ctx.bridge.ask(look, self._show, self._refuse, name="test a ledger")

    def _show(self, found: Sequence[Finding]) -> None:
        self._show_ability()
        worst = max((one.state for one in found), key=list(_SIGNS).index, default="ok")
        lines = [f"{_SIGNS.get(one.state, '')} {one.text} {one.advice}".strip() for one in found]
        self.say("\n".join(lines), _TONES.get(worst, "muted"))

    def _refuse(self, error: EngineError) -> None:
        self._shown = ()
        self.refresh()
        self.say(language.told(error), "bad")


def _dressed(item: QTreeWidgetItem, path: str, reason: str) -> QTreeWidgetItem:
    item.setToolTip(1, plain_tip(path))
    item.setToolTip(2, plain_tip(reason))
    item.setTextAlignment(3, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return item
