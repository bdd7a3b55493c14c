"""A request in two shapes that stay in step: as a form, and as JSON."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from engine.model.errors import Problem
from engine.service.rerun import Asked
from gui.start.json_pane import JsonPane
from gui.start.kind_forms import FormWords
from gui.start.request_form import RequestForm

FORM: Final = 0
JSON: Final = 1


class RequestTabs(QTabWidget):
    """`turned` when the other shape is shown; `stuck` when the JSON is no request that the form
    could show, and therefore stays in sight."""

    turned, stuck = Signal(), Signal()

    def __init__(self, words: FormWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = RequestForm(words, self)
        self.json = JsonPane(self)
        self._staying = False
        page = QWidget(self)
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 8, 0, 0)
        inner.addWidget(self.form)
        self.addTab(page, self.tr("Form"))
        self.addTab(self.json, self.tr("JSON"))
        self.setDocumentMode(True)
        self.tabBar().setAccessibleName(self.tr("As a form or as JSON"))
        self.currentChanged.connect(self._turn)

    @property
    def in_json(self) -> bool:
        """Is it the JSON that is shown?"""
        return self.currentIndex() == JSON

    @property
    def asked(self) -> Asked | None:
        """The request that stands there; None while the JSON is none."""
        return self.json.asked if self.in_json else self.form.asked

    @property
    def refusal(self) -> tuple[Problem, ...]:
        """Why the JSON is no request."""
        return self.json.refusal if self.in_json else ()

    def show_request(self, asked: Asked, *, whole: bool) -> None:
        """Show it in both; what the form cannot show is left out, or kept if `whole`."""
        self.form.show_request(asked, whole=whole)
        if self.in_json:
            self.json.show_request(self.form.asked)

    def _turn(self, tab: int) -> None:
        """The same request on the other side; a text that is none stays where it is."""
        if self._staying:
            return
        if tab == JSON:
            self.json.show_request(self.form.asked)
        else:
            self.json.settle()
            if self.json.asked is None:
                self._stay()
                return
            self.form.show_request(self.json.asked, whole=True)
        self.turned.emit()

    def _stay(self) -> None:
        self._staying = True
        self.setCurrentIndex(JSON)
        self._staying = False
        self.stuck.emit()
