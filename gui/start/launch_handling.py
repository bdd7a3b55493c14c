"""Ways to a new task: start actions, drops, and launch requests of other processes and links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject, QTimer
from PySide6.QtGui import QKeySequence

from engine.model.errors import TaskNotFound
from engine.model.records import Health, TaskRecord
from gui.context.window_context import WindowContext
from gui.desktop.launch_request import Wish
from gui.start.starting import Starting
from gui.style.drag_and_drop import DropTarget

PATIENCE_MS = 5000  # Wait in ms for a task in a further ledger that is still loading


class LaunchHandler(QObject):
    """Handle launch requests: show tasks after loading, open dialogs, start nothing."""

    def __init__(
        self,
        ctx: WindowContext,
        starting: Starting,
        show_missing: Callable[[TaskNotFound], object],
        hide_missing: Callable[[], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._starting = ctx, starting
        self._show_missing, self._hide_missing = show_missing, hide_missing
        self._told = ""  # Title of the last report in the news bar
        self._awaited: tuple[str, ...] = ()
        self._read = False
        self._to_open = Wish()
        self._opened = False
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._give_up)
        ctx.bridge.loaded.connect(self._end_reading)
        ctx.bridge.opened.connect(self._open)
        ctx.bridge.started.connect(self._forget_troubles)

    def take(self, wish: Wish) -> None:
        """Handle a request; tasks are shown after the list is loaded."""
        self._forget_troubles()
        if wish.beside:
            self._ctx.ledgers.visit(map(Path, wish.beside))
        if wish.strange:
            self._say(self.tr("This cannot be opened"), wish.strange)
        if wish.tasks:
            self._awaited = wish.tasks
            self._show_tasks()
        self._to_open = Wish(urls=wish.urls, files=wish.files)
        if self._opened:
            self._open()

    def show_tasks(self, task_ids: tuple[str, ...]) -> bool:
        """Select these tasks and clear a filter that hides them; False when none is listed.

        An id without a ledger label matches any ledger, preferably the window's own.
        """
        ctx = self._ctx
        known = list(filter(None, map(ctx.ledgers.id_in_list, task_ids)))
        if not known:
            return False
        self._forget_troubles()
        if any(ctx.model.row_of(one) < 0 for one in known):
            ctx.clear_filter()
        ctx.table.select_ids(known)
        ctx.table.setFocus()
        ctx.actions["details"].setChecked(True)
        return True

    def _show_tasks(self) -> None:
        if not self._awaited:
            return
        if self.show_tasks(self._awaited):
            self._awaited = ()
        elif self._read and not self._ctx.ledgers.states:
            self._give_up()
        elif self._read and not self._patience.isActive():
            # Further ledgers load without delaying the list, so the task may still arrive.
            self._patience.start()

    def _give_up(self) -> None:
        if self._awaited:
            task_id, self._awaited = self._awaited[0], ()
            root = self._ctx.ledgers.title(self._ctx.bridge.look_at_health().root)
            self._show_missing(TaskNotFound(task_id=task_id, root=root))

    def _end_reading(self) -> None:
        self._read = True
        self._show_tasks()

    def _open(self) -> None:
        """Open addresses and files once the ledger accepts new tasks."""
        self._opened = True
        wish, self._to_open = self._to_open, Wish()
        if not wish.urls and not wish.files:
            return
        if not self._ctx.actions["new"].isEnabled():
            self._say(self.tr("Nothing new can be started here"), (*wish.urls, *wish.files))
            return
        self._starting.when_free(lambda: self._show_first(wish))
        if more := wish.files[1:] + (wish.urls if wish.files else ()):
            self._say(self.tr("One at a time: open these again"), more)

    def _show_first(self, wish: Wish) -> None:
        if wish.files:
            self._starting.open_path(Path(wish.files[0]))
        elif len(wish.urls) == 1:
            self._starting.new_task({"url": wish.urls[0]})
        else:
            self._starting.open_list("\n".join(wish.urls))

    def _forget_troubles(self, *_: object) -> None:
        """Hide reports of former requests, which otherwise pile up."""
        self._hide_missing()
        if self._told and self._ctx.news_bar.title == self._told:
            self._ctx.news_bar.setVisible(False)
        self._told = ""

    def _say(self, title: str, words: tuple[str, ...]) -> None:
        self._ctx.news_bar.tell(title, "\n".join(words), tone_name="warning")
        self._told = self._ctx.news_bar.title


WARM_AFTER_MS = 1500  # Delay after loading, because the list and the browser's imports come first


class StartActions(QObject):
    """Start actions, disabled while the engine accepts no tasks."""

    def __init__(self, ctx: WindowContext, starting: Starting) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._starting = ctx, starting
        self._accepts = False
        open_key = QKeySequence.StandardKey.Open
        acts = ctx.actions
        acts["open"].setShortcuts([])  # Ctrl+O opens a file, as on every desktop
        self._file = acts.add("open_file", self.tr("Open a &task file…"), [open_key])
        self._list = acts.add("list_mode", self.tr("New tasks from a &list…"), ["Ctrl+Shift+L"])
        self._duplicate = acts.add("duplicate", self.tr("&Duplicate…"), ["Ctrl+Shift+N"])
        self._file.triggered.connect(self._starting.open_file)
        self._list.triggered.connect(lambda _=False: self._starting.open_list())
        self._duplicate.triggered.connect(self._duplicate_chosen)
        dropping = DropTarget(ctx.parent)
        dropping.dropped.connect(self._take_drop)
        ctx.bridge.health.connect(self._hear)
        ctx.scope.changed.connect(self._show_ability)
        self._warming = QTimer(self, singleShot=True, interval=WARM_AFTER_MS)
        self._warming.timeout.connect(self._starting.warm)
        ctx.bridge.loaded.connect(self._warming.start)
        self._show_ability()

    def _hear(self, health: Health) -> None:
        self._accepts = health.engine == "ready" and not health.read_only
        self._show_ability()

    def _show_ability(self) -> None:
        for action in (self._file, self._list):
            action.setEnabled(self._accepts)
        self._duplicate.setEnabled(self._accepts and self._chosen() is not None)

    def _chosen(self) -> TaskRecord | None:
        if len(self._ctx.scope) != 1:
            return None
        view = next(iter(self._ctx.scope.views()), None)
        return view.entry if view is not None and isinstance(view.entry, TaskRecord) else None

    def _duplicate_chosen(self) -> None:
        if self._chosen() is not None:
            self._starting.duplicate(self._ctx.scope.views()[0])

    def _take_drop(self, mime: QMimeData) -> None:
        self._ctx.services.wishes.dropped.emit(mime, lambda: self._start_from(mime))

    def _start_from(self, mime: QMimeData) -> None:
        files = [url.toLocalFile() for url in mime.urls()]
        if files and all(file.lower().endswith(".zip") for file in files):
            self._ctx.services.wishes.imports.emit([Path(file) for file in files])
        elif self._accepts:
            self._starting.take_drop(mime)
