"""Import of tasks that were exported as zip files: from a file dialog, or dropped on the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog

from engine.model.records import Health
from engine.service.commands import Imported, ImportProgress
from engine.service.engine import Engine
from engine.text.words import count
from gui.commands.bulk_work import BulkWork, Outcome, Reports, Share
from gui.context.window_context import WindowContext
from gui.style.questions import documents

FILES = "(*.zip)"


class Importing(QObject):
    """The action `import_tasks`, and dropped files; `select` shows the last task."""

    def __init__(
        self,
        ctx: WindowContext,
        bulk: BulkWork,
        reports: Reports,
        select: Callable[[str, str], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._bulk, self._reports, self._select = ctx, bulk, reports, select
        ctx.actions.add("import_tasks", self.tr("I&mport tasks…"))
        ctx.actions["import_tasks"].triggered.connect(self._choose)
        ctx.services.wishes.imports.connect(self.take)
        ctx.bridge.health.connect(self._show_health)
        ctx.actions.allow("import_tasks", False)

    def _show_health(self, health: Health) -> None:
        self._ctx.actions.allow("import_tasks", not health.read_only)

    def _choose(self) -> None:
        dialog = QFileDialog(self._ctx.parent, self.tr("Import tasks"), documents())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilter(self.tr("Exported tasks {0}").format(FILES))
        dialog.filesSelected.connect(lambda names: self.take([Path(name) for name in names]))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def take(self, files: Sequence[Path]) -> None:
        """Import these files; what cannot be imported is reported, the others are all the same."""
        running: dict[str, ImportProgress] = {}
        parts: dict[str, float] = {}

        async def act(engine: Engine, name: str) -> Imported:
            def note(_: int, done: int, whole: int) -> None:
                parts[name] = done / whole

            running[name] = ImportProgress(note)
            try:
                return await engine.commands.import_task(Path(name), running[name])
            finally:
                del running[name]
                parts.pop(name, None)

        def stop() -> None:
            for one in running.values():
                one.stop.set()

        share = Share(lambda: sum(tuple(parts.values())), stop)
        self._bulk.run(map(str, files), act, self._tell, self.tr("Importing: {0} of {1}"), share)

    def _tell(self, outcome: Outcome[Imported]) -> None:
        if outcome.done:
            self._select(outcome.done[-1].task_id, self.tr("Imported; hidden by the filter."))
        if refused := outcome.refused:
            title = (
                self.tr("1 file could not be imported")
                if len(refused) == 1
                else self.tr("{0} files could not be imported").format(count(len(refused)))
            )
            self._reports.tell(title, refused, outcome)
        elif len(outcome.done) == 1:
            self._reports.say(self.tr("1 task imported"))
        elif outcome.done:
            self._reports.say(self.tr("{0} tasks imported").format(count(len(outcome.done))))
