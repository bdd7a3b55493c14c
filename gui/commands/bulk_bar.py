"""Bar below the list with the number of selected tasks and their actions."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QToolButton, QWidget

from engine.text.words import count
from gui.commands.bulk_work import Reports
from gui.commands.copy_rows import Copying
from gui.context.window_context import WindowContext
from gui.style.accessibility import announce
from gui.style.icons import icon
from gui.style.labels import LinkButton
from gui.style.theme import plain_label, plain_tip

KEYS = ("cancel", "rerun", "acknowledge", "export_tasks")
FROM = 2  # Fewer tasks are covered by the toolbar


class BulkBar(QWidget):
    """`42 selected tasks · Select all 214 that match │ Cancel 30 │ Re-run 12 │ Export…`"""

    _whole = ""  # The full text before elision

    def __init__(self, ctx: WindowContext, copying: Copying, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._reports = reports
        self._ctx = ctx
        self._scope, self._model = ctx.scope, ctx.model
        self.setAccessibleName(self.tr("What to do with the selected tasks"))
        self._said = plain_label(parent=self)
        self._said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.all = LinkButton("", self)
        self.all.clicked.connect(ctx.table.selectAll)
        self.buttons: dict[str, QPushButton] = {}
        self._none = QToolButton(self)
        self._none.setAutoRaise(True)
        self._none.setIcon(icon("close"))
        self._none.setAccessibleName(self.tr("Select nothing"))
        self._none.setToolTip(self._none.accessibleName())
        self._none.clicked.connect(ctx.table.clearSelection)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(4, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addWidget(self._said, 1)
        self._row.addWidget(self.all)
        self._row.addWidget(self._none)
        self._scope.changed.connect(self._show)
        self._model.shown_changed.connect(lambda *_: self._show())
        copying.copied.connect(self._tell_copied)
        self.setVisible(False)

    def _show(self) -> None:
        several = len(self._scope) >= FROM
        if several:
            self._make_buttons()
            self._name()
        if several == self.isHidden():
            self.setVisible(several)

    def _name(self) -> None:
        said = self._scope.describes()
        if said != self._whole:
            self._whole = said
            self._fit()
            # The list itself announces single selected rows.
            if self._scope.matching:
                announce(self, said)
        shown = self._model.rowCount()
        self.all.setVisible(not self._scope.matching)
        whole = self.tr("Select all {0} that match")
        text = whole if self._model.is_filtered else self.tr("Select all {0}")
        self.all.setText(text.format(count(shown)))
        for key, button in self.buttons.items():
            button.setText(self._text(key))
            button.setEnabled(self._ctx.actions[key].isEnabled())

    def _fit(self) -> None:
        """Elide the text to the room, and keep the full text as tool tip and accessible name."""
        metrics, room = self._said.fontMetrics(), self._said.width()
        shown = metrics.elidedText(self._whole, Qt.TextElideMode.ElideRight, room)
        self._said.show_text(shown)
        self._said.setAccessibleName(self._whole)
        self._said.setToolTip(plain_tip(self._whole) if shown != self._whole else "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._row.activate()  # The label gets its new width only then
        self._fit()

    def _tell_copied(self, rows: int) -> None:
        """Report a finished copy of many rows, which takes a while."""
        if rows >= FROM:
            self._reports.say(self.tr("{0} rows copied.").format(count(rows)))

    def _text(self, key: str) -> str:
        counts = self._scope.counts
        if key == "cancel":
            return self.tr("Cancel {0}").format(count(counts.cancellable))
        if key == "rerun":
            # When none can start, the dry run explains why.
            number = counts.repeatable
            return self.tr("Re-run {0}").format(count(number)) if number else self.tr("Re-run…")
        return self._ctx.actions[key].iconText()

    def _make_buttons(self) -> None:
        """Create the buttons when the bar is first shown, after all parts added their actions."""
        if self.buttons:
            return
        for key in (key for key in KEYS if key in set(self._ctx.actions)):
            action = self._ctx.actions[key]
            button = self.buttons[key] = QPushButton(self)
            button.clicked.connect(action.trigger)
            action.changed.connect(lambda: self._name() if self.isVisible() else None)
            self._row.insertWidget(self._row.count() - 1, button)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._none.setIcon(icon("close"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return to the list on Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self._ctx.table.setFocus()
        else:
            super().keyPressEvent(event)
