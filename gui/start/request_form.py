"""Form of a whole request: kind, arguments, budgets, contract and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.errors import Problem
from engine.model.kind_traits import traits_of
from engine.model.records import ENVELOPE
from engine.service.drafts import Terms
from engine.service.forms import COMMANDS, startable
from engine.service.rerun import Asked
from gui.start.command_form import CommandForm
from gui.start.field import Field
from gui.start.fold import Fold, grid_of
from gui.start.kind_form import ADDRESSES, KindForm
from gui.start.kind_forms import FormWords
from gui.start.terms_form import BudgetForm, ContractForm
from gui.style.editors import OwnEditor
from gui.style.icons import wear

CARD_ICON: Final = 22
EDGE: Final = 4  # Pixels of a field that are too few to recognise it
_IN_TERMS: Final = ("objective", "phase")  # Terms, not arguments, of an envelope


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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(self._make_cards())
        column.addWidget(self._area, 1)
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
    def is_unfolded(self) -> bool:
        return self.body.is_unfolded

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
        name = self.name.value
        self.body = CommandForm() if kind == COMMANDS else KindForm(kind, self._words)
        self._make_terms(kind)
        self.name = self._make_name()
        self.name.value = name
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(2, 2, 12, 2)
        column.setSpacing(8)
        for part in (self.body, self.budgets, self.contract):
            column.addWidget(part)
            part.changed.connect(self.changed)
        column.addLayout(grid_of(self.name, columns=1))
        column.addStretch()
        self.name.changed.connect(self.changed)
        self._fresh = True
        for fold in inner.findChildren(Fold):
            fold.unfolded.connect(lambda _: self.moved.emit())
        self.body.left.connect(self.left)
        old = self._area.takeWidget()
        self._area.setWidget(inner)
        if isinstance(self.body, CommandForm):
            self.body.one.rebuilt.connect(self.grown)
        # Widgets added by others move to the new form before the old one is deleted.
        self.kind_changed.emit(kind)
        if old is not None:
            old.deleteLater()

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
            card = self._cards[each.kind] = QToolButton(self)
            card.setText(each.title)
            wear(card, each.sign)
            card.setIconSize(QSize(CARD_ICON, CARD_ICON))
            card.setToolTip(each.doing)
            card.setAccessibleDescription(each.doing)
            card.setCheckable(True)
            card.setAutoRaise(True)
            card.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            card.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            card.setMinimumWidth(76)
            self._group.addButton(card)
            card.clicked.connect(lambda _=False, kind=each.kind: self.choose(kind))
            row.addWidget(card, 1)
        return row
