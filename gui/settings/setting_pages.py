"""The settings pages and their items as data, and the parts for ledgers and for retention."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QHeaderView,
    QSystemTrayIcon,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.cluster.cluster_address import is_cluster
from engine.model.build_info import build_info
from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.proxies import is_bypass, is_proxy
from engine.service.allowlists import is_allowed_secret, is_variable, private_place
from engine.service.pruning import Preview, Pruned, Rules
from engine.service.router.ledger_paths import Beside, LedgerState
from engine.text import words
from engine.text.messages import retold
from engine.text.words import clock, count, say, size_words
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.i18n.language import NAMES
from gui.i18n.names import state_word
from gui.settings.program_access import MOST_PORT, PREFIX
from gui.settings.programs_part import ServerPart
from gui.settings.setting_controls import (
    BrowserTest,
    CarryOver,
    Choice,
    Clock,
    Control,
    Diagnostics,
    File,
    Lines,
    Number,
    OpenAgain,
    Part,
    SpeakNow,
    Switch,
    WidePart,
    Word,
)
from gui.style.editors import Roomy
from gui.style.questions import TaskList
from gui.style.theme import LEAST, MOST, plain_label, plain_tip

if TYPE_CHECKING:
    from engine.doctor import Finding
    from engine.model.records import Health
    from engine.service.engine import Engine


LABEL = Qt.ItemDataRole.UserRole
PATH = Qt.ItemDataRole.UserRole + 1  # The folder identifies a ledger across a change of its label
LIST_HEIGHT: Final = 170
_SIGNS: Final = {"ok": "✓", "warning": "⚠", "problem": "✖"}
_TONES: Final = {"ok": "good", "warning": "warning", "problem": "bad"}


class LedgersPart(WidePart):
    """List of ledgers whose changes apply immediately; folders are never changed here."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._beside = ctx.ledgers
        self._filling = False
        self._shown: tuple[object, ...] = ()
        self._chosen = ""  # Selected folder, since a renamed ledger is removed and added again
        self.list = self._make_list()
        self._add_ = self.add(self.tr("Add a folder…"))
        self._change = self.add(self.tr("Change…"))
        self._test = self.add(self.tr("Test"))
        self._remove = self.add(self.tr("Remove"))
        self.fill_up()
        self.watch_only = QCheckBox(
            self.tr("Only watch the chosen one: change nothing in it"), self
        )
        self._lay_out()
        self._connect()
        self.refresh()

    def _make_list(self) -> QTreeWidget:
        made = QTreeWidget(self)
        made.setRootIsDecorated(False)
        made.setUniformRowHeights(True)
        made.setItemDelegate(Roomy(made))
        tr = self.tr
        titles = (tr("Label"), tr("Folder"), tr("State"), tr("Tasks"), tr("Changes"))
        made.setHeaderLabels(list(titles))
        made.setAccessibleName(self.tr("Ledgers of this window"))
        made.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        made.setMinimumHeight(LIST_HEIGHT)
        header = made.header()
        header.setStretchLastSection(False)
        for at in range(made.columnCount()):
            header.setSectionResizeMode(at, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        return made

    def _lay_out(self) -> None:
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        lead = self.tr("The tasks of all these folders stand in one list.")
        stays = self.tr(
            "Removing a ledger only takes it out of this window: its folder, and everything in "
            "it, stays as it is."
        )
        column.insertWidget(0, plain_label(lead, self, wrap=True))
        column.insertWidget(1, self.list)
        column.insertWidget(3, self.watch_only)
        column.addWidget(plain_label(stays, self, tone="muted", wrap=True))

    def _connect(self) -> None:
        self.list.currentItemChanged.connect(lambda *_: self._show_chosen())
        self.watch_only.toggled.connect(self._tick)
        self.list.itemActivated.connect(lambda *_: self._change.click())
        self._add_.clicked.connect(self._beside.add_wanted)
        self._change.clicked.connect(lambda: self._beside.change_wanted.emit(self._label))
        self._test.clicked.connect(self._look)
        self._remove.clicked.connect(self._take_away)
        self._beside.changed.connect(self.refresh)
        # Connected to a method, because a lambda would outlive the page.
        self.ctx.bridge.health.connect(self.refresh)

    def terms(self) -> list[str]:
        paths = [str(one.path) for one in self._beside.states]
        return [*paths, self.tr("root"), self.tr("Label")]

    def refresh(self) -> None:
        """Update the list and keep the selection."""
        health, number = self.ctx.bridge.look_at_health(), self._beside.own_tasks
        shown = (self._beside.states, health.root, health.watcher, number)
        # Without a change the items stay, because the user may be about to click one.
        if shown == self._shown:
            return
        self._filling, self._shown = True, shown
        self.list.clear()
        self.list.addTopLevelItem(self._own_item(health, number))
        for state in self._beside.states:
            self.list.addTopLevelItem(self._item(state))
        for at in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(at)
            if item is not None and item.data(0, PATH) == self._chosen:
                self.list.setCurrentItem(item)
        self._filling = False
        self._show_ability()

    def _own_item(self, health: Health, number: int) -> QTreeWidgetItem:
        watching = {
            "live": self.tr("Live"),
            "polling": self.tr("Polling"),
            "gone": self.tr("Folder gone"),
            "silent": self.tr("No answer"),
        }
        state = watching.get(health.watcher, health.watcher)
        name, path = words.say("root.here"), display(health.root)
        starts = self.tr("new tasks start here")
        item = QTreeWidgetItem([name, path, state, words.count(number), starts])
        item.setData(0, LABEL, "")
        item.setData(0, PATH, "")
        return _dressed(item, path, retold(health.watcher_reason))

    def _item(self, state: LedgerState) -> QTreeWidgetItem:
        path = display(str(state.path))
        number = words.count(state.tasks)
        may = self.tr("only watched") if state.watch_only else self.tr("may be changed")
        item = QTreeWidgetItem([state.label, path, state_word(state), number, may])
        item.setData(0, LABEL, state.label)
        item.setData(0, PATH, str(state.path))
        return _dressed(item, path, retold(state.reason))

    @property
    def _label(self) -> str:
        return self._held(LABEL)

    def _held(self, role: int) -> str:
        item = self.list.currentItem()
        return str(item.data(0, role)) if item is not None else ""

    @property
    def _state(self) -> LedgerState | None:
        return self._beside.state_of(self._label) if self._label else None

    def _show_chosen(self) -> None:
        """Enable the actions for the selected ledger and show its problem."""
        self._show_ability()
        state = self._state
        if not self._filling:
            self._chosen = self._held(PATH)
            self.say(retold(state.reason) if state is not None else "", "warning")

    def _show_ability(self) -> None:
        if self._filling:
            return
        state = self._state
        beside, self._filling = state is not None, True
        self.watch_only.setChecked(state is not None and state.watch_only)
        self._filling = False
        for button in (self._change, self._test, self._remove, self.watch_only):
            button.setEnabled(beside)
            own = self.tr("Choose a ledger beside the window’s own.")
            button.setToolTip("" if beside else plain_tip(own))

    # Actions.

    def _tick(self, watch_only: bool) -> None:
        state = self._state
        if not self._filling and state is not None:
            wanted = Beside(state.path, state.label, watch_only)
            self._beside.change(state.label, wanted)

    def _take_away(self) -> None:
        state = self._state
        if state is None:
            return
        self._beside.remove(state.label)
        words_ = self.tr("“{0}” is no longer shown here. Nothing in {1} was touched.")
        self.say(words_.format(state.label, display(str(state.path))), "good")

    def _look(self) -> None:
        state = self._state
        if state is None:
            return
        self._test.setEnabled(False)
        self.say(self.tr("Looking…"))

        async def look(_: Engine) -> Sequence[Finding]:
            from engine.doctor import beside

            return await asyncio.to_thread(beside, state.path, watch_only=state.watch_only)

        self.ctx.bridge.ask(look, self._show, self._refuse, name="test a ledger")

    def _show(self, found: Sequence[Finding]) -> None:
        self._show_ability()
        worst = max((one.state for one in found), key=list(_SIGNS).index, default="ok")
        lines = [f"{_SIGNS.get(one.state, '')} {one.text} {one.advice}".strip() for one in found]
        self.say("\n".join(lines), _TONES.get(worst, "muted"))

    def _refuse(self, error: EngineError) -> None:
        self._shown = ()
        self.refresh()
        self.say(language.told(error), "bad")


def _dressed(item: QTreeWidgetItem, path: str, reason: str) -> QTreeWidgetItem:
    item.setToolTip(1, plain_tip(path))
    item.setToolTip(2, plain_tip(reason))
    item.setTextAlignment(3, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return item


DAY_MS = 86_400_000
GIGABYTE = 1_000_000_000
KEYS = ("retention.days", "retention.gigabytes", "retention.keep")


class Clearing(Part):
    """Preview and deletion on request; nothing is deleted automatically."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._shown: Preview | None = None
        self.list: TaskList | None = None
        self._stop: threading.Event | None = None
        self._preview = self.add(self.tr("Preview what would go"))
        self._clear = self.add(self.tr("Move to the trash"))
        self._cancel = self.add(self.tr("Stop"))
        self.fill_up()
        self._preview.clicked.connect(self.preview)
        self._clear.clicked.connect(self._prune)
        self._cancel.clicked.connect(self._end)
        ctx.preferences.changed.connect(self._forget)
        self._rest()
        if ctx.ledgers.states:
            self.say(self.tr("This is about the window’s own ledger only."))

    def rules(self) -> Rules:
        """Return the retention rules; the third number only limits the other two."""
        days, gigabytes, keep = (self.ctx.preferences.get(key, int) for key in KEYS)
        if not days and not gigabytes:
            return Rules()  # With `keep` alone the engine would delete all other tasks
        return Rules(
            older_than_ms=days * DAY_MS if days else None,
            max_bytes=gigabytes * GIGABYTE if gigabytes else None,
            keep=keep or None,
        )

    def preview(self) -> None:
        """Request the tasks that the rules would delete."""
        rules = self.rules()
        if rules.is_empty:
            self.say(self.tr("Without a limit nothing goes."))
            return
        self._begin(self.tr("Looking at all ended tasks…"))

        async def look(engine: Engine) -> tuple[Preview, list[tuple[str, ...]]]:
            shown = await engine.retention.preview(rules)
            return shown, await asyncio.to_thread(_rows, shown)

        self.ctx.bridge.ask(look, self._show, self._fail, name="preview of clearing")

    def _prune(self) -> None:
        shown = self._shown
        if shown is None:
            return
        stop = self._stop = threading.Event()
        self._begin(self.tr("Moving tasks to the trash…"))

        async def prune(engine: Engine) -> Pruned:
            return await engine.retention.prune(shown, stop=stop)

        self.ctx.bridge.ask(prune, self._tell, self._fail, name="clearing")

    def _begin(self, words: str) -> None:
        self.say(words)
        self._show_list()
        self._preview.setEnabled(False)
        self._clear.setEnabled(False)
        self._cancel.show()

    def _rest(self) -> None:
        self._preview.setEnabled(True)
        self._clear.setEnabled(self._shown is not None and bool(self._shown.tasks))
        self._cancel.hide()

    def _show(self, found: tuple[Preview, list[tuple[str, ...]]]) -> None:
        shown = self._shown = found[0]
        self._rest()
        self._show_list(found[1])
        number, size = len(shown.tasks), size_words(shown.size_bytes)
        if not number:
            self.say(self.tr("Nothing would go."))
        elif number == 1:
            self.say(self.tr("1 task would go, with {0}.").format(size), "warning")
        else:
            words = self.tr("{0} tasks would go, with {1}.")
            self.say(words.format(count(number), size), "warning")

    def _show_list(self, rows: Sequence[tuple[str, ...]] = ()) -> None:
        """Show the tasks of the preview as a list."""
        if self.list is not None:
            self.list.hide()
            self.list.deleteLater()
            self.list = None
        column = self.layout()
        if rows and column is not None:
            titles = (self.tr("Task"), self.tr("Status"), self.tr("Ended"), self.tr("Size"))
            self.list = TaskList(titles, rows, self)
            head = self.list.header()  # With at most a hundred rows, fitting the columns is cheap
            head.setStretchLastSection(False)
            head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
            head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
            column.addWidget(self.list)

    def _tell(self, pruned: Pruned) -> None:
        self._shown = None
        self._rest()
        self.ctx.bridge.rescan()
        gone, size = count(len(pruned.gone)), size_words(pruned.size_bytes)
        left = len(pruned.stayed) + len(pruned.refused)
        if not left:
            self.say(self.tr("Tasks in the trash: {0}, with {1}.").format(gone, size), "good")
            return
        words = self.tr("Tasks in the trash: {0}, with {1}. Tasks that had to stay: {2}.")
        why = language.sentence(pruned.refused[0].error) if pruned.refused else ""
        self.say(f"{words.format(gone, size, count(left))} {why}".strip(), "warning")

    def _fail(self, error: EngineError) -> None:
        self._rest()
        self.say(language.told(error), "bad")

    def _end(self) -> None:
        """Stop between two tasks; deleted tasks stay in the trash."""
        if self._stop is not None:
            self._stop.set()
        else:
            self.ctx.bridge.call_off("preview of clearing")
            self.say("")
            self._rest()

    def _forget(self, key: str) -> None:
        """Discard the preview after a change of the rules."""
        if key in KEYS and self._shown is not None:
            self._shown = None
            self.say("")
            self._show_list()
            self._rest()


def _rows(shown: Preview) -> list[tuple[str, ...]]:
    """Return name, state, end and size of each task; slow for many tasks, for a thread."""
    return [
        (
            one.name,
            say(f"status.{one.status.lower()}"),
            clock(one.ended_at),
            size_words(one.size_bytes),
        )
        for one in shown.tasks
    ]


MOST_SLOTS = 64
MOST_AWAY_S = 3600


@dataclass(frozen=True, slots=True)
class Item:
    """One preference with its control, or a custom widget when `key` is empty.

    The item is disabled while `needs` is false.
    """

    key: str
    label: str
    control: Control | Callable[[WindowContext], QWidget]
    hint: str = ""
    needs: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the key prefixes for which its defaults are restored.

    A page without prefixes has a `name` for `show_page`.
    """

    title: str
    prefixes: tuple[str, ...]
    items: tuple[Item, ...]
    name: str = ""


class SettingPages(QObject):
    """Factory of the pages in the language of the window."""

    def __init__(
        self, shortcut_editor: Callable[[WindowContext], QWidget], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._shortcut_editor = shortcut_editor

    def pages(self) -> tuple[Page, ...]:
        """Return the pages in their order."""
        return (
            self._general(),
            self._appearance(),
            self._ledgers(),
            self._engine(),
            self._programs(),
            self._notices(),
            self._retention(),
            self._shortcuts(),
            self._advanced(),
        )

    def _general(self) -> Page:
        tr = self.tr
        asked, kept = ("ask", tr("Ask")), ("keep", tr("Keep them running in the tray"))
        finished = ("finish", tr("Finish them, then quit"))
        quitting = Choice((asked, kept, finished, ("cancel", tr("Cancel them and quit"))))
        items = (
            *self._language(),
            Item("desktop.start_hidden", tr("At the start"), Switch(tr("Start minimised"))),
            *self._tray(),
            Item("desktop.quit_with_tasks", tr("Quitting while tasks run"), quitting),
            Item(
                "desktop.keep_awake",
                tr("Sleep"),
                Switch(tr("Keep the machine awake while tasks run in this window")),
            ),
            *self._updates(),
        )
        return Page(tr("General"), ("general.", "desktop.", "updates."), items)

    def _updates(self) -> tuple[Item, ...]:
        """Return the item of the update check, where this program offers it."""
        if not build_info().offers_updates:
            return ()
        tr = self.tr
        hint = tr("One request, with the name and version of this program only.")
        return (Item("updates.check", tr("Updates"), Switch(tr("Check once a day")), hint),)

    def _language(self) -> tuple[Item, ...]:
        languages = Choice((("system", self.tr("System default")), *NAMES.items()))
        item = Item("general.language", self.tr("Language"), languages)
        return item, Item("", "", SpeakNow)

    def _tray(self) -> tuple[Item, ...]:
        tr = self.tr
        only = tr("Only where the desktop has a tray.")
        shown, hides = tr("Show tray icon"), tr("Closing the window hides it in the tray")
        return (
            Item("desktop.tray", tr("Tray"), Switch(shown), only, needs=_has_tray),
            Item("desktop.close_to_tray", "", Switch(hides), needs=_has_tray),
        )

    def _appearance(self) -> Page:
        tr = self.tr
        themes = (("system", tr("System default")), ("light", tr("Light")), ("dark", tr("Dark")))
        contrasts = (("system", tr("System default")), ("more", tr("More contrast")))
        heights = (("compact", tr("Compact")), ("normal", tr("Normal")), ("roomy", tr("Roomy")))
        items = (
            Item("appearance.theme", tr("Theme"), Choice(themes)),
            Item("appearance.contrast", tr("Contrast"), Choice(contrasts)),
            Item(
                "appearance.distinct",
                tr("Colours"),
                Switch(tr("Colour-blind palette")),
            ),
            Item(
                "appearance.letters",
                tr("Font size"),
                Number(LEAST, MOST, " %", beyond=tr("{0} % was chosen; {1} % is what can be.")),
                tr("Of the size that the desktop has chosen."),
            ),
            Item("appearance.density", tr("Row density"), Choice(heights)),
        )
        return Page(tr("Appearance"), ("appearance.",), items)

    def _ledgers(self) -> Page:
        # No defaults to restore, which would remove all ledgers from the window.
        return Page(self.tr("Ledgers"), (), (Item("", "", LedgersPart),), name="ledgers")

    def _engine(self) -> Page:
        tr = self.tr
        items = (
            Item(
                "engine.slots",
                tr("Tasks at once"),
                Number(0, MOST_SLOTS, "", tr("Automatic")),
                tr("The number of slots: other tasks wait until one is free."),
            ),
            Item(
                "engine.away_s",
                tr("Wait for a missing folder"),
                Number(1, MOST_AWAY_S, tr(" s")),
                tr("A running task waits for its folder this long, then it ends as failed."),
            ),
            Item(
                "browser.path",
                tr("Browser"),
                File(tr("Look for Chrome, Edge or Chromium"), tr("Browse…")),
                tr("The program that opens pages. Empty: the first one that is found."),
            ),
            Item("", "", BrowserTest),
            Item(
                "commands.allow_files",
                tr("Files for uploads"),
                File(tr("No folder: tasks upload nothing"), tr("Browse…"), is_folder=True),
                tr("The folder whose files command tasks may upload."),
            ),
            *self._proxy(),
            self._cluster(),
            Item("", "", OpenAgain),
        )
        keys = ("engine.", "browser.", "commands.", "proxy.", "cluster.")
        return Page(tr("Engine and browser"), keys, items)

    def _cluster(self) -> Item:
        tr = self.tr
        return Item(
            "cluster.address",
            tr("Cluster"),
            Word(
                tr("None, or as tcp://host:8786 or local:2"),
                tr("Not kept: it must be tcp://HOST:PORT, tls://HOST:PORT or local:N."),
                is_cluster,
            ),
            tr(
                "Its workers load the pages of crawls and evidence bundles that name no cluster. "
                "Those that do not go with a cluster, and those of other programs, load their "
                "pages on this machine."
            ),
        )

    def _proxy(self) -> tuple[Item, ...]:
        tr = self.tr
        address = Word(
            tr("None, or as socks5://host:1080"),
            tr("Not kept: no http, https or socks5 address without a user."),
            is_proxy,
        )
        secret = Word(
            tr("None, or as env:PROXY_PASSWORD"),
            tr("Not kept: name the variable that holds it."),
            lambda text: text.startswith("env:") and is_variable(text[len("env:") :]),
        )
        passed = Lines(
            tr("None, or as .example.com"),
            tr("Not used: {0}. Each line is a host, a domain or a network."),
            is_bypass,
        )
        return (
            Item(
                "proxy.address",
                tr("Proxy"),
                address,
                tr(
                    "All connections of tasks go through it: http, https, socks5 or socks5h; env "
                    "for the proxy of the environment. A task may name another."
                ),
            ),
            Item("proxy.username", tr("Proxy user"), Word("", "", bool)),
            Item(
                "proxy.password",
                tr("Proxy password"),
                secret,
                tr("The environment variable that holds it; it is never stored."),
            ),
            Item(
                "proxy.bypass",
                tr("Proxy exceptions"),
                passed,
                tr("They are connected to directly; one per line."),
            ),
        )

    def _programs(self) -> Page:
        tr = self.tr
        serve = Switch(tr("Let programs on this machine start and watch tasks"))
        items = (
            Item(
                "programs.serve",
                tr("Access"),
                serve,
                tr(
                    "Programs that have the token (agents over MCP, scripts over HTTP) can also "
                    "read results and cancel any task of this list."
                ),
            ),
            Item("", tr("Server"), ServerPart),
            *self._program_limits(),
        )
        return Page(tr("Other programs"), (PREFIX,), items)

    def _program_limits(self) -> tuple[Item, ...]:
        tr = self.tr
        beyond = tr("{0} was chosen; {1} is what can be.")
        port = Number(0, MOST_PORT, none=tr("Any free port"), beyond=beyond, whole=True)
        places = Lines(
            tr("None, or as localhost:8080"),
            tr("Not used: {0}. Each line is a host and a port."),
            lambda line: private_place(line) is not None,
        )
        names = Lines(
            tr("None, or as SHOP_PASSWORD"),
            tr("Not used: {0}. Each line is the name of a variable."),
            is_allowed_secret,
        )
        return (
            Item(
                "programs.port",
                tr("Port"),
                port,
                tr("With a fixed port, an address in a program’s configuration stays valid."),
            ),
            Item(
                "programs.allow_private",
                tr("Private addresses"),
                places,
                tr(
                    "Tasks of programs open public addresses, and of your machine or network only "
                    "these; one per line."
                ),
            ),
            Item(
                "programs.allow_secrets",
                tr("Secrets"),
                names,
                tr(
                    "Tasks of programs may type the values of these environment variables into "
                    "any page; one per line. profile:NAME lets them use a profile."
                ),
            ),
        )

    def _notices(self) -> Page:
        tr = self.tr
        ways = Choice(
            (
                ("popup", tr("Pop up, and list")),
                ("list", tr("List only")),
                ("none", tr("Not at all")),
            )
        )
        items = (
            Item("notify.failed", tr("Failed tasks"), ways),
            Item("notify.attention", tr("Tasks that need attention"), ways),
            Item("notify.changed", tr("Scheduled runs that found changes"), ways),
            Item("notify.completed", tr("Completed tasks"), ways),
            Item("notify.cancelled", tr("Cancelled tasks"), ways),
            Item("notify.while_active", "", Switch(tr("Pop up also while I look at the window"))),
            Item("notify.sound", "", Switch(tr("With a sound"))),
            *self._quiet(),
        )
        return Page(tr("Notifications"), ("notify.",), items)

    def _quiet(self) -> tuple[Item, ...]:
        tr = self.tr
        wrong = tr("Not kept: that is no time.")
        start = Clock(tr("never, or as 22:00"), wrong)
        end = Clock(tr("never, or as 07:30"), wrong)
        both = tr("Set both times.")
        return (
            Item("notify.quiet_from", tr("Quiet from"), start),
            Item("notify.quiet_until", tr("Quiet until"), end, both),
        )

    def _retention(self) -> Page:
        tr = self.tr
        none = tr("No limit")
        items = (
            Item(
                "retention.days",
                tr("Older than"),
                Number(0, 3650, tr(" days"), none, tr(" day")),
                tr("Counted from a task’s end. What runs or waits always stays."),
            ),
            Item("retention.gigabytes", tr("More than"), Number(0, 9999, tr(" GB"), none)),
            Item(
                "retention.keep",
                tr("Never the newest"),
                Number(0, 1_000_000, tr(" tasks"), tr("No exception"), tr(" task")),
            ),
            Item("", "", Clearing, tr("Nothing goes by itself: only what a preview showed.")),
        )
        return Page(tr("Retention"), ("retention.",), items)

    def _shortcuts(self) -> Page:
        items = (Item("shortcuts.keys", "", self._shortcut_editor),)
        return Page(self.tr("Shortcuts"), ("shortcuts.",), items)

    def _advanced(self) -> Page:
        tr = self.tr
        items = (
            Item(
                "",
                tr("All settings"),
                CarryOver,
                tr("Exported as one file, without anything secret."),
            ),
            Item("", tr("When something is wrong"), Diagnostics),
        )
        return Page(tr("Advanced"), (), items)


def _has_tray() -> bool:
    """Checked each time, because trays appear and disappear."""
    return QSystemTrayIcon.isSystemTrayAvailable()
