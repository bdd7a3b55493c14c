"""All actions of the window, shared by menus, toolbar and shortcuts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QSizePolicy, QToolBar, QToolButton, QWidget

from gui.style.icons import icon
from gui.style.menu import Menu
from gui.style.theme import Theme, plain_tip

Key = QKeySequence.StandardKey
TOOL_ICON = 18
SUB_MENU = "MENU "
# Where each action is placed: in a menu, on the toolbar, in the menu of a row. "" separates groups.
MENUS: dict[str, tuple[str, ...]] = {
    "file": (
        *("new", "paste", "open_file", "list_mode", ""),
        *("open", "add_root", "folder", ""),
        *("export_tasks", "export_list", "import_tasks", "", "settings", "", "finish_quit", "quit"),
    ),
    "edit": (
        *("undo", ""),
        *("copy_ids", "copy_rows", "copy_link", "copy_files", ""),
        *("all", "all_matching", "none", ""),
        *("find", "filter_by_value", "save_view", "clear_filter"),
    ),
    "task": (
        *("open_result", "watch_page", ""),
        *("cancel", "stop", "force_stop", "cancel_matching", "force", "resume", ""),
        *("resume_crawl", "replay", "rerun", "rerun_many", "duplicate", "retry_failed"),
        *("repeat", ""),
        *("notify_end", "acknowledge", "next_attention", "last_attention", ""),
        *("start_anyway", ""),
        *("task_folder", "delete", "delete_for_good"),
    ),
    "view": (
        *("sidebar", "details", "details_right", "", "MENU sort", "MENU columns", "MENU views"),
        *("MENU theme", "MENU language", "", "rescan", "", "next_region", "last_region"),
    ),
    "tools": (
        "palette",
        "",
        "hold",
        "schedules",
        "profiles",
        "sign_in_again",
        "news",
        "doctor",
        "statistics",
        "cluster_workers",
        "",
        "download_browser",
        "consent_rules",
    ),
    "help": ("help", "shortcuts", "sample", "", "log", "debug_info", "", "about"),
}
TOOL_BAR = ("new", "cancel", "stop", "rerun", "force", "", "export_tasks", "folder", "", "palette")
TOOL_BAR_END = ("hold", "watch_page", "rescan", "settings", "sidebar", "details")
PASSING = ("stop",)  # Only on the toolbar while they are enabled
# The actions that a state of a task suggests, of which those of its state are shown.
OVERVIEW = (
    *("force_stop", "start_anyway", "stop", "sign_in_again", "resume", "resume_crawl", "replay"),
    "retry_failed",
    *("cancel", "notify_end", "open_result"),
)
ROW_MENU = (
    *("open_result", "watch_page", "", "cancel", "stop", "force", "resume", ""),
    *("resume_crawl", "replay", "rerun", "duplicate", "retry_failed", "repeat", ""),
    *("notify_end", "acknowledge", "filter_by_value", ""),
    *("copy_ids", "copy_rows", "copy_link", "copy_files", ""),
    *("export_tasks", "task_folder", "delete"),
)

NAME = "name"  # Property with the original text of an action
SUGGESTED = "suggested"  # Property: False for an action that is possible, but of no use


class Actions(QObject):
    """Actions by key; the window connects them."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._signs: dict[str, str] = {}
        self._by_key: dict[str, QAction] = {}
        self._tips: dict[str, str] = {}
        self._reasons: dict[str, str] = {}  # Reasons of the ledger why actions are disabled
        self._obstacles: dict[str, str] = {}  # Reasons of the selection, by action
        self.themes: dict[Theme, QAction] = {}
        self.menus: dict[str, QMenu] = {}
        self._make_file()
        self._make_edit()
        self._make_task()
        self._make_view()
        self._make_help()

    def __getitem__(self, key: str) -> QAction:
        return self._by_key[key]

    def redraw(self) -> None:
        """Redraw the icons after a theme change."""
        for key, sign in self._signs.items():
            self._by_key[key].setIcon(icon(sign))
        self._draw_overflow()

    def known(self, keys: Iterable[str]) -> list[QAction]:
        """Return the actions of these keys, without those of parts that are left out."""
        return [self[key] for key in keys if key in self._by_key]

    def keep_to(self, place: QWidget, *keys: str) -> None:
        """Limit the shortcuts of these actions to `place`.

        Del in the events must not cancel a task, and Ctrl+C copies the selection there.
        """
        for key in keys:
            action = self[key]
            self._window.removeAction(action)
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            place.addAction(action)

    def allow_starts(self, allowed: bool, why_not: str = "") -> None:
        """Enable the start actions, or show the reason in their tool tips."""
        for key in ("new", "paste", "sample"):
            self.allow(key, allowed, why_not)

    def allow(self, key: str, allowed: bool, why_not: str = "") -> None:
        """Enable an action, or show in its tool tip why it is disabled."""
        self._obstacles[key] = "" if allowed else why_not
        self[key].setEnabled(allowed)
        self._show_tip(key)

    def suggest(self, key: str, suggested: bool) -> None:
        """Set whether the Overview has a button for this action while it is enabled."""
        if self[key].property(SUGGESTED) != suggested:
            self[key].setProperty(SUGGESTED, suggested)
            self[key].changed.emit()  # Qt tells of its own properties only

    def allow_chosen(self, key: str, allowed: bool, why_not: str, *, chosen: int) -> None:
        """As `allow`, for an action on the `chosen` tasks, of which there may be none."""
        self.allow(key, allowed, why_not if chosen else self.tr("Select a task first."))

    def _show_tip(self, key: str) -> None:
        reason = self._reasons.get(key) or self._obstacles.get(key)
        self[key].setToolTip(plain_tip(reason) if reason else self._tips[key])

    def explain(self, reasons: Mapping[str, str]) -> None:
        """Show in tool tips why the ledger does not allow these actions, and no others."""
        before, self._reasons = self._reasons, dict(reasons)
        for key in {*before, *reasons}:
            self._show_tip(key)

    def fill_menu_bar(self) -> None:
        """Fill the menu bar after all parts of the window have added their actions."""
        bar, titles = self._window.menuBar(), self.titles()
        for name, keys in MENUS.items():
            if any(present(keys, self._is_known)):
                menu = Menu(titles[name], self._window)
                bar.addMenu(menu)
                show = partial(self._show_reasons, menu)
                menu.aboutToShow.connect(show)
                self._fill(menu, *keys)

    def _show_reasons(self, menu: QMenu) -> None:
        menu.setToolTipsVisible(bool(self._reasons))

    def fill_tool_bar(self, bar: QToolBar) -> None:
        """Fill the toolbar: task actions with text, others at the end as icons."""
        bar.setIconSize(QSize(TOOL_ICON, TOOL_ICON))
        bar.setMovable(False)
        bar.setFloatable(False)
        bar.setObjectName("tools")
        bar.setWindowTitle(self.tr("Toolbar"))
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._fill(bar, *TOOL_BAR)
        space = QWidget(bar)
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        bar.addWidget(space)
        self._fill(bar, *TOOL_BAR_END)
        for key in present(TOOL_BAR_END, self._is_known):
            sign = bar.widgetForAction(self[key])
            sign.setProperty("toolButtonStyle", Qt.ToolButtonStyle.ToolButtonIconOnly)
            sign.setAccessibleName(self[key].iconText())
        for button in bar.findChildren(QToolButton):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)

        self._draw_overflow()

    def _draw_overflow(self) -> None:
        """Draw the button for what has no room in the toolbar: Qt's own arrow is always black."""
        for button in self._window.findChildren(QToolButton, "qt_toolbar_ext_button"):
            button.setIcon(icon("more"))

    def fill_context_menu(self, menu: QMenu) -> None:
        menu.setToolTipsVisible(bool(self._reasons))
        self._fill(menu, *ROW_MENU)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of all actions, in menu order, then in order of addition."""
        placed = [key for keys in MENUS.values() for key in keys if key in self._by_key]
        return iter(dict.fromkeys([*placed, *self._by_key]))

    def _is_known(self, key: str) -> bool:
        return key in self._by_key or key.removeprefix(SUB_MENU) in self.menus

    def titles(self) -> dict[str, str]:
        """What the menus of the bar are called, by their names in `MENUS`."""
        return {
            "file": self.tr("&File"),
            "edit": self.tr("&Edit"),
            "task": self.tr("&Task"),
            "view": self.tr("&View"),
            "tools": self.tr("T&ools"),
            "help": self.tr("&Help"),
        }

    def _make_file(self) -> None:
        self.add("new", self.tr("&New task…"), [Key.New], "new", self.tr("New task"))
        self.add("paste", self.tr("New task from the &clipboard"), [Key.Paste])
        self.add("open", self.tr("&Open another folder…"), [Key.Open])
        self.add("folder", self.tr("Show the led&ger's folder"), [], "folder", self.tr("Folder"))
        quit_ = self.add("quit", self.tr("&Quit"), ["Ctrl+Q"])
        quit_.setMenuRole(QAction.MenuRole.QuitRole)

    def _make_edit(self) -> None:
        self.add("copy_ids", self.tr("Copy &ids"), [Key.Copy])
        self.add("copy_rows", self.tr("Copy row&s"), ["Ctrl+Shift+C"])
        self.add("all", self.tr("Select &all"), [Key.SelectAll])
        self.add("none", self.tr("Select &nothing"), ["Ctrl+Shift+A"])
        self.add("find", self.tr("&Filter"), [Key.Find])

    def _make_task(self) -> None:
        keys: list[Key | str] = [Key.Delete]
        if sys.platform == "darwin":
            keys.append("Backspace")  # Mac keyboards have Backspace in its place
        self.add("cancel", self.tr("&Cancel…"), keys, "stop", self.tr("Cancel"))
        self.add("task_folder", self.tr("Open the t&ask's folder"), ["Ctrl+Shift+O"])
        self.add("sample", self.tr("Try the &sample crawl"), [], "sample")

    def _make_view(self) -> None:
        self.add("sidebar", self.tr("&Sidebar"), ["F4"], "sidebar", check=True)
        self.add("details", self.tr("&Details"), ["Ctrl+D"], "details", check=True)
        self.add("rescan", self.tr("&Rescan"), [Key.Refresh], "refresh", self.tr("Rescan"))
        self.add("next_region", self.tr("Ne&xt region"), ["F6"])
        self.add("last_region", self.tr("&Previous region"), ["Shift+F6"])
        group = QActionGroup(self)
        for theme, words in (
            (Theme.SYSTEM, self.tr("As the &system")),
            (Theme.LIGHT, self.tr("&Light")),
            (Theme.DARK, self.tr("&Dark")),
        ):
            self.themes[theme] = action = group.addAction(words)
            action.setCheckable(True)
        self.add_menu("sort", self.tr("Sort &by"))
        self.add_menu("columns", self.tr("&Columns"))
        self.add_menu("theme", self.tr("&Theme")).addActions(list(self.themes.values()))

    def _make_help(self) -> None:
        self.add("log", self.tr("Open &log folder"), [])
        about = self.add("about", self.tr("&About"), [])
        about.setMenuRole(QAction.MenuRole.AboutRole)

    def add_menu(self, name: str, title: str) -> QMenu:
        """A menu within a menu, placed as `MENU name` in `MENUS`."""
        self.menus[name] = menu = Menu(title, self._window)
        return menu

    def add(
        self,
        key: str,
        text: str,
        keys: Iterable[Key | str] = (),
        sign: str = "",
        short: str = "",
        *,
        check: bool = False,
    ) -> QAction:
        """One thing to do. `text` stands in menus, `short` on the toolbar and in the tip; `sign`
        names an icon. Where it is placed is said in `MENUS`, by its key."""
        action = QAction(text, self._window)
        action.setProperty(NAME, text)  # Some actions change their text later
        action.setCheckable(check)
        action.setChecked(check)
        action.setIconText(short or text.replace("&", ""))
        if sign:
            self._signs[key] = sign
            action.setIcon(icon(sign))
        self._window.addAction(action)
        self._by_key[key] = action
        self.set_keys(key, keys)
        return action

    def set_keys(self, key: str, keys: Iterable[Key | str | QKeySequence]) -> None:
        """Set the shortcuts of an action; its tool tip shows the first."""
        action = self._by_key[key]
        action.setShortcuts([QKeySequence(one) for one in keys])
        first = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        name = action.iconText().removesuffix("…")
        self._tips[key] = f"{name} ({first})" if first else name
        self._show_tip(key)

    def _fill(self, place: QMenu | QToolBar, *keys: str) -> None:
        for key in present(keys, self._is_known):
            if not key:
                place.addSeparator()
            elif key in PASSING and isinstance(place, QToolBar):
                self._add_passing(place, self[key])
            elif key.startswith(SUB_MENU):
                place.addAction(self.menus[key.removeprefix(SUB_MENU)].menuAction())
            else:
                place.addAction(self[key])

    def _add_passing(self, bar: QToolBar, action: QAction) -> None:
        """Add a button that takes no room while its action is disabled."""
        button = QToolButton(bar)
        button.setDefaultAction(action)
        button.setToolButtonStyle(bar.toolButtonStyle())
        button.setIconSize(bar.iconSize())
        shown = bar.addWidget(button)
        shown.setVisible(action.isEnabled())
        action.enabledChanged.connect(shown.setVisible)


def present(keys: Sequence[str], known: Callable[[str], bool]) -> Iterator[str]:
    """The keys that are `known`, with one line between two groups and none at the ends."""
    line = began = False
    for key in keys:
        if not key:
            line = began
        elif known(key):
            if line:
                yield ""
            yield key
            line, began = False, True


def is_suggested(action: QAction) -> bool:
    """Return whether an action is possible and of use for the chosen task."""
    return action.isEnabled() and action.property(SUGGESTED) is not False
