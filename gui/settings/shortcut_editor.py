"""Settings page for keyboard shortcuts."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QKeySequenceEdit, QTreeWidget, QTreeWidgetItem

from gui.context.window_context import WindowContext
from gui.settings.setting_parts import WidePart
from gui.settings.shortcuts import Shortcuts, plain, shown

KEY = Qt.ItemDataRole.UserRole
LIST_HEIGHT = 260
FIELD_WIDTH = 210  # Wide enough for the placeholder text


class ShortcutEditor(WidePart):
    """Editor of shortcuts; a key that belongs to another action is refused with its name."""

    def __init__(self, ctx: WindowContext, shortcuts: Shortcuts) -> None:
        super().__init__(ctx)
        self._acts = ctx.actions
        self._shortcuts = shortcuts
        self._list = self._make_list()
        self._field = QKeySequenceEdit(self)
        self._field.setMaximumSequenceLength(1)
        self._field.setMinimumWidth(FIELD_WIDTH)
        self._field.setAccessibleName(self.tr("New keys for the chosen action"))
        self._row.insertWidget(0, self._field)
        self._set = self.add(self.tr("Use these keys"))
        self._none = self.add(self.tr("No keys"))
        self._usual = self.add(self.tr("Usual keys"))
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
        made.setMinimumHeight(LIST_HEIGHT)
        return made

    def terms(self) -> list[str]:
        return [plain(self._acts[key].text()) for key in self._acts]

    def _fill(self) -> None:
        for key in self._acts:
            item = QTreeWidgetItem([plain(self._acts[key].text()), ""])
            item.setData(0, KEY, key)
            self._list.addTopLevelItem(item)
        self._list.setColumnWidth(0, 300)
        self._list.setCurrentIndex(self._list.model().index(0, 0))
        self._show_keys()

    @property
    def _key(self) -> str:
        item = self._list.currentItem()
        return str(item.data(0, KEY)) if item is not None else ""

    def _show_keys(self) -> None:
        for at in range(self._list.topLevelItemCount()):
            item = self._list.topLevelItem(at)
            assert item is not None
            key = str(item.data(0, KEY))
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
