"""Going through the tasks that need a person: to the next one, and marking what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from engine.model.status import reasons, seen
from gui.commands.acknowledged import Acknowledged

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

FILE_NAME = "acknowledged.json"
_AT_ONCE = 100
_MOST_LOOKED_AT = 500  # tasks, to say which way the action goes


def attach(window: MainWindow) -> Attending:
    """Add the actions, and show as seen what was acknowledged before."""
    return Attending(window)


class Attending(QObject):
    """`A` marks what the chosen tasks need as seen, in this window only; once more takes it
    back. What needs a person anew shows again by itself."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._model, self._scope = window, window.model, window.scope
        self.acknowledged = Acknowledged(window.memory.folder / FILE_NAME, self)
        window.close_wanted.connect(self.acknowledged.save)
        window.beside.renamed.connect(self.acknowledged.move)
        self._model.acknowledge(self.acknowledged.marks, ())
        self._left: list[str] = []
        self._back = False
        self._slices = QTimer(self, interval=0)
        self._slices.timeout.connect(self._go_on)
        acts = window.acts
        self._act = acts.add("acknowledge", "", ["A"], "acknowledge", self.tr("Acknowledge"))
        self._act.triggered.connect(lambda _=False: self.acknowledge())
        forward = acts.add("next_attention", self.tr("Ne&xt that needs attention"), ["N"])
        back = acts.add("last_attention", self.tr("Pre&vious that needs attention"), ["Shift+N"])
        forward.triggered.connect(lambda _=False: self._step(1))
        back.triggered.connect(lambda _=False: self._step(-1))
        acts.keep_to(window.table, "acknowledge", "next_attention", "last_attention")
        self._scope.changed.connect(self._show_ability)
        self._model.counts_changed.connect(lambda _: self._show_ability())
        self._show_ability()

    def acknowledge(self) -> None:
        """Mark the needs of the chosen tasks as seen; if all are already, as not seen."""
        rows = list(filter(None, map(self._model.row_by_id, self._scope.ids())))
        needy = [row.task_id for row in rows if row.needs]
        self._back = not needy
        self._left += needy or [row.task_id for row in rows if row.quiet]
        self._go_on()

    def _go_on(self) -> None:
        """Mark some of what is left to be marked: thousands would hold up the window."""
        part, self._left = self._left[:_AT_ONCE], self._left[_AT_ONCE:]
        for task_id in part:
            self._mark(task_id)
        self._model.acknowledge(self.acknowledged.marks, part)
        if self._left:
            self._slices.start()
        else:
            self._slices.stop()

    def _mark(self, task_id: str) -> None:
        view = self._model.view_of(task_id)
        if self._back or view is None:
            self.acknowledged.drop(task_id)
            return
        found = reasons(view, self._model.now_ms(), self._model.stall_after_ms(task_id))
        self.acknowledged.add(task_id, [seen(view, reason) for reason in found])

    def _step(self, by: int) -> None:
        self._window.table.step_attention(by)
        self._window.table.setFocus()

    def _show_ability(self) -> None:
        ids = self._scope.ids()[:_MOST_LOOKED_AT]
        rows = [row for row in map(self._model.row_by_id, ids) if row is not None]
        needy, quiet = any(row.needs for row in rows), any(row.quiet for row in rows)
        back = quiet and not needy
        self._act.setText(self.tr("Not ac&knowledged") if back else self.tr("Ac&knowledge"))
        self._act.setEnabled(needy or quiet or len(self._scope) > _MOST_LOOKED_AT)
        there = self._model.counts()["attention"] > 0
        for key in ("next_attention", "last_attention"):
            self._window.acts[key].setEnabled(there)
