"""Additional ledgers: actions, their names in the window, a banner for unreadable ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QMimeData, QObject, Qt
from PySide6.QtWidgets import QCheckBox, QPushButton, QVBoxLayout, QWidget

from engine.model.display import display
from engine.model.errors import EngineError
from engine.model.ledger_ids import HERE, LONGEST, is_label
from engine.query import term
from engine.service.engine import Engine
from engine.service.router.ledger_paths import Beside, LedgerState
from engine.text.messages import retold
from engine.text.words import count
from gui.context.open_ledgers import MOST
from gui.context.window_context import WindowContext
from gui.filters.active_filter import ActiveFilter
from gui.filters.facet_tree import Lost
from gui.filters.sidebar import Sidebar
from gui.i18n import language
from gui.i18n.names import LOST, lost_words, number_of_tasks, summed_up
from gui.style.banners import Banner, Choice
from gui.style.editors import NameLine
from gui.style.questions import Question
from gui.style.theme import TonedLabel, plain_label
from gui.style.widgets import arrange
from gui.tasks.facets import OWN, ROOT, group_of

if TYPE_CHECKING:
    from engine.service.router.ledger_paths import Found


# Dialog with label and read-only switch of a ledger, for adding and changing.

WIDTH = 520
_FIELD_HEIGHT = 28


class LedgerCard(Question):
    """Dialog for one additional ledger; `taken` are the labels of the others."""

    def __init__(
        self, beside: Beside, taken: Collection[str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setMinimumWidth(WIDTH)
        self._path, self._taken = beside.path, frozenset(taken)
        self.label = NameLine(beside.label, self)  # a refused label can be corrected at once
        self.label.setMaxLength(LONGEST)
        self.label.setMinimumHeight(_FIELD_HEIGHT)
        self.label.setAccessibleName(self.tr("What the ledger is called in this window"))
        self.watch_only = QCheckBox(self.tr("&Only watch: change nothing in it"), self)
        self.watch_only.setChecked(beside.watch_only)
        self.keep = QCheckBox(self.tr("&Show it at the next start as well, as chosen here"), self)
        self.keep.hide()
        self._note = TonedLabel("", "bad", self)
        self._note.setWordWrap(True)

    def ask_to_add(self, own_root: Path, tasks: int) -> None:
        """Set up for adding a ledger with `tasks` tasks to the one at `own_root`."""
        self.ask(self.tr("Add a folder of tasks"), self.tr("Show these tasks beside the others?"))
        self.add_text(self.tr("{0} ({1})").format(self._path, number_of_tasks(tasks)))
        if not tasks:
            self.add_text(self.tr("There are no tasks in it yet."), "warning")
        self._lay_out()
        words = self.tr("New tasks still start in {0}. Adding this folder changes nothing in it.")
        self.add_text(words.format(own_root), "muted")
        self._end_with(self.tr("Add"))

    def ask_to_change(self, *, visits: bool = False) -> None:
        """Set up for changing a ledger; `visits`: it is shown only until the window closes."""
        self.ask(self.tr("Change a ledger"), self.tr("How this ledger is shown"))
        self.add_text(str(self._path), "muted")
        self._lay_out()
        if visits:
            self.add_text(self.tr("It is shown until this window is closed."), "muted")
            self.body.addWidget(self.keep)
            self.keep.show()
        self._end_with(self.tr("Change"))

    def when_chosen(self, act: Callable[[Beside], object]) -> None:
        """Open the dialog, and call `act` with the choice unless it is cancelled."""
        self.open_for(ok=lambda: act(self.chosen))

    @property
    def chosen(self) -> Beside:
        """The ledger with the chosen label and switch."""
        return Beside(self._path, self._called, self.watch_only.isChecked())

    def _lay_out(self) -> None:
        name = plain_label(self.tr("&Label"), self)
        name.setBuddy(self.label)
        form = arrange(QVBoxLayout(), name, self.label, self._note, spacing=4)
        form.addSpacing(6)
        form.addWidget(self.watch_only)
        self.body.addLayout(form)

    def _end_with(self, verb: str) -> None:
        self._ok: QPushButton = self.add_button("ok", verb, default=True)
        self.add_button("", self.tr("Cancel"))
        self.answer = ""  # Esc changes nothing
        self.label.returnPressed.connect(self._ok.click)
        self.label.textChanged.connect(lambda _: self._judge())
        self._judge()
        self.label.setFocus(Qt.FocusReason.OtherFocusReason)
        self.label.selectAll()

    def _judge(self) -> None:
        trouble = self._trouble()
        self._ok.setEnabled(not trouble)
        self._note.show_text(trouble)
        self._note.setVisible(bool(trouble))

    @property
    def _called(self) -> str:
        return self.label.text().strip().lower()

    def _trouble(self) -> str:
        """Return the error of the label; "" if it is valid."""
        label = self._called
        if not label:
            return self.tr("A ledger needs a label.")
        if label == HERE:
            return self.tr("“{0}” is what the window’s own ledger is called.").format(HERE)
        if label in self._taken:
            return self.tr("Another ledger is called “{0}”.").format(display(label))
        if not is_label(label):
            return self.tr("Use small letters, digits and hyphens, and begin with no hyphen.")
        return ""


class LedgerActions(QObject):
    """Owner of the dialogs about additional ledgers; disk access runs in a thread."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._beside = ctx, ctx.ledgers
        text, short = self.tr("Add a folder of tasks &beside this one…"), self.tr("Add a folder…")
        act = ctx.actions.add("add_root", text, ["Ctrl+Shift+B"], "folder", short)
        act.triggered.connect(self.ask_for_one)
        ctx.services.wishes.dropped.connect(self.take_drop)
        self._beside.add_wanted.connect(self.ask_for_one)
        self._beside.change_wanted.connect(self.ask_to_change)

    def ask_for_one(self) -> None:
        """Choose a folder, then ask for its label."""
        from gui.style.questions import ask_folder

        start = str(Path(self._ctx.bridge.look_at_health().root).parent)
        ask_folder(self._ctx.parent, self.tr("Add a folder of tasks"), start, self.ask_to_add)

    def ask_to_add(self, folder: Path) -> None:
        """Examine this folder, then ask for its label."""
        if len(self._beside.states) >= MOST:
            title = self.tr("There is no room for another ledger")
            most = self.tr("At most {0} can stand beside the window’s own.").format(MOST)
            self._ctx.news_bar.tell(title, most)
            return
        own = Path(self._ctx.bridge.look_at_health().root)
        others = [own, *(one.path for one in self._beside.states)]

        async def look(_: Engine) -> Found:
            from engine.service.router.ledger_paths import look_at

            return await asyncio.to_thread(look_at, folder, others)

        self._ctx.bridge.ask(look, self._ask_label, name="look at a ledger")

    def ask_to_change(self, label: str) -> None:
        """Open the dialog for label and read-only switch of this ledger."""
        state = self._beside.state_of(label)
        if state is None:
            return
        card = LedgerCard(state.beside, self._beside.labels - {label}, self._ctx.parent)
        card.ask_to_change(visits=self._beside.visits(label))

        def change(wanted: Beside) -> None:
            self._beside.change(label, wanted, keep=card.keep.isChecked())

        card.when_chosen(change)

    def take_drop(self, mime: QMimeData, otherwise: Callable[[], object]) -> None:
        """Ask how to show a dropped folder with tasks; call `otherwise` for other drops."""
        urls = mime.urls()
        if len(urls) != 1 or not urls[0].isLocalFile():
            otherwise()
            return
        folder = Path(urls[0].toLocalFile())

        async def look(_: Engine) -> Path | None:
            from engine.service.router.ledger_paths import ledger_at

            return await asyncio.to_thread(ledger_at, folder)

        def then(found: Path | None) -> None:
            if found is None:
                otherwise()
            else:
                self._ask_how_to_show(found)

        self._ctx.bridge.ask(look, then, name="look at what was dropped")

    def _ask_label(self, found: Found) -> None:
        beside = Beside(found.path, self._beside.free_label(found.path))
        card = LedgerCard(beside, self._beside.labels, self._ctx.parent)
        card.ask_to_add(Path(self._ctx.bridge.look_at_health().root), found.tasks)
        card.when_chosen(self._beside.add)

    def _ask_how_to_show(self, folder: Path) -> None:
        from gui.style.questions import Question

        question = Question(self._ctx.parent)
        question.ask(self.tr("A folder of tasks"), self.tr("How shall these tasks be shown?"))
        question.add_text(display(str(folder)), "muted")
        instead = self.tr(
            "Instead of this one: this window leaves its own folder; what runs here ends as when "
            "the window is closed."
        )
        beside = self.tr("Beside this one: its tasks stand in the same list.")
        question.add_text(f"{beside}\n{instead}")
        question.add_button("beside", self.tr("Beside this one"), default=True)
        question.add_button("instead", self.tr("Instead of this one"))
        question.add_button("", self.tr("Cancel"))
        question.answer = ""  # Esc does neither
        question.open_for(
            beside=lambda: self.ask_to_add(folder), instead=lambda: self._ctx.open_folder(folder)
        )


CHANGES: Final = (
    *("cancel", "stop", "force_stop", "force", "resume"),
    *("delete", "delete_for_good"),
)
MOST_LOOKED_AT: Final = 500


class WatchOnly(QObject):
    """Explain disabled actions only: a selection may contain tasks of other ledgers."""

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx.parent)
        self._ctx = ctx
        ctx.scope.changed.connect(self._explain)
        ctx.ledgers.changed.connect(self._explain)

    def _explain(self) -> None:
        reason, acts = self._reason(), self._ctx.actions
        keys = [key for key in CHANGES if not acts[key].isEnabled()] if reason else []
        acts.explain(dict.fromkeys(keys, reason))

    def _reason(self) -> str:
        """Return why the first read-only task of the selection cannot be changed, or ""."""
        ctx = self._ctx
        if not ctx.ledgers.states:
            return ""
        chosen = map(ctx.model.view_of, ctx.scope.ids()[:MOST_LOOKED_AT])
        locked = (view for view in chosen if view and not ctx.scope.may_change(view))
        view = next(locked, None)
        state = ctx.ledgers.state_of(view.ledger) if view is not None else None
        if state is None:
            return ""
        words = self.tr("“{0}” is only watched: nothing is changed in {1}.")
        return words.format(state.label, display(str(state.path)))


ShowSummary = Callable[..., object]


class LedgerDisplay(QObject):
    """Update what names a ledger whenever one comes, goes, or is in another state."""

    def __init__(
        self,
        ctx: WindowContext,
        sidebar: Sidebar,
        narrowing: ActiveFilter,
        show_summary: ShowSummary,
        copy_with_ledger: Callable[[bool], object],
    ) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._sidebar, self._narrowing = ctx, sidebar, narrowing
        self._show_summary, self._copy_with_ledger = show_summary, copy_with_ledger
        self._labels: tuple[str, ...] = ()
        self._watched: frozenset[str] = frozenset()
        self._last_seen: dict[str, int] = {}  # number of tasks of each when last readable
        self._chosen: tuple[str, ...] = ()  # in the sidebar, before a ledger gets another label
        ctx.ledgers.changed.connect(self._show)
        ctx.ledgers.change_begun.connect(self._keep_choice)
        ctx.ledgers.change_ended.connect(self._restore_choice)

    def _show(self) -> None:
        ledgers = self._ctx.ledgers
        self._show_labels(tuple(one.label for one in ledgers.states))
        if ledgers.watched != self._watched:
            self._watched = ledgers.watched
            self._ctx.scope.ask_leave(ledgers.may_change)
        self._show_summary(*summed_up(ledgers.states))
        self._show_lost(ledgers.states)

    def _show_lost(self, states: tuple[LedgerState, ...]) -> None:
        """Show lost ledgers in the sidebar without a count, since an old one would be wrong."""
        there = {one.label: one.tasks for one in states if one.state not in LOST}
        self._last_seen = {**self._last_seen, **there}
        lost = [one for one in states if one.state in LOST]
        known = self._last_seen
        found = {one.label: Lost(*lost_words(one, known.get(one.label, 0))) for one in lost}
        self._sidebar.show_lost({term(ROOT, label): said for label, said in found.items()})

    def _show_labels(self, labels: tuple[str, ...]) -> None:
        if labels != self._labels:
            self._labels = labels
            self._ctx.model.facets.name_ledgers(labels)
            self._ctx.table.header().show_several(bool(labels))
            self._copy_with_ledger(bool(labels))
            self._drop_what_is_gone()
            self._narrowing.apply()  # a filter may name an added or removed ledger
            self._sidebar.show_counts(self._ctx.model.counts())

    def _drop_what_is_gone(self) -> None:
        """Remove filter and sort by ledger that no longer apply, as the user could not see them."""
        model, labels = self._ctx.model, self._labels
        there = {OWN, *(term(ROOT, label) for label in labels)} if labels else set()
        chosen = self._sidebar.chosen
        self._sidebar.select(one for one in chosen if group_of(one) != ROOT or one in there)
        keys = [key for key in model.sort_keys if labels or key[0] != ROOT]
        if keys != list(model.sort_keys):
            model.set_sort(keys)

    def begin(self) -> None:
        """Show the ledgers that were kept, and drop what the last start left of others."""
        self._ctx.ledgers.begin()
        self._drop_what_is_gone()

    def _keep_choice(self) -> None:
        self._chosen = tuple(self._sidebar.chosen)

    def _restore_choice(self, label: str, wanted: str) -> None:
        facets = {term(ROOT, label): term(ROOT, wanted)}
        self._sidebar.select(facets.get(one, one) for one in self._chosen)


_Told = frozenset[tuple[str, str]]


class LedgerTrouble(QObject):
    """Banner for lost ledgers; once closed, it returns only for another loss."""

    def __init__(self, ctx: WindowContext, choose_folder: Callable[[], object]) -> None:
        super().__init__(ctx.parent)
        self._ctx, self._beside = ctx, ctx.ledgers
        self._choose_folder = choose_folder
        self._closed: _Told = frozenset()
        self.bar = Banner(ctx.parent)
        self.bar.closed.connect(self._close)
        self._beside.changed.connect(self._tell)
        ctx.bridge.health.connect(lambda _: self._tell())

    @property
    def _lost(self) -> list[LedgerState]:
        return [one for one in self._beside.states if one.state in LOST]

    @property
    def _told(self) -> _Told:
        """The lost ledgers with their states, for comparison."""
        if self._waits:
            return frozenset({("", "closed")})
        lost = frozenset((one.label, one.state) for one in self._lost)
        return lost | {("", "gone")} if self._own_lost() else lost

    @property
    def _waits(self) -> bool:
        """Whether the window's own ledger is not open, so that the others cannot be shown."""
        return self._ctx.bridge.trouble is not None and bool(self._beside.states)

    def _tell(self) -> None:
        """Show the banner for the unreadable ledgers; hide it when there are none."""
        lost, own, told = self._lost, self._own_lost(), self._told
        self._closed &= told
        if not told or told == self._closed:
            self.bar.hide()
            return
        title, sentence = self._words(lost, own)
        if self.bar.title != title:
            self.bar.tell(title, sentence, self._choices(lost))

    def _own_lost(self) -> str:
        """Return why the own folder is missing, while other ledgers are shown.

        Without them a card in the list reports it.
        """
        health = self._ctx.bridge.look_at_health()
        gone = health.watcher == "gone" and self._beside.states
        return retold(health.watcher_reason) or health.root if gone else ""

    def _waiting(self) -> tuple[str, str]:
        """Return the text for additional ledgers while the own one is not open."""
        labels = ", ".join(one.label for one in self._beside.states)
        words = self.tr("Not shown until then: {0}. It is tried again every few seconds.")
        way = self.tr("With another folder as the window’s own they are shown at once.")
        title = self.tr("The window’s own ledger cannot be opened")
        return title, f"{words.format(labels)}\n{way}"

    def _words(self, lost: Sequence[LedgerState], own: str) -> tuple[str, str]:
        if self._waits:
            return self._waiting()
        goes_on = self.tr("The others go on; what is gone is looked for again every few seconds.")
        reasons = [self._reason(one) for one in lost] + ([own] if own else [])
        if len(lost) == 1 and not own:
            title = self.tr("The folder of “{0}” is gone")
            if lost[0].state == "unusable":
                title = self.tr("The ledger “{0}” cannot be used")
            title = title.format(lost[0].label)
        elif own and not lost:
            title = self.tr("The window’s own ledger folder is gone")
        else:
            title = self.tr("{0} ledgers cannot be used").format(count(len(lost) + bool(own)))
        return title, "\n".join([*reasons, goes_on])

    @staticmethod
    def _reason(state: LedgerState) -> str:
        error = state.error
        told = isinstance(error, EngineError) and language.sentence(error)
        said = told or retold(state.reason)
        return said or str(state.path)

    def _choices(self, lost: Sequence[LedgerState]) -> tuple[Choice, ...]:
        again = Choice(self.tr("Look again"), self._ctx.bridge.rescan)
        page = Choice(self.tr("Ledgers…"), self._beside.page_wanted.emit)
        if self._waits:
            other = Choice(self.tr("Open another folder…"), self._choose_folder)
            return again, other, page
        if len(lost) != 1:
            return again, page
        label = lost[0].label
        remove = Choice(self.tr("Take it out of this window"), lambda: self._beside.remove(label))
        return again, remove, page

    def _close(self) -> None:
        self._closed = self._told
