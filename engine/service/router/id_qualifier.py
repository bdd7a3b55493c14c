"""Qualification of ids in results of another ledger with its label.

Ids in unchanged documents (meta.json, a command task's own) and in sentences of errors stay
plain, because they are for display only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.contracts.contract_views import ContractView, RunView
from engine.contracts.forcing import CompletionCheck
from engine.export.exporter import Exported
from engine.model.ledger_ids import qualified
from engine.model.records import EngineFields, TaskId, TaskRecord, TaskView, Unreadable
from engine.service.feed import Batch

_LINKS: Final = ("parent_task_id", "command_task_id", "contract_id", "task_run_id", "run_id")
_OF_CONTRACT: Final = ("contract_id", "run_id", "task_id")
T = TypeVar("T")
_S = TypeVar("_S", bound=Struct)


@dataclass(frozen=True, slots=True)
class IdQualifier:
    """Add one ledger's label to ids, without disk access."""

    label: str

    def id(self, plain: str) -> TaskId:
        return qualified(plain, self.label)

    def qualified(self, answer: T) -> T:
        """Qualify the result of an operation by its type; a result without ids stays unchanged."""
        for kind, qualify in _BY_TYPE.items():
            if isinstance(answer, kind):
                found: T = qualify(self, answer)
                return found
        return [self.qualified(one) for one in answer] if isinstance(answer, list) else answer  # type: ignore[return-value]

    def record(self, record: TaskRecord) -> TaskRecord:
        engine = record.engine and self._linked(record.engine)
        return replace(record, task_id=self.id(record.task_id), engine=engine)

    def entry(self, entry: TaskRecord | Unreadable) -> TaskRecord | Unreadable:
        if isinstance(entry, TaskRecord):
            return self.record(entry)
        return replace(entry, task_id=self.id(entry.task_id))

    def view(self, view: TaskView) -> TaskView:
        """No task there is of this process, which starts none in that ledger."""
        return replace(view, entry=self.entry(view.entry), ledger=self.label)

    def batch(self, batch: Batch) -> Batch:
        views = tuple(map(self.view, batch.views))
        return replace(batch, views=views, gone=tuple(map(self.id, batch.gone)))

    def prospect(self, prospect: CompletionCheck) -> CompletionCheck:
        return replace(prospect, subject=self.id(prospect.subject))

    def contract(self, view: ContractView) -> ContractView:
        return replace(view, contract=self._marked(view.contract, _OF_CONTRACT))

    def run(self, view: RunView) -> RunView:
        raw = {**view.raw, "run_id": self.id(view.run_id)}
        return replace(view, raw=raw, progress=view.progress and self.contract(view.progress))

    def exported(self, exported: Exported) -> Exported:
        return replace(exported, task_id=self.id(exported.task_id))

    def _linked(self, engine: EngineFields) -> EngineFields:
        return self._marked(engine, _LINKS)

    def _marked(self, one: _S, names: Sequence[str]) -> _S:
        found = {name: getattr(one, name) for name in names}
        return replace(one, **{name: self.id(value) for name, value in found.items() if value})


_BY_TYPE: Final[dict[type, Callable[[IdQualifier, Any], Any]]] = {
    str: IdQualifier.id,
    TaskView: IdQualifier.view,
    TaskRecord: IdQualifier.record,
    CompletionCheck: IdQualifier.prospect,
    ContractView: IdQualifier.contract,
    RunView: IdQualifier.run,
    Exported: IdQualifier.exported,
}
