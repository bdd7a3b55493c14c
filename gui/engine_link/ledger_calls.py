"""The ledgers beside the window's own, as the window asks for them; `bridge` is the rest."""

from __future__ import annotations

from PySide6.QtCore import Signal

from engine.model.config import Settings
from engine.service.router.connection_state import Beside, LedgerState
from engine.service.router.errors import NoSuchLedger
from engine.service.router.ledgers import Ledgers, check_label
from gui.engine_link.engine_calls import Errands


class LedgerErrands(Errands):
    """Adds and takes away ledgers at once, also before the own one is open.

    `ledgers_changed`: one came, went, is in another state or has another number of tasks.
    Tasks of such a ledger have ids that end in `@label`, and their views a `ledger`.
    """

    ledgers_changed = Signal()

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._wanted: dict[str, Beside] = {}  # until there is an engine to have them
        self._told_ledgers: tuple[LedgerState, ...] = ()

    @property
    def ledgers(self) -> tuple[LedgerState, ...]:
        """Each ledger beside the own one, as it is now; empty with none."""
        if (all_of_them := self._all) is not None:
            return all_of_them.ledgers
        wanted = self._wanted.values()
        return tuple(LedgerState(one.label, one.path, one.watch_only) for one in wanted)

    def add_ledger(self, beside: Beside) -> None:
        """Show this ledger beside the own one, from now on; how it gets on is in `ledgers`.

        Raises:
            BadLabel: it cannot be called so, or another one is.
        """
        if (all_of_them := self._all) is not None:
            all_of_them.add(beside)
        else:
            check_label(beside.label, self._wanted)
            self._wanted[beside.label] = beside
        self.show_ledgers()

    def remove_ledger(self, label: str) -> None:
        """Show it no more; nothing happens to its folder. One that is not there is no error."""
        if (all_of_them := self._all) is None:
            self._wanted.pop(label, None)
        elif any(one.label == label for one in all_of_them.ledgers):
            all_of_them.remove(label)
        self.show_ledgers()

    def change_ledger(
        self, label: str, *, new_label: str | None = None, watch_only: bool | None = None
    ) -> None:
        """Call it something else, or let it be changed, from now on.

        Raises:
            NoSuchLedger; BadLabel: nothing has changed.
        """
        found = next((one.beside for one in self.ledgers if one.label == label), None)
        if found is None:
            raise NoSuchLedger(label=label)
        watched = found.watch_only if watch_only is None else watch_only
        if new_label is not None and new_label != label:
            check_label(new_label, [one.label for one in self.ledgers])
            self.remove_ledger(label)
            self.add_ledger(Beside(found.path, new_label, watched))
        elif (all_of_them := self._all) is not None:
            all_of_them.allow(label, watch_only=watched)
        else:
            self._wanted[label] = Beside(found.path, label, watched)
        self.show_ledgers()

    def show_ledgers(self) -> None:
        """Send `ledgers_changed` if anything has."""
        if (now := self.ledgers) != self._told_ledgers:
            self._told_ledgers = now
            self.ledgers_changed.emit()

    @property
    def _all(self) -> Ledgers | None:
        return self._engine if isinstance(self._engine, Ledgers) else None

    def _hand_over(self, engine: Ledgers) -> None:
        """The engine is there: it has the ledgers from now on."""
        engine.told = self.show_ledgers
        wanted, self._wanted = self._wanted, {}
        for beside in wanted.values():
            engine.add(beside)
