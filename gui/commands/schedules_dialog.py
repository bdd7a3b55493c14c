"""Schedules: their list with its actions, and the two ways to add one."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments
from engine.model.records import ENVELOPE, Health, Status, TaskRecord, TaskView, Unreadable
from engine.schedules.schedule import Schedule
from engine.schedules.schedule_words import name_words, rule_words, skip_words
from engine.service import drafts
from engine.service.engine import Engine
from engine.service.forms import startable
from engine.service.rerun import Asked
from engine.service.schedules import ScheduleView
from engine.text import words
from engine.text.messages import retold
from engine.text.words import task_name
from gui.commands.bulk_work import Reports
from gui.commands.task_requests import Requests
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.accessibility import InOrder
from gui.style.banners import Banner
from gui.style.questions import BUTTON, Question
from gui.style.record_list import RecordList
from gui.style.theme import plain_label, plain_tip
from gui.style.widgets import arrange

if TYPE_CHECKING:
    from gui.start.repeat_dialog import Repetition
    from gui.start.start_dialog import StartDialog

SIZE: Final = QSize(900, 420)
LOOK_MS: Final = 3_000  # other programs change schedules, too
MOST_WHY: Final = 400
_LIST, _ACT = "list the schedules", "change a schedule"


class Scheduling(QObject):
    """Actions of schedules for one window; `show_query` filters the list of tasks."""

    def __init__(
        self,
        ctx: WindowContext,
        requests: Requests,
        reports: Reports,
        show_query: Callable[[str], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._bridge = ctx, ctx.bridge
        self._requests, self._reports, self._show_query = requests, reports, show_query
        self._list: SchedulesDialog | None = None
        all_ = ctx.actions.add("schedules", self.tr("S&chedules…"), ["Ctrl+Shift+T"], "clock")
        one = ctx.actions.add("repeat", self.tr("Repeat &by a rule…"))
        all_.triggered.connect(lambda _=False: self.open())
        one.triggered.connect(lambda _=False: self._repeat_chosen())
        requests.starting.repeat_wanted.connect(self._repeat_request)
        ctx.scope.changed.connect(self._allow)
        ctx.bridge.health.connect(lambda _: self._allow())
        self._allow()

    def open(self) -> None:
        """Open the list of schedules."""
        if self._list is None:
            self._list = SchedulesDialog(self._bridge, self._show_query, self._ctx.parent)
            self._list.finished.connect(self._forget)
            self._list.request_wanted.connect(self._edit_request)
        self._list.open()

    def _forget(self, _: int) -> None:
        self._list = None

    def _edit_request(self, view: ScheduleView) -> None:
        """Open the request of a schedule in the start dialog, which saves it."""
        schedule, starting = view.schedule, self._requests.starting
        try:
            stored = drafts.asked_of(schedule.request.document)
        except InvalidArguments as error:  # a newer program, or a person, wrote it
            self._requests.failed.emit(error)
            return
        asked = replace(stored, name=schedule.name or stored.name)

        def save(wanted: Asked, dialog: StartDialog) -> None:
            async def work(engine: Engine) -> ScheduleView:
                name = wanted.name or schedule.name
                return await engine.schedules.change(schedule.schedule_id, asked=wanted, name=name)

            def refuse(error: EngineError) -> None:
                if not starting.shows(dialog):  # it was closed meanwhile
                    self._requests.failed.emit(error)
                elif isinstance(error, InvalidArguments):
                    dialog.show_refusal(error)
                else:
                    dialog.show_error(error)

            def done(_: ScheduleView) -> None:
                if starting.shows(dialog):
                    dialog.accept_schedule()
                    self.open()

            self._bridge.ask(work, done, refuse, name=_ACT)

        note = self.tr("Changes to “{0}” count from its next run.").format(name_words(schedule))
        starting.edit(asked, note, save)

    def _allow(self) -> None:
        able = self._ctx.actions["new"].isEnabled() and self._chosen() is not None
        why_not = self.tr("Select one task that this program can start.")
        self._ctx.actions.allow_chosen("repeat", able, why_not, chosen=len(self._ctx.scope))

    def _chosen(self) -> TaskView | None:
        views = self._ctx.scope.views() if len(self._ctx.scope) == 1 else []
        return next(filter(_may_repeat, views), None)

    def _repeat_chosen(self) -> None:
        view = self._chosen()
        if view is None:
            return

        async def read(engine: Engine) -> tuple[Asked, str | None]:
            record = (await engine.tasks.get(view.task_id)).entry
            ended = isinstance(record, TaskRecord) and record.status == Status.COMPLETED
            first = view.task_id if ended and not view.ledger else None
            return await engine.requests.asked(view.task_id), first

        name = task_name(view)
        self._bridge.ask(
            read,
            lambda found: self._ask(found[0], name, found[1]),
            self._requests.failed.emit,
            name="read a request",
        )

    def _repeat_request(self, asked: Asked, dialog: StartDialog) -> None:
        self._ask(asked, asked.name or str(asked.args.get("url") or ""), None, dialog)

    def _ask(
        self, asked: Asked, name: str, first: str | None, dialog: StartDialog | None = None
    ) -> None:
        from gui.start.repeat_dialog import RepeatDialog

        form = RepeatDialog(name, parent=dialog or self._ctx.parent)

        def add(wanted: Repetition) -> None:
            named = replace(asked, name=wanted.name or asked.name)

            async def work(engine: Engine) -> ScheduleView:
                return await engine.schedules.add(
                    named, wanted.rule, first_task=first, **wanted.options
                )

            self._bridge.ask(work, done, form.show_error, name=_ACT)

        def done(view: ScheduleView) -> None:
            form.accept()
            if dialog is not None:
                dialog.accept_schedule()
            at = words.clock(view.next_at, _now_ms()) if view.next_at is not None else ""
            said = self.tr("“{0}” repeats {1}. First run: {2}.")
            schedule = view.schedule
            self._reports.say(said.format(name_words(schedule), rule_words(schedule.rule), at))

        form.wanted.connect(add)
        form.finished.connect(form.deleteLater)
        form.open()


class SchedulesDialog(InOrder, QDialog):
    """All schedules with next run, last run and its changes; the buttons act on the selected one.

    `show_query` filters the list of tasks by the runs of one schedule. `request_wanted` carries the
    schedule whose request is to be edited.
    """

    request_wanted = Signal(object)

    def __init__(
        self, bridge: Bridge, show_query: Callable[[str], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._bridge, self._show_query = bridge, show_query
        self._found: dict[str, ScheduleView | Unreadable] = {}
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Schedules"))
        self.resize(SIZE)
        self.banner = Banner(self)
        self.empty = plain_label("", self, tone="muted", wrap=True)
        self.list = self._make_list()
        self.why = plain_label("", self, tone="warning", wrap=True)
        self.run = QPushButton(self.tr("&Run now"), self)
        self.pause = QPushButton(self.tr("&Pause"), self)
        self.edit = QPushButton(self.tr("&Edit…"), self)
        self.request = QPushButton(self.tr("Edit re&quest…"), self)
        self.runs = QPushButton(self.tr("&Show its runs"), self)
        self.delete = QPushButton(self.tr("&Delete…"), self)
        self._obstacle = retold(bridge.look_at_health().read_only)  # why nothing can be changed
        self._lay_out()
        self._connect()
        self._looking = QTimer(self, interval=LOOK_MS)
        self._looking.timeout.connect(self.read)
        self._looking.start()
        self._show([])
        self.read()

    def read(self) -> None:
        """Read all schedules again."""

        async def work(engine: Engine) -> list[ScheduleView | Unreadable]:
            return await engine.schedules.all()

        self._bridge.ask(work, self._show, self._show_error, name=_LIST)

    @property
    def chosen(self) -> ScheduleView | None:
        """The selected schedule, if it can be read."""
        found = self._found.get(self.list.chosen_id or "")
        return found if isinstance(found, ScheduleView) else None

    def _make_list(self) -> RecordList:
        headers = (
            self.tr("Name"),
            self.tr("Repeats"),
            self.tr("Next run"),
            self.tr("Last run"),
            self.tr("Changes"),
        )
        return RecordList(self.tr("Schedules"), headers, self)

    def _lay_out(self) -> None:
        close = QPushButton(self.tr("Close"), self)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        for button in (self.run, self.pause, self.edit, self.request, self.runs, self.delete):
            button.setAutoDefault(False)
            button.setMinimumSize(BUTTON)
            row.addWidget(button)
        close.setAutoDefault(False)
        close.setMinimumSize(BUTTON)
        arrange(row, 1, close, spacing=8)
        parts = (self.banner, self.empty, (self.list, 1), self.why, row)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)

    def _connect(self) -> None:
        self.list.currentItemChanged.connect(lambda *_: self._show_chosen())
        self.list.itemActivated.connect(lambda *_: self._edit())
        self.run.clicked.connect(self._run)
        self.pause.clicked.connect(self._pause)
        self.edit.clicked.connect(self._edit)
        self.request.clicked.connect(self._edit_request)
        self.runs.clicked.connect(self._show_runs)
        self.delete.clicked.connect(self._ask_to_delete)
        self._bridge.health.connect(self._note_health)

    def _note_health(self, health: Health) -> None:
        self._obstacle = retold(health.read_only)
        self._show_chosen()

    # The list.

    def _show(self, found: list[ScheduleView | Unreadable]) -> None:
        """Show the schedules; rows whose schedule is still there stay, with the selection."""
        self._found = {_id_of(one): one for one in found}
        self.list.show_rows({key: self._cells(one) for key, one in self._found.items()})
        self.empty.setVisible(not found)
        self.empty.show_text(self._why_empty())
        self._show_chosen()

    def _why_empty(self) -> str:
        if self._bridge.look_at_health().watcher in ("gone", "silent"):
            return self.tr("The schedules are in the ledger folder, which is away.")
        return self.tr(
            "Nothing repeats yet. “Repeat…” in the start dialog and “Repeat by a rule…” in the "
            "menu of a task add a schedule."
        )

    def _cells(self, one: ScheduleView | Unreadable) -> tuple[str, ...]:
        if isinstance(one, Unreadable):
            return (one.task_id, self.tr("cannot be read"), "", "", "")
        now, schedule = _now_ms(), one.schedule
        next_run = words.clock(one.next_at, now) if one.next_at is not None else ""
        return (
            name_words(schedule),
            rule_words(schedule.rule),
            next_run or words.say("schedule.paused"),
            self._last(schedule, one.last),
            words.changes(_changes_of(one.last), spoken=False),
        )

    def _last(self, schedule: Schedule, last: TaskView | None) -> str:
        if schedule.refusal is not None:
            due = words.clock(schedule.refusal.due_at, _now_ms())
            return self.tr("cannot start, {0}").format(due)
        if last is None:
            none = schedule.claim is None
            return words.say("schedule.no_run" if none else "schedule.removed")
        record = last.entry
        at = record.created_at if isinstance(record, TaskRecord) else None
        return f"{words.status_word(last)}, {words.clock(at, _now_ms())}"

    def _show_chosen(self) -> None:
        """Show why the selected schedule did not run, and enable what can be done with it."""
        view, found = self.chosen, self._found.get(self.list.chosen_id or "")
        self.runs.setEnabled(view is not None)
        for button in (self.run, self.pause, self.edit, self.request, self.delete):
            able = found is not None if button is self.delete else view is not None
            button.setEnabled(able and not self._obstacle)
            button.setToolTip(plain_tip(self._obstacle))
        paused = view is not None and view.schedule.paused
        self.pause.setText(self.tr("Resu&me") if paused else self.tr("&Pause"))
        why = self._why(found)
        self.why.show_text(why)
        self.why.setVisible(bool(why))

    def _why(self, found: ScheduleView | Unreadable | None) -> str:
        if isinstance(found, Unreadable):
            return display(words.retold(found.reason), MOST_WHY)
        if found is None:
            return ""
        lines, schedule = list[str](), found.schedule
        if schedule.refusal is not None:
            why = display(words.retold(schedule.refusal.message), MOST_WHY)
            lines.append(words.say("schedule.refused", why=why))
        if schedule.skips and schedule.skips[-1].due_at == schedule.after:
            lines.append(skip_words(schedule.skips[-1], _now_ms()))
        return "\n".join(lines)

    # Actions.

    def _act(self, work: Callable[[Engine], Coroutine[Any, Any, object]]) -> None:
        self.banner.setVisible(False)
        self._bridge.ask(work, lambda _: self.read(), self._show_error, name=_ACT)

    def _run(self) -> None:
        if (view := self.chosen) is not None:
            schedule_id = view.schedule.schedule_id
            self._act(lambda engine: engine.schedules.run_now(schedule_id))

    def _pause(self) -> None:
        if (view := self.chosen) is None:
            return
        schedule_id, paused = view.schedule.schedule_id, view.schedule.paused

        async def work(engine: Engine) -> object:
            schedules = engine.schedules
            return await (schedules.resume if paused else schedules.pause)(schedule_id)

        self._act(work)

    def _edit(self) -> None:
        view = self.chosen
        if view is None or not self.edit.isEnabled():  # Enter in the list comes here as well
            return
        from gui.start.repeat_dialog import RepeatDialog, differs

        schedule = view.schedule
        form = RepeatDialog(name_words(schedule), schedule, self)

        def change(wanted: Repetition) -> None:
            # A rule that is given counts from now.
            rule = wanted.rule if differs(schedule.rule, wanted.rule) else None

            async def work(engine: Engine) -> ScheduleView:
                return await engine.schedules.change(
                    schedule.schedule_id, rule=rule, name=wanted.name, **wanted.options
                )

            self._bridge.ask(work, done, form.show_error, name=_ACT)

        def done(_: ScheduleView) -> None:
            form.accept()
            self.read()

        form.wanted.connect(change)
        form.finished.connect(form.deleteLater)
        form.open()

    def _edit_request(self) -> None:
        if (view := self.chosen) is not None:
            self.close()
            self.request_wanted.emit(view)

    def _show_runs(self) -> None:
        if (view := self.chosen) is not None:
            self.close()
            self._show_query(f"schedule:{view.schedule.schedule_id}")

    def _ask_to_delete(self) -> None:
        item = self.list.currentItem()
        if item is None:
            return
        schedule_id = self.list.chosen_id or ""
        question = Question(self)
        headline = self.tr("Delete the schedule “{0}”?").format(item.text(0))
        question.ask(self.tr("Delete schedule"), headline)
        question.add_text(self.tr("Its tasks stay. A run that is going on is not cancelled."))
        question.add_button("delete", self.tr("Delete"), destroys=True)
        question.add_button("keep", self.tr("Keep it"), default=True)
        question.open_for(
            delete=lambda: self._act(lambda engine: engine.schedules.remove(schedule_id))
        )

    def _show_error(self, error: EngineError) -> None:
        self.banner.tell(language.title(error), language.told(error), tone_name="bad")


def _may_repeat(view: TaskView) -> bool:
    """Return whether this program can start a task of this kind without an agent."""
    entry = view.entry
    known = isinstance(entry, TaskRecord) and entry.kind in startable()
    return known and getattr(entry, "kind", "") != ENVELOPE


def _id_of(one: ScheduleView | Unreadable) -> str:
    return one.task_id if isinstance(one, Unreadable) else one.schedule.schedule_id


def _changes_of(view: TaskView | None) -> Any:
    entry = view.entry if view is not None else None
    ours = entry.engine if isinstance(entry, TaskRecord) else None
    return ours.schedule.changes if ours is not None and ours.schedule is not None else None


def _now_ms() -> float:
    return time.time() * 1000
