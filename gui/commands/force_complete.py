"""Manual completion of tasks, forced against an unmet contract after a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.contracts.completing import (
    CompletionCheck,
    CompletionObstacle,
    CompletionVerdict,
    Guard,
    may_be_completed,
)
from engine.model.errors import EngineError
from engine.model.records import TaskView
from engine.service.engine import Engine
from engine.text.messages import retold
from engine.text.words import count
from gui.commands.bulk_work import BulkWork, Outcome, Reports
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import EngineCalls
from gui.i18n.names import name_with_ledger
from gui.style.questions import BUTTON, Question, TaskList
from gui.style.theme import plain_label
from gui.style.widgets import arrange

RECENT, KEPT_REASONS = "force.reasons", 5
MOST_LOOKED_AT = 500  # Tasks examined to enable the action; with more it is enabled without a check
# Refresh interval of an open question, and tasks refreshed at a time.
AGAIN_MS, AT_A_TIME = 1000, 40
_LOOK = "what is missing now"


class ForceComplete(QObject):
    """Question and completion for one window."""

    def __init__(self, ctx: WindowContext, bulk: BulkWork, reports: Reports) -> None:
        super().__init__(ctx.parent)
        self._bulk = bulk
        self._reports = reports
        self._ctx, self._bridge = ctx, ctx.bridge
        text, short = self.tr("&Force-complete…"), self.tr("Force-complete…")
        self._act = ctx.actions.add("force", text, ["Ctrl+Shift+F"], "force", short)
        self._act.triggered.connect(lambda: self.ask(ctx.scope.views()))
        ctx.scope.changed.connect(self._show_ability)
        ctx.bridge.health.connect(lambda _: self._show_ability())
        self._show_ability()

    def ask(self, views: Sequence[TaskView]) -> None:
        """Read the state of each contract and open the question."""
        chosen = list(filter(self._may_be_completed, views))
        if not chosen:
            return
        left_out = len(views) - len(chosen)
        names = {str(view.task_id): name_with_ledger(view) for view in chosen}
        alone = len(chosen) == 1

        async def look(engine: Engine, one: str) -> CompletionCheck:
            return await engine.contracts.prospect(one, named=alone)

        def then(outcome: Outcome[CompletionCheck]) -> None:
            if outcome.refused:
                self._reports.tell(self.tr("Some could not be looked at"), outcome.refused)
            if outcome.done and not outcome.left:
                self._question(outcome.done, names, left_out)

        said = self.tr("Looking at what is missing: {0} of {1} tasks")
        self._bulk.run(names, look, then, said)

    def _may_be_completed(self, view: TaskView | None) -> bool:
        return view is not None and may_be_completed(view) and self._ctx.scope.may_change(view)

    def complete(self, checks: Sequence[CompletionCheck], reason: str) -> None:
        """Complete these tasks, by force where needed."""
        needing = {one.subject for one in checks if one.verdict is CompletionVerdict.FORCE}
        subjects = [one.subject for one in checks if one.verdict is not CompletionVerdict.NEVER]

        async def act(engine: Engine, one: str) -> Any:
            return await engine.contracts.complete(
                one, force=engine.contracts.force(reason) if one in needing else None
            )

        if needing:
            try:
                # The engine has redacted the reason.
                self._remember(self._bridge.engine.contracts.force(reason).reason)
            except EngineError as error:
                self._bridge.failed.emit(error)
                return
        said = self.tr("Completing: {0} of {1} tasks")
        self._bulk.run(subjects, act, self._tell, said)

    def _question(
        self, checks: Sequence[CompletionCheck], names: dict[str, str], left_out: int
    ) -> None:
        recent = self._ctx.preferences.get(RECENT, list)
        dialog = ForceDialog(checks, names, recent, self._ctx.parent, left_out=left_out)
        looking = LookingAgain(self._bridge, dialog)

        def act(answer: str) -> None:
            looking.end()
            if answer in ("force", "complete"):
                self.complete(dialog.checks, dialog.reason.reason)
            dialog.deleteLater()

        dialog.when_answered(act)
        dialog.open()

    def _remember(self, reason: str) -> None:
        preferences = self._ctx.preferences
        recent = [one for one in preferences.get(RECENT, list) if one != reason]
        preferences.set(RECENT, [reason, *recent][:KEPT_REASONS])

    def _tell(self, outcome: Outcome[Any]) -> None:
        number, refused = len(outcome.done), outcome.refused
        if refused:
            title = (
                self.tr("1 task could not be completed")
                if len(refused) == 1
                else self.tr("{0} tasks could not be completed").format(count(len(refused)))
            )
            self._reports.tell(title, refused, outcome)
        elif number:
            words = (
                self.tr("1 task was force-completed.")
                if number == 1
                else self.tr("{0} tasks were force-completed.").format(count(number))
            )
            self._reports.say(words)

    def _show_ability(self) -> None:
        scope, view_of = self._ctx.scope, self._ctx.model.view_of
        views = map(view_of, scope.ids()[:MOST_LOOKED_AT])
        found = any(map(self._may_be_completed, views))
        writable = self._ctx.actions["new"].isEnabled()
        able = writable and (found or len(scope) > MOST_LOOKED_AT)
        why_not = self.tr("Ended tasks cannot be completed.")
        self._ctx.actions.allow_chosen("force", able, why_not, chosen=len(scope))


class LookingAgain(QObject):
    """Refresh an open question, because missing items may arrive meanwhile."""

    def __init__(self, errands: EngineCalls, dialog: ForceDialog) -> None:
        super().__init__(dialog)
        self._errands, self._dialog = errands, dialog
        self._at, self._busy = 0, False
        self._clock = QTimer(self, interval=AGAIN_MS)
        self._clock.timeout.connect(self.look)
        self._clock.start()

    def end(self) -> None:
        """Stop refreshing."""
        self._clock.stop()
        self._errands.call_off(_LOOK)

    def look(self) -> None:
        """Refresh the next few tasks."""
        if self._busy:
            return
        known = self._dialog.checks
        part = known[self._at : self._at + AT_A_TIME]
        self._at = self._at + AT_A_TIME if self._at + AT_A_TIME < len(known) else 0
        self._busy = True
        alone = len(known) == 1
        self._errands.ask(lambda engine: _anew(engine, part, alone), self._show, name=_LOOK)

    def _show(self, found: Mapping[str, CompletionCheck]) -> None:
        self._busy = False
        now = [found.get(one.subject, one) for one in self._dialog.checks]
        self._dialog.show_checks(now)


async def _anew(
    engine: Engine, known: Sequence[CompletionCheck], named: bool
) -> dict[str, CompletionCheck]:
    """Return changed checks; names are read again only after a change of numbers."""
    found: dict[str, CompletionCheck] = {}
    for one in known:
        try:
            now = replace(await engine.contracts.prospect(one.subject), missing=one.missing)
            if named and now != one:
                now = await engine.contracts.prospect(one.subject, named=True)
        except EngineError:  # A removed or unreadable task is reported by the completion
            continue
        found[one.subject] = now
    return found


# Question with the missing items and a required reason.

WIDTH = 620
LEAST_REASON, MOST_REASON = 10, 500  # Characters


class ReasonBox(QWidget):
    """Input of the reason, typed or recent, with its length."""

    def __init__(self, recent: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QComboBox(self)
        self.field.setEditable(True)
        self.field.addItems(list(recent))
        self.field.setCurrentIndex(-1)
        self.field.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.field.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        line = self.field.lineEdit()
        assert line is not None
        line.setMaxLength(MOST_REASON)
        line.setPlaceholderText(self.tr("At least {0} characters").format(LEAST_REASON))
        self.field.setAccessibleName(self.tr("Reason, kept for ever"))
        self._length = plain_label(tone="muted", parent=self)
        arrange(QHBoxLayout(self), (self.field, 1), self._length, margins=0)
        self.setFocusProxy(self.field)
        self.field.editTextChanged.connect(self._show_length)
        self._show_length()

    @property
    def reason(self) -> str:
        return self.field.currentText().strip()

    @property
    def is_enough(self) -> bool:
        return len(self.reason) >= LEAST_REASON

    def _show_length(self) -> None:
        self._length.show_text(f"{len(self.reason)}/{MOST_REASON}")


class ForceDialog(Question):
    """Question for one or many tasks; the default continues instead, and Enter never forces.

    `checks` is the state of each contract. Since tasks continue meanwhile, `show_checks`
    updates text and buttons. `names` are by subject; `left_out` counts the tasks that were skipped.
    """

    def __init__(
        self,
        checks: Sequence[CompletionCheck],
        names: dict[str, str],
        recent: Sequence[str] = (),
        parent: QWidget | None = None,
        *,
        left_out: int = 0,
    ) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._names, self._left_out = names, left_out
        self.checks: tuple[CompletionCheck, ...] = ()
        self._forced: list[CompletionCheck] = []
        self._allowed: list[CompletionCheck] = []
        self.reason = ReasonBox(recent, self)
        self.sure = QCheckBox(
            self.tr("I understand that the result will be marked as forced, for ever"), self
        )
        self.list: TaskList | None = None
        self._said: QWidget | None = None
        self._add_form()
        self.force = self.add_button("force", self.tr("Force-complete"), destroys=True)
        self.force.setAutoDefault(False)  # Enter must never press it
        self._complete = self.add_button("complete", self.tr("Complete"))
        self._leave = self.add_button("leave", self.tr("Continue instead"), default=True)
        self.show_checks(checks)
        if self._forced:
            self.reason.setFocus()  # What is typed at once is the reason, not a key of a button

    def show_checks(self, checks: Sequence[CompletionCheck]) -> None:
        """Update the state of the contracts, and keep input and focus."""
        if self.checks == tuple(checks):
            return
        self.checks = tuple(checks)
        self._forced = [one for one in checks if one.verdict is CompletionVerdict.FORCE]
        self._allowed = [one for one in checks if one.verdict is CompletionVerdict.ALLOWED]
        self.ask(self.tr("Force-complete"), self._asked_of())
        self._say()
        self._offer()
        self._judge()

    def _asked_of(self) -> str:
        if len(self.checks) > 1:
            return self._asked_of_many(len(self._forced) + len(self._allowed))
        one = self.checks[0]
        name = self._names.get(one.subject, one.subject)
        if one.verdict is CompletionVerdict.NEVER:
            return self.tr("“{0}” cannot be completed").format(name)
        missing = one.guard.missing_count if one.guard is not None else None
        if one.verdict is CompletionVerdict.ALLOWED:
            return self.tr("Complete “{0}”?").format(name)
        if missing == 1:
            return self.tr("Complete “{0}” although 1 item is missing?").format(name)
        if missing:
            said = self.tr("Complete “{0}” although {1} items are missing?")
            return said.format(name, count(missing))
        return self.tr("Complete “{0}” although it is not done?").format(name)

    def _asked_of_many(self, number: int) -> str:
        if not number:
            return self.tr("None of these tasks can be completed")
        said = self.tr("Complete 1 task?") if number == 1 else self.tr("Complete {0} tasks?")
        return said.format(count(number))

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield sentences with their colour names."""
        yield from self._lines_of_all()
        if self._left_out:
            said = self.tr("Left out, because they cannot be completed by hand: {0}")
            yield said.format(count(self._left_out)), "muted"

    def _lines_of_all(self) -> Iterator[tuple[str, str]]:
        if len(self.checks) == 1:
            yield from self._lines_of_one(self.checks[0])
            return
        never = len(self.checks) - len(self._forced) - len(self._allowed)
        said = (
            (len(self._forced), self.tr("Need force, because their contracts are not met: {0}")),
            (len(self._allowed), self.tr("May be completed as they are: {0}")),
            (never, self.tr("Cannot be completed, and are left as they are: {0}")),
        )
        yield from ((words.format(count(number)), "") for number, words in said if number)

    def _lines_of_one(self, one: CompletionCheck) -> Iterator[tuple[str, str]]:
        if one.obstacle is not None:
            yield self._why_never(one.obstacle), ""
        elif one.guard is None and one.verdict is CompletionVerdict.FORCE:
            yield self.tr("Its contract cannot be read: nobody knows what is missing."), ""
        elif one.guard is None:
            yield self.tr("It has no contract: nothing stands against it."), ""
        else:
            yield self._counts(one.guard), ""
            yield retold(one.guard.reason), "muted"
            if one.guard.allowed and one.verdict is CompletionVerdict.FORCE:
                yield self.tr("It still runs, and would go on by itself."), ""
            elif one.verdict is CompletionVerdict.FORCE:
                yield self.tr("Better: {0}").format(retold(one.guard.suggested_next_action)), ""

    def _counts(self, guard: Guard) -> str:
        known = guard.expected_total
        total = self.tr("not known") if known is None else count(known)
        parts = [self.tr("expected {0}").format(total)]
        parts.append(self.tr("done {0}").format(count(guard.completed_count)))
        parts.append(self.tr("failed {0}").format(count(guard.failed_count)))
        if guard.skipped_count:
            parts.append(self.tr("skipped {0}").format(count(guard.skipped_count)))
        if guard.missing_count is not None:
            parts.append(self.tr("missing {0}").format(count(guard.missing_count)))
        return " · ".join(parts)

    def _why_never(self, obstacle: CompletionObstacle) -> str:
        return {
            CompletionObstacle.ENDED: self.tr("It has ended; what has ended is never changed."),
            CompletionObstacle.WAITING: self.tr("It has not begun yet. It can be cancelled."),
            CompletionObstacle.STOPPING: self.tr(
                "It was asked to stop, and will end as cancelled."
            ),
            CompletionObstacle.ALONE: self.tr(
                "It has no contract: it completes by itself, at its end."
            ),
            CompletionObstacle.UNREADABLE: self.tr(
                "Its contract cannot be read. It can be cancelled."
            ),
        }[obstacle]

    def _say(self) -> None:
        """Rebuild the text above the reason, and keep the scroll position of the list."""
        stood = self.list.verticalScrollBar().value() if self.list is not None else 0
        if self._said is not None:
            self._said.hide()
            self._said.deleteLater()
        self._said = QWidget(self)
        column = arrange(QVBoxLayout(self._said), margins=0, spacing=8)
        for line, tone in self._lines():
            label = plain_label(line, self._said, tone=tone, wrap=True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(label)
        self._add_list(column)
        self.body.insertWidget(0, self._said)
        # A layout would show it one turn later, because the dialog is visible already.
        self._said.show()
        if self.list is not None:
            self.list.verticalScrollBar().setValue(stood)

    def _add_list(self, column: QVBoxLayout) -> None:
        """Add the missing items of one task, or the number for each of many."""
        self.list, one = None, self.checks[0]
        if len(self.checks) > 1:
            rows: list[tuple[str, ...]] = [self._line_of(each) for each in self.checks]
            self.list = TaskList((self.tr("Task"), self.tr("Missing")), rows, self._said)
            column.addWidget(self.list)
        elif one.missing and self._forced:
            rows = [(item,) for item in one.missing]
            self.list = TaskList((self.tr("Missing items"),), rows, self._said)
            copy = QPushButton(self.tr("Copy all {0}").format(count(len(one.missing))), self._said)
            copy.setAutoDefault(False)
            copy.clicked.connect(self.list.copy_all)
            column.addWidget(self.list)
            column.addWidget(copy, 0, Qt.AlignmentFlag.AlignLeft)

    def _line_of(self, one: CompletionCheck) -> tuple[str, str]:
        name = self._names.get(one.subject, one.subject)
        if one.obstacle is not None:
            return name, self._why_never(one.obstacle)
        if one.verdict is CompletionVerdict.ALLOWED:
            return name, self.tr("nothing: no force is needed")
        missing = one.guard.missing_count if one.guard is not None else None
        return name, self.tr("not known") if missing is None else count(missing)

    def _add_form(self) -> None:
        self._why = plain_label(self.tr("Reason"), self)
        self._why.setBuddy(self.reason.field)
        for part in (self._why, self.reason, self.sure):
            self.body.addWidget(part)
        self.reason.field.editTextChanged.connect(self._judge)
        self.sure.toggled.connect(self._judge)

    def _offer(self) -> None:
        """Show only the button that applies, with the matching text of the other."""
        forces, completes = bool(self._forced), bool(self._allowed) and not self._forced
        line, held = self.reason.field.lineEdit(), self.focusWidget()
        answering = held in (self.reason.field, line, self.sure, self.force)
        for part in (self._why, self.reason, self.sure, self.force):
            part.setVisible(forces)
        if answering and not forces:
            self.setFocus()  # Qt would focus a button, which the next space would press
        self._complete.setVisible(completes)
        words = self.tr("Continue instead") if forces else self.tr("Close")
        self._leave.setText(self.tr("Not yet") if completes else words)
        self._leave.setMinimumSize(BUTTON.expandedTo(self._leave.sizeHint()))

    def _judge(self) -> None:
        """Show the unmet conditions in the button's tool tip."""
        if not self._forced:
            return
        needed = []
        if not self.reason.is_enough:
            needed.append(self.tr("Give a reason of at least {0} characters").format(LEAST_REASON))
        if not self.sure.isChecked():
            needed.append(self.tr("Tick that you understand"))
        self.force.setEnabled(not needed)
        self.force.setToolTip("\n".join(needed))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move on with Enter, since the default button would discard the reason."""
        enter, where = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter), self.focusWidget()
        if enter and where in (self.reason.field, self.reason.field.lineEdit()):
            self.sure.setFocus()
        elif enter and where is self.sure:
            self.sure.setChecked(True)
            (self.force if self.force.isEnabled() else self.reason.field).setFocus()
        else:
            super().keyPressEvent(event)
