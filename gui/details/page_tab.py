"""Page tab, idle while hidden: live image and address of a task's page; the action to show it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from engine.model.display import display, elide_middle
from engine.model.kind_traits import traits_of
from engine.model.records import Status, TaskRecord, TaskView, Unreadable
from engine.service.engine import Engine
from gui.context.window_context import Desk, WindowContext
from gui.details.details_tab import EDGES, DetailTab
from gui.engine_link.scheduling import Debounce
from gui.style.theme import TonedLabel, plain_keys, plain_label
from gui.style.widgets import arrange, centre

if TYPE_CHECKING:
    from engine.service.engine import LiveFrame

RESIZED_MS = 400  # while a window is dragged only its last size is requested
MOST_IN_LIST = 80  # characters of an address
LEAST = QSize(320, 200)


def has_page(view: TaskView) -> bool:
    """Return whether the task has not ended and its kind uses a browser of this program."""
    entry = view.entry
    ended = isinstance(entry, TaskRecord) and entry.is_terminal
    return not ended and traits_of(getattr(entry, "kind", "")).in_browser


def can_be_watched(view: TaskView) -> bool:
    """Return whether this process runs the task in a browser that can be shown."""
    entry = view.entry
    if isinstance(entry, Unreadable) or not view.ours:
        return False
    return traits_of(entry.kind).watch_page and entry.status == Status.RUNNING


class PageTab(DetailTab):
    """Live view of a page while visible; the last image stays until another task is shown."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._task_id = ""
        self._watching = False
        self._chosen = 0
        self._picture = _Picture(self)
        self._state = TonedLabel("", "muted", self)
        self._pages = QComboBox(self)
        self._address = QLineEdit(self)
        self._nothing = plain_label("", self, tone="muted")
        centre(self._nothing)
        self._resized = Debounce(self, RESIZED_MS, self._watch_anew)
        self._lay_out()
        self._pages.activated.connect(lambda at: self._choose(int(self._pages.itemData(at))))

    def _lay_out(self) -> None:
        self._address.setReadOnly(True)
        self._address.setAccessibleName(self.tr("Address of the page"))
        self._address.setPlaceholderText(self.tr("No page is shown"))
        self._pages.setAccessibleName(self.tr("Pages of this task"))
        self._pages.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._pages.setMinimumContentsLength(24)
        head = arrange(QHBoxLayout(), (self._address, 1), self._pages, self._state, spacing=8)
        parts = (head, self._nothing, (self._picture, 1))
        arrange(QVBoxLayout(self), *parts, margins=EDGES, spacing=6)
        self._pages.hide()

    @property
    def state(self) -> str:
        """The text about the image, or in place of it."""
        return self._nothing.text() or self._state.text()

    def show_task(self, view: TaskView) -> None:
        if view.task_id != self._task_id:
            self.leave()
            self._task_id, self._chosen = view.task_id, 0
            self._clear()
        if not can_be_watched(view):
            self.leave()
            self._say_why_not(view)
        elif not self._watching:
            self._watch()

    def leave(self) -> None:
        """Stop requesting images from the browser."""
        self._watching = False
        self._resized.cancel()
        self.desk.bridge.call_off(self._watch_name)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._watching:
            self._resized.request()

    @property
    def _watch_name(self) -> str:
        return f"watch a page {id(self)}"

    def _choose(self, number: int) -> None:
        self._chosen = number
        self._watch_anew()

    def _watch_anew(self) -> None:
        if self._watching:
            self._watch()

    def _watch(self) -> None:
        self._watching = True
        room = self._picture.room
        task_id, chosen = self._task_id, self._chosen

        async def watch(engine: Engine) -> None:
            size = (room.width(), room.height())
            async with aclosing(engine.live_views.watch(task_id, chosen, size)) as sights:
                async for sight in sights:
                    await self._take(sight, room)

        self.desk.bridge.ask(watch, lambda _: self._has_ended(), name=self._watch_name)

    async def _take(self, sight: LiveFrame, room: QSize) -> None:
        """Show an image; it is decoded in a thread, as that takes some ms."""
        image = await asyncio.to_thread(_decoded, sight.picture, room) if sight.picture else None
        if image is not None:
            self._picture.show_image(image)
        self._show_head(sight)
        if not sight.page:
            self._tell(
                self.tr("No page to show just now: one is being requested, or none is open.")
            )
        elif sight.masked:
            self._live(self.tr("● Live, what was typed is covered"))
        else:
            self._live(self.tr("● Live"))

    def _show_head(self, sight: LiveFrame) -> None:
        if self._address.text() != sight.address:
            self._address.setText(sight.address)
            self._address.setCursorPosition(0)
        self._pages.setVisible(len(sight.pages) > 1)
        if self._pages.view().isVisible():
            return  # an open list must not change while the user chooses
        names = [self.tr("Newest page")]
        numbers = [0]
        for page in sight.pages:
            names.append(plain_keys(elide_middle(display(page.address), MOST_IN_LIST)))
            numbers.append(page.number)
        if [self._pages.itemText(at) for at in range(self._pages.count())] != names:
            self._pages.clear()
            for name, number in zip(names, numbers, strict=True):
                self._pages.addItem(name, number)
        if self._chosen not in numbers:
            self._chosen = 0
        self._pages.setCurrentIndex(numbers.index(self._chosen))

    def _has_ended(self) -> None:
        self._watching = False
        self._pages.hide()
        if self._picture.has_image:
            self._live(self.tr("Last seen"), "muted")

    def _say_why_not(self, view: TaskView) -> None:
        self._pages.hide()
        if self._picture.has_image:
            self._live(self.tr("Last seen"), "muted")
            return
        self._tell(self._why_not(view))

    def _why_not(self, view: TaskView) -> str:
        entry = view.entry
        if isinstance(entry, Unreadable) or entry.is_terminal:
            return self.tr("The task has ended: no page of it is open any more.")
        if not view.ours:
            return self.tr(
                "Another program runs this task. Only pages of tasks that run in this window "
                "can be watched."
            )
        if traits_of(entry.kind).opens_window:
            return self.tr(
                "The pages of a recording are not shown here, because what is typed there is "
                "repeated nowhere."
            )
        return self.tr("The task waits for its turn: nothing is open yet.")

    def _live(self, words: str, tone: str = "good") -> None:
        self._picture.show()
        self._state.show_tone(tone)
        self._state.show_text(words)
        self._nothing.show_text("")
        self._nothing.hide()

    def _tell(self, words: str) -> None:
        self._state.show_text("")
        self._nothing.show_text(words)
        self._nothing.show()
        self._picture.setVisible(self._picture.has_image)

    def _clear(self) -> None:
        self._picture.show_image(None)
        self._address.setText("")
        self._state.show_text("")
        self._nothing.show_text("")


def _decoded(data: bytes, room: QSize) -> QImage | None:
    """Decode an image, scaled down to `room`; None if invalid. For a thread."""
    image = QImage.fromData(data)
    if image.isNull():
        return None
    if image.width() > room.width() or image.height() > room.height():
        shrink, smooth = Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode
        image = image.scaled(room, shrink, smooth.SmoothTransformation)
    return image


class _Picture(QWidget):
    """Centred image, never enlarged."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image: QImage | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("What the page looks like"))

    @property
    def room(self) -> QSize:
        """The available size in physical pixels."""
        return (self.size() * self.devicePixelRatio()).expandedTo(LEAST)

    @property
    def has_image(self) -> bool:
        return self._image is not None

    def show_image(self, image: QImage | None) -> None:
        self._image = image
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._image is None:
            return
        painter = QPainter(self)
        ratio = self.devicePixelRatio()
        whole = self._image.size() / ratio
        shown = whole.scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
        shown = shown if shown.width() < whole.width() else whole
        box = self.rect()
        box.setSize(shown)
        box.moveLeft((self.width() - shown.width()) // 2)
        painter.drawImage(box, self._image)
        painter.setPen(self.palette().color(QPalette.ColorRole.Mid))
        painter.drawRect(box.adjusted(0, 0, -1, -1))
        painter.end()


class PageWatching(QObject):
    """Enable the action for tasks with a page."""

    def __init__(self, ctx: WindowContext, show_tab: Callable[[str], object]) -> None:
        super().__init__(ctx.parent)
        self._show_tab = show_tab
        self._ctx = ctx
        words, short = self.tr("&Watch the page"), self.tr("Watch the page")
        self._act = ctx.actions.add("watch_page", words, ["Ctrl+Shift+W"], "watch", short)
        self._act.triggered.connect(self._show)
        self._chosen = ""
        ctx.table.selection_changed.connect(self._choose)
        ctx.bridge.news.connect(self._show_ability)  # no lambda: it would outlive the window
        self._show_ability()

    def _choose(self, ids: Sequence[str]) -> None:
        self._chosen = ids[0] if len(ids) == 1 else ""
        self._show_ability()

    def _show(self) -> None:
        self._ctx.actions["details"].setChecked(True)
        self._show_tab("page")

    def _show_ability(self, _: object = None) -> None:
        view = self._ctx.model.view_of(self._chosen) if self._chosen else None
        able = view is not None and can_be_watched(view)
        why_not = self.tr("Only a running task has a page that can be watched.")
        self._ctx.actions.allow("watch_page", able, why_not)
