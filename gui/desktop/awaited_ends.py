"""Ends of tasks that the user awaits: of chosen ones, to be notified, or of all, to quit."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from engine.model.ledger_ids import ledger_label, plain_id, qualified
from engine.model.records import Health, TaskRecord, TaskView
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.style.banners import Banner, Choice

MOST = 1_000  # Ids whose end is awaited; the oldest go first
_MOST_LOOKED_AT = 500  # Tasks examined for the state of the action
_AWAITED = "notify-end"  # In the memory, with the ledger: tasks whose end is awaited
LEFT = "not-started"  # In the memory, with the ledger: tasks that waited when the program quit


class EndNotices(QObject):
    """Action `notify_end` for the selected tasks; `take_ended` returns those that have ended.

    They are kept by ledger and task id, so a task that ends while no window is open is reported
    at the next start.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._model, self._scope = ctx, ctx.model, ctx.scope
        root = ctx.bridge.look_at_health().root
        self._key = f"{_AWAITED}-{root.encode().hex()}"
        self._ids: dict[str, None] = dict.fromkeys(ctx.memory.names(self._key))
        self._back = False
        self._act = ctx.actions.add("notify_end", self.tr("Notify me at t&he end"), [], "bell")
        self._act.triggered.connect(lambda _=False: self._switch())
        self._model.mark_awaited(self._ids.keys(), ())
        self._scope.changed.connect(self._show_ability)
        ctx.ledgers.renamed.connect(self._move)
        self._show_ability()

    def take_ended(self, views: Iterable[TaskView], gone: Iterable[str]) -> list[TaskView]:
        """Return the awaited tasks of a batch that have ended, each once, and drop the `gone`."""
        if not self._ids:
            return []
        ended = [view for view in views if view.task_id in self._ids and not _is_live(view)]
        dropped = [one for one in gone if one in self._ids]
        if ended or dropped:
            for task_id in (*(view.task_id for view in ended), *dropped):
                self._ids.pop(task_id, None)
            self._save([view.task_id for view in ended])
        return ended

    def _switch(self) -> None:
        live = [view.task_id for view in self._scope.views() if _is_live(view)]
        for task_id in live:
            if self._back:
                self._ids.pop(task_id, None)
            else:
                self._ids[task_id] = None
        self._save(live)

    def _save(self, changed: Iterable[str]) -> None:
        while len(self._ids) > MOST:
            del self._ids[next(iter(self._ids))]
        self._ctx.memory.keep_names(self._key, tuple(self._ids))
        self._ctx.memory.save()
        self._model.mark_awaited(self._ids.keys(), changed)
        self._show_ability()

    def _move(self, label: str, wanted: str) -> None:
        """Follow the new label of a ledger."""
        self._ids = {
            qualified(plain_id(one), wanted) if ledger_label(one) == label else one: None
            for one in self._ids
        }
        self._save(())

    def _show_ability(self) -> None:
        found = map(self._model.view_of, self._scope.ids()[:_MOST_LOOKED_AT])
        live = [view.task_id for view in found if view is not None and _is_live(view)]
        self._back = bool(live) and all(one in self._ids for one in live)
        words = (
            self.tr("Do not notify me at t&he end")
            if self._back
            else self.tr("Notify me at t&he end")
        )
        self._act.setText(words)
        self._act.setIconText(words.replace("&", ""))
        why_not = self.tr("Only the end of a task that has not ended can be awaited.")
        self._ctx.actions.allow_chosen("notify_end", bool(live), why_not, chosen=len(self._scope))


def _is_live(view: TaskView) -> bool:
    return isinstance(view.entry, TaskRecord) and not view.entry.is_terminal


class FinishThenQuit(QObject):
    """Action `finish_quit`, and the `bar` that shows how many tasks the end waits for.

    `finished` reports that this program runs no task any more. Tasks that still wait then are
    cancelled like at every end of the program, and offered again at the next start.
    """

    wanted = Signal()
    finished = Signal()

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._told: tuple[int, int] | None = None
        self.is_active = False
        self.bar = Banner(ctx.parent)
        self.bar.closed.connect(self.stop)
        words = self.tr("Finish &running tasks, then quit")
        ctx.actions.add("finish_quit", words).triggered.connect(self.wanted)
        ctx.actions.allow("finish_quit", False)
        ctx.bridge.health.connect(self._show_health)
        ctx.bridge.loaded.connect(self._offer_left)

    @property
    def running(self) -> int:
        """How many tasks run in this program."""
        return self._ctx.bridge.look_at_health().running

    def begin(self) -> None:
        """Start no new task here, and wait for the running ones."""
        if self.is_active:
            return
        self.is_active, self._told = True, None
        self._ctx.bridge.engine.start_hold.close_to_starts(True)
        self._ctx.bridge.show_health()
        self._show_health(self._ctx.bridge.look_at_health())

    def stop(self) -> None:
        """Stay, and start waiting tasks again."""
        if self.is_active:
            self.is_active = False
            self.bar.setVisible(False)
            self._ctx.bridge.engine.start_hold.close_to_starts(False)
            self._ctx.bridge.show_health()

    def _show_health(self, health: Health) -> None:
        why_not = self.tr("No task runs in this window.")
        able = health.running > 0 and not self.is_active
        self._ctx.actions.allow("finish_quit", able, "" if self.is_active else why_not)
        if not self.is_active:
            return
        if not health.running:
            self._end()
        elif (health.running, health.queued) != self._told:
            self._told = health.running, health.queued
            self._tell(*self._told)

    def _tell(self, running: int, queued: int) -> None:
        title = (
            self.tr("Quits when 1 task has ended")
            if running == 1
            else self.tr("Quits when {0} tasks have ended").format(count(running))
        )
        words = self.tr("This window starts nothing more.")
        if queued:
            words += " " + (
                self.tr("1 waiting task is cancelled then and offered at the next start.")
                if queued == 1
                else self.tr(
                    "{0} waiting tasks are cancelled then and offered at the next start."
                ).format(count(queued))
            )
        choices = (
            Choice(self.tr("Don’t quit"), self.stop),
            Choice(self.tr("Quit now"), self._end),
        )
        self.bar.tell(title, words, choices, tone_name="accent")

    def _end(self) -> None:
        self.is_active = False
        views = map(self._ctx.model.view_of, self._ctx.bridge.waiting_tasks)
        left = tuple(view.task_id for view in views if view is not None)
        self._ctx.memory.keep_names(self._key, left)
        self.finished.emit()

    @property
    def _key(self) -> str:
        root = self._ctx.bridge.look_at_health().root
        return f"{LEFT}-{root.encode().hex()}"

    def _offer_left(self) -> None:
        """Offer the tasks that waited when the program quit, once after the start."""
        self._ctx.bridge.loaded.disconnect(self._offer_left)
        found = map(self._ctx.model.view_of, self._ctx.memory.names(self._key))
        views = [view for view in found if view is not None]
        self._ctx.memory.keep_names(self._key, ())
        if not views:
            return
        title = (
            self.tr("1 task was not started when the window quit")
            if len(views) == 1
            else self.tr("{0} tasks were not started when the window quit").format(
                count(len(views))
            )
        )
        choice = Choice(self.tr("Start them now"), lambda: self._start(views))
        one, several = (
            self.tr("It was waiting in the queue."),
            self.tr("They were waiting in the queue."),
        )
        self._ctx.news_bar.tell(title, one if len(views) == 1 else several, (choice,))

    def _start(self, views: list[TaskView]) -> None:
        self._ctx.news_bar.setVisible(False)
        self._ctx.clear_filter()  # a hidden task cannot be selected
        self._ctx.table.select_ids([view.task_id for view in views])
        self._ctx.actions["rerun"].trigger()
