"""Form of a schedule: when a task repeats, what happens to missed runs, and when to notify."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import Qt, QTime, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QCompleter,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStackedWidget,
    QTimeEdit,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments
from engine.schedules.rules import Rule, next_after, rule_of, system_zone, zones
from engine.schedules.schedule import USUAL_GRACE_MINUTES, Schedule
from engine.text.words import clock
from gui.i18n import language
from gui.style.accessibility import InOrder
from gui.style.questions import BUTTON
from gui.style.theme import TonedLabel, plain_label
from gui.style.widgets import arrange

WIDTH: Final = 480
MOST_NAME: Final = 200
MOST_GRACE: Final = 7 * 24 * 60
_TIME: Final = "HH:mm"
_HOUR, _DAY = 60, 24 * 60
_UNITS: Final = (1, _HOUR, _DAY)
_LENGTHS: Final = ((_DAY, 366), (_HOUR, 366 * 24), (1, 366 * 24 * 60))
EVERY, DAILY, CRON = range(3)


@dataclass(frozen=True, slots=True)
class Repetition:
    """What the form holds: a rule and options for `Schedules.add` or `change`."""

    name: str
    rule: Mapping[str, Any]
    options: Mapping[str, Any]


def differs(known: Rule, rule: Mapping[str, Any]) -> bool:
    """Return whether a rule from the form is another one than `known`."""
    return any(getattr(known, name) != value for name, value in rule.items())


class RepeatDialog(InOrder, QDialog):
    """Form for a new schedule, or for the change of one; `wanted` carries a `Repetition`.

    It stays open until `accept`, so that an error of the engine can be shown in it.
    """

    wanted = Signal(object)

    def __init__(
        self, name: str, schedule: Schedule | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setModal(True)
        self.setMinimumWidth(WIDTH)
        self._is_new, self._schedule = schedule is None, schedule
        self._rule = schedule.rule if schedule is not None else Rule(every_minutes=_DAY)
        self.setWindowTitle(self.tr("Repeat a task") if self._is_new else self.tr("Edit schedule"))
        self.name = QLineEdit(display(name, MOST_NAME), self)
        self.name.setMaxLength(MOST_NAME)
        self.way = QComboBox(self)
        self.way.addItems(
            [self.tr("After an interval"), self.tr("Every day at a time"), self.tr("Cron line")]
        )
        self.number, self.unit = QSpinBox(self), QComboBox(self)
        self.unit.addItems([self.tr("minutes"), self.tr("hours"), self.tr("days")])
        self.unit.setAccessibleName(self.tr("Unit of the interval"))
        self.at = QTimeEdit(self)
        self.at.setDisplayFormat(_TIME)
        self.line = QLineEdit(self)
        self.line.setPlaceholderText("30 7 * * 1-5")
        self.zone = self._make_zone()
        self.missed = QComboBox(self)
        self.missed.addItems([self.tr("Run once for all of them"), self.tr("Skip them")])
        self.grace = QSpinBox(self)
        self.grace.setRange(0, MOST_GRACE)
        self.grace.setSuffix(self.tr(" minutes"))
        self.notify = QCheckBox(self.tr("Notify me when a run found changes"), self)
        self.preview = TonedLabel("", "muted", self)
        self.preview.setWordWrap(True)
        self.save = QPushButton(self.tr("Add") if self._is_new else self.tr("Save"), self)
        self._lay_out()
        self._show(schedule)
        self._connect()
        self._judge()

    @property
    def rule(self) -> dict[str, Any]:
        """The rule as the form holds it, valid or not."""
        way = self.way.currentIndex()
        if way == EVERY:
            return {"every_minutes": self.number.value() * _UNITS[self.unit.currentIndex()]}
        zone = self.zone.currentText().strip()
        if way == DAILY:
            return {"daily_at": self.at.time().toString(_TIME), "zone": zone}
        return {"cron": self.line.text().strip(), "zone": zone}

    def show_error(self, error: EngineError) -> None:
        """Show why the schedule could not be stored, and keep the form."""
        self.save.setEnabled(True)
        self._say(language.told(error), is_bad=True)

    def _make_zone(self) -> QComboBox:
        made = QComboBox(self)
        made.setEditable(True)
        made.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        made.addItems(zones())
        completer = QCompleter(made.model(), made)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        made.setCompleter(completer)
        return made

    def _lay_out(self) -> None:
        interval, daily, cron = QWidget(self), QWidget(self), QWidget(self)
        arrange(QHBoxLayout(interval), self.number, self.unit, 1, margins=0, spacing=8)
        arrange(QHBoxLayout(daily), self.at, 1, margins=0)
        arrange(QHBoxLayout(cron), self.line, margins=0)
        self._pages = QStackedWidget(self)
        for page in (interval, daily, cron):
            self._pages.addWidget(page)
        self.form = QFormLayout()
        self.form.setSpacing(8)
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for words, field, named in (
            (self.tr("&Name"), self.name, self.name),
            (self.tr("&Repeat"), self.way, self.way),
            (self.tr("&When"), self._pages, self.number),
            (self.tr("Time &zone"), self.zone, self.zone),
            (self.tr("&Missed runs"), self.missed, self.missed),
            (self.tr("Missed if &later than"), self.grace, self.grace),
        ):
            label = plain_label(words, self)
            label.setBuddy(named)
            self.form.addRow(label, field)
            named.setAccessibleName(words.replace("&", ""))
        self.at.setAccessibleName(self.tr("Time of day"))
        self.line.setAccessibleName(self.tr("Cron line"))
        cancel = QPushButton(self.tr("Cancel"), self)
        cancel.clicked.connect(self.reject)
        cancel.setAutoDefault(False)
        self.save.setDefault(True)
        for button in (self.save, cancel):
            button.setMinimumSize(BUTTON)
        row = arrange(QHBoxLayout(), 1, self.save, cancel, spacing=8)
        column = arrange(QVBoxLayout(self), margins=(20, 18, 20, 16), spacing=12)
        column.addLayout(self.form)
        arrange(column, self.notify, self.preview, 1)
        column.addLayout(row)

    def _show(self, schedule: Schedule | None) -> None:
        rule = self._rule
        self.zone.setCurrentText(rule.zone if rule.every_minutes is None else system_zone())
        self.at.setTime(QTime.fromString(rule.daily_at or "07:30", _TIME))
        self.line.setText(rule.cron or "")
        self._show_interval(rule.every_minutes or _DAY)
        self.way.setCurrentIndex(CRON if rule.cron else DAILY if rule.daily_at else EVERY)
        skips = schedule is not None and schedule.missed == "skip"
        self.missed.setCurrentIndex(int(skips))
        grace = schedule.grace_minutes if schedule is not None else USUAL_GRACE_MINUTES
        self.grace.setValue(grace)
        self.notify.setChecked(schedule.notify if schedule is not None else True)
        self._show_way()

    def _show_interval(self, minutes: int) -> None:
        length, most = next(one for one in _LENGTHS if minutes % one[0] == 0)
        self.number.setRange(1, most)
        self.number.setValue(minutes // length)
        self.unit.setCurrentIndex(_UNITS.index(length))

    def _connect(self) -> None:
        self.way.currentIndexChanged.connect(lambda _: self._show_way())
        self.unit.currentIndexChanged.connect(lambda _: self._limit())
        self.missed.currentIndexChanged.connect(lambda _: self._show_way())
        for changed in (
            self.way.currentIndexChanged,
            self.number.valueChanged,
            self.unit.currentIndexChanged,
            self.at.timeChanged,
            self.line.textChanged,
            self.zone.currentTextChanged,
        ):
            changed.connect(lambda *_: self._judge())
        self.save.clicked.connect(self._want)

    def _limit(self) -> None:
        lengths = dict(_LENGTHS)
        self.number.setMaximum(lengths[_UNITS[self.unit.currentIndex()]])

    def _show_way(self) -> None:
        """Show only the fields that the chosen way has."""
        way = self.way.currentIndex()
        self._pages.setCurrentIndex(way)
        self.form.setRowVisible(self.zone, way != EVERY)
        self.form.setRowVisible(self.grace, self.missed.currentIndex() == 1)
        label = self.form.labelForField(self._pages)
        if label is not None:
            label.setBuddy((self.number, self.at, self.line)[way])  # type: ignore[attr-defined]

    def _judge(self) -> None:
        """Show the next two occurrences, or the mistake."""
        now_ms = int(time.time() * 1000)
        try:
            rule, since = rule_of(self.rule, now_ms), now_ms
        except InvalidArguments as error:
            self.save.setEnabled(False)
            problems = map(language.translated, error.problems)
            self._say("; ".join(problem.message for problem in problems), is_bad=True)
            return
        self.save.setEnabled(True)
        if self._schedule is not None and not differs(self._rule, self.rule):
            rule, since = self._rule, max(self._schedule.after, now_ms)  # It goes on as before
        first = next_after(rule, since)
        second = next_after(rule, first) if first is not None else None
        if first is not None and second is not None:
            words = self.tr("Next on this computer's clock: {0}, then {1}")
            if self._schedule is not None and self._schedule.paused:
                words = self.tr("Paused. If it is resumed now: {0}, then {1}")
            self._say(words.format(clock(first, now_ms), clock(second, now_ms)))

    def _say(self, text: str, *, is_bad: bool = False) -> None:
        self.preview.show_tone("bad" if is_bad else "muted")
        self.preview.show_text(text)

    def _want(self) -> None:
        self.save.setEnabled(False)
        skips = self.missed.currentIndex() == 1
        options = {
            "missed": "skip" if skips else "once",
            "grace_minutes": self.grace.value(),
            "notify": self.notify.isChecked(),
        }
        self.wanted.emit(Repetition(self.name.text().strip(), self.rule, options))
