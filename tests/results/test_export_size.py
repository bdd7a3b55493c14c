"""The memory of an export does not grow with the result."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from engine.export.exporter import FORMATS, ExportProgress, Order, export_file
from engine.results.findings import Findings, is_json
from tests.results.conftest import page

FEW, MANY = 50, 500
CONTENT = "A line of the page, and a little more of it.\n" * 200
SPARE_BYTES = 2_000_000  # what ten times the pages may take more; they are 4 MB


def pages(number: int) -> Iterator[dict[str, Any]]:
    return (page(n, content=f"{n} {CONTENT}") for n in range(number))


def peak_of(work) -> int:
    work()  # imports and caches are not what is measured
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_takes_no_more_memory_for_more_pages(ledger, crawled, tmp_path, form) -> None:
    peaks = []
    for number in (FEW, MANY):
        task_id = crawled(*pages(number), status=None)
        order = Order(task_id, form)
        work = lambda order=order: export_file(  # noqa: E731
            ledger, order, tmp_path / "a", ExportProgress(), force=True
        )
        peaks.append(peak_of(work))
    assert peaks[1] - peaks[0] < SPARE_BYTES, peaks


@pytest.mark.parametrize("inside", [False, True])
def test_a_result_is_read_without_holding_it(ledger, with_result, inside) -> None:
    peaks = []
    for number in (FEW, MANY):
        data = json.dumps({"pages": list(pages(number))})
        if inside:
            data = json.dumps({"content": [{"type": "text", "text": data}]})
        task_id = with_result("crawl", data.encode())

        def work(task_id=task_id, number=number) -> None:
            assert sum(1 for _ in Findings(ledger, task_id, "crawl").rows()) == number

        peaks.append(peak_of(work))
    assert peaks[1] - peaks[0] < SPARE_BYTES, peaks


def test_a_result_is_judged_without_holding_it() -> None:
    data = json.dumps({"pages": list(pages(MANY))}).encode()
    file = io.BytesIO(data)

    def work() -> None:
        file.seek(0)
        assert is_json(file)

    assert peak_of(work) < len(data) / 2
