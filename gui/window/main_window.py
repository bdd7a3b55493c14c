"""The window: where everything stands, and which action does what. Slots are plain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication

from engine.logging.logs import log_path
from engine.text.catalogue import retold
from gui.state.preferences import Preferences
from gui.state.window_state import Memory
from gui.style.theme import Theme, apply_theme, plain_title
from gui.window.frame import Frame

if TYPE_CHECKING:
    from engine.model.records import Health, TaskView
    from engine.service.feed import Batch
    from gui.commands.bulk_reports import Reports
    from gui.commands.bulk_work import BulkWork
    from gui.commands.copy_rows import Copying
    from gui.commands.requests import Requests
    from gui.commands.scope import Scope
    from gui.commands.select_started_task import Newcomer
    from gui.desktop.launch_handling import Arrivals
    from gui.engine_link.subscription import Calm
    from gui.filters.active_filter import Narrowing
    from gui.window.health_banners import Trouble


class MainWindow(Frame):
    """One ledger, live. Its `…_wanted` signals ask the program that made it."""

    close_wanted = Signal()
    quit_wanted = Signal()
    folder_wanted = Signal(Path)
    loaded = Signal()

    calm: Calm
    scope: Scope
    copying: Copying
    narrowing: Narrowing
    newcomer: Newcomer
    requests: Requests
    trouble: Trouble
    arrivals: Arrivals
    bulk: BulkWork
    reports: Reports

    def __init__(
        self, memory: Memory, preferences: Preferences | None = None, root: str = ""
    ) -> None:
        super().__init__(memory, preferences or Preferences(), root)
        self._health: Health | None = None
        self._followed: str | None = None
        self._seen: TaskView | None = None  # the word about it that the details show

    def begin(self) -> None:
        """Everything is made: show it, with nothing selected, until the ledger is open."""
        self._show_selection([])
        self.acts.allow_starts(False)
        self.show_parts()
        if self.isActiveWindow():
            self.focusNextChild()  # as Qt does for a window that becomes active

    # connections

    def connect_parts(self) -> None:
        self._connect_actions()
        self._connect_list()
        self._connect_bridge()

    def _connect_actions(self) -> None:
        slots = self._slots()
        for key, slot in slots.items():
            self.acts[key].triggered.connect(lambda _=False, slot=slot: slot())
        self.acts["sidebar"].toggled.connect(self.sidebar.setVisible)
        self.acts["details"].toggled.connect(self._arrange)
        self.area.populated.connect(self._arrange)
        for theme, action in self.acts.themes.items():
            action.triggered.connect(lambda _=False, theme=theme: self.choose_theme(theme))

    def _slots(self) -> dict[str, Callable[[], object]]:
        """What each action does."""
        return {
            "new": self.requests.new_task,
            "paste": self.requests.paste,
            "open": self.choose_folder,
            "folder": self.show_ledger_folder,
            "quit": self.quit_wanted.emit,
            "copy_ids": self.copying.ids,
            "copy_rows": self.copying.rows,
            "all": self.table.selectAll,
            "none": self.table.clearSelection,
            "find": self.filter_bar.focus_text,
            "cancel": self.cancel_selected,
            "task_folder": self.show_task_folder,
            "sample": self.bridge.start_sample,
            "rescan": self.bridge.rescan,
            "next_region": lambda: self._step_region(1),
            "last_region": lambda: self._step_region(-1),
            "log": lambda: self._show_folder(log_path().parent),
            "about": self._show_about,
        }

    def _connect_list(self) -> None:
        self.table.selection_changed.connect(self._show_selection)
        self.table.all_chosen.connect(self._show_all_chosen)
        self.scope.changed.connect(self._show_scope)
        self.table.activated_task.connect(lambda _: self.acts["details"].setChecked(True))
        self.model.counts_changed.connect(self.sidebar.show_counts)
        self.model.shown_changed.connect(lambda *_: self._show_numbers())
        self.details.wants_events.connect(self.bridge.follow_events)
        self.details.wants_folder.connect(lambda _: self.show_task_folder())
        self.narrowing.changed.connect(self._show_numbers)
        self.filter_bar.left.connect(self.table.setFocus)
        self.table.menu_wanted.connect(self.acts.fill_context_menu)
        self.acts.keep_to(self.table, "cancel", "copy_ids", "copy_rows", "all")
        self.requests.started.connect(self.newcomer.expect)
        self.status.root_clicked.connect(self.show_ledger_folder)
        self.requests.failed.connect(self.trouble.show_error)
        self.requests.refused.connect(self.trouble.show_refusals)

    def _connect_bridge(self) -> None:
        self.bridge.batch.connect(self._take_batch)
        self.bridge.health.connect(self._show_health)
        self.bridge.events.connect(self.details.show_events)
        self.bridge.unusable.connect(self.area.show_trouble)

    # what the engine says

    def _take_batch(self, batch: Batch) -> None:
        changed = self.model.put_many(batch.views)
        self.model.drop_many(batch.gone)
        news = replace(batch, views=tuple(changed))
        self.area.show_loading(batch.loaded, batch.total, batch.complete)
        if self._followed and self.model.view_of(self._followed) is not self._seen:
            self._show_details()
        self.newcomer.look()
        self.scope.hear(news)
        self.bridge.news.emit(news)
        if batch.complete:
            self._show_numbers()
            self.loaded.emit()

    def _show_health(self, health: Health) -> None:
        self._health = health
        self.status.show_health(health)
        self.trouble.show_health(health)
        self.show_title()
        self.area.show_root(health.root)
        gone = retold(health.watcher_reason) if health.watcher == "gone" else ""
        self.area.show_gone(gone, others=bool(self.beside.states) or health.away)
        accepts = health.engine == "ready" and not health.read_only
        self.area.show_accepting(accepts)
        self.acts.allow_starts(accepts, retold(health.read_only))

    def show_title(self) -> None:
        """Name the ledgers that are shown; Qt adds the program's name."""
        if self._health is not None:
            self.setWindowTitle(plain_title(self.beside.title(self._health.root)))

    # the list and its details

    @property
    def selected(self) -> list[TaskView]:
        return self.scope.views()

    def _show_scope(self) -> None:
        number, counts = len(self.scope), self.scope.counts
        for key in ("copy_ids", "copy_rows"):
            self.acts[key].setEnabled(bool(number))
        self.acts["task_folder"].setEnabled(number == 1)
        self.acts["cancel"].setEnabled(bool(counts.cancellable))
        self._show_numbers()

    def _show_selection(self, ids: Sequence[str]) -> None:
        if list(ids) != self.scope.ids():  # the same again, as a focus that comes: nobody went on
            self.newcomer.forget()
        self.scope.choose(ids)
        self._follow(ids[0] if len(ids) == 1 else None)

    def _show_all_chosen(self) -> None:
        self.newcomer.forget()
        self.scope.choose_matching()
        self._follow(None)

    def _follow(self, one: str | None) -> None:
        if one != self._followed:
            self._followed = one
            self.bridge.follow_events(None)
            self._show_details()

    def _arrange(self, *_: object) -> None:
        """An empty list needs no filter, and has nothing to show in detail."""
        populated = self.area.state not in ("empty", "trouble")
        self.filter_bar.setVisible(populated)
        shown = populated and self.acts["details"].isChecked()
        self.details.setVisible(shown)
        self.bridge.show_events(shown)

    def _show_details(self) -> None:
        one = self._followed
        self._seen = None if one is None else self.model.view_of(one)
        if one is None:
            self.details.show_view(None)
        else:
            self.details.show_view(self._seen, self.model.stall_after_ms(one))

    def _show_numbers(self) -> None:
        shown, total = self.model.rowCount(), self.model.total
        self.area.show_numbers(shown, total)
        if self.calm.may_tell():  # a new text lays the whole window out anew
            self.filter_bar.show_counts(shown, total, len(self.scope))

    def clear_filter(self) -> None:
        """Show every task again."""
        self.narrowing.clear()

    def new_task(self) -> None:
        self.requests.new_task()

    def cancel_selected(self) -> None:
        self.requests.cancel(self.selected)

    # the window itself

    def choose_theme(self, theme: Theme) -> None:
        self.memory.theme = theme
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        apply_theme(app, theme)

    def _show_folder(self, folder: Path) -> None:
        from gui.style.folders import show_folder

        show_folder(folder)

    def _step_region(self, step: int) -> None:
        from gui.window.regions import step_region

        step_region(self.regions(), step)

    def _show_about(self) -> None:
        from gui.commands.about_dialog import About

        About(self._health, self, self.beside.states).open()

    def choose_folder(self) -> None:
        """Ask for another ledger; the program that made this window does the rest."""
        start = self._health.root if self._health else ""
        title = self.tr("Open another folder of tasks")
        from gui.style.folders import ask_folder

        ask_folder(self, title, start, self.folder_wanted.emit)

    def show_ledger_folder(self) -> None:
        if self._health is not None:
            self._show_folder(Path(self._health.root))

    def show_task_folder(self) -> None:
        if self._health is not None and self._followed is not None:
            self._show_folder(self.bridge.engine.folder_of(self._followed))

    def remember(self) -> None:
        """Keep how the window looks for its next start."""
        if not self.furnished:
            self.memory.keep_shape("window", self.saveGeometry())
            return
        from gui.window.arrangement import remember

        remember(self, self.memory)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "acts"):
            self.acts.redraw()

    def closeEvent(self, event: QCloseEvent) -> None:
        # the engine must end first, and that takes time: the program closes the window then
        event.ignore()
        self.remember()
        self.close_wanted.emit()
