"""The picture of the current unit; of a command also the one before it."""

from __future__ import annotations

from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from engine.model.errors import EngineError
from engine.model.records import TaskView
from engine.results.file_parts import FileFacts
from engine.results.units import Unit
from gui.details.screenshots import PicturePane
from gui.engine_link.services import Desk
from gui.i18n import language
from gui.results.viewer_tab import ViewerTab
from gui.style.theme import PlainLabel, plain_label


class Preview(ViewerTab):
    """Without a picture of its own, a unit shows the first one that the task has kept."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self._shown: tuple[str, str] = ("", "")
        self._wanted = ""
        self.title = plain_label("", self, tone="muted", wrap=True)
        self.before, self.now = PicturePane(desk, self), PicturePane(desk, self)
        both = QSplitter(self)
        both.addWidget(_titled(self.tr("Before"), self.before))
        after = _titled(self.tr("After"), self.now)
        self._after = after.findChild(PlainLabel)
        both.addWidget(after)
        both.setChildrenCollapsible(False)
        self._both = both
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.addWidget(self.title)
        column.addWidget(both, 1)
        self.setFocusProxy(self.now)

    def show_task(self, view: TaskView, unit: Unit | None) -> None:
        task_id, wanted = view.task_id, unit.shot if unit is not None else ""
        name = unit.name if unit is not None else ""
        if self._shown == (task_id, f"{wanted} {name}"):
            return
        self._shown, self._wanted = (task_id, f"{wanted} {name}"), wanted
        self.title.show_text(name)
        steps = getattr(view.entry, "kind", "") == "commands"
        self.desk.bridge.ask(
            lambda engine: engine.reading.files(task_id),
            lambda files: self._show(task_id, files, steps=steps),
            self._tell,
            name=f"preview {id(self)}",
        )

    def leave(self) -> None:
        self.desk.bridge.call_off(f"preview {id(self)}")
        self._shown = ("", "")

    def _show(self, task_id: str, files: tuple[FileFacts, ...], *, steps: bool) -> None:
        pictures = [one.name for one in files if one.is_picture]
        wanted = f"artifacts/{self._wanted}"
        at = pictures.index(wanted) if wanted in pictures else -1
        holder = self.before.parentWidget()
        assert holder is not None
        holder.setVisible(steps and at > 0)
        if self._after is not None:
            self._after.setVisible(steps and at > 0)
        if steps and at > 0:
            self.before.show_picture(task_id, pictures[at - 1])
        self._both.setVisible(bool(pictures))
        if not pictures:
            self.title.show_text(self.tr("This task has kept no pictures."))
        elif at >= 0:
            self.now.show_picture(task_id, wanted)
        elif self._wanted or not self.title.text():
            self.now.show_picture(task_id, pictures[0])
        else:
            self.title.show_text(self.tr("There is no picture of {0}").format(self.title.text()))
            self._both.hide()

    def _tell(self, error: EngineError) -> None:
        self.title.show_text(language.sentence(error))


def _titled(text: str, pane: QWidget) -> QWidget:
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(plain_label(text, box, tone="muted"))
    column.addWidget(pane, 1)
    return box
