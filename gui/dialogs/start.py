"""The dialog that starts tasks of every kind: as a form or as JSON, the same request in both."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QHBoxLayout, QTabWidget, QVBoxLayout, QWidget

from engine.again import Asked
from engine.drafts import lacks
from engine.errors import EngineError, InvalidArguments, Problem
from engine.forms import COMMANDS
from engine.records import TaskRecord
from gui import language
from gui.dialogs.address import complete
from gui.dialogs.addresses_part import AddressesPart
from gui.dialogs.json_pane import JsonPane
from gui.dialogs.kind_form import ADDRESSES
from gui.dialogs.kind_words import FormWords
from gui.dialogs.request_form import RequestForm
from gui.dialogs.shelf import Shelf
from gui.dialogs.start_footer import StartFooter
from gui.dialogs.tab_order import chain
from gui.dropping import Dropping
from gui.presets import Kept, Presets
from gui.states import Banner
from gui.theme import heading, plain_label, plain_tip

SIZE, MARGIN = QSize(900, 720), 60  # pixels of the screen that stay free
FORM, JSON = 0, 1
LONG, PAUSE_MS = 100, 150  # commands; judging a thousand takes 15 ms

Check = Callable[[Asked], tuple[Problem, ...]]


class StartDialog(QDialog):
    """Asks for a task. `wanted` carries the request, `many_wanted` several; the answer comes by
    `accept_task`, `show_refusal` or `show_error`, and only the first closes it."""

    wanted, many_wanted = Signal(object), Signal(object)
    stop_wanted, file_wanted = Signal(), Signal()
    about_changed = Signal(object)
    dropped = Signal(object)

    def __init__(self, check: Check, presets: Presets, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._check, self._presets = check, presets
        self._judging = self._waiting = self._again = self._filling = False
        self._words = FormWords(self)
        self.setWindowTitle(self.tr("New task"))
        self.setModal(True)
        self._heading = heading("", grow=1.3)
        self.banner = Banner(self)
        self._note = plain_label(tone="muted", wrap=True)
        self.form = RequestForm(self._words, self)
        self.json = JsonPane(self)
        self.tabs = QTabWidget(self)
        self.addresses = AddressesPart(self.form, self)
        self.shelf = Shelf(presets, self._words, self)
        self.footer = StartFooter(self)
        self.start, self.offer = self.footer.start, self.addresses.offer
        self._lay_out()
        self.resize(self.sizeHint())  # Qt itself takes at most two thirds of the screen
        self._connect()
        self._show_kind()
        self.form.focus()
        self._judge()

    # filling it

    def show_request(self, asked: Asked, note: str = "", *, whole: bool = False) -> None:
        """Show a request; `note` is what a person should know of it before it starts.

        What the form cannot show is left out, or kept (and seen in the JSON) if `whole`.
        """
        self._filling = True
        self.form.show_request(asked, whole=whole)
        self._filling = False
        if self.tabs.currentIndex() == JSON:
            self.json.show_request(self.form.asked)
        self.show_note(note)
        self.form.focus()
        self._judging |= whole and not self.addresses.lacks_address  # nobody is typing it
        self._judge()

    def show_note(self, note: str) -> None:
        """What a person should know of this request; nothing for none."""
        self._note.show_text(note)
        self._note.setVisible(bool(note))

    # the answer

    def accept_task(self, record: TaskRecord) -> None:
        """The task is on disk: done, or ready for another one."""
        if not self._again:
            self.accept()
            return
        self._again = False
        self._busy(False)
        self.form.clear_need()
        self._judging = False
        self._judge()
        self.footer.tell(self.tr("Started. The form is ready for another one."))
        self.form.focus()

    def show_refusal(self, mistakes: InvalidArguments) -> None:
        """Show each mistake under its field, those of no field above; nothing was started."""
        self._busy(False)
        self._judging = True
        self._place(mistakes.problems)

    def show_error(self, error: EngineError) -> None:
        """Something else went wrong; what was typed stays."""
        self._busy(False)
        self.banner.tell(language.title(error), language.told(error), tone_name="bad")

    def end_list(self, started: int, error: EngineError | None) -> None:
        """The list is started, or as far as it went; the rest stays in the form."""
        self._busy(False)
        total = len(self.addresses.many.found.urls)
        if error is None and started >= self.footer.expected:
            self.accept()
            return
        self.addresses.many.drop_first(started)
        if error is not None:
            self.show_error(error)
        words = self.tr("{0} of {1} were started; the rest is still here.")
        self.footer.tell(words.format(started, total))

    def ask(self, *, again: bool = False) -> None:
        """Start it, once, or show what is still wrong."""
        if self._waiting:
            return
        self._judging, self._again = True, again
        self.json.settle()
        self._judge()
        if not self.start.isEnabled():
            return
        asked = self.asked
        many = self.addresses.requests(asked) if asked and self.tabs.currentIndex() == FORM else []
        self._busy(True, len(many))
        if len(many) > 1:
            self.many_wanted.emit(many)
        else:
            self.wanted.emit(many[0] if many else asked)

    @property
    def asked(self) -> Asked | None:
        """The request that stands there; None while the JSON is none."""
        return self.form.asked if self.tabs.currentIndex() == FORM else self.json.asked

    def reject(self) -> None:
        """Esc and Cancel: stop starting a list, or close."""
        if self._waiting and self.footer.expected > 1:
            self.stop_wanted.emit()
        else:
            super().reject()

    def sizeHint(self) -> QSize:
        screen = QGuiApplication.primaryScreen().availableSize()
        return SIZE.boundedTo(QSize(screen.width(), screen.height() - MARGIN))

    # how it is made

    def _lay_out(self) -> None:
        form = QWidget(self)
        inner = QVBoxLayout(form)
        inner.setContentsMargins(0, 8, 0, 0)
        inner.addWidget(self.form)
        self.tabs.addTab(form, self.tr("Form"))
        self.tabs.addTab(self.json, self.tr("JSON"))
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setAccessibleName(self.tr("As a form or as JSON"))
        right = QVBoxLayout()
        right.setSpacing(10)
        for part in (self._heading, self.banner, self._note):
            right.addWidget(part)
        right.addWidget(self.tabs, 1)
        both = QHBoxLayout()
        both.setSpacing(16)
        both.addWidget(self.shelf)
        both.addLayout(right, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addLayout(both, 1)
        column.addWidget(self.footer)
        self._note.setVisible(False)

    def _connect(self) -> None:
        self.form.changed.connect(self._hear)
        self._later = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._later.timeout.connect(self._judge)
        self.form.left.connect(self._leave)
        self.form.grown.connect(lambda: chain(self.tabs, self.footer, self.shelf))
        self.form.kind_changed.connect(lambda _: self._show_kind())
        self.addresses.changed.connect(self._judge)
        self.json.changed.connect(self._judge)
        self.tabs.currentChanged.connect(self._turn)
        self.shelf.chosen.connect(self._take)
        self.shelf.file_wanted.connect(self.file_wanted)
        self.footer.start.clicked.connect(self.ask)
        self.footer.another.clicked.connect(lambda: self.ask(again=True))
        self.footer.cancel.clicked.connect(self.reject)
        self.footer.keep_wanted.connect(self._keep)
        Dropping(self).dropped.connect(self.dropped)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, self.ask).setAutoRepeat(False)

    def _show_kind(self) -> None:
        self._heading.show_text(self._words.doing(self.form.kind))
        self.addresses.move_to(self.form.body)
        chain(self.tabs, self.footer, self.shelf)

    def _turn(self, tab: int) -> None:
        """The same request on the other side; a text that is none stays where it is."""
        if self._filling:
            return
        if tab == JSON:
            self.json.show_request(self.form.asked)
        else:
            self.json.settle()
            if self.json.asked is None:
                self._stay_in_json()
                return
            self.form.show_request(self.json.asked, whole=True)
        self._judge()

    def _stay_in_json(self) -> None:
        self._filling = True
        self.tabs.setCurrentIndex(JSON)
        self._filling = False
        self._place(self.json.refusal)

    def _take(self, kept: Kept) -> None:
        """A preset or a recent request was chosen."""
        lost = self.tr("Something in it was secret and was not kept: type it in again.")
        self.tabs.setCurrentIndex(FORM)
        self.show_request(kept.asked, lost if kept.lost else "", whole=True)

    def _keep(self, title: str) -> None:
        asked = self.asked
        if asked is not None:
            self.footer.tell_kept(self._presets.keep(title, asked))

    def _leave(self, key: str) -> None:
        if key in ADDRESSES and key in self.form.body and self.form[key].value:
            self._judging = True
            self.form[key].value = complete(self.form[key].value)
            self._judge()

    # what is wrong

    def _hear(self) -> None:
        """Something was typed; a long list of commands is judged in a pause."""
        rows = len(self.form.body.args.get("commands", ())) if self.form.kind == COMMANDS else 0
        self._later.start() if rows > LONG else self._judge()

    def _judge(self) -> None:
        """Ask the engine what it would say, and show it without getting in the way of typing."""
        if self._filling:
            return
        self._later.stop()
        asked = self.asked
        problems = self.json.refusal if asked is None else self._check(asked)
        in_json = self.tabs.currentIndex() == JSON
        problems = problems if in_json else self.addresses.less_address(problems)
        reason = self._reason(asked, problems)
        self.footer.allow(not reason and not self._waiting, plain_tip(reason))
        self._place(problems if self._judging or in_json else ())
        self.footer.show_list(0 if in_json else self.addresses.number)
        self.about_changed.emit(None if problems else asked)

    def _reason(self, asked: Asked | None, problems: tuple[Problem, ...]) -> str:
        """Why it cannot be started now; empty when it can."""
        if self.tabs.currentIndex() == FORM and self.addresses.obstacle:
            return self.addresses.obstacle
        if problems:
            return language.mistake(problems[0])
        if asked is not None and lacks(asked):
            return self.tr("A secret was not kept here: type it in where it says [redacted].")
        return ""

    def _place(self, problems: tuple[Problem, ...]) -> None:
        problems = tuple(map(language.translated, problems))
        if self.tabs.currentIndex() == JSON:
            self.json.show_problems(problems)
            self.banner.setVisible(False)
            return
        rest = self.form.show_problems(problems)
        if rest:
            self.banner.tell(self.tr("This cannot be started"), "; ".join(rest), tone_name="bad")
        else:
            self.banner.setVisible(False)

    def _busy(self, busy: bool, number: int = 0) -> None:
        self._waiting = busy
        self.footer.busy(busy, number)
