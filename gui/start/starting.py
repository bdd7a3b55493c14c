"""Start of tasks: the dialog, its initial content, the estimate, and the engine's answer."""

from __future__ import annotations

import asyncio
import importlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from PySide6.QtCore import QMimeData, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem
from engine.model.kind_traits import link_follower
from engine.model.records import Status, TaskRecord, TaskView
from engine.model.status import moment
from engine.model.typed_address import address_in, addresses_within
from engine.profiles.profile import Profile
from engine.service.engine import Engine
from engine.service.feed import Batch
from engine.service.forms import Abilities
from engine.service.rerun import Asked, CannotRepeat, known
from engine.text.words import count, span, unit_word
from gui.context.window_context import WindowContext
from gui.engine_link.bridge import Bridge
from gui.i18n import language
from gui.style.questions import documents

if TYPE_CHECKING:
    from gui.start.presets import Presets
    from gui.start.start_dialog import StartDialog

Save = Callable[[Asked, "StartDialog"], None]

MOST_ESTIMATED_HOSTS: Final = 2_000
MOST_RUNS: Final = 7  # Latest runs kept for each host
REST_MS: Final = 500  # Pause after which loading counts as finished or stalled
AT_ONCE: Final = 200  # Tasks, which take about a millisecond


class Run(NamedTuple):
    """A completed task with its units (pages) and its duration in ms."""

    task_id: str
    units: int
    took_ms: float


class Estimate(QObject):
    """Keep the last completed tasks of each kind and host.

    Tasks of a loading ledger are processed afterwards, because the list comes first.
    """

    def __init__(self, bridge: Bridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runs: dict[tuple[str, str], deque[Run]] = {}
        self._unread: deque[TaskView] = deque()  # Newest first
        self._whole = False
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self._read_on)
        bridge.news.connect(self.hear)

    def hear(self, batch: Batch) -> None:
        """Record completed tasks, later for those of a loading ledger."""
        if batch.complete and self._whole:
            for view in batch.views:
                self._note(view, newest=True)
        elif batch.views:
            self._unread.extend(batch.views)
            self._rest.start(REST_MS)
        self._whole = batch.complete

    def _read_on(self) -> None:
        for _ in range(min(AT_ONCE, len(self._unread))):
            self._note(self._unread.popleft(), newest=False)
        if self._unread:
            self._rest.start(0)  # Qt processes events

    def words(self, asked: Asked, number: int = 1) -> str:
        """Return the estimate for this request or `number` such requests, empty if unknown."""
        if number > 1:
            return self._of_list(asked, number)
        url = asked.args.get("url") or asked.args.get("sitemap_url")
        runs = self._runs.get((asked.kind, _host(url)), ()) if isinstance(url, str) else ()
        if not runs:
            return self._by_pause(asked)
        took = _middle([run.took_ms for run in runs])
        most = asked.args.get("max_pages")
        paces = [run.took_ms / run.units for run in runs if run.units]
        if not isinstance(most, int) or not paces:
            return self.tr("The last ones at this host took {0}.").format(span(took))
        words = self.tr("Up to {0} {1}: about {2} at the pace that this host had lately.")
        unit = unit_word(asked.kind, most)
        return words.format(count(most), unit, span(max(1000.0, most * _middle(paces))))

    def _of_list(self, asked: Asked, number: int) -> str:
        """Return the total size only, because a list may address many hosts."""
        most = asked.args.get("max_pages")
        if not isinstance(most, int):
            return ""
        words = self.tr("{0} tasks, each of up to {1} {2}: {3} at most.")
        total = count(number * most)
        return words.format(count(number), count(most), unit_word(asked.kind, most), total)

    def _by_pause(self, asked: Asked) -> str:
        """Return the minimum duration, from the delay between pages of a host."""
        pages, pause = asked.args.get("max_pages"), asked.args.get("delay_ms")
        if not isinstance(pages, int) or not isinstance(pause, int):
            return ""
        if pages == 1:
            return self.tr("1 page at most.")
        seconds = (pages - 1) * pause / 1000
        if seconds < 60:
            return self.tr("Up to {0} pages.").format(count(pages))
        words = self.tr("Up to {0} pages, at least {1} min with this pause.")
        return words.format(count(pages), count(round(seconds / 60)))

    def _note(self, view: TaskView, *, newest: bool) -> None:
        record = view.entry
        if not isinstance(record, TaskRecord) or record.status != Status.COMPLETED:
            return
        began, ended = moment(record.started_at), moment(record.ended_at)
        host = _host(record.url)
        if not host or began is None or ended is None or ended < began:
            return
        key = (record.kind, host)
        runs = self._runs.get(key)
        if runs is None:
            if len(self._runs) >= MOST_ESTIMATED_HOSTS:
                return
            runs = self._runs[key] = deque(maxlen=MOST_RUNS)
        if any(run.task_id == record.task_id for run in runs):
            return
        run = Run(record.task_id, view.units.done if view.units else 0, ended - began)
        if newest:
            runs.appendleft(run)
        elif len(runs) < MOST_RUNS:
            runs.append(run)


def _host(url: str) -> str:
    """Return the host of a URL, ten times as fast as `urlsplit`, for loading ledgers."""
    rest = url.partition("://")[2] or url
    for end in "/?#":
        rest = rest.partition(end)[0]
    return rest.rpartition("@")[2].lower()


def _middle(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]


# Start of many tasks in turn, with progress and a clean stop.

NAME = "start many"


class SequentialStart(QObject):
    """Start requests in turn; `progress` carries started and total, `ended` the result."""

    progress = Signal(int, int)
    ended = Signal(int, object)

    def __init__(self, bridge: Bridge, parent: QObject) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._stopping = False

    def start(self, requests: Sequence[Asked]) -> None:
        """Start the requests in order, until the first error."""
        self._stopping = False
        total, started = len(requests), list[TaskRecord]()

        async def work(engine: Engine) -> None:
            for asked in requests:
                if self._stopping:
                    return
                record = await engine.requests.start(
                    asked.kind, asked.args, name=asked.name, terms=asked.terms
                )
                self._bridge.remember_request(record, asked)
                started.append(record)
                self.progress.emit(len(started), total)

        def end(error: EngineError | None) -> None:
            if started:
                self._bridge.started.emit(started[0])  # The window selects the first task
            self.ended.emit(len(started), error)

        self._bridge.ask(work, lambda _: end(None), end, name=NAME)

    def stop(self) -> None:
        """Stop after the task that is being written."""
        self._stopping = True


# Abilities of an imported task as sentences, shown before it runs.

MOST_HOSTS = 6


class MayDo(QObject):
    """Texts for `engine.service.forms`."""

    def lines(self, may: Abilities) -> list[str]:
        """Return one sentence for each ability; ⚠ marks risky ones."""
        return [*self._places(may), *self._acts(may)]

    def _places(self, may: Abilities) -> Iterator[str]:
        if may.hosts:
            yield self.tr("It opens {0}.").format(_few(may.hosts))
        if may.private:
            words = self.tr("⚠ It reaches into this machine or network: {0}.")
            yield words.format(_few(may.private))
        if may.anywhere:
            yield self.tr("⚠ It follows addresses to any other site.")
        elif may.follows_links:
            yield self.tr("It follows links within its site.")

    def _acts(self, may: Abilities) -> Iterator[str]:
        if may.typing:
            once = self.tr("It types or chooses in a page once.")
            often = self.tr("It types or chooses in pages, {0} times.")
            yield once if may.typing == 1 else often.format(may.typing)
        if may.clicks:
            once = self.tr("It clicks in a page once.")
            often = self.tr("It clicks in pages, {0} times.")
            yield once if may.clicks == 1 else often.format(may.clicks)
        if may.scripts:
            once = self.tr("⚠ It runs a script of its own in a page.")
            often = self.tr("⚠ It runs scripts of its own in pages, {0} of them.")
            yield once if may.scripts == 1 else often.format(may.scripts)
        if may.secrets:
            yield self.tr("⚠ It uses secrets of this machine: {0}.").format(_few(may.secrets))
        if may.cookies:
            yield self.tr("⚠ It keeps cookies or what sites store.")
        if may.instance:
            yield self.tr("⚠ It uses a browser that is open already, with what it is logged in to.")
        if may.headed:
            yield self.tr("It opens a browser window that you see.")


def _few(names: tuple[str, ...]) -> str:
    shown = [display(name, 80) for name in names[:MOST_HOSTS]]
    return ", ".join([*shown, *(["…"] if len(names) > MOST_HOSTS else [])])


FILES: Final = "(*.json *.txt *.csv);;(*)"


async def _profile_names(engine: Engine) -> list[str]:
    """Return the names of the profiles that a task may use."""
    return [one.name for one in await engine.profiles.all() if isinstance(one, Profile)]


class Starting(QObject):
    """Owner of the start dialog; `failed` carries errors after it was closed.

    `offered` is emitted when the dialog shows a request. `repeat_wanted` carries a request to
    repeat by a rule, and the dialog that holds it.
    """

    failed = Signal(EngineError)
    offered = Signal()
    repeat_wanted = Signal(object, object)

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        bridge = ctx.bridge
        self._ctx, self._bridge = ctx, bridge
        self._dialog: StartDialog | None = None
        self._token = 0  # Token of the open dialog's request; other answers are ignored
        self._wanted: Asked | None = None
        self._listed: list[Asked] = []  # The list that is being started
        # Request to show after a list was started, or a request edited
        self._wish: Callable[[], None] | None = None
        self._presets: Presets | None = None
        self._estimate = Estimate(bridge, self)
        self._sequential_start = SequentialStart(bridge, self)
        self._sequential_start.progress.connect(self._show_progress)
        self._sequential_start.ended.connect(self._end_list)
        bridge.answered.connect(self._show_answer)
        bridge.promise(self._keep_at_the_end)

    @property
    def presets(self) -> Presets:
        """The saved requests, loaded on first use."""
        if self._presets is None:
            from gui.start.presets import Presets

            self._presets = Presets(self._ctx.preferences, self)
        return self._presets

    def warm(self) -> None:
        """Import the dialog on a thread in advance, which saves 0.2 s on the first click."""
        work = asyncio.to_thread(importlib.import_module, "gui.start.start_dialog")
        self._bridge.spawn(work, name="warm the start dialog")

    # Entry points.

    def new_task(self, args: Mapping[str, Any] | None = None, parent: str | None = None) -> None:
        """Open the start dialog for a crawl with `args`; `parent` is the task to repeat."""
        self.open(Asked(link_follower(), dict(args or {})), parent)

    def open(
        self, asked: Asked, parent: str | None = None, *, note: str = "", whole: bool = False
    ) -> None:
        """Open the start dialog with `asked` and a `note` to read before the start.

        What the form cannot show is dropped, or kept if `whole`. Nothing starts before the user
        confirms.
        """
        if self._holds_back(lambda: self.open(asked, parent, note=note, whole=whole)):
            return
        self.offered.emit()
        if self._dialog is not None:
            self._dialog.show_request(asked, note, whole=whole)
            self._dialog.raise_()
            return
        # Deferred, because the first paint does not need it.
        from gui.start.start_dialog import StartDialog

        bridge = self._bridge
        dialog = self._dialog = StartDialog(
            bridge.problems, self.presets, self._ctx.parent, bridge.captures_nothing
        )
        self._offer_profiles()
        dialog.about_changed.connect(self._tell_estimate)
        dialog.given_up.connect(self._keep_draft)
        dialog.footer.show_place(self._ctx.ledgers.starts_here())
        dialog.show_request(asked, note, whole=whole)
        dialog.addresses.offer_text(QGuiApplication.clipboard().text())
        dialog.wanted.connect(lambda wanted: self._begin(wanted, parent))
        dialog.many_wanted.connect(self._begin_list)
        dialog.repeat_wanted.connect(lambda asked: self.repeat_wanted.emit(asked, dialog))
        dialog.stop_wanted.connect(self._sequential_start.stop)
        dialog.file_wanted.connect(self.open_file)
        dialog.dropped.connect(self.take_drop)
        dialog.finished.connect(self._forget_dialog)
        dialog.open()

    def edit(self, asked: Asked, note: str, save: Save) -> None:
        """Open the dialog with the request of a schedule; `save` gets what the user makes of it."""
        self.open(asked, whole=True)
        dialog = self._dialog
        if dialog is not None:
            dialog.edit_schedule(note)
            dialog.wanted.disconnect()  # from the start of a task
            dialog.wanted.connect(lambda wanted: save(wanted, dialog))

    def when_free(self, wish: Callable[[], None]) -> None:
        """Call `wish` of another program now, or when the request that is edited was closed."""
        if self._dialog is not None and self._dialog.footer.saves:
            self._wish = wish
        else:
            wish()

    def shows(self, dialog: StartDialog) -> bool:
        """Return whether this dialog is still open; one that was closed is deleted."""
        return self._dialog is dialog

    def _offer_profiles(self) -> None:
        """Offer the names of the profiles in the dialog, if it is still open then."""

        def offer(names: list[str]) -> None:
            if self._dialog is not None:
                self._dialog.offer_profiles(names)

        self._bridge.ask(_profile_names, offer, lambda _: None, name="offer profiles")

    def open_list(self, text: str = "", note: str = "") -> None:
        """Open the start dialog with a list of addresses, and a `note` to read before the start."""
        if self._holds_back(lambda: self.open_list(text, note)):
            return
        self.new_task()
        if self._dialog is not None:
            self._dialog.addresses.start_list(text)
            if note:
                self._dialog.show_note(note)

    def paste(self) -> None:
        """Open the start dialog with the clipboard, or report that it contains nothing to start."""
        mime = QGuiApplication.clipboard().mimeData()
        if mime is None or not self.take(mime):
            self._refuse_content(self.tr("The clipboard"))

    def take(self, mime: QMimeData) -> bool:
        """Show copied or dropped data; False if it contains nothing to start."""
        files = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
        if files:
            self.open_path(files[0], left_out=len(files) - 1)
            return True
        links = "\n".join(url.toString() for url in mime.urls())
        return self._take_text((links or mime.text()).strip())

    def take_drop(self, mime: QMimeData) -> None:
        """Show dropped data, or report that it contains nothing to start."""
        if not self.take(mime):
            self._refuse_content(self.tr("What was dropped"))

    def open_file(self) -> None:
        """Open a file dialog for a task or a list of addresses."""
        asking = self._dialog or self._ctx.parent
        dialog = QFileDialog(asking, self.tr("Open a task file"), documents())
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter(self.tr("Tasks and lists of addresses {0}").format(FILES))
        dialog.fileSelected.connect(lambda name: self.open_path(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def open_path(self, path: Path, *, left_out: int = 0) -> None:
        """Read a file and show its content without running anything.

        `left_out` is the number of files that were given with it.
        """
        from engine.service.drafts import file_content

        async def read(_: Engine) -> Asked | str:
            return await asyncio.to_thread(file_content, path)

        self._bridge.ask(
            read,
            lambda found: self._show_found(found, path.name, left_out),
            self._refuse_file,
            name="read a task file",
        )

    def duplicate(self, view: TaskView) -> None:
        """Open the start dialog with the request of this task."""
        record = view.entry
        if not isinstance(record, TaskRecord):
            return

        def complete(error: EngineError) -> None:
            if not isinstance(error, CannotRepeat):
                self._refuse(error)
                return
            note = self.tr("What was secret, or too long to be kept, has to be given again.")
            self.open(known(record), note=note)

        async def ask(engine: Engine) -> Asked:
            return await engine.requests.asked(record.task_id)

        self._bridge.ask(
            ask, lambda asked: self.open(asked, whole=True), complete, name="duplicate"
        )

    # Content of files and texts.

    def _take_text(self, text: str) -> bool:
        """Show an address, a list or a task in JSON; False for other text."""
        if address_in(text):
            self.new_task({"url": address_in(text)})
            return True
        from engine.service.drafts import content

        listed = text.startswith(("{", "[")) or any(map(address_in, text.split("\n")[:50]))
        try:
            found = content(text.encode("utf-8", "replace"), self.tr("The text"))
        except InvalidArguments as error:
            self._refuse(error)
            return True
        if isinstance(found, str) and not listed:
            return self._take_prose(found)
        self._show_found(found)
        return True

    def _take_prose(self, text: str) -> bool:
        """Show the addresses that stand between other words; False if there are none."""
        found = addresses_within(text)
        if len(found) == 1:
            self.new_task({"url": found[0]})
        elif found:
            self.open_list("\n".join(found))
        return bool(found)

    def _show_found(self, found: Asked | str, name: str = "", left_out: int = 0) -> None:
        note = ""
        if left_out:
            once = self.tr("⚠ 1 more file is left out: open one after the other.")
            often = self.tr("⚠ {0} more files are left out: open one after the other.")
            note = once if left_out == 1 else often.format(count(left_out))
        if isinstance(found, str):
            self.open_list(found, note)
            return
        head = self.tr("From the text that was given. Nothing of it has run yet.")
        if name:
            head = self.tr("From {0}. Nothing of it has run yet.").format(display(name, 80))
        self._show_with_abilities(found, "\n".join(filter(None, (head, note))))

    def replay(self, task: Mapping[str, Any], name: str) -> None:
        """Open the start dialog with the command task that replays the recording `name`."""
        from engine.service.drafts import asked_of

        lines = [self.tr("A replay of “{0}”. Nothing of it has run yet.").format(name)]
        lines += self._replay_notes(task.get("metadata", {}))
        self._show_with_abilities(asked_of(task), "\n".join(lines))

    def _replay_notes(self, metadata: Mapping[str, Any]) -> Iterator[str]:
        if left_out := len(metadata.get("notReplayed", ())):
            once = self.tr("⚠ 1 recorded action is left out, because no command does it.")
            often = self.tr("⚠ {0} recorded actions are left out, because no command does them.")
            yield once if left_out == 1 else often.format(count(left_out))
        if files := metadata.get("uploads", {}).get("files", ()):
            words = self.tr("⚠ It uploads {0}: allow the folder of these files in the settings.")
            yield words.format(_few(tuple(map(str, files))))

    def _show_with_abilities(self, asked: Asked, head: str) -> None:
        from engine.service.forms import abilities

        lines = MayDo(self).lines(abilities(asked))
        self.open(asked, note="\n".join([head, *lines]), whole=True)

    def _refuse(self, error: EngineError) -> None:
        if self._dialog is not None:
            self._dialog.show_error(error)
        else:
            self.failed.emit(error)

    def _refuse_content(self, name: str) -> None:
        message = "holds no address, no list of addresses and no task"
        self._refuse_file(InvalidArguments((Problem(name, "nothing_to_start", message),)))

    def _refuse_file(self, error: EngineError) -> None:
        """Refuse content; its name is the subject of the sentence, not the path of a field."""
        if isinstance(error, InvalidArguments) and language.is_about_content(error):
            (problem,) = map(language.translated, error.problems)
            said = f"{problem.path} {problem.message}"
            error = InvalidArguments((Problem("", problem.code, said),))
        self._refuse(error)

    # Answers of the engine.

    def _begin(self, wanted: Asked, parent: str | None) -> None:
        self._token += 1
        self._wanted = wanted
        self._bridge.begin(wanted, parent, self._token)

    def _show_answer(self, token: int, answer: TaskRecord | EngineError) -> None:
        if isinstance(answer, TaskRecord) and token == self._token and self._wanted is not None:
            self.presets.remember(self._wanted)
        if self._dialog is None or token != self._token:
            if isinstance(answer, EngineError):  # The dialog was closed meanwhile
                self.failed.emit(answer)
        elif isinstance(answer, TaskRecord):
            self._dialog.accept_task(answer)
        elif isinstance(answer, InvalidArguments):
            self._dialog.show_refusal(answer)
        else:
            self._dialog.show_error(answer)

    def _show_progress(self, done: int, total: int) -> None:
        if self._dialog is not None:
            self._dialog.footer.show_progress(done, total)

    def _begin_list(self, requests: list[Asked]) -> None:
        self._listed = requests
        self._sequential_start.start(requests)

    def _end_list(self, started: int, error: EngineError | None) -> None:
        self._remember_list(self._listed[:started])
        if self._dialog is not None:
            self._dialog.end_list(started, error)
        elif error is not None:
            self.failed.emit(error)
        self._fulfil_wish()

    def _fulfil_wish(self) -> None:
        wish, self._wish = self._wish, None
        if wish is not None:
            wish()

    def _keep_draft(self, requests: list[Asked]) -> None:
        """Keep what was entered and not started, without its secrets."""
        from gui.start.presets import list_entry

        if len(requests) == 1:
            self.presets.put_draft(list_entry(requests))
            return

        async def work(_: Engine) -> dict[str, Any]:
            return await asyncio.to_thread(list_entry, requests)

        self._bridge.ask(work, self.presets.put_draft, self.failed.emit, name="keep the draft")

    async def _keep_at_the_end(self, _: Engine) -> None:
        """Keep the open form as a draft when the program ends."""
        if self._dialog is not None:
            self._dialog.give_up()

    def _remember_list(self, started: list[Asked]) -> None:
        """Add the started part of a list to the recent requests."""
        if not started:
            return
        from gui.start.presets import list_entry

        async def work(_: Engine) -> dict[str, Any]:
            return await asyncio.to_thread(list_entry, started)

        self._bridge.ask(work, self.presets.put, self.failed.emit, name="remember the list")

    def _holds_back(self, wish: Callable[[], None]) -> bool:
        """Delay requests from outside while a list is being started."""
        busy = self._dialog is not None and self._dialog.is_locked
        if busy:
            self._wish = wish
        return busy

    def _tell_estimate(self, asked: Asked | None) -> None:
        if self._dialog is not None:
            number = self._dialog.addresses.number
            self._dialog.footer.tell(self._estimate.words(asked, number) if asked else "")

    def _forget_dialog(self) -> None:
        self._token += 1
        if self._dialog is not None:
            self._dialog.deleteLater()
            self._dialog = None
            QTimer.singleShot(0, self, self._fulfil_wish)  # after what its end brings up
