"""What comes to a window from outside: another start's wish, a link, a file from the desktop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMetaMethod, QObject, QTimer, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from engine.model.errors import TaskNotFound
from gui.desktop.launch_request import Wish

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

PATIENCE_MS = 5000  # for a task that may be in a ledger beside, which is still being read


class Opener(QApplication):
    """An application that hears what the desktop asks of it.

    `asked` carries an address to open (macOS does it this way); `told_to_quit` is a log-out, or
    Quit in the dock.
    """

    asked = Signal(str)
    told_to_quit = Signal()

    def event(self, event: QEvent) -> bool:
        # overridden, not an event filter: a filter would be asked about every event there is
        if isinstance(event, QFileOpenEvent):
            self.asked.emit(event.url().toString())
            return True
        heard = self.isSignalConnected(QMetaMethod.fromSignal(self.told_to_quit))
        if event.type() == QEvent.Type.Quit and heard:
            # Qt would close every window, and ours do not close before their work has ended;
            # ignored, because macOS would end the process as soon as this returns
            event.ignore()
            self.told_to_quit.emit()
            return True
        return super().event(event)


class Arrivals(QObject):
    """Grants wishes: shows a task as soon as the list is read, opens dialogs, runs nothing."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._awaited: tuple[str, ...] = ()
        self._read = False
        self._to_open = Wish()
        self._opened = False
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._give_up)
        window.loaded.connect(self._end_reading)
        window.bridge.opened.connect(self._open)

    def take(self, wish: Wish) -> None:
        """Do what was asked for; tasks may have to wait until the list is read."""
        if wish.beside:
            self._window.beside.visit(map(Path, wish.beside))
        if wish.strange:
            self._say(self.tr("This cannot be opened"), wish.strange)
        if wish.tasks:
            self._awaited = wish.tasks
            self._show_tasks()
        self._to_open = Wish(urls=wish.urls, files=wish.files)
        if self._opened:
            self._open()

    def show_tasks(self, task_ids: tuple[str, ...]) -> bool:
        """Select these tasks, past a filter that hides them; False when none is in the list.

        An id without a ledger means the task wherever it is, best in the window's own ledger.
        """
        window = self._window
        known = list(filter(None, map(window.beside.id_in_list, task_ids)))
        if not known:
            return False
        if any(window.model.row_of(one) < 0 for one in known):
            window.clear_filter()
        window.table.select_ids(known)
        window.table.setFocus()
        window.acts["details"].setChecked(True)
        return True

    def _show_tasks(self) -> None:
        if not self._awaited:
            return
        if self.show_tasks(self._awaited):
            self._awaited = ()
        elif self._read and not self._window.beside.states:
            self._give_up()
        elif self._read and not self._patience.isActive():
            self._patience.start()  # no other ledger holds the list up: it may come from there

    def _give_up(self) -> None:
        if self._awaited:
            task_id, self._awaited = self._awaited[0], ()
            root = self._window.beside.title(self._window.bridge.look_at_health().root)
            self._window.trouble.show_missing(TaskNotFound(task_id=task_id, root=root))

    def _end_reading(self) -> None:
        self._read = True
        self._show_tasks()

    def _open(self) -> None:
        """Show what may be started, once the ledger can take it."""
        self._opened = True
        wish, self._to_open = self._to_open, Wish()
        if not wish.urls and not wish.files:
            return
        if not self._window.acts["new"].isEnabled():
            self._say(self.tr("Nothing new can be started here"), (*wish.urls, *wish.files))
            return
        starting = self._window.requests.starting
        if wish.files:
            starting.open_path(Path(wish.files[0]))
        elif len(wish.urls) == 1:
            starting.new_task({"url": wish.urls[0]})
        else:
            starting.open_list("\n".join(wish.urls))
        if more := wish.files[1:] + (wish.urls if wish.files else ()):
            self._say(self.tr("One at a time: open these again"), more)

    def _say(self, title: str, words: tuple[str, ...]) -> None:
        self._window.news_bar.tell(title, "\n".join(words), tone_name="warning")
