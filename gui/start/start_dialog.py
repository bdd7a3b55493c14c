"""Start dialog for all kinds of tasks, as form or JSON, with the footer of its buttons."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.records import TaskRecord
from engine.model.typed_address import complete
from engine.service.drafts import lacks
from engine.service.forms import COMMANDS
from engine.service.rerun import Asked
from engine.text.words import count
from gui.engine_link.scheduling import Debounce
from gui.i18n import language
from gui.start.command_form import PATH as VARIABLES
from gui.start.command_form import CommandForm
from gui.start.field import Field
from gui.start.kind_form import FormWords, completed
from gui.start.presets import MOST_PRESETS, MOST_TITLE, Kept, PresetList, Presets, about
from gui.start.request_tabs import FORM, AddressesPart, RequestTabs
from gui.style.accessibility import chain
from gui.style.banners import Banner
from gui.style.drag_and_drop import DropTarget
from gui.style.editors import NameLine
from gui.style.icons import wear
from gui.style.questions import BUTTON, Question
from gui.style.theme import PlainLabel, heading, plain_label, plain_tip
from gui.style.widgets import ElidedLink, LinkButton, arrange


class StartFooter(QWidget):
    """Footer; `keep_wanted` carries the name of a new preset."""

    keep_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.expected = 0  # Number of tasks of the list that is being started
        self.saves = False  # A request is edited, and nothing starts
        self._number = 0
        self._told, self._place = _muted(), _muted()
        self.reason = ElidedLink(self)
        self.progress = QProgressBar(self)
        self.progress.setVisible(False)
        self.progress.setAccessibleName(self.tr("Tasks started"))
        self.star = QToolButton(self)
        wear(self.star, "star")
        self.star.setText(self.tr("Keep as preset"))
        self.star.setAccessibleName(self.tr("Keep as preset"))
        self.star.setToolTip(plain_tip(self.tr("Keep what is in the form as a preset")))
        self.star.setCheckable(True)
        self.star.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.star.setMinimumHeight(BUTTON.height())
        self._title = _Title(self)
        self._title.setMaxLength(MOST_TITLE)
        self._title.setPlaceholderText(self.tr("Name of the preset, then Enter"))
        self._title.setAccessibleName(self.tr("Name of the preset"))
        self._title.setVisible(False)
        self.repeat = QPushButton(self.tr("Repeat…"), self)
        self.repeat.setToolTip(plain_tip(self.tr("Start this task again and again by a rule")))
        self.another = QPushButton(self.tr("Start and add another"), self)
        self.start = QPushButton(self.tr("Start"), self)
        self.cancel = QPushButton(self.tr("Cancel"), self)
        self._lay_out()

    @property
    def told(self) -> str:
        return self._told.text()

    def tell(self, text: str) -> None:
        """Show a line of text above the buttons, or nothing."""
        self._told.show_text(text)
        self._told.setVisible(bool(text))

    @property
    def place(self) -> str:
        """The shown target ledger, empty with a single ledger."""
        return self._place.text()

    def show_place(self, words: str) -> None:
        """Show the target ledger, or nothing."""
        self._place.show_text(words)
        self._place.setVisible(bool(words))

    def tell_kept(self, kept: Kept | None) -> None:
        """Report a saved preset, with removed secrets, or none."""
        if kept is None:
            self.tell(self.tr("Not kept: the JSON is no request."))
            return
        if kept.refused:
            words = self.tr("Not kept: there are {0} presets already. Forget one first.")
            self.tell(words.format(MOST_PRESETS))
            return
        words = self.tr("Kept as “{0}”.")
        if kept.lost and kept.replaced:
            words = self.tr("Kept as “{0}”, without its secrets, in place of the former one.")
        elif kept.lost:
            words = self.tr("Kept as “{0}”, without its secrets.")
        elif kept.replaced:
            words = self.tr("Kept as “{0}”, in place of the former one.")
        self.tell(words.format(kept.title))

    def allow(self, allowed: bool, why_not: str) -> None:
        """Enable the start buttons, or show the reason in their tool tip."""
        tip = why_not or plain_tip(self._tip())
        for button in (self.start, self.another):
            button.setEnabled(allowed)
            button.setToolTip(tip)

    def show_reason(self, reason: str) -> None:
        """Show the reason that prevents a start; a click leads to its field."""
        self.reason.show_text(reason)
        self.reason.setVisible(bool(reason))

    def offer_to_save(self) -> None:
        """Offer to save the request instead of a start."""
        self.saves = True
        self.show_list(self._number)

    def show_list(self, number: int) -> None:
        """Show the number of tasks on the button, if there are several."""
        self._number = number
        for button in (self.another, self.repeat):
            button.setVisible(number < 2 and not self.saves)
        if not self.progress.isVisible():
            self.start.setText(self._verb())

    def show_progress(self, done: int, total: int) -> None:
        self.progress.setRange(0, total)
        self.progress.setValue(done)
        self.tell(self.tr("{0} of {1} started").format(count(done), count(total)))

    def busy(self, busy: bool, number: int = 0) -> None:
        """Show that a start is in progress; several tasks can be stopped."""
        if busy:
            self.expected = number
        several = busy and number > 1
        self.progress.setVisible(several)
        self.start.setText(self.tr("Starting…") if busy and not self.saves else self._verb())
        self.cancel.setText(self.tr("Stop") if several else self.tr("Cancel"))
        if several:
            self.progress.setRange(0, number)
            self.progress.setValue(0)
        self.repeat.setEnabled(not busy)
        tip = self.tr("It is being started.") if busy and not self.saves else self._tip()
        for button in (self.start, self.another):
            button.setEnabled(not busy)
            button.setToolTip(plain_tip(tip))

    def _tip(self) -> str:
        return self.tr("Save (Ctrl+Enter)") if self.saves else self.tr("Start (Ctrl+Enter)")

    def _verb(self) -> str:
        if self.saves:
            return self.tr("Save")
        if self._number < 2:
            return self.tr("Start")
        return self.tr("Start {0} tasks").format(count(self._number))

    def _lay_out(self) -> None:
        self.star.toggled.connect(self._ask_title)
        self._title.returnPressed.connect(self._keep)
        self._title.left.connect(self._keep_nothing)
        self.start.setDefault(True)
        for button in (self.repeat, self.another, self.cancel):
            button.setAutoDefault(False)
        row = arrange(QHBoxLayout(), self.star, self._title, spacing=8)
        row.addStretch(1)
        for button in (self.repeat, self.another, self.start, self.cancel):
            button.setMinimumSize(BUTTON)
            row.addWidget(button)
        column = arrange(QVBoxLayout(self), margins=0, spacing=6)
        self._place.hide()
        self.reason.hide()
        self._told.hide()
        # The text has a line of its own: beside the buttons it had no width with large letters.
        for part in (self.progress, self._place, self.reason, self._told):
            column.addWidget(part)
        column.addLayout(row)

    def _ask_title(self, wanted: bool) -> None:
        self._title.setVisible(wanted)
        if wanted:
            self._title.setFocus()

    def _keep_nothing(self) -> None:
        self._title.clear()
        self.star.setChecked(False)
        self.star.setFocus()

    def _keep(self) -> None:
        title = self._title.text().strip()
        if title:
            self.star.setChecked(False)
            self._title.clear()
            self.keep_wanted.emit(title)


class _Title(NameLine):
    """Name field that emits `left` on Escape instead of closing the dialog."""

    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            event.accept()
            self.left.emit()
        else:
            super().keyPressEvent(event)


def _muted() -> PlainLabel:
    return plain_label(tone="muted", wrap=True)


SIZE, MARGIN = QSize(900, 720), 60  # Pixels of the screen to keep free
LONG, PAUSE_MS = 100, 150  # Commands; validating a thousand takes 15 ms
SAID_MS = 800  # Pause in ms after which address errors are shown


class Why(NamedTuple):
    """The reason that prevents a start, with the path of its argument."""

    reason: str = ""
    path: str = ""


Check = Callable[[Asked], tuple[Problem, ...]]


class StartDialog(QDialog):
    """Start dialog; `wanted` carries a request, `many_wanted` several.

    `repeat_wanted` carries a request to repeat by a rule. `given_up` carries the requests of a
    changed form that is closed or replaced without a start.
    The answer comes by `accept_task`, `show_refusal` or `show_error`, and only the first closes it.
    """

    wanted, many_wanted = Signal(object), Signal(object)
    repeat_wanted = Signal(object)
    stop_wanted, file_wanted = Signal(), Signal()
    given_up = Signal(object)
    about_changed = Signal(object)
    dropped = Signal(object)

    def __init__(
        self,
        check: Check,
        presets: Presets,
        parent: QWidget | None = None,
        captures_nothing: Callable[[Asked], bool] = lambda _: False,
    ) -> None:
        super().__init__(parent)
        self._check, self._presets = check, presets
        self._captures_nothing = captures_nothing
        self._why = Why()
        self._judging = self._waiting = self._again = self._filling = False
        self._words = FormWords(self)
        self.setWindowTitle(self.tr("New task"))
        self.setModal(True)
        self._heading = heading("", grow=1.3)
        self.banner = Banner(self)
        self._note = plain_label(tone="muted", wrap=True)
        self._lasting_note = ""
        self.draft = LinkButton(self.tr("Continue with what you had"), self)
        self.draft.setAutoDefault(False)
        self._before: Asked | None = None  # The request as it was shown
        self._latest: Asked | None = None  # The request when it was last validated
        self._is_draft = False
        self.tabs = RequestTabs(self._words, self)
        self.form, self.json = self.tabs.form, self.tabs.json
        self.addresses = AddressesPart(self.form, self)
        self.shelf = PresetList(presets, self._words, self)
        self.footer = StartFooter(self)
        self.start, self.offer = self.footer.start, self.addresses.offer
        self._lay_out()
        self.resize(self.sizeHint())  # By default Qt limits a dialog to two thirds of the screen
        self._connect()
        self._show_kind()
        self.form.focus()
        self._judge()
        self._before = self.tabs.asked
        self._offer_draft()

    def offer_profiles(self, names: list[str]) -> None:
        """Offer these names in the field of the profile."""
        self._words.suggestions["profile"].setStringList(names)

    # Filling the form.

    def edit_schedule(self, note: str) -> None:
        """Let the dialog save the request of a schedule, with a lasting `note` on what that does.

        Another request, as of a file, takes the place of the one that was shown, and is saved too.
        """
        self._lasting_note = note
        self.show_note("")
        self.setWindowTitle(self.tr("Edit request"))
        self.addresses.only_one = True
        self.addresses.move_to(self.form.body)
        self.footer.offer_to_save()
        self._judge()  # shows what the button does now

    def show_request(self, asked: Asked, note: str = "", *, whole: bool = False) -> None:
        """Show a request with a `note` to read before the start.

        What the form cannot show is dropped, or kept (and visible in the JSON) if `whole`.
        """
        self.give_up()
        self._filling = True
        self.tabs.show_request(asked, whole=whole)
        self._filling = False
        self._before = self.tabs.asked
        self.show_note(note)
        self.form.focus()
        # The request is not being typed, so its problems are shown.
        self._judging |= whole and not self.addresses.lacks_address
        self._judge()

    def show_note(self, note: str) -> None:
        note = "\n".join(filter(None, (self._lasting_note, note)))
        self._note.show_text(note)
        self._note.setVisible(bool(note))

    # Answers of the engine.

    @property
    def is_changed(self) -> bool:
        """True if the form holds what the user has entered and not started."""
        self.json.settle()
        listed = self.addresses.is_many and bool(self.addresses.many.found.urls)
        return self._is_draft or listed or self.tabs.asked != self._before

    def give_up(self) -> None:
        """Emit `given_up` for a changed request, so that it is kept as a draft."""
        asked = self.tabs.asked
        if asked is not None and self.is_changed:
            many = self.addresses.requests(asked) if not self.tabs.in_json else []
            self.given_up.emit(many or [asked])
        self._is_draft = False

    def _offer_draft(self) -> None:
        kept = self._presets.draft
        self.draft.setVisible(kept is not None)
        if kept is not None:
            self.draft.setToolTip(plain_tip(about(kept.asked)))

    def _continue(self) -> None:
        """Show the draft; what the form holds becomes the draft in its place."""
        kept = self._presets.draft
        if kept is not None:
            self._presets.forget_draft()
            self._take(kept)
            self._is_draft = True

    def accept_task(self, record: TaskRecord) -> None:
        """Close after a started task, or prepare the form for another one."""
        self._before, self._is_draft = self.tabs.asked, False
        if not self._again:
            self.accept()
            return
        self._again = False
        self._busy(False)
        self.form.clear_need()
        self._judging = False
        self._judge()
        self.show_note("")  # it described what has been started
        self.footer.tell(self.tr("Started. The form is ready for another one."))
        self.form.focus()

    def show_refusal(self, mistakes: InvalidArguments) -> None:
        """Show validation errors at their fields, others in the banner."""
        self._busy(False)
        self._judging = True
        self._place(mistakes.problems)

    def show_error(self, error: EngineError) -> None:
        """Show another error and keep the form."""
        self._busy(False)
        self.banner.tell(language.title(error), language.told(error), tone_name="bad")

    def end_list(self, started: int, error: EngineError | None) -> None:
        """Close after a started list, or keep the remaining addresses in the form."""
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
        """Start the request once, or show its problems."""
        if self._waiting:
            return
        self._said.cancel()
        self._judging, self._again = True, again
        self.json.settle()
        self._judge()
        if not self.start.isEnabled():
            return
        asked = self.tabs.asked
        if asked is not None and self._captures_nothing(asked):
            self._ask_to_capture_nothing(asked)
        else:
            self._begin(asked)

    def _begin(self, asked: Asked | None) -> None:
        many = self.addresses.requests(asked) if asked and not self.tabs.in_json else []
        if len(many) > 1 and self.footer.saves:  # a list that was dropped
            title = self.tr("A schedule has one task")
            self.banner.tell(title, self.tr("Keep one address of the list."), tone_name="bad")
            return
        self._busy(True, len(many))
        if len(many) > 1:
            self.many_wanted.emit(many)
        else:
            self.wanted.emit(many[0] if many else asked)

    def _ask_to_capture_nothing(self, asked: Asked) -> None:
        question = Question(self)
        question.ask(self.windowTitle(), self.tr("Nothing to capture"))
        question.add_text(self._words.nothing(asked.kind))
        saves = self.footer.saves
        question.add_button("start", self.tr("Save anyway") if saves else self.tr("Start anyway"))
        question.add_button("stay", self.tr("Keep editing"), default=True)
        question.open_for(start=lambda: self._begin(asked))

    def ask_to_repeat(self) -> None:
        """Emit `repeat_wanted` with the request, or show its problems."""
        if self._waiting:
            return
        self._judging = True
        self.json.settle()
        self._judge()
        if self.start.isEnabled() and self.tabs.asked is not None:
            self.repeat_wanted.emit(self.tabs.asked)

    def accept_schedule(self) -> None:
        """Close after the request was stored as a schedule."""
        self._before, self._is_draft = self.tabs.asked, False
        self.accept()

    @property
    def is_locked(self) -> bool:
        """True while a list is being started, so that the form must not change."""
        return self._waiting and self.footer.expected > 1

    def reject(self) -> None:
        """Stop starting a list, or close the dialog (Esc and Cancel)."""
        if self.is_locked:
            self.stop_wanted.emit()
        elif self.is_changed and self.tabs.asked is None:
            self._ask_to_discard()
        else:
            self._leave_form()

    def _leave_form(self) -> None:
        self.give_up()
        super().reject()

    def _ask_to_discard(self) -> None:
        """Ask before JSON is lost that cannot be kept, because it is no request."""
        question = Question(self)
        question.ask(self.windowTitle(), self.tr("Discard this JSON?"))
        question.add_text(self.tr("It is not a valid request, so it cannot be kept as a draft."))
        question.add_button("discard", self.tr("Discard"), destroys=True)
        question.add_button("stay", self.tr("Keep editing"), default=True)
        question.open_for(discard=self._leave_form)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Show the problems when Enter is pressed on an invalid request."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not self.start.isEnabled():
            self.ask()
        else:
            super().keyPressEvent(event)

    def sizeHint(self) -> QSize:
        screen = QGuiApplication.primaryScreen().availableSize()
        return SIZE.boundedTo(QSize(screen.width(), screen.height() - MARGIN))

    # Construction.

    def _lay_out(self) -> None:
        right = arrange(
            QVBoxLayout(),
            self._heading,
            self.banner,
            (self.draft, 0, Qt.AlignmentFlag.AlignLeft),
            self._note,
            (self.tabs, 1),
            spacing=10,
        )
        both = arrange(QHBoxLayout(), self.shelf, (right, 1), spacing=16)
        arrange(QVBoxLayout(self), (both, 1), self.footer, margins=(20, 18, 20, 16), spacing=12)
        self._note.setVisible(False)

    def _connect(self) -> None:
        self.form.changed.connect(self._hear)
        self._later = Debounce(self, PAUSE_MS, self._judge)
        self._said = Debounce(self, SAID_MS, self._speak_up)
        self.form.left.connect(self._leave)
        self.form.grown.connect(lambda: chain(self.tabs, self.footer, self.shelf))
        self.form.grown.connect(self._show_reason)
        self.form.moved.connect(self._show_reason)
        self.footer.reason.clicked.connect(self._go_to_reason)
        self.form.kind_changed.connect(lambda _: self._show_kind())
        self.addresses.changed.connect(self._judge)
        self.json.changed.connect(self._judge)
        self.tabs.turned.connect(self._turn)
        self.tabs.stuck.connect(lambda: self._place(self.json.refusal))
        self.shelf.chosen.connect(self._take)
        self.draft.clicked.connect(self._continue)
        self._presets.changed.connect(self._offer_draft)
        self.shelf.file_wanted.connect(self.file_wanted)
        self.footer.start.clicked.connect(self.ask)
        self.footer.another.clicked.connect(lambda: self.ask(again=True))
        self.footer.repeat.clicked.connect(self.ask_to_repeat)
        self.footer.cancel.clicked.connect(self.reject)
        self.footer.keep_wanted.connect(self._keep)
        DropTarget(self).dropped.connect(self.dropped)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, self.ask).setAutoRepeat(False)

    def _show_kind(self) -> None:
        if self._latest == self._before:
            self._before = self.tabs.asked  # Another empty form is no input
        # Nothing is typed in a form that does not take the address over.
        self._judging &= self._filling or "url" in self.form.body
        self._heading.show_text(self._words.doing(self.form.kind))
        self.addresses.move_to(self.form.body)
        chain(self.tabs, self.footer, self.shelf)

    def _turn(self) -> None:
        # A request written as JSON is complete, so its problems are shown.
        self._judging |= not self.tabs.in_json and not self.addresses.lacks_address
        self._judge()

    def _take(self, kept: Kept) -> None:
        """Show a chosen preset or recent request."""
        self.tabs.setCurrentIndex(FORM)
        self.addresses.switch.setChecked(False)
        lacking = self._words.lacking(lost=kept.lost, given=len(kept.urls), listed=kept.listed)
        self.show_request(kept.asked, lacking, whole=True)
        if kept.urls:
            self.addresses.start_list("\n".join(kept.urls))

    def _keep(self, title: str) -> None:
        self.json.settle()  # JSON is otherwise parsed after a pause
        asked = self.tabs.asked
        self.footer.tell_kept(self._presets.keep(title, asked) if asked is not None else None)

    def _leave(self, key: str) -> None:
        if key in self.form.typed_addresses:
            self.form[key].retype(complete(self.form[key].value))
            self._speak_up()
        elif key in self.form.typed_lists:
            self._complete_list(self.form[key])

    def _complete_list(self, field: Field) -> None:
        """Write the missing schemes into a list of addresses, and show its problems."""
        whole = completed(field.value)
        if whole != field.value:
            field.retype("\n".join(whole))
        self._judging = True
        self._judge()

    # Validation.

    def _hear(self) -> None:
        """Validate after an edit, a long list of commands after a pause."""
        rows = len(self.form.body.args.get("commands", ())) if self.form.kind == COMMANDS else 0
        self._later.request() if rows > LONG else self._judge()
        self._said.request()

    def _speak_up(self) -> None:
        """Show the problems of a typed address."""
        self._said.cancel()
        if self.form.typed_addresses:
            self._judging = True
            self._judge()

    def _judge(self) -> None:
        """Validate the request and show its problems, unless the user is typing."""
        if self._filling or self._waiting:
            return
        self._later.cancel()
        asked, in_json = self.tabs.asked, self.tabs.in_json
        self._latest = asked
        problems = self.tabs.refusal if asked is None else self._check(asked)
        problems = problems if in_json else self.addresses.less_address(problems)
        reason = self._reason(asked, problems)
        self.footer.allow(not reason, plain_tip(reason))
        self._place(problems if self._judging or in_json else ())
        obstacle = not in_json and bool(self.addresses.obstacle)
        path = VARIABLES if problems and self._missing_value(problems) else ""
        path = path or (problems[0].path if problems else "")
        self._why = Why(reason, "url" if obstacle else path)
        self._show_reason()
        self.footer.show_list(0 if in_json else self.addresses.number)
        self.about_changed.emit(None if problems else asked)

    def _reason(self, asked: Asked | None, problems: tuple[Problem, ...]) -> str:
        """Return the reason that prevents a start, or an empty string."""
        if not self.tabs.in_json and self.addresses.obstacle:
            return self.addresses.obstacle
        if problems and (missing := self._missing_value(problems)):
            return self.tr("Type the value of {0}.").format(missing)
        if problems:
            said = language.translated(problems[0])
            label = self.form.label_of(problems[0].path)
            return f"{label}: {said.message}" if label else str(said)
        if asked is not None and lacks(asked):
            if missing := self._missing_value(problems):
                return self.tr("Type the value of {0}.").format(missing)
            return self.tr("A secret was not kept here: type it in where it says [redacted].")
        return ""

    def _missing_value(self, problems: tuple[Problem, ...]) -> str:
        body = self.form.body
        if self.tabs.in_json or not isinstance(body, CommandForm):
            return ""
        return body.missing_value(problems)

    def _show_reason(self) -> None:
        """Show the reason in the footer, unless nothing was typed and its field is in sight.

        The JSON tab shows its problems itself.
        """
        widget = self._widget_of(self._why.path)
        unseen = self.isVisible() and widget is not None and not self.form.is_in_sight(widget)
        begun = self._judging or not self.addresses.lacks_address
        told = (begun or unseen) and not self.tabs.in_json
        self.footer.show_reason(self._why.reason if told and not self._waiting else "")

    def _go_to_reason(self) -> None:
        """Show the problem at its field, expanded and scrolled to."""
        self._judging = True
        self._judge()
        if self.addresses.obstacle:
            self.form.show_widget(self._widget_of("url"))
        elif self._why.path:
            self.form.reveal(self._why.path)
        self._show_reason()

    def _widget_of(self, path: str) -> QWidget | None:
        """Return the widget for a problem path; a list of addresses has its own."""
        if path == "url" and self.addresses.is_many:
            return self.addresses.many.text
        return self.form.field_of(path) if path else None

    def _place(self, problems: tuple[Problem, ...]) -> None:
        problems = tuple(map(language.translated, problems))
        if self.tabs.in_json:
            self.json.show_problems(problems)
            self.banner.setVisible(False)
            return
        rest = self.form.show_problems(problems)
        if rest:
            saves = self.footer.saves
            title = self.tr("This cannot be saved") if saves else self.tr("This cannot be started")
            self.banner.tell(title, "; ".join(rest), tone_name="bad")
        else:
            self.banner.setVisible(False)

    def _busy(self, busy: bool, number: int = 0) -> None:
        was_locked = self.is_locked
        self._waiting = busy
        self.footer.busy(busy, number)
        for part in (self.tabs, self.shelf, self.footer.star):
            part.setEnabled(not self.is_locked)
        if self.is_locked:
            self.footer.cancel.setFocus()
        elif was_locked:
            self.addresses.many.text.setFocus()
