"""Head of the Overview: the target address, and progress as a bar over the whole width."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QApplication, QMenu, QSizePolicy, QWidget

from engine.model.records import TaskRecord, TaskView
from engine.model.status import look
from engine.text import words
from gui.style.questions import open_in_browser
from gui.style.theme import tone
from gui.style.widgets import ElidedLink
from gui.tasks.cell_painting import Part, bar_colours, paint_progress
from gui.tasks.row import share_of

_PAD = 12  # pixels of the bar above and below its text, together


class TargetLink(ElidedLink):
    """The address that a task works on; a click opens it in the browser. Hidden without one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._address = ""
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)
        self.clicked.connect(lambda: open_in_browser(self._address))
        self.hide()

    def show_view(self, view: TaskView) -> None:
        """Show the target of this task."""
        entry = view.entry
        url = entry.url if isinstance(entry, TaskRecord) else ""
        self._address = url if url.startswith(("http://", "https://")) else ""
        self.show_text(words.bare_address(self._address))
        self.setVisible(bool(self._address))

    def _open_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction(self.tr("Copy address"))
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(self._address))
        opened = menu.addAction(self.tr("Open in browser"))
        opened.triggered.connect(lambda: open_in_browser(self._address))
        menu.popup(self.mapToGlobal(at))


class ProgressBand(QWidget):
    """Progress in words on a bar of the state's colour. Hidden while no unit is known."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text, self._part, self._state = "", Part(None), ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_view(self, view: TaskView, speed: str) -> None:
        """Show the progress of this task, with its rate and time left in `speed`."""
        entry, units = view.entry, view.units
        if units is None or not isinstance(entry, TaskRecord):
            self.text = ""
            self.hide()
            return
        said = words.progress_spoken(entry.kind, units)
        self.text = f"{said} · {speed}" if speed else said
        share = share_of(units, entry.is_live)
        failed = units.failed / units.total if units.total else 0.0
        self._part = Part(share if share >= 0 else None, failed, entry.is_live)
        self._state = look(view)
        self.setAccessibleName(self.text)
        self.show()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self.fontMetrics().height() + _PAD)

    def paintEvent(self, _: QPaintEvent) -> None:
        painter, palette = QPainter(self), QApplication.palette()
        ink = palette.color(QPalette.ColorRole.WindowText)
        colours = bar_colours(tone(self._state, palette), tone("bad", palette), ink)
        paint_progress(painter, QRectF(self.rect()), self.text, self._part, colours, margin=0)
        painter.end()
