"""Form of a whole request: kind, arguments, name, and collapsible budgets and contract."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.budgets import BUDGETS
from engine.model.errors import Problem
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE
from engine.service.drafts import Terms
from engine.service.forms import COMMANDS, startable
from engine.service.rerun import Asked
from gui.start.command_form import CommandForm
from gui.start.field import MOST_NUMBER, Field, Fold, choice, grid_of, number_or_none
from gui.start.kind_form import ADDRESS_LISTS, ADDRESSES, FormWords, KindForm
from gui.style.editors import OwnEditor, Patterns, Seconds
from gui.style.icons import wear
from gui.style.widgets import arrange

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


class TermsForm(Fold):
    """Form of the terms whose problem paths begin with `head`.

    Its content is created on first use, since each hidden field costs 2 ms.
    """

    changed = Signal()
    head = ""
    is_made = False

    @property
    @abstractmethod  # Enforced by the type checker, because Qt's metaclass excludes ABCMeta
    def fields(self) -> Mapping[str, Field]:
        """The fields by key, once they are made."""

    @abstractmethod
    def make_inside(self) -> None:
        """Fill `column` with the content."""

    def need(self) -> None:
        """Create the content once."""
        if not self.is_made:
            self.is_made = True
            self.make_inside()

    def _show(self, shown: bool) -> None:
        self.need()
        super()._show(shown)

    def problem_fields(self, problems: Iterable[Problem]) -> list[Problem]:
        """Show each problem at its field; return those without a field."""
        if not self.is_made:
            return list(problems)
        rest: list[Problem] = []
        found: dict[str, list[str]] = {}
        for problem in problems:
            first, _, then = problem.path.partition(".")
            key = then.split("[")[0]
            if first == self.head and key in self.fields:
                found.setdefault(key, []).append(problem.message)
            else:
                rest.append(problem)
        for key, field in self.fields.items():
            field.show_mistake("; ".join(found.get(key, ())))
        if found:
            self.unfold()
        return rest

    def field_of(self, path: str) -> QWidget | None:
        """Return the field of a problem path, or the whole form."""
        first, _, then = path.partition(".")
        if first != self.head:
            return None
        return self.fields.get(then.split("[")[0], self) if self.is_made else self


class BudgetForm(TermsForm):
    """Form of a policy: one of three presets, or custom numbers."""

    head = "policy"

    def __init__(self, kind: str) -> None:
        super().__init__("")
        self.title = self.tr("Budgets")
        self._agent = kind == ENVELOPE
        self._others: dict[str, Any] = {}  # Values without a field, kept unchanged
        self._presets = _AGENT_PRESETS if self._agent else _BODY_PRESETS
        self._filling = False

    def make_inside(self) -> None:
        self._fields = {name: self._field(name) for name in (BUDGETS if self._agent else _BODY)}
        self.preset = Field("preset", self.tr("Preset"), choice(self._preset_words()))
        hint = self.tr("One per line; what is below a domain is included. None: anywhere.")
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

    @property
    def fields(self) -> Mapping[str, Field]:
        return {**self._fields, _DOMAINS: self._domains}

    def _field(self, name: str) -> Field:
        words = {
            "maxToolCalls": self.tr("Call limit"),
            "maxWallMs": self.tr("Time limit"),
            "maxConsecutiveSameTool": self.tr("Same tool in a row"),
            "maxObservationStreak": self.tr("Looks without an act"),
            "maxFailureStreak": self.tr("Failures in a row"),
            "maxSameUrlNavigations": self.tr("Ways to the same address"),
            "checkpointEveryCalls": self.tr("Calls per checkpoint"),
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


class ContractForm(TermsForm):
    """Form of a bulk contract, which must be met before the task completes."""

    head = "contract"

    def __init__(self, kind: str) -> None:
        super().__init__("")
        self.title = self.tr("Contract")
        self._crawls = kind != ENVELOPE
        self._others: dict[str, Any] = {}

    def make_inside(self) -> None:
        self.wanted = QCheckBox(self.tr("Require completeness"))
        self._fields = {field.key: field for field in self._make()}
        inner = QWidget(self)
        column = arrange(QVBoxLayout(inner), margins=0, spacing=10)
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

    @property
    def fields(self) -> Mapping[str, Field]:
        return self._fields

    def _make(self) -> tuple[Field, ...]:
        unknown, no_least = self.tr("not known"), self.tr("no minimum")
        policies = (
            ("allow", self.tr("Failed items count as handled")),
            ("block", self.tr("No item may have failed")),
        )
        until = _line(self.tr("every page of the catalogue was visited"))
        key = _line("url" if self._crawls else "item")
        named = self.tr("One per line. What is missing can then be named.")
        return (
            Field(
                "expected_total", self.tr("Expected items"), number_or_none(0, MOST_NUMBER, unknown)
            ),
            Field(
                "min_completed",
                self.tr("Minimum completed"),
                number_or_none(0, MOST_NUMBER, no_least),
            ),
            Field("stop_condition", self.tr("Done when (where no total is known)"), until),
            Field("item_key", self.tr("Item key"), key),
            Field("failed_policy", self.tr("Failed items"), choice(policies)),
            Field("items", self.tr("Item list"), Patterns(), named),
        )


def _line(shade: str) -> QLineEdit:
    edit = QLineEdit()
    edit.setPlaceholderText(shade)
    return edit


CARD_ICON: Final = 22
CARD_WIDTH: Final = 76
CARDS_SHARE: Final = 3 / 5  # of the width of the screen, which all cards together have at most
EDGE: Final = 4  # Pixels of a field that are too few to recognise it
_IN_TERMS: Final = ("objective", "phase")  # Terms, not arguments, of an envelope


class _KindCard(QToolButton):
    """Card of a kind that has room for its name, unless the dialog would outgrow the screen."""

    def sizeHint(self) -> QSize:
        wanted = super().sizeHint()
        return QSize(max(wanted.width(), CARD_WIDTH), wanted.height())

    def minimumSizeHint(self) -> QSize:
        wanted, cards = self.sizeHint(), len(startable())
        most = int(self.screen().availableSize().width() * CARDS_SHARE / cards)
        return QSize(min(wanted.width(), max(most, CARD_WIDTH)), wanted.height())


class RequestForm(QWidget):
    """Request form; `asked` is the request.

    `kind_changed` reports another kind, `grown` added content, `moved` scrolling.
    """

    changed = Signal()
    left = Signal(str)
    kind_changed = Signal(str)
    grown = Signal()
    moved = Signal()

    def __init__(self, words: FormWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = words
        self._terms = Terms()
        self._cards: dict[str, QToolButton] = {}
        self._group = QButtonGroup(self)
        self._fresh = False  # True until the first edit of a new form
        self.body: KindForm | CommandForm
        self.budgets: BudgetForm
        self.contract: ContractForm
        self.name = self._make_name()
        self._area = QScrollArea(self)
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        arrange(QVBoxLayout(self), self._make_cards(), (self._area, 1), margins=0, spacing=12)
        self.changed.connect(self._spoil)
        self._area.verticalScrollBar().valueChanged.connect(lambda _: self.moved.emit())
        self._build(startable()[0])

    def __getitem__(self, key: str) -> Field:
        return self.body[key]

    @property
    def kind(self) -> str:
        return self.body.kind

    @property
    def typed_addresses(self) -> list[str]:
        """The keys of the addresses that have a typed text."""
        known = [key for key in ADDRESSES if key in self.body]
        return [key for key in known if self.body[key].value and not self.body[key].is_strange]

    @property
    def typed_lists(self) -> list[str]:
        """The keys of the lists of addresses that have a typed text."""
        known = [key for key in ADDRESS_LISTS if key in self.body]
        return [key for key in known if self.body[key].value and not self.body[key].is_strange]

    @property
    def is_unfolded(self) -> bool:
        return self.body.is_unfolded

    @property
    def unfolded(self) -> frozenset[str]:
        """The titles of the expanded sections."""
        folds = self._area.findChildren(Fold)
        return frozenset(fold.title for fold in folds if fold.is_unfolded)

    def unfold(self, titles: frozenset[str]) -> None:
        """Expand the sections with these titles."""
        for fold in self._area.findChildren(Fold):
            if fold.title in titles:
                fold.unfold()

    @property
    def asked(self) -> Asked:
        """The request in its current state."""
        args, terms = self.body.args, msgspec.structs.asdict(self._terms)
        if self.kind == ENVELOPE:
            terms.update({name: args.pop(name, None) for name in _IN_TERMS})
        policy = self.budgets.policy
        terms["policy"] = policy
        terms["enforce"] = bool(policy) and self.budgets.enforces
        terms["contract"] = self.contract.contract if traits_of(self.kind).contract else None
        return Asked(self.kind, args, self.name.value or None, Terms(**terms))

    def show_request(self, asked: Asked, *, whole: bool) -> None:
        """Show a request; what the form cannot show is dropped, or kept if `whole`."""
        if not self._fresh or asked.kind != self.kind:
            self._build(asked.kind)
        terms = self._terms = asked.terms
        args = dict(asked.args)
        if asked.kind == ENVELOPE:
            said = {name: getattr(terms, name) for name in _IN_TERMS}
            args = {**{name: value for name, value in said.items() if value}, **args}
        self.body.fill(args, whole=whole)
        self.budgets.fill(terms.policy or {}, terms.enforce)
        self.contract.fill(terms.contract)
        self.name.value = asked.name or ""
        self.changed.emit()

    def fill(self, args: Mapping[str, Any]) -> None:
        """Show arguments of the current kind; unknown ones are ignored."""
        self.body.fill(args)

    def choose(self, kind: str) -> None:
        """Switch to another kind and keep the typed address."""
        if kind == self.kind:
            return
        before = self.body.args.get("url")
        self._build(kind)
        if isinstance(before, str) and "url" in self.body:
            self.body["url"].value = before
        self.changed.emit()
        self.focus()

    def clear_need(self) -> None:
        """Clear the subject of the task and keep all other fields."""
        for key in ("url", "sitemap_url", "objective", "task_name"):
            if key in self.body:
                self.body[key].value = ""

    def focus(self) -> None:
        """Focus the required field."""
        self.body.needed.setFocus()

    def field_of(self, path: str) -> QWidget | None:
        """Return the widget for a problem path, which may be collapsed or scrolled away."""
        for part in (self.body, self.budgets, self.contract):
            field = part.field_of(path)
            if field is not None:
                return field
        return self.name if path == "name" else None

    def label_of(self, path: str) -> str:
        """Return the name of the field for a problem path; of a command, with its number."""
        if isinstance(self.body, CommandForm) and (label := self.body.label_of(path)):
            return label
        field = self.field_of(path)
        return field.label if isinstance(field, Field) else ""

    def is_in_sight(self, widget: QWidget) -> bool:
        """Return whether the widget is expanded and inside the scrolled area."""
        if not widget.isVisible():
            return False
        view = self._area.viewport()
        place = QRect(widget.mapTo(view, QPoint(0, 0)), widget.size())
        return view.rect().intersects(place.adjusted(0, EDGE, 0, -EDGE))

    def reveal(self, path: str) -> None:
        """Expand, scroll to and focus the widget for a problem path."""
        self.body.reveal(path)
        for fold in (self.budgets, self.contract):
            if fold.field_of(path) is not None:
                fold.unfold()
        self.show_widget(self.field_of(path))

    def show_widget(self, widget: QWidget | None) -> None:
        """Scroll to a widget of the form and focus it."""
        if widget is not None:  # A new or expanded widget is laid out in the next turn
            QTimer.singleShot(0, widget, lambda: self._go_to(widget))

    def _go_to(self, widget: QWidget) -> None:
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        self._area.ensureWidgetVisible(widget)
        editor = widget.editor if isinstance(widget, Field) else widget
        target = editor.target if isinstance(editor, OwnEditor) else editor
        target.setFocus(Qt.FocusReason.OtherFocusReason)
        self.moved.emit()

    def show_problems(self, problems: Iterable[Problem]) -> list[str]:
        """Show each problem at its field; return those without a field."""
        rest = self.body.problem_fields(problems)
        rest = self.contract.problem_fields(self.budgets.problem_fields(rest))
        said = [one.message for one in rest if one.path == "name"]
        self.name.show_mistake("; ".join(said))
        return [str(one) for one in rest if one.path != "name"]

    def _build(self, kind: str) -> None:
        self._cards[kind].setChecked(True)
        for card in self._cards.values():  # Tab stops at the chosen one; arrows choose another
            stops = card.isChecked()
            card.setFocusPolicy(Qt.FocusPolicy.StrongFocus if stops else Qt.FocusPolicy.ClickFocus)
        name = self.name.value
        self.body = CommandForm(self._words) if kind == COMMANDS else KindForm(kind, self._words)
        self._make_terms(kind)
        self.name = self._make_name()
        self.name.value = name
        inner = QWidget()
        column = arrange(QVBoxLayout(inner), margins=(2, 2, 12, 2), spacing=8)
        for part in (self.body, self.budgets, self.contract):
            column.addWidget(part)
            part.changed.connect(self.changed)
        column.addLayout(grid_of(self.name, columns=1))
        column.addStretch()
        self.name.changed.connect(self.changed)
        self._fresh = True
        for fold in inner.findChildren(Fold):
            fold.unfolded.connect(lambda _: self.moved.emit())
            fold.toggle.clicked.connect(lambda _=False, fold=fold: self._show_opened(fold))
        self.body.left.connect(self.left)
        old = self._area.takeWidget()
        self._area.setWidget(inner)
        if isinstance(self.body, CommandForm):
            self.body.one.rebuilt.connect(self.grown)
        # Widgets added by others move to the new form before the old one is deleted.
        self.kind_changed.emit(kind)
        if old is not None:
            old.deleteLater()

    def _show_opened(self, fold: Fold) -> None:
        """Scroll to a section that the user opens: at the lower edge nothing of it would show."""
        if fold.is_unfolded:
            QTimer.singleShot(0, fold, lambda: self._scroll_to(fold))  # once it has its height

    def _scroll_to(self, fold: Fold) -> None:
        bar, view = self._area.verticalScrollBar(), self._area.viewport()
        for _ in range(2):  # scrolling shows why nothing starts below the form, which takes room
            top = fold.mapTo(view, QPoint(0, 0)).y() + bar.value()
            lowest = top + fold.height() - view.height()
            bar.setValue(min(top, max(bar.value(), lowest)))  # the heading stays in sight
            if (layout := self.window().layout()) is not None:
                layout.activate()

    def _make_terms(self, kind: str) -> None:
        self.budgets, self.contract = BudgetForm(kind), ContractForm(kind)
        self.contract.setVisible(traits_of(kind).contract)
        for fold in (self.budgets, self.contract):
            fold.unfolded.connect(lambda _: self.grown.emit())

    def _spoil(self) -> None:
        self._fresh = False

    def _make_name(self) -> Field:
        edit = QLineEdit()
        edit.setPlaceholderText(self.tr("what the list calls it"))
        return Field("name", self.tr("Name"), edit)

    def _make_cards(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        for each in self._words.kinds():
            card = self._cards[each.kind] = _KindCard(self)
            card.setText(each.title)
            wear(card, each.sign)
            card.setIconSize(QSize(CARD_ICON, CARD_ICON))
            card.setToolTip(each.doing)
            card.setAccessibleDescription(each.doing)
            card.setCheckable(True)
            card.setAutoRaise(True)
            card.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            self._group.addButton(card)
            card.clicked.connect(lambda _=False, kind=each.kind: self.choose(kind))
            row.addWidget(card, 1)
        return row
