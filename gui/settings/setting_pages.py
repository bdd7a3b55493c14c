"""The settings pages and their items as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from engine.browser.chromium.locate import locate
from engine.cluster.cluster_address import is_cluster
from engine.model.build_info import build_info
from engine.model.errors import BrowserMissing
from engine.model.proxies import is_bypass, is_proxy
from engine.service.allowlists import is_allowed_secret, is_variable, private_place
from gui.context.window_context import WindowContext
from gui.i18n.language import NAMES
from gui.settings.appearance import DENSITY, LANGUAGE, LETTERS, THEME
from gui.settings.program_access import MOST_PORT, PREFIX
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
    SpeakNow,
    Switch,
    Word,
)
from gui.settings.setting_parts import Clearing, LedgersPart, ServerPart
from gui.style.theme import DISTINCT, LEAST, MORE_CONTRAST, MOST

MOST_SLOTS = 64
MOST_AWAY_S = 3600


@dataclass(frozen=True, slots=True)
class Item:
    """One preference with its control, or a custom widget when `key` is empty.

    The item is disabled while `needs` is false. One that `waits` takes effect when a folder is
    opened, which stands beside it.
    """

    key: str
    label: str
    control: Control | Callable[[WindowContext], QWidget]
    hint: str = ""
    needs: Callable[[], bool] = lambda: True
    waits: bool = False


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
        item = Item(LANGUAGE, self.tr("Language"), languages)
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
            Item(THEME, tr("Theme"), Choice(themes)),
            Item(MORE_CONTRAST, tr("Contrast"), Choice(contrasts)),
            Item(DISTINCT, tr("Colours"), Switch(tr("Colour-blind palette"))),
            Item(
                LETTERS,
                tr("Font size"),
                Number(LEAST, MOST, " %", beyond=tr("{0} % was chosen; {1} % is what can be.")),
                tr("Of the size that the desktop has chosen."),
            ),
            Item(DENSITY, tr("Row density"), Choice(heights)),
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
                self._program(),
                tr("The program that opens pages. Empty: the first one that is found."),
            ),
            Item("", "", BrowserTest),
            Item(
                "commands.allow_files",
                tr("Files for uploads"),
                self._folder(),
                tr("The folder whose files command tasks may upload."),
            ),
            *self._proxy(),
            self._cluster(),
        )
        items = (*(replace(one, waits=bool(one.key)) for one in items), Item("", "", OpenAgain))
        keys = ("engine.", "browser.", "commands.", "proxy.", "cluster.")
        return Page(tr("Engine and browser"), keys, items)

    def _program(self) -> File:
        tr = self.tr
        return File(
            tr("Look for Chrome, Edge or Chromium"),
            tr(
                "Not kept: it is not a program that can be run. Choose one with Browse, or leave "
                "the field empty."
            ),
            tr(
                "This program cannot be run any more. Choose another one with Browse, or clear the "
                "field."
            ),
            _is_program,
        )

    def _folder(self) -> File:
        tr = self.tr
        return File(
            tr("No folder: tasks upload nothing"),
            tr("Not kept: there is no such folder. Choose one with Browse, or leave it empty."),
            tr("This folder is not there any more. Choose another one with Browse, or clear it."),
            _is_folder,
            is_folder=True,
        )

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
        wrong = tr("Not kept: a time is written as 22:00.")
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


def _is_program(path: str) -> bool:
    """Return whether the engine would find the browser at this path or of this name."""
    try:
        locate(path)
    except BrowserMissing:
        return False
    return True


def _is_folder(path: str) -> bool:
    """A relative path would depend on the folder from which the program was started."""
    try:
        return Path(path).is_absolute() and Path(path).is_dir()
    except (OSError, ValueError):  # too long, or with NUL
        return False


def _has_tray() -> bool:
    """Checked each time, because trays appear and disappear."""
    return QSystemTrayIcon.isSystemTrayAvailable()
