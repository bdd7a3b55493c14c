"""The cost of a keystroke in the filter: parsing the query and matching every row of the window.

Times are processor time of this process; `made` is what a row costs once.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Sequence

from engine.model.records import EngineFields, ErrorInfo, TaskRecord, TaskView, Units
from engine.query import Filter
from gui.tasks.row import Row, asked, make_row
from tests.bench.report import report

ROUNDS = 5
NOW = 1_763_773_200_000
QUERIES = (
    "example",
    "status:failed",
    "status:attention",
    "kind:crawl host:site7.example.com",
    "status:failed kind:crawl age:<1d budget:exceeded",
    'status:failed kind:crawl host:*.example.com budget:exceeded age:<1h "timeout"',
    "(status:failed OR status:cancelled) -host:site7.example.com",
    "error:*timeout* took:>1m failed:>0",
    "took:>1m",
)


def view(number: int) -> TaskView:
    failed = number % 7 == 0
    made = NOW - number * 2_000
    record = TaskRecord(
        task_id=f"{number:016x}",
        kind="crawl" if number % 3 else "crawl_sitemap",
        status="FAILED" if failed else "COMPLETED",
        created_at=made,
        started_at=made,
        ended_at=made + number % 200_000,
        args_summary={"url": f"https://site{number % 50}.example.com/path/{number}"},
        error=ErrorInfo("page timeout of 30 s was reached", "timeout") if failed else None,
        budget_status="exceeded" if number % 11 == 0 else None,
        engine=EngineFields(name=f"run {number}") if number % 5 == 0 else None,
    )
    return TaskView(record, Units(done=number % 90, total=90, failed=number % 4))


def main(words: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="tests.bench filter", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    number_of = parser.parse_args(words).rows
    views = [view(number) for number in range(number_of)]
    began = time.process_time()
    rows = [make_row(one, None, NOW) for one in views]
    made_us = (time.process_time() - began) / number_of * 1e6
    gc.collect()
    gc.freeze()  # the window does so, too: a collection is no part of a keystroke
    lines = [(text, *spent_ms(text, rows)) for text in QUERIES]
    worst = max(spent for _, spent, _ in lines)
    facts = {"rows": number_of, "made_us": made_us, "worst_ms": worst}
    report("filter", ("query", "CPU ms", "shown"), lines, facts)


def spent_ms(text: str, rows: list[Row]) -> tuple[float, int]:
    spent: list[float] = []
    shown = 0
    for _ in range(ROUNDS):
        began = time.process_time()
        shown = len(Filter.of(text).keep(rows, NOW, asked))
        spent.append((time.process_time() - began) * 1000)
    return statistics.median(spent), shown


if __name__ == "__main__":
    main()
