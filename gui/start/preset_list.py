"""List of presets, recent requests and files, which fill the form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from engine.model.display import display, elide_middle
from engine.service.rerun import Asked
from engine.text.words import count
from gui.start.kind_forms import FormWords
from gui.start.presets import MOST_TITLE, Kept, Presets
from gui.style.editors import Choices, NameLine
from gui.style.icons import icon, wear
from gui.style.question import Question
from gui.style.theme import plain_label, plain_tip

# Dialog for renaming a preset.

_FIELD_HEIGHT = 28


class PresetName(Question):
    """Dialog for the new name of a preset, with a warning about a replaced one."""

    def __init__(self, presets: Presets, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._taken = {kept.title for kept in presets.presets} - {title}
        self.ask(self.tr("Rename preset"), self.tr("Give the preset another name"))
        self.name = NameLine(title, self)
        self.name.setMaxLength(MOST_TITLE)
        self.name.setMinimumHeight(_FIELD_HEIGHT)
        self.name.setAccessibleName(self.tr("Name of the preset"))
        self._lay_out()
        self.add_button("", self.tr("Cancel"))
        self._ok = self.add_button("rename", self.tr("Rename"))
        self._ok.setDefault(True)  # Esc cancels
        self.name.textChanged.connect(self._judge)
        self.name.returnPressed.connect(self._ok.click)
        self.when_answered(
            lambda answer: presets.rename(title, self.name.text()) if answer else None
        )
        self._judge()
        self.name.setFocus(Qt.FocusReason.OtherFocusReason)
        self.name.selectAll()

    def _lay_out(self) -> None:
        label = plain_label(self.tr("&Name"), self)
        label.setBuddy(self.name)
        self._note = plain_label("", self, tone="muted")
        form = QVBoxLayout()
        form.setSpacing(4)
        for part in (label, self.name, self._note):
            form.addWidget(part)
        self.body.addLayout(form)

    def _judge(self) -> None:
        wanted = self.name.text().strip()
        self._ok.setEnabled(bool(wanted))
        replaces = wanted in self._taken
        self._note.show_text(self.tr("Replaces the preset of this name.") if replaces else "")


WIDTH: Final = 200
TITLE_CHARS: Final = 44
MOST_NAMED: Final = 5  # Addresses of a list
LINE_CHARS: Final = 200
_KEPT = Qt.ItemDataRole.UserRole


class PresetList(QWidget):
    """List of presets and recent requests; `chosen` carries one, `file_wanted` requests a file."""

    chosen = Signal(object)
    file_wanted = Signal()

    def __init__(self, presets: Presets, words: FormWords, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._presets = presets
        self._titles = {each.kind: each.title for each in words.kinds()}
        self._listed = words.listed
        self._signs = {each.kind: each.sign for each in words.kinds()}
        self.presets = self._list(self.tr("Presets"))
        self.recent = self._list(self.tr("Recent"))
        self._offer(self.tr("Re&name this preset…"), "F2", self._rename_current)
        self._offer(self.tr("Forget this preset"), "Del", self._forget_current)
        clear = QAction(self.tr("Forget all of these"), self.recent)
        clear.triggered.connect(presets.forget_recent)
        self.recent.addAction(clear)
        self._file = QPushButton(self.tr("From a file…"), self)
        wear(self._file, "folder")
        self._file.setAutoDefault(False)
        self._file.clicked.connect(self.file_wanted)
        self._none = plain_label(
            self.tr("None yet. The star below keeps what is in the form."), tone="muted", wrap=True
        )
        self._lay_out()
        presets.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Update both lists."""
        self._fill(self.presets, self._presets.presets)
        self._fill(self.recent, self._presets.recent)
        self._none.setVisible(not self.presets.count())
        self.presets.setVisible(bool(self.presets.count()))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.refresh()

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(plain_label(self.tr("Presets")))
        column.addWidget(self._none)
        column.addWidget(self.presets, 2)
        column.addWidget(plain_label(self.tr("Recent")))
        column.addWidget(self.recent, 3)
        column.addWidget(self._file)
        self.setFixedWidth(WIDTH)

    def _list(self, name: str) -> QListWidget:
        listed = Choices(self)
        listed.setAccessibleName(name)
        listed.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        listed.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        listed.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        listed.itemClicked.connect(self._choose)
        listed.itemActivated.connect(self._choose)
        return listed

    def _fill(self, listed: QListWidget, entries: tuple[Kept, ...]) -> None:
        listed.clear()
        for kept in entries:
            item = QListWidgetItem(self._title(kept))
            item.setIcon(icon(self._signs.get(kept.asked.kind, "list")))
            item.setToolTip(plain_tip(self._tip(kept)))
            item.setData(_KEPT, kept)
            listed.addItem(item)

    def _title(self, kept: Kept) -> str:
        return display(elide_middle(kept.title or self._about(kept), TITLE_CHARS))

    def _about(self, kept: Kept) -> str:
        if not kept.urls:
            return about(kept.asked)
        words = self._listed(kept.asked.kind)
        host = kept.urls[0].partition("://")[2].partition("/")[0]
        return words.format(count(kept.listed), host)

    def _tip(self, kept: Kept) -> str:
        said = self.tr("{0}: {1}").format(
            self._titles.get(kept.asked.kind, kept.asked.kind), self._about(kept)
        )
        lines = [said, *kept.urls[:MOST_NAMED], *(["…"] if len(kept.urls) > MOST_NAMED else [])]
        if kept.lost:
            lines.append(self.tr("Something in it was secret and was not kept."))
        return "\n".join(display(line, LINE_CHARS) for line in lines)

    def _choose(self, item: QListWidgetItem) -> None:
        self.chosen.emit(item.data(_KEPT))

    def _offer(self, words: str, keys: str, act: Callable[[], None]) -> None:
        action = QAction(words, self.presets)
        action.setShortcut(keys)
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(act)
        self.presets.addAction(action)

    def _rename_current(self) -> None:
        item = self.presets.currentItem()
        if item is not None:
            PresetName(self._presets, item.data(_KEPT).title, self).open()

    def _forget_current(self) -> None:
        item = self.presets.currentItem()
        if item is not None:
            self._presets.forget(item.data(_KEPT).title)


def about(asked: Asked) -> str:
    """Return a short description of a request."""
    args = asked.args
    told = (
        asked.name,
        *(args.get(name) for name in ("url", "sitemap_url", "task_name", "objective", "label")),
        asked.terms.objective,
    )
    found = next((one for one in told if isinstance(one, str) and one.strip()), asked.kind)
    return found.removeprefix("https://")
