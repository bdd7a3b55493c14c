"""A name for what the list shows now."""

from __future__ import annotations

from collections.abc import Callable, Collection

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QDialog, QPushButton, QVBoxLayout, QWidget

from gui.filters.saved_views import MOST_NAME, own_key
from gui.style.editors import NameLine
from gui.style.question import Question
from gui.style.theme import plain_label

_FIELD_HEIGHT = 28


class SaveView(Question):
    """Asks for a name; `save` is called with it, and whether order and columns belong to it."""

    def __init__(
        self, taken: Collection[str], save: Callable[[str, bool], object], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._taken = taken
        self.ask(self.tr("Save view"), self.tr("Keep what the list shows as a view"))
        self.name = NameLine(self)
        self.name.setMaxLength(MOST_NAME)
        self.name.setMinimumHeight(_FIELD_HEIGHT)
        self.name.setAccessibleName(self.tr("Name of the view"))
        self._lay_out()
        self.add_button("", self.tr("Cancel"))
        self._ok = self.add_button("save", self.tr("Save"))
        self._ok.setDefault(True)  # for Enter on the check box; Esc still saves nothing
        self.name.textChanged.connect(lambda _: self._judge())
        self.name.returnPressed.connect(self._ok.click)
        self.when_answered(
            lambda answer: save(self.name.text(), self.layout_too.isChecked()) if answer else None
        )
        self._judge()
        self.name.setFocus(Qt.FocusReason.OtherFocusReason)

    def _lay_out(self) -> None:
        label = plain_label(self.tr("&Name"), self)
        label.setBuddy(self.name)
        self.layout_too = QCheckBox(self.tr("With its &order and columns"), self)
        self._note = plain_label("", self, tone="muted")
        form = QVBoxLayout()
        form.setSpacing(4)
        for part in (label, self.name, self._note, self.layout_too):
            form.addWidget(part)
        self.body.addLayout(form)

    def start_with(self, name: str) -> None:
        """Offer this name."""
        self.name.setText(name)
        self.name.selectAll()

    @property
    def save_button(self) -> QPushButton:
        return self._ok

    def _judge(self) -> None:
        key = own_key(self.name.text())
        named = bool(self.name.text().strip())
        self._ok.setEnabled(named)
        self._ok.setToolTip("" if named else self.tr("A view needs a name"))
        replaces = named and key in self._taken
        self._note.show_text(self.tr("Replaces the view of this name.") if replaces else "")


class RenameView(SaveView):
    """Asks for another name of a view."""

    def __init__(
        self, taken: Collection[str], save: Callable[[str, bool], object], parent: QWidget
    ) -> None:
        super().__init__(taken, save, parent)
        self.ask(self.tr("Rename view"), self.tr("Give the view another name"))
        self.layout_too.hide()


def opened(dialog: QDialog) -> QDialog:
    """`dialog`, shown, and gone for good when it is closed."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
    return dialog
