"""What a task was made of and what was made of it, as buttons that lead there."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from engine.model.display import display
from engine.model.ledger_ids import plain_id
from engine.text.words import count
from gui.style.theme import plain_keys, plain_tip


class KinLinks(QWidget):
    """`wanted` carries the id of the task to show. Hidden where there is no other."""

    wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parent_id, self._reruns = "", list[str]()
        self.parent_link, self.rerun_link = QPushButton(self), QPushButton(self)
        self.parent_link.clicked.connect(lambda: self.wanted.emit(self._parent_id))
        self.rerun_link.clicked.connect(lambda: self.wanted.emit(self._reruns[-1]))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for link in (self.parent_link, self.rerun_link):
            row.addWidget(link)
        row.addStretch(1)
        self.hide()

    def show_kin(self, parent: str, known: bool, reruns: Sequence[str]) -> None:
        """`known`: is the parent still in the list? `reruns` are ids, the newest last."""
        self._parent_id, self._reruns = parent, list(reruns)
        self.parent_link.setVisible(bool(parent))
        self.parent_link.setEnabled(known)
        self.parent_link.setText(plain_keys(self.tr("Show what it is a re-run of")))
        why = display(plain_id(parent), 40) if known else self.tr("It is no longer in the list.")
        self.parent_link.setToolTip(plain_tip(why))
        self.rerun_link.setVisible(bool(reruns))
        number = count(len(reruns))
        text = (
            self.tr("Show its re-run")
            if len(reruns) == 1
            else self.tr("Show the newest of its {0} re-runs").format(number)
        )
        self.rerun_link.setText(plain_keys(text))
        self.setVisible(bool(parent or reruns))
