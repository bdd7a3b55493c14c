"""Saved requests: named presets and recently started ones, and their list in the start dialog.

They are stored in the preferences without secrets, which must be typed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from engine.model import redact
from engine.model.display import display, elide_middle
from engine.model.errors import InvalidArguments
from engine.service.drafts import asked_of, storable
from engine.service.forms import MOST
from engine.service.rerun import Asked
from engine.text.words import count
from gui.context.preferences import Preferences
from gui.start.kind_form import FormWords
from gui.style.editors import Choices, NameLine
from gui.style.icons import icon, wear
from gui.style.questions import Question
from gui.style.theme import plain_label, plain_tip
from gui.style.widgets import arrange

MOST_RECENT: Final = 20
MOST_PRESETS: Final = 50
MOST_TITLE: Final = 60
MOST_LISTED: Final = 200_000  # Limit in characters of addresses, because the preferences hold 1 MiB
PRESETS, RECENT, DRAFT = "start.presets", "start.recent", "start.draft"


@dataclass(frozen=True, slots=True)
class Kept:
    """A saved request.

    `title` is the preset's name, `lost` marks removed secrets, `replaced` a replaced preset of this
    name, `refused` a lack of room. With `urls` it was a list: `asked` for each address, of `listed`
    in all.
    """

    asked: Asked
    title: str = ""
    lost: bool = False
    urls: tuple[str, ...] = ()
    listed: int = 0
    replaced: bool = False
    refused: bool = False


class Presets(QObject):
    """Presets and recent requests; `changed` reports changes, damaged entries are skipped."""

    changed = Signal()

    def __init__(self, preferences: Preferences, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._preferences = preferences

    @property
    def presets(self) -> tuple[Kept, ...]:
        return tuple(sorted(self._read(PRESETS), key=lambda kept: kept.title.casefold()))

    @property
    def recent(self) -> tuple[Kept, ...]:
        """The recent requests, newest first, without duplicates."""
        return tuple(self._read(RECENT))[:MOST_RECENT]

    def keep(self, title: str, asked: Asked) -> Kept:
        """Save a preset, replacing one of this name; a full list refuses new ones."""
        title = title.strip()[:MOST_TITLE]
        entry = {"title": title, **_entry(asked)}
        known = self._raw(PRESETS)
        others = [one for one in known if one.get("title") != title]
        if len(others) >= MOST_PRESETS:
            return Kept(asked, title, refused=True)
        self._write(PRESETS, [entry, *others])
        replaced = len(others) < len(known) and entry not in known
        return replace(_kept(entry) or Kept(asked, title), replaced=replaced)

    def rename(self, title: str, wanted: str) -> None:
        """Rename a preset, replacing another of that name; an empty name changes nothing."""
        wanted = wanted.strip()[:MOST_TITLE]
        if not wanted or wanted == title:
            return
        others = [one for one in self._raw(PRESETS) if one.get("title") != wanted]
        self._write(
            PRESETS,
            [{**one, "title": wanted} if one.get("title") == title else one for one in others],
        )

    def forget(self, title: str) -> None:
        """Delete a preset."""
        self._write(PRESETS, [one for one in self._raw(PRESETS) if one.get("title") != title])

    def remember(self, asked: Asked) -> None:
        """Add a started request to the recent ones."""
        self.put(_entry(asked))

    def put(self, entry: dict[str, Any]) -> None:
        """Add an entry at the start of the recent ones."""
        others = [one for one in self._raw(RECENT) if _about(one) != _about(entry)]
        self._write(RECENT, list(_fitting([entry, *others]))[:MOST_RECENT])

    def forget_recent(self) -> None:
        """Forget the recent requests, and what was closed without a start."""
        self._write(RECENT, [])
        self.forget_draft()

    @property
    def draft(self) -> Kept | None:
        """The last form that was changed and closed without a start."""
        return next(self._read(DRAFT), None)

    def put_draft(self, entry: dict[str, Any]) -> None:
        """Keep an entry as the draft, in place of the former one."""
        self._write(DRAFT, list(_fitting([entry])))

    def forget_draft(self) -> None:
        if self._raw(DRAFT):
            self._write(DRAFT, [])

    def _read(self, key: str) -> Iterator[Kept]:
        found = map(_kept, self._raw(key))
        return (kept for kept in found if kept is not None)

    def _raw(self, key: str) -> list[dict[str, Any]]:
        return [one for one in self._preferences.get(key, list) if isinstance(one, dict)]

    def _write(self, key: str, entries: list[dict[str, Any]]) -> None:
        self._preferences.set(key, entries)
        self.changed.emit()


def list_entry(requests: Sequence[Asked]) -> dict[str, Any]:
    """Return one entry for the requests of a list, which differ only in their address.

    Slow for a long list, for a worker thread.
    """
    first = requests[0]
    if len(requests) == 1:
        return _entry(first)
    entry = _entry(replace(first, args={k: v for k, v in first.args.items() if k != "url"}))
    room, urls, lost = MOST_LISTED, list[str](), False
    for asked in requests:
        url = str(asked.args["url"])
        kept = redact.url(url)
        room -= len(kept)
        if room < 0:
            break
        lost |= kept != url
        urls.append(kept)
    return {**entry, "lost": entry["lost"] or lost, "urls": urls, "listed": len(requests)}


def _entry(asked: Asked) -> dict[str, Any]:
    request, lost = storable(asked)
    return {"request": request, "lost": lost}


def _about(entry: dict[str, Any]) -> tuple[Any, Any]:
    return entry.get("request"), entry.get("urls")


def _fitting(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the entries that fit; older lists are dropped first."""
    room = MOST_LISTED
    for entry in entries:
        urls = entry.get("urls")
        size = sum(len(str(url)) for url in urls) if isinstance(urls, list) else 0
        if size <= room:
            room -= size
            yield entry


def _kept(entry: dict[str, Any]) -> Kept | None:
    try:
        asked = asked_of(entry.get("request"))
    except InvalidArguments:
        return None
    title, urls, listed = (entry.get(name) for name in ("title", "urls", "listed"))
    kept = Kept(asked, title if isinstance(title, str) else "", entry.get("lost") is True)
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        return kept
    number = listed if isinstance(listed, int) else 0
    return replace(kept, urls=tuple(urls[:MOST]), listed=max(number, len(urls)))


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
        self._ok = self.add_button("rename", self.tr("Rename"))
        self.add_button("", self.tr("Cancel"))
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
        form = arrange(QVBoxLayout(), label, self.name, self._note, spacing=4)
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
