"""The Contract column shows current counts, only for visible rows."""

from __future__ import annotations

from pathlib import Path

from engine.contracts.contract_service import Goals
from engine.ledger.ledger import Ledger
from gui.tasks.columns import COLUMN_AT
from gui.window.list_area import ContractCounts
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import task_id
from tests.gui.test_result_tabs import settled
from tests.gui.windows import opened


async def test_the_column_shows_only_known_contract_counts(home: Path) -> None:
    goals = Goals(home, lambda: Ledger(home / "tasks"))
    link = goals.contracts.start({"expected_total": 120}).contract.contract_id
    put_task(home, 1, "browser_task", "RUNNING", engine={"contract_id": link})
    put_task(home, 2, "browser_task", "RUNNING", engine={"contract_id": "0" * 16})
    async with opened(home) as session:
        model, table = session.window.model, session.window.table
        (counts,) = session.window.findChildren(ContractCounts)
        asked = session.bridge.engine.goals

        def said(number: int) -> str:
            return str(model.index(model.row_of(task_id(number)), COLUMN_AT["contract"]).data())

        counts.look()
        assert (said(1), said(2)) == ("open", "open")  # the column is hidden: nobody asked
        table.header().show_column("contract", True)
        goals.contracts.update(
            link, {"completed": ["a", "b"], "failed": [{"item": "c", "reason": "404"}]}
        )
        counts.look()
        await settled(lambda: said(1) == "open: 2/120 · 1 failed")
        assert said(2) == "open"
        before = asked.counts([link])
        assert asked.counts([link])[link] is before[link]  # unchanged: not read again
        goals.contracts.update(link, {"completed": ["d"]})
        counts.look()
        await settled(lambda: said(1) == "open: 3/120 · 1 failed")
