"""Profiles: the list of named sign-ins with its actions, and the forms for a new one."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.model.display import display
from engine.model.errors import EngineError, Problem
from engine.model.records import TaskRecord, TaskView, Unreadable
from engine.model.typed_address import complete
from engine.profiles.profile import Profile, ProfileRequest, profile_name
from engine.schedules.schedule_words import name_words
from engine.service.engine import Engine
from engine.service.profiles import CookieFile, OpenSignIn, signed_out_profile
from engine.text import words
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.accessibility import InOrder
from gui.style.banners import Banner
from gui.style.editors import Patterns
from gui.style.questions import BUTTON, Question, documents
from gui.style.record_list import CELL_CHARS, RecordList
from gui.style.theme import TonedLabel, plain_label
from gui.style.widgets import arrange

SIZE: Final = QSize(860, 400)
FORM_WIDTH: Final = 480
COOKIE_FILES: Final = "(*.json *.txt)"
LOOK_MS: Final = 3_000  # tasks and other programs change profiles, too
LINES_HEIGHT: Final = 64
MOST_USERS: Final = 3  # schedules and tasks that are named before a profile is deleted
_LIST, _ACT, _SIGN_IN = "list the profiles", "change a profile", "sign in for a profile"
_USERS: Final = "look who uses the profiles"


class ProfileActions(QObject):
    """The actions that open the profiles of one window, one of them for a signed-out task."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        self._list: ProfilesDialog | None = None
        action = ctx.actions.add("profiles", self.tr("Pro&files…"), [], "agent")
        action.triggered.connect(lambda _=False: self.open())
        again = ctx.actions.add("sign_in_again", self.tr("S&ign in again…"), [], "agent")
        again.triggered.connect(lambda _=False: self._sign_in_again())
        ctx.scope.changed.connect(self._allow)
        self._allow()

    def open(self, renewed: str | None = None) -> None:
        """Open the list of profiles, and sign in again for the one of the name `renewed`."""
        if self._list is None:
            self._list = ProfilesDialog(
                self._ctx.bridge, self._ctx.model.running_views, self._ctx.parent, renewed
            )
            self._list.finished.connect(self._forget)
        self._list.open()

    def _allow(self) -> None:
        why_not = self.tr("Only a task whose profile is signed out needs it.")
        self._ctx.actions.allow("sign_in_again", self._signed_out() is not None, why_not)

    def _signed_out(self) -> str | None:
        """Return the profile of the selected task, if the site took it for signed out."""
        views = self._ctx.scope.views() if len(self._ctx.scope) == 1 else []
        record = views[0].entry if views else None
        return signed_out_profile(record) if isinstance(record, TaskRecord) else None

    def _sign_in_again(self) -> None:
        name = self._signed_out()
        if name is not None:
            self.open(name)

    def _forget(self, _: int) -> None:
        self._list = None


class ProfilesDialog(InOrder, QDialog):
    """All profiles with their sites, age and state; the buttons act on the selected one.

    While a person signs in, a banner has the way to end it; closing the list calls it off.
    """

    def __init__(
        self,
        bridge: Bridge,
        running: Callable[[], Iterable[TaskView]],
        parent: QWidget | None = None,
        renewed: str | None = None,
    ) -> None:
        super().__init__(parent)
        self._bridge, self._running = bridge, running
        self._renewed: str | None = None
        self._found: dict[str, Profile | Unreadable] = {}
        self.schedules: Mapping[str, Sequence[str]] = {}  # names, by the profile that they use
        self._window: OpenSignIn | None = None
        self._busy = False
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Profiles"))
        self.resize(SIZE)
        self.banner = Banner(self)
        self.intro = plain_label(
            self.tr(
                "A profile keeps you signed in to a site. Choose it in the start dialog, under "
                "“Sign-in, device and headers”, and a task sees what you see there."
            ),
            self,
            tone="muted",
            wrap=True,
        )
        self.list = self._make_list()
        self.new = QPushButton(self.tr("&New…"), self)
        self.import_ = QPushButton(self.tr("&Import…"), self)
        self.renew = QPushButton(self.tr("&Sign in again"), self)
        self.check = QPushButton(self.tr("&Check"), self)
        self.delete = QPushButton(self.tr("&Delete…"), self)
        self.ready = QPushButton(self.tr("I &am signed in"), self)
        self.stop = QPushButton(self.tr("Cancel"), self)
        self.waiting = TonedLabel("", "muted", self)
        self.waiting.setWordWrap(True)
        self._lay_out()
        self._connect()
        self._looking = QTimer(self, interval=LOOK_MS)
        self._looking.timeout.connect(self.read)
        self._looking.start()
        self._show([])
        self._renewed = renewed  # once the list is read
        self.read()

    def read(self) -> None:
        """Read all profiles again."""

        async def work(engine: Engine) -> list[Profile | Unreadable]:
            return await engine.profiles.all()

        self._bridge.ask(work, self._show, self._show_error, name=_LIST)
        # Apart from the list, which needs no ledger: without one, nothing is known to use them.
        self._bridge.ask(_schedules, self._note_schedules, lambda _: None, name=_USERS)

    def _note_schedules(self, found: Mapping[str, Sequence[str]]) -> None:
        self.schedules = found

    @property
    def chosen(self) -> Profile | None:
        """The selected profile, if it can be read."""
        found = self._found.get(self.list.chosen_id or "")
        return found if isinstance(found, Profile) else None

    def _end_all(self, _: int) -> None:
        """Call off what is going on: nobody would see its end."""
        for name in (_SIGN_IN, _ACT, _LIST, _USERS):
            self._bridge.call_off(name)

    def _make_list(self) -> RecordList:
        headers = (
            self.tr("Name"),
            self.tr("Sites"),
            self.tr("Age"),
            self.tr("State"),
            self.tr("Encrypted"),
        )
        return RecordList(self.tr("Profiles"), headers, self, stretched=1)

    def _lay_out(self) -> None:
        close = QPushButton(self.tr("Close"), self)
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        for button in (self.new, self.import_, self.renew, self.check, self.delete):
            button.setAutoDefault(False)
            button.setMinimumSize(BUTTON)
            row.addWidget(button)
        close.setAutoDefault(False)
        close.setMinimumSize(BUTTON)
        arrange(row, 1, close, spacing=8)
        for button in (self.ready, self.stop):
            button.setAutoDefault(False)
            button.setMinimumSize(BUTTON)
        wait_row = arrange(QHBoxLayout(), (self.waiting, 1), self.ready, self.stop, spacing=8)
        parts = (self.banner, self.intro, (self.list, 1), wait_row, row)
        arrange(QVBoxLayout(self), *parts, margins=(16, 14, 16, 14), spacing=10)

    def _connect(self) -> None:
        self.list.currentItemChanged.connect(lambda *_: self._allow())
        self.new.clicked.connect(self._ask_for_new)
        self.import_.clicked.connect(self._ask_for_file)
        self.renew.clicked.connect(self._renew)
        self.check.clicked.connect(self._check)
        self.delete.clicked.connect(self._ask_to_delete)
        self.ready.clicked.connect(self._say_done)
        self.stop.clicked.connect(self._call_off)
        self.finished.connect(self._end_all)

    # The list.

    def _show(self, found: list[Profile | Unreadable]) -> None:
        """Show the profiles; rows whose profile is still there stay, with the selection."""
        self._found = {_name_of(one): one for one in found}
        self.list.show_rows({key: self._cells(one) for key, one in self._found.items()})
        self._allow()
        name, self._renewed = self._renewed, None
        if name is not None and self.list.choose(name):
            self._renew()
        elif name is not None:
            title = self.tr("There is no profile “{0}” any more").format(display(name, CELL_CHARS))
            text = self.tr("Make it again with “New…”, then resume the task.")
            self.banner.tell(title, text, tone_name="warning")

    def _cells(self, one: Profile | Unreadable) -> tuple[str, ...]:
        if isinstance(one, Unreadable):
            return (one.task_id, words.retold(one.reason), "", self.tr("cannot be read"), "")
        return (
            one.name,
            ", ".join(one.sites),
            words.ago(one.signed_in_at, time.time() * 1_000),
            self._state(one),
            self.tr("yes") if one.encrypted else self.tr("no"),
        )

    def _state(self, one: Profile) -> str:
        if one.signed_in is None:
            return self.tr("not checked")
        return self.tr("signed in") if one.signed_in else self.tr("signed out")

    def _allow(self) -> None:
        """Enable what can be done with the selected profile, and show what is going on."""
        item, view = self.list.currentItem(), self.chosen
        self.new.setEnabled(not self._busy)
        self.import_.setEnabled(not self._busy)
        self.renew.setEnabled(view is not None and not self._busy)
        self.check.setEnabled(view is not None and not self._busy)
        self.delete.setEnabled(item is not None and not self._busy)
        self.waiting.setVisible(self._busy)
        self.stop.setVisible(self._busy)
        self.ready.setVisible(self._window is not None)

    # Signing in.

    def _ask_for_new(self) -> None:
        self._fill_in(ProfileForm(self), self._sign_in)

    def _ask_for_file(self) -> None:
        dialog = QFileDialog(self, self.tr("File with cookies"), documents())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        every = self.tr("All files (*)")
        dialog.setNameFilters([self.tr("Files with cookies {0}").format(COOKIE_FILES), every])
        dialog.fileSelected.connect(lambda name: self.import_file(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def import_file(self, file: Path) -> None:
        """Read the cookies of a file, then ask for the profile that they become."""

        async def work(engine: Engine) -> CookieFile:
            return await engine.profiles.read_file(file)

        def fill_in(found: CookieFile) -> None:
            self._end()
            form = ProfileForm(self, found.sites)
            self._fill_in(form, lambda request: self._take(request, found), found)

        self._begin(self.tr("Reading…"))
        self._bridge.ask(work, fill_in, self._fail, name=_SIGN_IN)

    def _take(self, request: ProfileRequest, found: CookieFile) -> None:
        self._begin(self.tr("Keeping the cookies and checking them…"))

        async def work(engine: Engine) -> Profile:
            made = await engine.profiles.take(request, found.state)
            return await engine.profiles.check(made.name)

        self._bridge.ask(work, self._tell_made, self._fail, name=_SIGN_IN)

    def _fill_in(
        self,
        form: ProfileForm,
        then: Callable[[ProfileRequest], None],
        found: CookieFile | None = None,
    ) -> None:
        def begin() -> None:
            given = form.given

            async def check(engine: Engine) -> ProfileRequest:
                request = await engine.profiles.request(**given)
                if found is not None:
                    engine.profiles.require_cookies(request, found)
                return request

            def accepted(request: ProfileRequest) -> None:
                form.accept()
                then(request)

            self._bridge.ask(check, accepted, form.show_error, name=_ACT)

        form.wanted.connect(begin)
        form.finished.connect(form.deleteLater)
        form.open()

    def _renew(self) -> None:
        view = self.chosen
        if view is None:
            return
        name = view.name

        async def check(engine: Engine) -> ProfileRequest:
            return await engine.profiles.request(name, "", renews=True)

        self._bridge.ask(check, self._sign_in, self._show_error, name=_ACT)

    def _sign_in(self, request: ProfileRequest) -> None:
        self._begin(self.tr("Opening a browser window…"))

        async def work(engine: Engine) -> Profile:
            async with engine.profiles.signing_in(request) as window:
                self._window = window
                self._begin(
                    self.tr(
                        "Sign in in the browser window that has opened. Then close it, or say "
                        "here that you are signed in."
                    )
                )
                await window.until_done()
                self._window = None
                self._begin(self.tr("Keeping the sign-in and checking it…"))
                seen = await window.seen()
            made = await engine.profiles.save(request, seen)
            return await engine.profiles.check(made.name)

        self._bridge.ask(work, self._tell_made, self._fail, name=_SIGN_IN)

    def _begin(self, text: str) -> None:
        self._busy = True
        self.banner.setVisible(False)
        self.waiting.show_text(text)
        self._allow()

    def _end(self) -> None:
        self._busy, self._window = False, None
        self._allow()
        self.read()

    def _say_done(self) -> None:
        if self._window is not None:
            self._window.done.set()

    def _call_off(self) -> None:
        self._bridge.call_off(_SIGN_IN)
        self._end()

    def _fail(self, error: EngineError) -> None:
        self._end()
        self._show_error(error)

    def _tell_made(self, made: Profile) -> None:
        self._end()
        self._tell(made)

    def _tell(self, found: Profile) -> None:
        if found.signed_in:
            title = self.tr("“{0}” is signed in").format(found.name)
            text = self.tr("Choose it in the start dialog, under “Sign-in, device and headers”.")
            self.banner.tell(title, text, tone_name="good")
            return
        title = self.tr("“{0}” is not signed in").format(found.name)
        text = self.tr(
            "{0} does not show that you are signed in. Sign in again, or make a new profile with "
            "another page and an element to check."
        )
        url = display(found.shown_check, CELL_CHARS)
        self.banner.tell(title, text.format(url), tone_name="warning")

    # Other actions.

    def _act(self, work: Callable[[Engine], Coroutine[Any, Any, object]]) -> None:
        self.banner.setVisible(False)
        self._bridge.ask(work, lambda _: self.read(), self._show_error, name=_ACT)

    def _check(self) -> None:
        view = self.chosen
        if view is None:
            return
        name = view.name
        self._begin(self.tr("Loading {0}…").format(display(view.shown_check, CELL_CHARS)))

        async def work(engine: Engine) -> Profile:
            return await engine.profiles.check(name)

        self._bridge.ask(work, self._tell_made, self._fail, name=_SIGN_IN)

    def _ask_to_delete(self) -> None:
        item = self.list.currentItem()
        if item is None:
            return
        name = self.list.chosen_id or ""
        question = Question(self)
        question.ask(self.tr("Delete profile"), self.tr("Delete the profile “{0}”?").format(name))
        question.add_text(
            self.tr("Its cookies are deleted. Tasks that use it cannot be started again.")
        )
        if schedules := self.schedules.get(name):
            text = self.tr("Schedules that use it, and cannot start without it: {0}")
            question.add_text(text.format(self._listed(schedules)))
        if tasks := [words.task_name(one) for one in self._running() if _profile(one) == name]:
            text = self.tr("Tasks that use it now: {0}")
            question.add_text(text.format(self._listed(tasks)))
        question.add_button("delete", self.tr("Delete"), destroys=True)
        question.add_button("keep", self.tr("Keep it"), default=True)
        question.open_for(delete=lambda: self._act(lambda engine: engine.profiles.remove(name)))

    def _listed(self, names: Sequence[str]) -> str:
        shown = ", ".join(display(one, CELL_CHARS) for one in names[:MOST_USERS])
        more = len(names) - MOST_USERS
        return shown if more <= 0 else f"{shown} {self.tr('…and {0} more').format(more)}"

    def _show_error(self, error: EngineError) -> None:
        self.banner.tell(language.title(error), language.told(error), tone_name="bad")


async def _schedules(engine: Engine) -> Mapping[str, Sequence[str]]:
    """Return the names of schedules by the profile that they use."""
    found: dict[str, list[str]] = {}
    for one in await engine.schedules.all():
        if isinstance(one, Unreadable):
            continue
        args = one.schedule.request.document.get("args")
        profile = args.get("profile") if isinstance(args, Mapping) else None
        if isinstance(profile, str):
            found.setdefault(profile, []).append(name_words(one.schedule))
    return found


def _profile(view: TaskView) -> object:
    entry = view.entry
    return entry.args_summary.get("profile") if isinstance(entry, TaskRecord) else None


class ProfileForm(InOrder, QDialog):
    """Form for a new profile; it stays open until `accept`, so that it can show a mistake.

    With `found`, the sites of a file of cookies, it is for these instead of a sign-in by hand.
    """

    wanted = Signal()

    def __init__(self, parent: QWidget | None = None, found: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self._found = found
        self.setModal(True)
        self.setMinimumWidth(FORM_WIDTH)
        is_import = found is not None
        self.setWindowTitle(self.tr("Import profile") if is_import else self.tr("New profile"))
        self.name, self.url = QLineEdit(self), QLineEdit(self)
        self.name.setPlaceholderText("shop")
        self.url.setPlaceholderText("example.com/login")
        self.sites = Patterns()
        self.sites.setFixedHeight(LINES_HEIGHT)
        self.check_url, self.check_selector = QLineEdit(self), QLineEdit(self)
        page = (
            self.tr("the address") if is_import else self.tr("the page at the end of the sign-in")
        )
        self.check_url.setPlaceholderText(page)
        self.check_selector.setPlaceholderText("#account")
        self.mistake = TonedLabel("", "bad", self)
        self.mistake.setWordWrap(True)
        go = self.tr("Import") if is_import else self.tr("Open the browser")
        self.go = QPushButton(go, self)
        self._lay_out()
        if found is not None and len(found) == 1:
            self.url.setText(found[0])
        self.name.textChanged.connect(lambda _: self._judge())
        self.url.textChanged.connect(lambda _: self._judge())
        self.go.clicked.connect(self.wanted)
        self._judge()

    @property
    def given(self) -> dict[str, Any]:
        """The form as arguments of `Profiles.request`."""
        check_url = self.check_url.text().strip()
        return {
            "name": self.name.text().strip(),
            "url": complete(self.url.text().strip()),
            "sites": tuple(self.sites.lines()),
            "check_url": complete(check_url) if check_url else None,
            "check_selector": self.check_selector.text().strip() or None,
        }

    def show_error(self, error: EngineError) -> None:
        """Show why the profile cannot be made, and keep the form."""
        self._say(language.told(error))

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.setSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for label, editor in (
            (self.tr("&Name"), self.name),
            (self.tr("&Address"), self.url),
            (self.tr("&Sites (one per line)"), self.sites),
            (self.tr("&Page to check"), self.check_url),
            (self.tr("&Element of that page"), self.check_selector),
        ):
            shown = plain_label(label, self)
            shown.setBuddy(editor)
            form.addRow(shown, editor)
            editor.setAccessibleName(label.replace("&", ""))
        hint = plain_label(self._hint(), self, tone="muted", wrap=True)
        cancel = QPushButton(self.tr("Cancel"), self)
        cancel.clicked.connect(self.reject)
        cancel.setAutoDefault(False)
        self.go.setDefault(True)
        for button in (self.go, cancel):
            button.setMinimumSize(BUTTON)
        row = arrange(QHBoxLayout(), 1, self.go, cancel, spacing=8)
        column = arrange(QVBoxLayout(self), margins=(20, 18, 20, 16), spacing=12)
        column.addLayout(form)
        arrange(column, hint, self.mistake, 1)
        column.addLayout(row)

    def _hint(self) -> str:
        if self._found is None:
            return self.tr(
                "A browser window opens at the address. Sign in there by hand. Without sites, "
                "the profile is for those that you open in it. The element is on the page only "
                "if you are signed in."
            )
        sites = ", ".join(display(one, CELL_CHARS) for one in self._found[:MOST_USERS])
        if more := len(self._found[MOST_USERS:]):
            sites = f"{sites} {self.tr('…and {0} more').format(count(more))}"
        text = self.tr(
            "The file has cookies for {0}. Without sites, those of the address are kept. Enter as "
            "the address a page that only a signed-in visitor sees: it is loaded to check the "
            "profile."
        )
        return text.format(sites)

    def _judge(self) -> None:
        """Show a mistake in the name, and allow the start when name and address are there."""
        name, said = self.name.text().strip(), ""
        try:
            profile_name(name)
        except ValueError as wrong:
            problem = Problem("name", "invalid_value", str(wrong))
            said = language.translated(problem).message if name else ""
        self._say(said)
        self.go.setEnabled(bool(name and self.url.text().strip() and not said))

    def _say(self, mistake: str) -> None:
        """Show a mistake or none, and make room for it: it would cover a field otherwise."""
        self.mistake.show_text(mistake)
        self.mistake.setVisible(bool(mistake))
        layout = self.layout()
        if mistake and layout is not None:
            wanted = layout.totalHeightForWidth(self.width())
            self.resize(self.width(), max(self.height(), wanted))


def _name_of(one: Profile | Unreadable) -> str:
    return one.task_id if isinstance(one, Unreadable) else one.name
