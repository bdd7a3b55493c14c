"""Reports about the pages of a crawl say what the stored pages say."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.export.exporter import ExportProgress, Order, export_file
from engine.export.output import ExportStopped
from engine.ledger.ledger import Ledger
from engine.model.errors import InvalidArguments
from engine.model.records import Status
from engine.results import site_audit
from engine.results.site_audit import (
    LARGE_BYTES,
    REPORT_NAMES,
    SIMILAR,
    SLOW_LOAD_MS,
    Audit,
    AuditStopped,
    NoPagesToAudit,
    audit,
    known_report,
    matches,
)
from tests.results.conftest import page as plain_page
from tests.results.reading import csv_rows, streamed

SITE = "http://site.test"
WORDS = " ".join(f"word{number}" for number in range(400))


def page(path: str, *links: str, **fields: Any) -> dict[str, Any]:
    """A stored page with links to these paths, and facts like those of a crawl."""
    url = f"{SITE}{path}"
    facts = {"content_type": "text/html", "description": f"About {path}", **fields.pop("facts", {})}
    anchors = [{"href": f"{SITE}{to}", "text": f"to {to}"} for to in links]
    told = {"url": url, "final_url": url, "title": path, "content": f"Text of {path}", "depth": 1}
    told |= {"links_found": len(links), "links": anchors, "facts": facts}
    return plain_page(0, **{**told, **fields})


def failed(path: str, error: str, code: str, **fields: Any) -> dict[str, Any]:
    kept = page(path, error=error, error_code=code, title="", content="", **fields)
    return {name: value for name, value in kept.items() if name not in ("facts", "links")}


def audited(ledger: Ledger, task_id: str) -> Audit:
    return audit(ledger, task_id, threading.Event())


def rows(found: Audit, name: str) -> list[tuple[Any, ...]]:
    """The rows of a report, with paths for addresses."""
    return [
        tuple(cell.replace(SITE, "") if isinstance(cell, str) else cell for cell in row)
        for row in found.report(name).rows
    ]


def test_a_broken_link_names_each_page_that_holds_it(ledger, crawled) -> None:
    found = audited(
        ledger,
        crawled(
            page("/", "/a", "/gone", "/slow"),
            page("/a", "/gone", "/"),
            failed("/gone", "HTTP 404", "http", status=404),
            failed("/slow", "timed out", "timeout", status=None),
            failed("/alone", "HTTP 500", "http", status=500),
        ),
    )
    assert rows(found, "broken_links") == [
        ("/gone", "HTTP 404", "/", "to /gone", None, None),
        ("/gone", "HTTP 404", "/a", "to /gone", None, None),
        ("/slow", "timed out", "/", "to /slow", None, None),
        ("/alone", "HTTP 500", None, None, None, None),
    ]


@pytest.mark.parametrize("code", ["robots", "blocked", "download", "content_type", "crash"])
def test_what_is_no_fault_of_the_link_is_not_broken(ledger, crawled, code) -> None:
    found = audited(ledger, crawled(page("/", "/a"), failed("/a", "why", code, status=None)))
    assert rows(found, "broken_links") == []


def test_a_link_by_way_of_a_redirect_belongs_to_where_it_leads(ledger, crawled) -> None:
    chain = [{"url": f"{SITE}/old", "status": 301}, {"url": f"{SITE}/older", "status": 302}]
    found = audited(
        ledger,
        crawled(
            page("/", "/old", "/moved", "/b"),
            page("/b", "/old", "/new", depth=2),
            page("/old", final_url=f"{SITE}/new", redirects=chain),
            failed("/moved", "HTTP 410", "http", status=410, final_url=f"{SITE}/gone"),
        ),
    )
    assert rows(found, "redirects") == [
        ("/old", 301, "/new", 200, 2, 2),
        ("/moved", None, "/gone", 410, 1, 1),  # an older record without the chain
    ]
    assert rows(found, "broken_links") == [("/moved", "HTTP 410", "/", "to /moved", None, None)]
    assert ("/new", 2, 0, 1) in rows(found, "links_in")


def test_two_spellings_of_an_address_are_one(ledger, crawled) -> None:
    marks = {"rel": "ugc", "by": "click"}
    links = [{"href": "HTTP://SITE.test:80/a?y=2&x=1", "text": "a", **marks}]
    found = audited(
        ledger,
        crawled(page("/", links=links), failed("/a?x=1&y=2", "HTTP 404", "http", status=404)),
    )
    assert rows(found, "broken_links") == [("/a?x=1&y=2", "HTTP 404", "/", "a", "ugc", "click")]


def test_a_route_is_the_page_where_routes_are_no_pages(ledger, crawled) -> None:
    found = audited(ledger, crawled(page("/"), page("/a", "/#/list", "/#/detail")))
    assert rows(found, "links_in") == [("/a", 0, 2, 1), ("/", 1, 0, 1)]


def test_duplicates_are_the_pages_with_the_words_of_an_earlier_one(ledger, crawled) -> None:
    alike = WORDS.replace("word200", "another")
    unlike = " ".join(f"else{number}" for number in range(400))
    found = audited(
        ledger,
        crawled(
            page("/1", content=WORDS),
            page("/2", content=unlike),
            page("/3", content=WORDS.replace(" ", "\n ")),
            page("/4", content=alike),
            page("/5", content=""),
            page("/6", content=""),
            page("/7", content=unlike, facts={"canonical": f"{SITE}/2"}),
            page("/8", content={"blocks": [{"type": "paragraph", "text": WORDS}]}),
            failed("/9", "HTTP 404", "http", status=404),
        ),
    )
    assert rows(found, "duplicates") == [
        ("/3", "/1", 100, "/3"),
        ("/4", "/1", 98, "/4"),
        ("/8", "/1", 100, "/8"),
    ]


@given(st.integers(0, 120), st.randoms())
def test_near_duplicates_are_those_with_nine_tenths_in_common(changes, dice) -> None:
    words = WORDS.split()
    other = list(words)
    for at in dice.sample(range(len(words)), changes):
        other[at] = f"changed{at}"
    alike = site_audit._Alike()
    texts = (" ".join(words), " ".join(other))
    for number, text in enumerate(texts):
        alike.add(number, text)
    for number, text in enumerate(texts):
        alike.check(number, text)
    one, two = (set(zip(text, text[1:], text[2:], strict=False)) for text in (words, other))
    share = len(one & two) / len(one | two)
    if alike.found:
        assert alike.found == [(0, 1, 1.0 if not changes else pytest.approx(share, abs=1e-6))]
        assert share >= SIMILAR
    else:
        assert share < 0.97  # nearer pages are found but for one in a million


def test_titles_and_descriptions_are_missing_or_shared(ledger, crawled) -> None:
    found = audited(
        ledger,
        crawled(
            page("/1", title="Shop", facts={"description": ""}),
            page("/2", title=" shop "),
            page("/3", title=""),
            page("/4", title="Alone", facts={"description": "About /2"}),
            page("/5", title="Shop", facts={"canonical": f"{SITE}/1"}),
            failed("/6", "HTTP 404", "http", status=404),
            plain_page(7, title="Text file", error="not a web page", error_code="content_type"),
        ),
    )
    assert rows(found, "titles") == [
        ("missing", None, "/3"),
        ("duplicate", "Shop", "/1"),
        ("duplicate", " shop ", "/2"),
    ]
    assert rows(found, "descriptions") == [
        ("missing", None, "/1"),
        ("duplicate", "About /2", "/2"),
        ("duplicate", "About /2", "/4"),
    ]


def test_slow_and_large_pages_are_the_worst_first(ledger, crawled) -> None:
    found = audited(
        ledger,
        crawled(
            page("/1", response_ms=1000.0, render_ms=5.0),
            page("/2", response_ms=1.0, render_ms=SLOW_LOAD_MS),
            page("/3", response_ms=999.0, render_ms=SLOW_LOAD_MS - 1000),
            page("/4", response_ms=None, render_ms=None),
            page("/5", bytes=LARGE_BYTES, transferred_bytes=77),
            page("/6", bytes=LARGE_BYTES + 1),
            page("/7", bytes=LARGE_BYTES - 1),
        ),
    )
    assert rows(found, "slow") == [("/2", 1.0, 3001.0, "/2"), ("/1", 1000.0, 1005.0, "/1")]
    assert rows(found, "large") == [
        ("/6", LARGE_BYTES + 1, None),
        ("/5", LARGE_BYTES, 77),
    ]


def test_orphans_are_the_given_addresses_that_no_page_links_to(ledger, crawled) -> None:
    pages = [
        page("/1", "/2", "/1", depth=0),
        page("/2", depth=0),
        page("/3", "/3", depth=0),
        failed("/4", "HTTP 404", "http", status=404, depth=0),
    ]
    found = audited(ledger, crawled(*pages, kind="crawl_sitemap"))
    assert rows(found, "orphans") == [("/1", "/1"), ("/3", "/3")]
    assert found.report("orphans").applies
    # a crawl from one address has no list to compare with
    found = audited(ledger, crawled(pages[0]))
    assert (rows(found, "orphans"), found.report("orphans").applies) == ([], False)


def test_an_audit_tells_how_many_damaged_lines_it_could_not_read(ledger, crawled) -> None:
    task_id = crawled(page("/"), page("/1"), page("/2"))
    place = ledger.root / task_id / "pages.jsonl"
    lines = place.read_bytes().splitlines(keepends=True)
    place.write_bytes(b"".join([lines[0], lines[1][:30] + b"\n", b"[]\n", lines[2]]))
    found = audited(ledger, task_id)
    assert (found.pages, found.lost) == (2, 2)
    assert ("audit.lost", 2) in found.lacks("titles")
    assert not list(audited(ledger, crawled(page("/"))).lacks())


def test_an_audit_tells_what_it_lacks(ledger, crawled) -> None:
    old = plain_page(1, title="Old", final_url=f"{SITE}/1")  # of a version without facts and links
    found = audited(ledger, crawled(page("/"), old, status=Status.FAILED))
    assert (found.pages, found.without_links, found.without_facts) == (2, 1, 1)
    assert not found.has_ended
    assert found.report("descriptions").rows == []
    found = audited(ledger, crawled(page("/")))
    assert (found.has_ended, found.is_limited) == (True, False)


@pytest.mark.parametrize(
    "summary",
    [
        *({"stopped_by": name} for name in ("max_pages", "max_minutes", "max_bytes")),
        {"stopped_by": "frontier", "links_too_deep": 3},
        {"stopped_by": "frontier", "links_over_limit": 1},
    ],
)
def test_an_audit_tells_that_a_limit_left_pages_out(ledger, crawled, summary, tmp_path) -> None:
    task_id = crawled(page("/"), head={"summary": summary})
    assert audited(ledger, task_id).is_limited
    order = Order(task_id, "html", report="slow")
    made = export_file(ledger, order, tmp_path / "slow.html", ExportProgress())
    assert made.notes == [
        "A limit of the crawl left pages out: these are reports about those it read."
    ]
    assert "<h1>Slow pages: http://site.test/</h1>" in (tmp_path / "slow.html").read_text()


def test_a_site_that_does_not_answer_has_a_broken_start(ledger, crawled) -> None:
    why = "robots.txt could not be read (could not connect)"
    found = audited(ledger, crawled(failed("/", why, "robots_unread", status=None, depth=0)))
    assert rows(found, "broken_links") == [("/", why, None, None, None, None)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_redirect_counts_for_its_page_in_any_order(ledger, crawled, is_first) -> None:
    hops = [{"url": f"{SITE}/old", "status": 301}]
    pages = [
        page("/final", depth=0),
        page("/old", final_url=f"{SITE}/final", redirects=hops, depth=0),
    ]
    start = page("/", "/old", depth=0)
    found = audited(ledger, crawled(start, *(pages if is_first else pages[::-1])))
    assert rows(found, "orphans") == [("/", "/")]
    assert ("/final", 1, 0, 0) in rows(found, "links_in")
    assert rows(found, "redirects") == [("/old", 301, "/final", 200, 1, 1)]


def test_the_rows_of_a_report_can_be_narrowed_for_an_export(ledger, crawled, tmp_path) -> None:
    task_id = crawled(page("/a", "/b"), page("/b"))
    watch = ExportProgress(keep=lambda record: matches(record, ("te", "/b")))
    made = export_file(ledger, Order(task_id, "csv", report="links_in"), tmp_path / "a.csv", watch)
    assert made.rows == 1
    assert matches({"a": "One Two", "b": 3}, ("two", "one"))
    assert not matches({"a": "One"}, ("one", "two"))


def test_a_running_crawl_has_reports_of_its_pages_so_far(ledger, crawled) -> None:
    task_id = crawled(page("/", "/a"), status=None)
    assert audited(ledger, task_id).pages == 1
    ledger.append_page(task_id, failed("/a", "HTTP 404", "http", status=404))
    assert rows(audited(ledger, task_id), "broken_links") == [
        ("/a", "HTTP 404", "/", "to /a", None, None)
    ]


def test_what_is_no_crawl_has_no_reports(ledger, crawled) -> None:
    for task_id in (crawled(page("/"), kind="recording"), crawled()):
        with pytest.raises(NoPagesToAudit):
            audited(ledger, task_id)


def test_an_audit_stops_when_it_is_asked_to(ledger, crawled) -> None:
    stop = threading.Event()
    stop.set()
    task_id = crawled(page("/"))
    with pytest.raises(AuditStopped):
        audit(ledger, task_id, stop)


def test_an_audit_reports_its_progress(ledger, crawled, monkeypatch) -> None:
    monkeypatch.setattr(site_audit, "PROGRESS_S", -1.0)
    told: list[tuple[int, int]] = []
    task_id = crawled(*(page(f"/{number}") for number in range(9)))
    audit(ledger, task_id, threading.Event(), lambda *one: told.append(one))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] > 0


@given(
    st.dictionaries(
        st.sampled_from([*page("/"), "redirects"]),
        st.none()
        | st.integers()
        | st.text()
        | st.lists(st.text() | st.none())
        | st.dictionaries(st.text(), st.text()),
    )
)
def test_no_shape_of_a_record_ends_an_audit(fields: dict[str, Any]) -> None:
    site = site_audit._Site()
    record = {**page("/", "/a"), **fields}
    for one in (record, page("/a", "/")):
        site.add(one)
    for number, one in enumerate((record, page("/a", "/"), record)):
        site.add_links(number, one)  # the last was stored between the passes
    for report in (site.broken_links, site.redirects, site.duplicates, site.slow, site.large):
        assert isinstance(list(report()), list)
    assert isinstance([*site.orphans(), *site.links_in(), *site.named_alike(site.titles)], list)


def test_a_report_has_its_name_however_it_is_written() -> None:
    assert known_report("Broken-Links") == "broken_links"
    with pytest.raises(InvalidArguments, match="there are: broken_links, redirects"):
        known_report("=nope")


def test_every_report_can_be_exported_in_every_format(ledger, crawled, tmp_path) -> None:
    task_id = crawled(
        page("/", "/a", content=WORDS), failed("/a", "=HTTP 404", "http", status=404, depth=0)
    )
    for name in REPORT_NAMES:
        for form in ("csv", "json", "jsonl", "xlsx", "html"):
            order = Order(task_id, form, report=name)
            made = export_file(ledger, order, tmp_path / f"{name}.{form}", ExportProgress())
            assert made.rows == len(audited(ledger, task_id).report(name).rows)
    (row,) = csv_rows((tmp_path / "broken_links.csv").read_text())
    assert row == {
        "target": f"{SITE}/a",
        "problem": "'=HTTP 404",
        "page": f"{SITE}/",
        "text": "to /a",
        "rel": "",
        "by": "",
        "task_id": task_id,
        "task_status": "COMPLETED",
    }
    told = json.loads((tmp_path / "broken_links.json").read_text())
    assert told["broken_links"][0]["target"] == f"{SITE}/a"


def test_a_report_is_exported_with_the_chosen_columns(ledger, crawled) -> None:
    task_id = crawled(page("/"))
    text = streamed(ledger, task_id, "csv", "page", "depth", report="links_in")
    assert csv_rows(text) == [{"page": f"{SITE}/", "depth": "1"}]


def test_an_export_of_a_report_stops_when_it_is_asked_to(ledger, crawled, tmp_path) -> None:
    watch = ExportProgress()
    watch.stop.set()
    order = Order(crawled(page("/")), "csv", report="slow")
    with pytest.raises(ExportStopped):
        export_file(ledger, order, tmp_path / "a.csv", watch)
    assert not list(tmp_path.glob("*.csv"))
