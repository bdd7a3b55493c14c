"""Everything the window can be told to do: one action each, the same in menu, toolbar and keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QSizePolicy, QToolBar, QToolButton, QWidget

from gui.icons import icon
from gui.theme import Theme, plain_tip

Key = QKeySequence.StandardKey
TOOL_ICON = 18


class Actions(QObject):
    """The window's actions by key. Who connects them is the window's business."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._signs: dict[str, str] = {}
        self._by_key: dict[str, QAction] = {}
        self._tips: dict[str, str] = {}
        self.themes: dict[Theme, QAction] = {}
        self._make_file()
        self._make_edit()
        self._make_task()
        self._make_view()
        self._make_help()

    def __getitem__(self, key: str) -> QAction:
        return self._by_key[key]

    def redraw(self) -> None:
        """Draw the signs anew: the theme has changed."""
        for key, sign in self._signs.items():
            self._by_key[key].setIcon(icon(sign))

    def keep_to(self, place: QWidget, *keys: str) -> None:
        """Let the keys of these actions count in `place` only: elsewhere they mean other things.

        Del in the events must not cancel a task, Ctrl+C copies what is marked there.
        """
        for key in keys:
            action = self[key]
            self._window.removeAction(action)
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            place.addAction(action)

    def allow_starts(self, allowed: bool, why_not: str = "") -> None:
        """May anything be started now? Else the tips say why not."""
        for key in ("new", "paste", "sample"):
            self[key].setEnabled(allowed)
            self[key].setToolTip(plain_tip(why_not) if why_not else self._tips[key])

    def fill_menu_bar(self) -> None:
        bar = self._window.menuBar()
        file, edit = bar.addMenu(self.tr("&File")), bar.addMenu(self.tr("&Edit"))
        task, view = bar.addMenu(self.tr("&Task")), bar.addMenu(self.tr("&View"))
        more = bar.addMenu(self.tr("&Help"))
        self._fill(file, "new", "paste", "", "open", "folder", "", "quit")
        self._fill(edit, "copy_ids", "copy_rows", "", "all", "none", "", "find")
        self._fill(task, "cancel", "", "task_folder", "", "sample")
        self._fill(view, "sidebar", "details", "")
        self.sort_menu = view.addMenu(self.tr("&Sort by"))
        self.columns_menu = view.addMenu(self.tr("&Columns"))
        theme = view.addMenu(self.tr("&Theme"))
        theme.addActions(list(self.themes.values()))
        self._fill(view, "", "rescan", "", "next_region", "last_region")
        self._fill(more, "log", "", "about")

    def fill_tool_bar(self, bar: QToolBar) -> None:
        """New and Cancel with words, the rest as signs with names."""
        bar.setIconSize(QSize(TOOL_ICON, TOOL_ICON))
        bar.setMovable(False)
        bar.setFloatable(False)
        bar.setObjectName("tools")
        bar.setWindowTitle(self.tr("Toolbar"))
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        for key in ("new", "cancel", "", "rescan", "folder"):
            if key:
                bar.addAction(self[key])
            else:
                bar.addSeparator()
        space = QWidget(bar)
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        bar.addWidget(space)
        for button in bar.findChildren(QToolButton):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for key in ("sidebar", "details"):
            bar.addAction(self[key])
            sign = bar.widgetForAction(self[key])
            sign.setProperty("toolButtonStyle", Qt.ToolButtonStyle.ToolButtonIconOnly)
            sign.setAccessibleName(self[key].iconText())

    def fill_context_menu(self, menu: QMenu) -> None:
        self._fill(menu, "cancel", "", "copy_ids", "copy_rows", "", "task_folder")

    def _make_file(self) -> None:
        self._add("new", self.tr("&New task…"), [Key.New], "new", self.tr("New task"))
        self._add("paste", self.tr("New task from the &clipboard"), [Key.Paste])
        self._add("open", self.tr("&Open another folder…"), [Key.Open])
        self._add("folder", self.tr("Show the &ledger's folder"), [], "folder", self.tr("Folder"))
        quit_ = self._add("quit", self.tr("&Quit"), ["Ctrl+Q"])
        quit_.setMenuRole(QAction.MenuRole.QuitRole)

    def _make_edit(self) -> None:
        self._add("copy_ids", self.tr("&Copy ids"), [Key.Copy])
        self._add("copy_rows", self.tr("Copy &rows"), ["Ctrl+Shift+C"])
        self._add("all", self.tr("Select &all"), [Key.SelectAll])
        self._add("none", self.tr("Select &nothing"), ["Ctrl+Shift+A"])
        self._add("find", self.tr("&Filter"), [Key.Find])

    def _make_task(self) -> None:
        keys: list[Key | str] = [Key.Delete]
        if sys.platform == "darwin":
            keys.append("Backspace")  # where other keyboards have Del
        self._add("cancel", self.tr("&Cancel…"), keys, "stop", self.tr("Cancel"))
        self._add("task_folder", self.tr("Open the task's &folder"), ["Ctrl+Shift+O"])
        self._add("sample", self.tr("Try the &sample crawl"), [], "sample")

    def _make_view(self) -> None:
        self._add("sidebar", self.tr("&Sidebar"), ["F4"], "sidebar", check=True)
        self._add("details", self.tr("&Details"), ["Ctrl+D"], "details", check=True)
        self._add("rescan", self.tr("&Rescan"), [Key.Refresh], "refresh", self.tr("Rescan"))
        self._add("next_region", self.tr("Next &region"), ["F6"])
        self._add("last_region", self.tr("&Previous region"), ["Shift+F6"])
        group = QActionGroup(self)
        for theme, words in (
            (Theme.SYSTEM, self.tr("As the &system")),
            (Theme.LIGHT, self.tr("&Light")),
            (Theme.DARK, self.tr("&Dark")),
        ):
            self.themes[theme] = action = group.addAction(words)
            action.setCheckable(True)

    def _make_help(self) -> None:
        self._add("log", self.tr("Show the &log's folder"), [])
        about = self._add("about", self.tr("&About"), [])
        about.setMenuRole(QAction.MenuRole.AboutRole)

    def _add(
        self,
        key: str,
        text: str,
        keys: Iterable[Key | str],
        sign: str = "",
        short: str = "",
        *,
        check: bool = False,
    ) -> QAction:
        action = QAction(text, self._window)
        action.setCheckable(check)
        action.setChecked(check)
        action.setIconText(short or text.replace("&", ""))
        action.setShortcuts([QKeySequence(one) for one in keys])
        first = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        name = action.iconText().removesuffix("…")
        self._tips[key] = f"{name} ({first})" if first else name
        action.setToolTip(self._tips[key])
        if sign:
            self._signs[key] = sign
            action.setIcon(icon(sign))
        self._window.addAction(action)
        self._by_key[key] = action
        return action

    def _fill(self, menu: QMenu, *keys: str) -> None:
        for key in keys:
            if key:
                menu.addAction(self[key])
            else:
                menu.addSeparator()
