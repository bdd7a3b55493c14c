"""Banner above the list for unreadable ledgers, with actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from engine.model.errors import EngineError
from engine.service.router.ledger_paths import LedgerState
from engine.text.messages import retold
from engine.text.words import count
from gui.context.window_context import WindowContext
from gui.i18n import language
from gui.i18n.ledger_names import LOST
from gui.style.banners import Banner, Choice

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
