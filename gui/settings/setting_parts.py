"""Parts of the settings that are more than one control: ledgers, retention, server, shortcuts."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QKeySequenceEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
)

from engine.model.display import display
from engine.model.errors import EngineError
from engine.server.hosts.config_change import config_path
from engine.server.hosts.host_table import (
    HOSTS,
    LITERAL_TOKEN,
    TOKEN_VARIABLE,
    Host,
    Machine,
    http_snippet,
)
from engine.service.pruning import Preview, Pruned, Rules
from engine.service.router.ledger_paths import Beside, LedgerState
from engine.text import words
from engine.text.messages import retold
from engine.text.words import clock, count, say, size_words
from gui.context.window_context import WindowContext
from gui.engine_link.program_server import ServerState, ServerStatus
from gui.i18n import language
from gui.i18n.names import state_word
from gui.settings.setting_controls import Part, TallPart, WidePart
from gui.settings.shortcuts import Shortcuts, plain, shown
from gui.style.editors import Roomy
from gui.style.questions import Question, TaskList
from gui.style.theme import TonedLabel, plain_label, plain_tip
from gui.style.widgets import arrange

if TYPE_CHECKING:
    from engine.doctor import Finding
    from engine.model.records import Health
    from engine.service.engine import Engine

LABEL = Qt.ItemDataRole.UserRole
PATH = Qt.ItemDataRole.UserRole + 1  # The folder identifies a ledger across a change of its label
LEDGERS_HEIGHT: Final = 170
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
        made.setMinimumHeight(LEDGERS_HEIGHT)
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
RETENTION_KEYS = ("retention.days", "retention.gigabytes", "retention.keep")


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
        days, gigabytes, keep = (self.ctx.preferences.get(key, int) for key in RETENTION_KEYS)
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
        if key in RETENTION_KEYS and self._shown is not None:
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


MCP_PATH = "/mcp"


class ServerPart(TallPart):
    """State in words; buttons copy the address, the path of the token and a configuration.

    The token itself is never shown or copied.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._programs = ctx.bridge.programs
        self.state = TonedLabel("", "muted", self)
        self.state.setWordWrap(True)
        self._address = self.add(self.tr("Copy address"))
        self._token = self.add(self.tr("Copy path of the token"))
        self.fill_up()
        self._renew = self.add(self.tr("New token…"))
        self._again = self.add(self.tr("Try again"))
        self.hosts = QComboBox(self)
        self.hosts.setAccessibleName(self.tr("Program to configure"))
        for host in HOSTS.values():
            if host.http_entry is not None:
                self.hosts.addItem(host.title, host.name)
        self._config = self.add(self.tr("Copy configuration"))
        self._lay_out()
        self._address.clicked.connect(self._copy_address)
        self._token.clicked.connect(self._copy_token_path)
        self._renew.clicked.connect(self._ask_renew)
        self._again.clicked.connect(self._programs.try_again)
        self._config.clicked.connect(self._copy_config)
        # Connected to methods, because a lambda would outlive the page.
        self._programs.changed.connect(self._refresh)
        ctx.preferences.changed.connect(self._hear)
        self._refresh()

    def _lay_out(self) -> None:
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        label = plain_label(self.tr("For"), self)
        label.setBuddy(self.hosts)
        # In three rows, because a fourth button in one has no room in German.
        hosts = arrange(QHBoxLayout(), label, self.hosts, self._config, 1, margins=0)
        column.insertWidget(0, self.state)
        column.insertLayout(2, hosts)
        column.insertLayout(3, arrange(QHBoxLayout(), self._renew, self._again, 1, margins=0))

    def _hear(self, key: str) -> None:
        if key == "programs.serve":
            self._refresh()

    def _refresh(self) -> None:
        status = self._programs.status
        runs = status.state is ServerState.RUNNING
        failed = status.state is ServerState.FAILED
        tone, words = self._words(status)
        self.state.show_tone(tone)
        self.state.show_text(words)
        for part in (self._address, self._token, self.hosts, self._config):
            part.setEnabled(runs)
        self._renew.setEnabled(runs or failed)
        self._again.setVisible(failed)
        if not runs:
            self.say("")

    def _words(self, status: ServerStatus) -> tuple[str, str]:
        """Return tone and text of a status."""
        if status.state is ServerState.RUNNING:
            words = self.tr("Running at {0} (MCP at {1}).")
            return "good", words.format(status.url, status.url + MCP_PATH)
        if status.error is not None:
            return "bad", self.tr("Not running: {0}").format(language.told(status.error))
        if status.state is ServerState.STARTING:
            return "muted", self.tr("Starting…")
        if status.state is ServerState.STOPPING:
            return "muted", self.tr("Ending the connections…")
        if self.ctx.preferences.get("programs.serve", bool):
            return "muted", self.tr("Not running yet: it starts when the list is loaded.")
        return "muted", self.tr("Not running: nothing listens.")

    # Actions.

    def _copy_address(self) -> None:
        QGuiApplication.clipboard().setText(self._programs.status.url)
        self.say(self.tr("The address was copied."), "good")

    def _copy_token_path(self) -> None:
        file = self._programs.status.token_file
        QGuiApplication.clipboard().setText(str(file))
        words = self.tr("Copied: {0}. The token is in that file; keep it private.")
        self.say(words.format(display(str(file))), "good")

    def _copy_config(self) -> None:
        host, status = HOSTS[self.hosts.currentData()], self._programs.status
        snippet = http_snippet(host, status.url + MCP_PATH) or ""
        QGuiApplication.clipboard().setText(snippet)
        words = self.tr("Copied: this belongs into {0}.").format(display(str(self._file_of(host))))
        self.say(f"{words} {self._token_words(host, snippet, status)}", "good")

    def _file_of(self, host: Host) -> Path:
        environ = self.ctx.bridge.engine.settings.environ
        machine = Machine(sys.platform, str(Path.home()), environ)
        return config_path(host, machine) or Path(host.title)

    def _token_words(self, host: Host, snippet: str, status: ServerStatus) -> str:
        """Return how the host gets the token."""
        file = display(str(status.token_file))
        if LITERAL_TOKEN in snippet:
            words = self.tr("Replace {0} there by the token in {1}, and keep the file private.")
            return words.format(LITERAL_TOKEN, file)
        if TOKEN_VARIABLE in snippet:
            words = self.tr("{0} reads the token from the variable {1}; it is in {2}.")
            return words.format(host.title, TOKEN_VARIABLE, file)
        return self.tr("{0} asks for the token, which is in {1}.").format(host.title, file)

    def _ask_renew(self) -> None:
        question = Question(self.window())
        question.ask(self.tr("New token"), self.tr("Make a new token?"))
        question.add_text(
            self.tr(
                "Programs with the old token are refused, and open connections end. Put the new "
                "one into each configuration that has the old one."
            )
        )
        question.add_button("renew", self.tr("Make a new token"), destroys=True)
        question.add_button("keep", self.tr("Keep the token"), default=True)
        question.open_for(renew=self._programs.renew_token)


ACTION_KEY = Qt.ItemDataRole.UserRole
ACTIONS_HEIGHT = 260
KEYS_WIDTH = 210  # Wide enough for the placeholder text


class ShortcutEditor(WidePart):
    """Editor of shortcuts; a key that belongs to another action is refused with its name."""

    def __init__(self, ctx: WindowContext, shortcuts: Shortcuts) -> None:
        super().__init__(ctx)
        self._acts = ctx.actions
        self._shortcuts = shortcuts
        self._list = self._make_list()
        self._field = QKeySequenceEdit(self)
        self._field.setMaximumSequenceLength(1)
        self._field.setMinimumWidth(KEYS_WIDTH)
        self._field.setAccessibleName(self.tr("New keys for the chosen action"))
        self._row.insertWidget(0, self._field)
        self._set = self.add(self.tr("Use these keys"))
        self._none = self.add(self.tr("No keys"))
        self._usual = self.add(self.tr("Reset"))
        self.fill_up()
        column = self.layout()
        assert column is not None
        column.removeWidget(self.said)
        column.addWidget(self._list)
        column.addWidget(self.said)
        self._fill()
        self._list.currentItemChanged.connect(lambda *_: self._show_chosen())
        self._set.clicked.connect(self._choose)
        self._none.clicked.connect(lambda: self._shortcuts.choose(self._key, []))
        self._usual.clicked.connect(lambda: self._shortcuts.restore(self._key))
        self._shortcuts.changed.connect(self._show_keys)

    def _make_list(self) -> QTreeWidget:
        made = QTreeWidget(self)
        made.setRootIsDecorated(False)
        made.setUniformRowHeights(True)
        made.setHeaderLabels([self.tr("Action"), self.tr("Keys")])
        made.setAccessibleName(self.tr("Actions and their keys"))
        made.setMinimumHeight(ACTIONS_HEIGHT)
        return made

    def terms(self) -> list[str]:
        return [plain(self._acts[key].text()) for key in self._acts]

    def _fill(self) -> None:
        for key in self._acts:
            item = QTreeWidgetItem([plain(self._acts[key].text()), ""])
            item.setData(0, ACTION_KEY, key)
            self._list.addTopLevelItem(item)
        self._list.setColumnWidth(0, 300)
        self._list.setCurrentIndex(self._list.model().index(0, 0))
        self._show_keys()

    @property
    def _key(self) -> str:
        item = self._list.currentItem()
        return str(item.data(0, ACTION_KEY)) if item is not None else ""

    def _show_keys(self) -> None:
        for at in range(self._list.topLevelItemCount()):
            item = self._list.topLevelItem(at)
            assert item is not None
            key = str(item.data(0, ACTION_KEY))
            words = shown(self._shortcuts.keys(key))
            if self._shortcuts.is_changed(key):
                words = self.tr("{0} (changed)").format(words or self.tr("none"))
            item.setText(1, words)
        self._show_chosen()

    def _show_chosen(self) -> None:
        self._field.clear()
        self.say("")
        self._usual.setEnabled(self._shortcuts.is_changed(self._key))
        self._none.setEnabled(bool(self._shortcuts.keys(self._key)))

    def _choose(self) -> None:
        keys = self._field.keySequence().toString(QKeySequence.SequenceFormat.PortableText)
        owner = self._shortcuts.owner(keys, self._key) if keys else ""
        if not keys:
            self.say(self.tr("Press the new keys in the field first."), "warning")
        elif owner:
            words = self.tr("{0} belongs to “{1}”. Choose other keys there first.")
            self.say(words.format(shown([keys]), plain(self._acts[owner].text())), "warning")
        elif self._shortcuts.would_be_typed(keys):
            words = self.tr("{0} alone is needed where one types. Add Ctrl or Alt.")
            self.say(words.format(shown([keys])), "warning")
        else:
            self._shortcuts.choose(self._key, [keys])
