"""The address of a form in three shapes: typed, offered from the clipboard, or a list of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from engine.model.display import elide_right
from engine.model.errors import Problem
from engine.service.rerun import Asked
from gui.start.address import address_in
from gui.start.bulk_start_dialog import Many
from gui.style.theme import plain_keys

if TYPE_CHECKING:
    from gui.start.command_form import CommandForm
    from gui.start.kind_form import KindForm
    from gui.start.request_form import RequestForm

LONGEST_OFFER: Final = 60
WITH_LISTS: Final = ("crawl", "crawl_sitemap", "oc_evidence_bundle")


class AddressesPart(QWidget):
    """Stands below the first field of whichever form is shown."""

    changed = Signal()

    def __init__(self, form: RequestForm, parent: QWidget) -> None:
        super().__init__(parent)
        self._form = form
        self._offered = ""
        self.offer = QPushButton(self)
        self.switch = QPushButton(self.tr("Several addresses…"), self)
        self.many = Many(parent)
        self.many.setVisible(False)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self.offer, self.switch):
            button.setAutoDefault(False)
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        row.addStretch()
        self.offer.setVisible(False)
        self.offer.clicked.connect(self._take_offer)
        self.switch.setCheckable(True)
        self.switch.toggled.connect(self._show_many)
        self.many.changed.connect(self.changed)

    @property
    def is_many(self) -> bool:
        """Is a list asked for instead of one address?"""
        return self.switch.isChecked()

    @property
    def number(self) -> int:
        """How many tasks the list makes; 0 without one."""
        if not self.is_many or self.many.mistake:
            return 0
        return len(self.many.found.urls) if self.many.shape.currentData() == "each" else 1

    @property
    def obstacle(self) -> str:
        """Why nothing can be started at this address, or at these; empty when it can."""
        if self.is_many:
            return self.many.mistake
        return self.tr("Type the address of the site first.") if self.lacks_address else ""

    def less_address(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """A list has judged its addresses itself."""
        return tuple(one for one in problems if not self.is_many or one.path != "url")

    @property
    def lacks_address(self) -> bool:
        """Is the one address missing that this kind needs?"""
        body = self._form.body
        if self.is_many or "url" not in body:
            return False
        other = body["sitemap_url"].value if "sitemap_url" in body else ""
        return not body["url"].value and not other

    def requests(self, asked: Asked) -> list[Asked]:
        """What the list asks for; empty without one."""
        return self.many.requests(asked) if self.is_many else []

    def move_to(self, body: KindForm | CommandForm) -> None:
        """Another form is shown: stand in that one."""
        body.under_first.addWidget(self)
        body.under_first.addWidget(self.many)
        self.setVisible(True)  # another parent hides it
        self.switch.setVisible(body.kind in WITH_LISTS)
        if body.kind not in WITH_LISTS:
            self.switch.setChecked(False)
        self.many.setVisible(self.is_many)
        self.offer.setVisible(False)
        if "url" in body:
            body["url"].changed.connect(lambda: self.offer.setVisible(False))
            body["url"].editor.installEventFilter(self)
            self._show_one(not self.is_many)

    def start_list(self, text: str) -> None:
        """Take many addresses, in the place of one."""
        self.switch.setChecked(True)
        self.many.set_text(text)
        self.many.text.setFocus()

    def offer_text(self, text: str) -> None:
        """Offer the address that `text` is, if it is one and nothing was typed yet."""
        self._offered = address_in(text)
        shown = plain_keys(elide_right(self._offered, LONGEST_OFFER))
        self.offer.setText(self.tr("Paste {0}").format(shown))
        self.offer.setVisible(bool(self._offered) and self.lacks_address)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Several lines that are pasted into the address are a list."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            text = QGuiApplication.clipboard().text()
            pastes = event.matches(QKeySequence.StandardKey.Paste)
            if pastes and self._form.kind in WITH_LISTS and len(text.split("\n")) > 1:
                self.start_list(text)
                return True
        return False

    def _take_offer(self) -> None:
        self._form["url"].value = self._offered
        self._form.focus()

    def _show_many(self, wanted: bool) -> None:
        self.many.setVisible(wanted)
        self.switch.setText(
            self.tr("One address only") if wanted else self.tr("Several addresses…")
        )
        self.offer.setVisible(False)
        body = self._form.body
        if "url" in body:
            typed = body["url"].value
            self._show_one(not wanted)
            if wanted and typed and isinstance(typed, str) and not self.many.text.toPlainText():
                self.many.set_text(typed)
        (self.many.text if wanted else body.needed).setFocus()
        self.changed.emit()

    def _show_one(self, shown: bool) -> None:
        for key in ("url", "sitemap_url"):
            if key in self._form.body:
                field = self._form[key]
                field.setVisible(shown)
                field.name.setVisible(shown)
