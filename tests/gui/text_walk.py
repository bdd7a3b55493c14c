"""Every text that a window says or hides, with the way in which Qt would read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex
from PySide6.QtGui import QAction, QImage, Qt, QTextDocument
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QStatusBar,
    QTabBar,
    QTextEdit,
    QWidget,
)

from engine.model.display import display_lines
from tests.gui.hostile_texts import CANARY, MARK

ROLES = [role for role in Qt.ItemDataRole if role < Qt.ItemDataRole.UserRole]
MOST_ROWS = 60  # of one list: beyond them nothing is new
TAGS = re.compile(r"<\s*/?\s*([^\s>/]+)")
# `tip`: Qt guesses whether it is markup; `keys`: an & makes a shortcut; `plain`: as it stands
TIP_ROLES = {Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.WhatsThisRole}


@dataclass(frozen=True)
class Said:
    """One text, where it was found, and how it is read."""

    where: str
    text: str
    how: str = "plain"

    @property
    def is_theirs(self) -> bool:
        return MARK in self.text

    def faults(self) -> list[str]:
        """What Qt would make of it beyond its letters."""
        shown = f"{self.where}: {self.text[:120]!r}"
        if self.how == "guessing label":
            return [f"guesses at markup: {shown}"]
        read, found = self.text, []
        if self.how == "tip" and Qt.mightBeRichText(read):
            if set(TAGS.findall(read)) - {"p"}:
                found.append(f"renders markup: {shown}")
            document = QTextDocument()
            document.setHtml(read)
            read = document.toPlainText()
        if self.how == "keys" and self.is_theirs and "&" in read.replace("&&", ""):
            found.append(f"makes a shortcut: {shown}")
        if display_lines(read) != read:
            found.append(f"holds what may not be shown: {shown}")
        if len(read) > 20_000:
            found.append(f"has {len(read)} characters: {shown}")
        return found


def said_by(widgets: Iterable[QWidget]) -> Iterator[Said]:
    """All texts of these widgets; the lists among them are asked for every cell and role."""
    for widget in widgets:
        name = f"{type(widget).__name__} {widget.objectName()}".strip()
        for said in (*_of_every(widget), *_of_kind(widget)):
            yield Said(f"{name}.{said.where}", said.text, said.how)


def _of_every(widget: QWidget) -> Iterator[Said]:
    yield Said("tooltip", widget.toolTip(), "tip")
    yield Said("what's this", widget.whatsThis(), "tip")
    yield Said("status tip", widget.statusTip(), "tip")
    yield Said("title", widget.windowTitle())
    yield Said("icon text", widget.windowIconText())
    yield Said("accessible name", widget.accessibleName())
    yield Said("accessible description", widget.accessibleDescription())
    for action in widget.actions():
        yield from _of_action(action)


def _of_action(action: QAction) -> Iterator[Said]:
    yield Said("action", action.text(), "keys")
    yield Said("action's short text", action.iconText(), "keys")
    yield Said("action's tooltip", action.toolTip(), "tip")
    yield Said("action's status tip", action.statusTip(), "tip")
    yield Said("action's what's this", action.whatsThis(), "tip")


def _of_kind(widget: QWidget) -> Iterator[Said]:
    if isinstance(widget, QLabel):
        yield from _of_label(widget)
    elif isinstance(widget, QAbstractButton):
        yield Said("button", widget.text(), "keys")
    elif isinstance(widget, QLineEdit):
        yield Said("line", widget.text())
        yield Said("placeholder", widget.placeholderText())
    elif isinstance(widget, QPlainTextEdit):
        yield Said("text", widget.toPlainText())
        yield Said("placeholder", widget.placeholderText())
    elif isinstance(widget, QTextEdit):
        yield Said("rich text", widget.toHtml(), "guessing label")
    elif isinstance(widget, QAbstractItemView):
        yield from _of_view(widget)
    else:
        yield from _of_box(widget)


def _of_label(label: QLabel) -> Iterator[Said]:
    plain = label.textFormat() is Qt.TextFormat.PlainText
    keys = "keys" if label.buddy() is not None else "plain"
    yield Said("label", label.text(), keys if plain else "guessing label")


def _of_box(widget: QWidget) -> Iterator[Said]:
    if isinstance(widget, QTabBar):
        for at in range(widget.count()):
            yield Said("tab", widget.tabText(at), "keys")
            yield Said("tab's tooltip", widget.tabToolTip(at), "tip")
    elif isinstance(widget, QComboBox):
        yield from (Said("item", widget.itemText(at)) for at in range(widget.count()))
    elif isinstance(widget, QGroupBox | QMenu):
        yield Said("heading", widget.title(), "keys")
    elif isinstance(widget, QProgressBar):
        yield Said("format", widget.format())
    elif isinstance(widget, QStatusBar):
        yield Said("message", widget.currentMessage())


def _of_view(view: QAbstractItemView) -> Iterator[Said]:
    model: QAbstractItemModel | None = view.model()
    if model is None:
        return
    for row in range(min(model.rowCount(view.rootIndex()), MOST_ROWS)):
        for column in range(_columns(model, view.rootIndex())):
            yield from _of_index(model.index(row, column, view.rootIndex()))
    for way in (Qt.Orientation.Horizontal, Qt.Orientation.Vertical):
        for section in range(min(_length(model, way), MOST_ROWS)):
            for role in ROLES:
                found = model.headerData(section, way, role)
                if isinstance(found, str):
                    yield Said(f"header {role.name}", found, _how(role))


def _length(model: QAbstractItemModel, way: Qt.Orientation) -> int:
    return _columns(model, QModelIndex()) if way is Qt.Orientation.Horizontal else model.rowCount()


def _columns(model: QAbstractItemModel, parent: QModelIndex) -> int:
    return 1 if isinstance(model, QAbstractListModel) else model.columnCount(parent)


def _of_index(index: QModelIndex) -> Iterator[Said]:
    for role in ROLES:
        found = index.data(role)
        if isinstance(found, str):
            yield Said(f"cell {index.row()},{index.column()} {role.name}", found, _how(role))


def _how(role: Qt.ItemDataRole) -> str:
    return "tip" if role in TIP_ROLES else "plain"


def shows_canary(image: QImage) -> bool:
    """Is there one pixel of the canary's colour? No theme of ours has it."""
    picture = image.convertToFormat(QImage.Format.Format_RGB32)
    wanted = CANARY.rgb().to_bytes(4, "little")
    bits = bytes(picture.constBits())
    at = bits.find(wanted)
    while at >= 0 and at % 4:
        at = bits.find(wanted, at + 1)
    return at >= 0
