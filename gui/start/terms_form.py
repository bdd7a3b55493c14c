"""Collapsible forms for budgets, with presets, and for a contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QVBoxLayout, QWidget

from engine.budgets import BUDGETS
from engine.model.errors import Problem
from engine.model.records import ENVELOPE
from gui.start.field import MOST_NUMBER, Field, choice, number_or_none
from gui.start.fold import Fold, LateFold, grid_of
from gui.style.editors import Patterns, Seconds

WEEK_MS: Final = 7 * 24 * 3_600_000
MINUTE_MS: Final = 60_000
_DOMAINS: Final = "allowedDomains"
# Budgets of kinds with a body; streaks of tools apply to agents only.
_BODY: Final = ("maxToolCalls", "maxWallMs", "maxFailureStreak")
_SEED: Final = {name: least for name, least in BUDGETS.items() if least is not None}
_BODY_PRESETS: Final[Mapping[str, Mapping[str, int]]] = {
    "unlimited": {},
    "normal": {"maxWallMs": 60 * MINUTE_MS, "maxFailureStreak": _SEED["maxFailureStreak"]},
    "careful": {"maxToolCalls": 50, "maxWallMs": 10 * MINUTE_MS, "maxFailureStreak": 2},
}
# An envelope has default budgets, which only an explicit policy lifts.
_AGENT_PRESETS: Final[Mapping[str, Mapping[str, int]]] = {
    "normal": {},
    "careful": {
        "maxToolCalls": 50,
        "maxWallMs": 10 * MINUTE_MS,
        "maxConsecutiveSameTool": 3,
        "maxObservationStreak": 4,
        "maxFailureStreak": 2,
        "maxSameUrlNavigations": 2,
    },
    "unlimited": dict.fromkeys(_SEED, 1_000_000),
}


class BudgetForm(LateFold):
    """Form of a policy: one of three presets, or custom numbers."""

    changed = Signal()

    def __init__(self, kind: str, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.toggle.setText(self.tr("Budgets"))
        self._agent = kind == ENVELOPE
        self._others: dict[str, Any] = {}  # Values without a field, kept unchanged
        self._presets = _AGENT_PRESETS if self._agent else _BODY_PRESETS
        self._filling = False

    def make_inside(self) -> None:
        self._fields = {name: self._field(name) for name in (BUDGETS if self._agent else _BODY)}
        self.preset = Field("preset", self.tr("Preset"), choice(self._preset_words()))
        hint = self.tr("One a line; what is below a domain is included. None: anywhere.")
        self._domains = Field(_DOMAINS, self.tr("Only on these domains"), Patterns(), hint)
        self.enforce = QCheckBox(self.tr("End the task when a budget is exceeded"))
        self.column.addLayout(grid_of(self.preset))
        self.column.addLayout(grid_of(*self._fields.values()))
        self.column.addLayout(grid_of(self._domains, columns=1))
        self.column.addWidget(self.enforce)
        self.enforce.setVisible(not self._agent)
        self.preset.changed.connect(self._take_preset)
        for field in (*self._fields.values(), self._domains):
            field.changed.connect(self._show_preset)
        self.enforce.toggled.connect(lambda _: self.changed.emit())
        self._show_preset()

    @property
    def policy(self) -> dict[str, Any] | None:
        """The policy, or None without one."""
        if not self.is_made:
            return None
        found = {key: field.value for key, field in self._fields.items()}
        found = {key: value for key, value in found.items() if value is not None}
        if self._domains.value:
            found[_DOMAINS] = self._domains.value
        return {**found, **self._others} or None

    @property
    def enforces(self) -> bool:
        """True if the task is to end when a budget is exceeded."""
        return self.is_made and self.enforce.isChecked()

    def fill(self, policy: Mapping[str, Any], enforce: bool) -> None:
        """Show a policy, and expand the form if there is one."""
        if not (self.is_made or policy or enforce):
            return
        self.need()
        self._filling = True
        for key, field in self._fields.items():
            field.hold(policy.get(key))
        self._domains.hold(policy.get(_DOMAINS) or [])
        known = (*self._fields, _DOMAINS)
        self._others = {key: policy[key] for key in policy if key not in known}
        self.enforce.setChecked(enforce)
        self._filling = False
        self._show_preset()
        if policy:
            self.unfold()

    def problem_fields(self, problems: Iterable[Problem]) -> list[Problem]:
        """Show each problem at its field; return those without a field."""
        if not self.is_made:
            return list(problems)
        return _place(problems, "policy", {**self._fields, _DOMAINS: self._domains}, self)

    def field_of(self, path: str) -> QWidget | None:
        """Return the field of a problem path, or the whole form."""
        fields = {**self._fields, _DOMAINS: self._domains} if self.is_made else {}
        return _field_of(path, "policy", fields, self)

    def _field(self, name: str) -> Field:
        words = {
            "maxToolCalls": self.tr("Calls, at most"),
            "maxWallMs": self.tr("Time, at most"),
            "maxConsecutiveSameTool": self.tr("Same tool in a row"),
            "maxObservationStreak": self.tr("Looks without an act"),
            "maxFailureStreak": self.tr("Failures in a row"),
            "maxSameUrlNavigations": self.tr("Ways to the same address"),
            "checkpointEveryCalls": self.tr("Checkpoint every so many calls"),
        }
        default = BUDGETS[name]
        none = self.tr("no limit")
        if self._agent and default is not None:
            none = self.tr("{0} (as usual)").format(default)
        if name == "maxWallMs":
            return Field(name, words[name], Seconds(1, WEEK_MS, None, none))
        return Field(name, words[name], number_or_none(1, MOST_NUMBER, none))

    def _preset_words(self) -> tuple[tuple[str, str], ...]:
        words = {
            "careful": self.tr("Careful"),
            "normal": self.tr("Normal"),
            "unlimited": self.tr("Unlimited"),
        }
        return (*((key, words[key]) for key in self._presets), ("own", self.tr("Own numbers")))

    def _take_preset(self) -> None:
        chosen = self._presets.get(self.preset.value)
        if chosen is None or self._filling:
            return
        self._filling = True
        for key, field in self._fields.items():
            field.value = chosen.get(key)
        self._others = {}
        self._filling = False
        self._show_preset()

    def _show_preset(self) -> None:
        """Select the preset that equals the numbers, if any."""
        if self._filling:
            return
        numbers = {key: value for key, value in (self.policy or {}).items() if key != _DOMAINS}
        fits = [key for key, preset in self._presets.items() if dict(preset) == numbers]
        self._filling = True
        self.preset.value = fits[0] if fits else "own"
        self._filling = False
        self.changed.emit()


class ContractForm(LateFold):
    """Form of a bulk contract, which must be met before the task completes."""

    changed = Signal()

    def __init__(self, kind: str, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.toggle.setText(self.tr("Contract"))
        self._crawls = kind != ENVELOPE
        self._others: dict[str, Any] = {}

    def make_inside(self) -> None:
        self.wanted = QCheckBox(self.tr("It is complete only when this is done"))
        self._fields = {field.key: field for field in self._make()}
        inner = QWidget(self)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        lists = ("items",)
        column.addLayout(
            grid_of(*(field for key, field in self._fields.items() if key not in lists))
        )
        column.addLayout(grid_of(*(self._fields[key] for key in lists), columns=1))
        self.column.addWidget(self.wanted)
        self.column.addWidget(inner)
        inner.setEnabled(False)
        self.wanted.toggled.connect(inner.setEnabled)
        self.wanted.toggled.connect(lambda _: self.changed.emit())
        for field in self._fields.values():
            field.changed.connect(self.changed)

    @property
    def contract(self) -> dict[str, Any] | None:
        if not self.is_made or not self.wanted.isChecked():
            return None
        found = {key: field.value for key, field in self._fields.items()}
        return {
            **{key: value for key, value in found.items() if value not in ("", None, [])},
            **self._others,
        }

    def fill(self, contract: Mapping[str, Any] | None) -> None:
        """Show a contract, and expand the form if there is one."""
        if not self.is_made and contract is None:
            return
        self.need()
        self.wanted.setChecked(contract is not None)
        given = contract or {}
        for key, field in self._fields.items():
            if key.endswith(("total", "completed")):
                field.hold(given.get(key))
            elif given.get(key) is None:
                field.value = [] if key == "items" else ""
            else:
                field.hold(given[key])
        self._others = {key: given[key] for key in given if key not in self._fields}
        if contract is not None:
            self.unfold()

    def problem_fields(self, problems: Iterable[Problem]) -> list[Problem]:
        """Show each problem at its field; return those without a field."""
        if not self.is_made:
            return list(problems)
        return _place(problems, "contract", self._fields, self)

    def field_of(self, path: str) -> QWidget | None:
        """Return the field of a problem path, or the whole form."""
        return _field_of(path, "contract", self._fields if self.is_made else {}, self)

    def _make(self) -> tuple[Field, ...]:
        unknown, no_least = self.tr("not known"), self.tr("no least number")
        policies = (
            ("allow", self.tr("Failed ones count as seen to")),
            ("block", self.tr("No item may have failed")),
        )
        until = _line(self.tr("every page of the catalogue was visited"))
        key = _line("url" if self._crawls else "item")
        named = self.tr("One a line. What is missing can then be named.")
        return (
            Field(
                "expected_total",
                self.tr("Items in all"),
                number_or_none(0, MOST_NUMBER, unknown),
            ),
            Field(
                "min_completed",
                self.tr("Completed, at least"),
                number_or_none(0, MOST_NUMBER, no_least),
            ),
            Field("stop_condition", self.tr("Done when (where no total is known)"), until),
            Field("item_key", self.tr("What an item is called by"), key),
            Field("failed_policy", self.tr("Failed items"), choice(policies)),
            Field("items", self.tr("The items by name"), Patterns(), named),
        )


def _line(shade: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setPlaceholderText(shade)
    return edit


def _place(
    problems: Iterable[Problem], head: str, fields: Mapping[str, Field], fold: Fold
) -> list[Problem]:
    rest: list[Problem] = []
    found: dict[str, list[str]] = {}
    for problem in problems:
        first, _, then = problem.path.partition(".")
        key = then.split("[")[0]
        if first == head and key in fields:
            found.setdefault(key, []).append(problem.message)
        else:
            rest.append(problem)
    for key, field in fields.items():
        field.show_mistake("; ".join(found.get(key, ())))
    if found:
        fold.unfold()
    return rest


def _field_of(path: str, head: str, fields: Mapping[str, Field], fold: Fold) -> QWidget | None:
    first, _, then = path.partition(".")
    return fields.get(then.split("[")[0], fold) if first == head else None
