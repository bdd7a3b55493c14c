"""Another name for a preset of the start dialog."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gui.start.presets import MOST_TITLE, Presets
from gui.style.editors import NameLine
from gui.style.question import Question
from gui.style.theme import plain_label

_FIELD_HEIGHT = 28


class PresetName(Question):
    """Asks what the preset `title` is to be called, and says when that replaces another one."""

    def __init__(self, presets: Presets, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._taken = {kept.title for kept in presets.presets} - {title}
        self.ask(self.tr("Rename preset"), self.tr("Give the preset another name"))
        self.name = NameLine(title, self)
        self.name.setMaxLength(MOST_TITLE)
        self.name.setMinimumHeight(_FIELD_HEIGHT)
        self.name.setAccessibleName(self.tr("Name of the preset"))
        self._lay_out()
        self.add_button("", self.tr("Cancel"))
        self._ok = self.add_button("rename", self.tr("Rename"))
        self._ok.setDefault(True)  # Esc still renames nothing
        self.name.textChanged.connect(self._judge)
        self.name.returnPressed.connect(self._ok.click)
        self.when_answered(
            lambda answer: presets.rename(title, self.name.text()) if answer else None
        )
        self._judge()
        self.name.setFocus(Qt.FocusReason.OtherFocusReason)
        self.name.selectAll()

    def _lay_out(self) -> None:
        label = plain_label(self.tr("&Name"), self)
        label.setBuddy(self.name)
        self._note = plain_label("", self, tone="muted")
        form = QVBoxLayout()
        form.setSpacing(4)
        for part in (label, self.name, self._note):
            form.addWidget(part)
        self.body.addLayout(form)

    def _judge(self) -> None:
        wanted = self.name.text().strip()
        self._ok.setEnabled(bool(wanted))
        replaces = wanted in self._taken
        self._note.show_text(self.tr("Replaces the preset of this name.") if replaces else "")
