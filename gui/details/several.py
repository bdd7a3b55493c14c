"""Summary of several selected tasks, in place of the details: number by state."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QGridLayout, QVBoxLayout, QWidget

from engine.model.status import Standing, counted_as, standing
from engine.text import words
from gui.context.window_context import WindowContext
from gui.details.panel import Details
from gui.style.labels import LinkButton
from gui.style.theme import PlainLabel, heading, plain_label, tone
from gui.tasks.cell_painting import sign

# More single rows than this are better found with the sidebar than selected one by one.
MOST_PICKED = 2000


class Several(QWidget):
    """One line for each state of the selected tasks, with a button that selects only those."""

    def __init__(self, ctx: WindowContext, details: Details) -> None:
        super().__init__(ctx.parent)
        self._details = details
        self._ctx, self._scope = ctx, ctx.scope
        self.setVisible(False)
        self._title = heading("", self, grow=1.05)
        self._can = plain_label("", self, tone="muted", wrap=True)
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(2)
        self._lines: dict[Standing, _Line] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addWidget(self._title)
        column.addLayout(self._grid)
        column.addWidget(self._can)
        column.addStretch()
        self._grid.setColumnStretch(4, 1)
        self._scope.changed.connect(self._show)

    def _show(self) -> None:
        if len(self._scope) < 2:
            self._details.stand_in(None)
            return
        counts = self._scope.counts
        self._title.show_text(self._scope.describes())
        for place, state in enumerate(Standing):
            number = counts.states.get(state, 0)
            if number and state not in self._lines:
                self._lines[state] = _Line(state, self._grid, place)
                self._lines[state].only.clicked.connect(lambda _=False, one=state: self._pick(one))
            if state in self._lines:
                self._lines[state].show_number(number, alone=number == counts.total)
        cancel, again = words.count(counts.cancellable), words.count(counts.repeatable)
        said = self.tr("{0} can be cancelled, {1} can be run again without being asked anything.")
        said = said.format(cancel, again)
        self._can.show_text("\n".join([*self._duplicate_notes(counts.twice), said]))
        self._details.stand_in(self)

    def _duplicate_notes(self, number: int) -> Iterator[str]:
        """Explain why the lines may add up to more than the selection."""
        if number == 1:
            yield self.tr("1 stands in two lines: it was orphaned, and has ended since.")
        elif number:
            said = self.tr("{0} stand in two lines: they were orphaned, and have ended since.")
            yield said.format(words.count(number))

    def _pick(self, state: Standing) -> None:
        views = self._scope.views()
        wanted = [one.task_id for one in views if state in counted_as(one, standing(one))]
        self._ctx.table.select_ids(wanted)
        self._ctx.table.setFocus()


class _Line:
    """Icon, number, state, and a button that selects only these."""

    def __init__(self, state: Standing, grid: QGridLayout, place: int) -> None:
        self._state = state
        self._sign, self._number = _Sign(state), plain_label("")
        self._number.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        word = QApplication.translate("Several", "In another state")
        self._word = plain_label(
            word if state is Standing.UNKNOWN else words.say(f"status.{state.value}")
        )
        self.only = LinkButton(QApplication.translate("Several", "Only these"))
        for column, part in enumerate((self._sign, self._number, self._word, self.only)):
            grid.addWidget(part, place, column)

    def show_number(self, number: int, *, alone: bool) -> None:
        self._number.show_text(words.count(number))
        for part in (self._sign, self._number, self._word):
            part.setVisible(number > 0)
        self.only.setVisible(0 < number <= MOST_PICKED and not alone)
        name = QApplication.translate("Several", "Select only the {0} that are: {1}")
        self.only.setAccessibleName(name.format(words.count(number), self._word.text()))


class _Sign(PlainLabel):
    """Icon of a state in the theme's colour."""

    def __init__(self, state: Standing) -> None:
        super().__init__()
        self._state = state
        self._draw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        colour = tone(self._state.value, QApplication.palette())
        self.setPixmap(sign(self._state.value, colour, self.devicePixelRatioF()))
