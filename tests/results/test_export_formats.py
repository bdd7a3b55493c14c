"""Exports read back unchanged in every format, without formulas or scripts."""

from __future__ import annotations

import json
from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from engine.export import report, table
from engine.export.exporter import FORMATS, TASK_COLUMNS, ExportProgress, Order, export_file
from engine.export.exports import COLUMNS, DIFFERENCE_COLUMNS, LEDGER
from engine.export.output import NothingToExport, ResultDamaged
from engine.kinds.crawl.frontier import Reason
from engine.kinds.registry import KINDS
from engine.model.errors import InvalidArguments, TaskNotFound
from engine.model.records import ErrorInfo, Status
from engine.model.tally import CrawlOutcome
from engine.results.site_audit import REPORT_OF
from engine.text import messages
from engine.text.messages import ENGLISH
from tests.results.conftest import page, wrapped
from tests.results.reading import csv_rows, filters, jsonl_rows, streamed, workbook

TEXT_FORMATS = [name for name, form in FORMATS.items() if form.text]
PAGES = [
    page(1, title='Notes, "quoted"\r\nand two lines'),
    page(2, title="Überschrift 😀 日本", truncated=True),
    page(3, title="", status=None, error="HTTP 404"),
]
SIGNS = "=+-@\t\r＝＋－＠﹢﹣﹦﹫−"


def test_a_csv_reads_back_as_the_rows(ledger, crawled) -> None:
    text = streamed(ledger, crawled(*PAGES), "csv")
    rows = csv_rows(text)
    assert [row["title"] for row in rows] == [one["title"] for one in PAGES]
    assert [row["url"] for row in rows] == [one["url"] for one in PAGES]
    assert [row["error"] for row in rows] == ["", "", "HTTP 404"]
    assert [row["status"] for row in rows] == ["200", "200", ""]
    assert {row["settled"] for row in rows} == {"true"}


def test_a_csv_ends_its_lines_as_rfc_4180_says(ledger, crawled) -> None:
    text = streamed(ledger, crawled(page(1), page(2)), "csv")
    assert text.endswith("\r\n")
    assert len(text.split("\r\n")) == 4


def test_a_csv_begins_with_a_mark_only_where_that_was_asked_for(ledger, crawled) -> None:
    task_id = crawled(*PAGES)
    plain = streamed(ledger, task_id, "csv")
    assert plain.startswith("url,")
    assert streamed(ledger, task_id, "csv", bom=True) == "\ufeff" + plain


def test_jsonl_reads_back_as_the_records_with_their_task(ledger, crawled) -> None:
    task_id = crawled(*PAGES)
    rows = jsonl_rows(streamed(ledger, task_id, "jsonl"))
    added = {"task_id": task_id, "task_status": "COMPLETED"}
    assert rows == [one | added for one in PAGES]


def test_json_reads_back_as_one_object(ledger, crawled) -> None:
    task_id = crawled(*PAGES)
    told = json.loads(streamed(ledger, task_id, "json"))
    assert told["pages"] == PAGES
    assert told["about"]["task_id"] == task_id
    assert told["about"]["summary"] == {"total_pages": 3}
    assert told["written"] == {"rows": 3, "notes": []}


def test_a_workbook_reads_back_as_the_rows(ledger, crawled, tmp_path) -> None:
    book = workbook(ledger, crawled(*PAGES), tmp_path / "a.xlsx")
    names, *rows = book["pages"]
    told = [dict(zip(names, row, strict=False)) for row in rows]
    assert [row["title"] or "" for row in told] == [one["title"] for one in PAGES]
    assert [row["status"] for row in told] == [200.0, 200.0, None]
    assert [row["settled"] for row in told] == [True] * 3
    assert [row["truncated"] for row in told] == [None, True, None]
    assert dict(map(tuple, book["about"]))["rows"] == "3"


def test_a_report_reads_back_as_the_rows(ledger, crawled) -> None:
    tree = LexborHTMLParser(streamed(ledger, crawled(*PAGES), "html"))
    names = [cell.text() for cell in tree.css("th")]
    titles = [row.css("td")[names.index("Title")].text() for row in tree.css("tbody tr")]
    failed_first = [PAGES[2], *PAGES[:2]]
    assert titles == [one["title"].replace("\r\n", "\n") for one in failed_first]


def test_a_report_has_few_columns_and_human_words(ledger, crawled) -> None:
    head = {"summary": {"total_pages": 3, "duration_ms": 89_218}}
    tree = LexborHTMLParser(streamed(ledger, crawled(*PAGES, head=head), "html"))
    names = [cell.text() for cell in tree.css("th")]
    assert names == ["URL", "Status", "Title", "Depth", "Response (ms)", "Error"]
    facts = dict(zip(*([one.text() for one in tree.css(tag)] for tag in ("dt", "dd")), strict=True))
    assert (facts["Total pages"], facts["Duration"]) == ("3", "89.2 s")
    assert (facts["Kind"], facts["Status"]) == ("Crawl", "Completed")


def test_each_column_of_a_report_has_a_heading_that_can_be_translated() -> None:
    brief = [one.name for kind in KINDS.values() for one in kind.columns if one.brief]
    audited = [one.name for kind in REPORT_OF.values() for one in kind.columns]
    listed = [one.name for one in (*COLUMNS, LEDGER, *DIFFERENCE_COLUMNS)]
    counted = [one.name for one in msgspec.structs.fields(CrawlOutcome)]
    left_out = [f"links_{reason}" for reason in get_args(Reason)]
    stored_apart = {"stopped_by", "first_error", "left_out", "workers", "hosts_given_up"}
    names = {*brief, *listed, *counted, *left_out} - stored_apart - {"host_error"}
    fields = {f"report.field.{name}" for name in names}
    heads = {f"audit.column.{name}" for name in audited}
    assert {*fields, *heads} - ENGLISH.keys() == set()


def test_a_report_is_in_the_language_that_is_named_and_else_in_english(ledger, crawled) -> None:
    failed = {**PAGES[2], "error": "Blocked by robots.txt"}
    head = {"summary": {"total_pages": 3, "duration_ms": 89_218, "stopped_by": "frontier"}}
    task_id = crawled(failed, head=head)
    spoken = {
        "report.field.status": "Zustand",
        "kind.crawl": "Gang",
        "export.rows.one": "1 Z",
    }
    messages.use(spoken, point=",", told=lambda text: text.replace("Blocked by", "Verboten durch"))
    try:
        english = streamed(ledger, task_id, "html")
        made = streamed(ledger, task_id, "html", language="de")
    finally:
        messages.use({})
    for text in ('<html lang="en">', "Status", "Crawl", "89.2 s", "1 row", "Blocked by"):
        assert text in english, text
    for text in ('<html lang="de">', "Zustand", "Gang", "89,2 s", "1 Z", "Verboten durch"):
        assert text in made, text


def test_words_of_commands_and_of_a_cancelled_task_are_in_the_language_of_a_report(
    ledger, with_result
) -> None:
    rows = [{"tool_name": "read", "status": word} for word in ("success", "skipped", "odd")]
    result = {"summary": {"stopped_by": "cancelled"}, "commands": rows}
    task_id = with_result("oc_command_list", json.dumps(result).encode())
    spoken = {
        "status.cancelled": "Abgebrochen",
        "report.value.success": "gelungen",
        "report.value.skipped": "ausgelassen",
    }
    messages.use(spoken)
    try:
        made = streamed(ledger, task_id, "html", language="de")
    finally:
        messages.use({})
    tree = LexborHTMLParser(made)
    cells = [cell.text() for cell in tree.css("td")]
    assert [one for one in ("gelungen", "ausgelassen", "odd") if one not in cells] == []
    assert "Abgebrochen" in [one.text() for one in tree.css("dd")]


def test_fields_of_strangers_keep_their_names_and_hide_no_fact(ledger, with_result) -> None:
    row = {"target": "x", "code": 3, "by": "z"}
    result = {"summary": {"target": "y", "code": 7, "status": "odd"}, "items": [row]}
    task_id = with_result("mirror", json.dumps(result).encode())
    tree = LexborHTMLParser(streamed(ledger, task_id, "html"))
    assert [cell.text() for cell in tree.css("th")] == ["Target", "Code", "By"]
    facts = zip(tree.css("dt"), tree.css("dd"), strict=True)
    told = [f"{name.text()}: {value.text()}" for name, value in facts]
    assert {"Status: Completed", "Status: odd", "Target: y", "Code: 7"} <= set(told)


def test_a_report_about_pages_has_the_headings_of_the_tab(ledger, crawled) -> None:
    tree = LexborHTMLParser(streamed(ledger, crawled(*PAGES), "html", report="broken_links"))
    heads = [cell.text() for cell in tree.css("th")]
    columns = REPORT_OF["broken_links"].columns
    assert heads == [ENGLISH[f"audit.column.{one.name}"] for one in columns]


def test_a_report_has_the_columns_that_were_chosen(ledger, crawled) -> None:
    tree = LexborHTMLParser(streamed(ledger, crawled(*PAGES), "html", "title", "attempts"))
    assert [cell.text() for cell in tree.css("th")] == ["Title", "Attempts"]


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_result_inside_a_text_is_exported_as_ours_is(ledger, crawled, with_result, form) -> None:
    own = streamed(ledger, crawled(*PAGES), form, "url", "title", "error")
    foreign = with_result("crawl", wrapped({"summary": {"total_pages": 3}, "pages": PAGES}))
    rows = streamed(ledger, foreign, form, "url", "title", "error")
    assert _body(rows, form) == _body(own, form)


def _body(text: str, form: str) -> object:
    if form == "json":
        return json.loads(text)["pages"]
    return text[text.index("<table>") :] if form == "html" else text


def test_fields_that_no_table_knows_get_columns_behind_the_others(ledger, crawled) -> None:
    text = streamed(ledger, crawled(page(1, score=3, why={"a": [1]})), "csv")
    (row,) = csv_rows(text)
    assert (row["score"], row["why"]) == ("3", '{"a":[1]}')
    assert list(row)[-4:] == ["score", "why", *TASK_COLUMNS]


def test_fields_that_came_too_late_for_a_column_are_named(ledger, crawled, tmp_path) -> None:
    from engine.export.exporter import LOOKED_AT

    pages = [*(page(n) for n in range(LOOKED_AT)), page(9, late=1)]
    task_id = crawled(*pages, status=None)
    made = export_file(ledger, Order(task_id, "csv"), tmp_path / "a.csv", ExportProgress())
    assert made.notes == ["Fields without a column were left out: late (they are in jsonl)."]


def test_columns_are_those_that_were_asked_for_in_that_order(ledger, crawled) -> None:
    task_id = crawled(*PAGES)
    text = streamed(ledger, task_id, "csv", "title", "url", "task_id")
    assert list(csv_rows(text)[0]) == ["title", "url", "task_id"]
    assert csv_rows(text)[0]["task_id"] == task_id
    assert list(jsonl_rows(streamed(ledger, task_id, "jsonl", "status"))[0]) == ["status"]


def test_a_step_into_a_field_is_a_column(ledger, with_result) -> None:
    commands = [{"id": "c_0", "status": "error", "error": {"code": "COMMAND_TIMEOUT"}}]
    task_id = with_result("commands", json.dumps({"commands": commands}).encode())
    (row,) = csv_rows(streamed(ledger, task_id, "csv"))
    assert (row["id"], row["error.code"]) == ("c_0", "COMMAND_TIMEOUT")


def test_every_mistake_in_an_order_is_named(ledger, crawled) -> None:
    task_id = crawled(*PAGES)
    with pytest.raises(InvalidArguments) as refused:
        streamed(ledger, task_id, "csv", "url", "nose", "toe")
    assert [problem.path for problem in refused.value.problems] == ["columns", "columns"]
    with pytest.raises(InvalidArguments, match="'pdf' is no format") as refused:
        streamed(ledger, task_id, "pdf", bom=True)
    assert len(refused.value.problems) == 2
    with pytest.raises(InvalidArguments, match="name of a file"):
        streamed(ledger, task_id, "xlsx")


def test_what_cannot_be_exported_says_why(ledger, crawled, with_result) -> None:
    with pytest.raises(TaskNotFound):
        streamed(ledger, "0123456789abcdef", "csv")
    with pytest.raises(NothingToExport):
        streamed(ledger, crawled(status=None), "csv")
    ended = ledger.create("recording", {"url": "http://site.test/"}).task_id
    ledger.claim(ended)
    ledger.finish(ended, Status.FAILED, error=ErrorInfo(message="no screen", code="no_display"))
    with pytest.raises(NothingToExport, match="ended as FAILED and has kept nothing") as refused:
        streamed(ledger, ended, "csv")
    assert "Wait" not in refused.value.advice
    with pytest.raises(ResultDamaged):
        streamed(ledger, with_result("crawl", b'{"pages": [{"url": 1}, {'), "jsonl")


@pytest.mark.parametrize(
    ("status", "told"),
    [(None, "still RUNNING"), (Status.FAILED, "FAILED"), (Status.CANCELLED, "CANCELLED")],
)
def test_partial_exports_say_so(ledger, crawled, tmp_path, status, told) -> None:
    task_id = crawled(*PAGES, status=status)
    word = status or "RUNNING"
    assert {row["task_status"] for row in csv_rows(streamed(ledger, task_id, "csv"))} == {word}
    assert {row["task_status"] for row in jsonl_rows(streamed(ledger, task_id, "jsonl"))} == {word}
    about = json.loads(streamed(ledger, task_id, "json"))["about"]
    assert about["partial"]
    assert told in about["note"]
    note = LexborHTMLParser(streamed(ledger, task_id, "html")).css_first("p.partial")
    assert note is not None
    assert told in note.text()
    facts = dict(map(tuple, workbook(ledger, task_id, tmp_path / "a.xlsx")["about"]))
    assert facts["partial"] == "true"
    assert told in facts["note"]


def test_the_whole_says_that_it_is_whole(ledger, crawled) -> None:
    about = json.loads(streamed(ledger, crawled(*PAGES), "json"))["about"]
    assert not about["partial"]
    assert about["status"] == "COMPLETED"


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><a href='javascript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "{{ 7 * 7 }}{% for a in b %}",
    "<!--",
    "\u202egpj.exe",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_text_in_a_report(ledger, crawled, hostile) -> None:
    args = {"url": f"http://site.test/{hostile}"}
    head = {"summary": {hostile: hostile}}
    pages = [page(1, title=hostile, error=hostile, **{hostile: hostile})]
    task_id = crawled(*pages, args=args, head=head)
    tree = LexborHTMLParser(streamed(ledger, task_id, "html"))
    assert not tree.css("script, img, a, link, iframe, form, object, tbody style")
    assert len(tree.css("style")) == 1
    seen = hostile.replace("\u202e", "\ufffd")
    assert seen in [cell.text() for cell in tree.css("td")]
    assert not [node for node in tree.css("*") for name in node.attributes if name[:2] == "on"]


def test_a_report_on_a_screen_breaks_no_short_word(ledger, crawled) -> None:
    (style,) = LexborHTMLParser(streamed(ledger, crawled(page(1)), "html")).css("style")
    on_a_screen = style.text().partition("@media print")[0]
    (table,) = [line for line in on_a_screen.splitlines() if line.startswith("td {")]
    assert "overflow-wrap: break-word" in table  # "anywhere" would let a column be a letter wide
    assert "max-width" in table


def test_a_report_may_load_nothing(ledger, crawled) -> None:
    tree = LexborHTMLParser(streamed(ledger, crawled(*PAGES), "html"))
    (policy,) = tree.css("meta[http-equiv]")
    assert "default-src 'none'" in (policy.attributes["content"] or "")


texts = st.text(
    alphabet=st.sampled_from(SIGNS + "a1 \u200b\xa0\ufeff\n'\"") | st.characters(), max_size=8
)


@given(texts)
def test_no_cell_of_a_csv_begins_a_formula(text) -> None:
    made = table.csv_cell(text)
    seen = made.strip(" \n\xa0\ufeff\u200b")
    assert not seen.startswith(tuple(SIGNS))
    assert made in (table.plain(text), "'" + table.plain(text))


@pytest.mark.parametrize("sign", SIGNS)
def test_each_sign_of_a_formula_is_known_also_behind_blanks(sign) -> None:
    fronts = (
        "",
        " ",
        "\n",
        "\xa0",
        "\ufeff",
        "\u200b",
        " \x00 ",
        "\xad",
        "\u2066",
        "\u061c",
        "\u3164",
    )
    for front in fronts:
        assert table.csv_cell(f"{front}{sign}1").startswith("'")


@pytest.mark.parametrize("number", [-5, -1.5, 0, 7])
def test_a_number_is_no_formula(number) -> None:
    assert table.csv_cell(number) == str(number)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(texts, min_size=1, max_size=4))
def test_any_text_comes_back_from_csv_and_workbook(ledger, crawled, tmp_path, found) -> None:
    task_id = crawled(*(page(n, title=text) for n, text in enumerate(found)), status=None)
    kept = [row["title"] for row in jsonl_rows(streamed(ledger, task_id, "jsonl"))]
    rows = csv_rows(streamed(ledger, task_id, "csv", "title", "depth"))
    assert [row["title"] for row in rows] == [table.csv_cell(text) for text in kept]
    book = workbook(ledger, task_id, tmp_path / "a.xlsx", "title", "depth")["pages"]
    assert [row[0] or "" for row in book[1:]] == [table.plain(text) for text in kept]


def test_a_cell_longer_than_excel_takes_is_cut_and_counted(ledger, crawled, tmp_path) -> None:
    fits, long, emoji = "x" * 32_767, "y" * 40_000, "😀" * 20_000
    task_id = crawled(page(1, content=fits), page(2, content=long), page(3, content=emoji))
    book = workbook(ledger, task_id, tmp_path / "a.xlsx", "content")
    first, second, third = (row[0] for row in book["pages"][1:])
    assert first == fits
    assert (second, third) == ("y" * 32_766 + "…", "😀" * 16_383 + "…")
    notes = [row[1] for row in book["about"] if row[0] == "note"]
    assert "2 cells were longer than a cell may be and end in …" in notes
    book = workbook(ledger, crawled(page(1, content=long)), tmp_path / "b.xlsx", "content")
    assert ["note", "1 cell was longer than a cell may be and ends in …"] in map(
        list, book["about"]
    )


def test_links_stand_in_a_sheet_of_their_own(ledger, crawled, tmp_path) -> None:
    marked = {"rel": "nofollow", "external": True, "by": "click"}
    links = [
        {"href": "http://a.example/2", "text": "=two", **marked},
        {"href": "http://a.example/3"},
    ]
    page = {"url": "http://a.example/1", "title": "one", "links": links}
    book = workbook(ledger, crawled(page, {"url": "http://a.example/4"}), tmp_path / "a.xlsx")
    assert list(book) == ["pages", "links", "about"]
    assert "links" not in book["pages"][0]
    assert book["links"] == [
        ["url", "href", "text", "rel", "external", "by"],
        ["http://a.example/1", "http://a.example/2", "=two", "nofollow", True, "click"],
        ["http://a.example/1", "http://a.example/3"],
    ]


def test_each_sheet_of_rows_has_buttons_that_filter_them(
    ledger, crawled, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(report.write_xlsx, "__kwdefaults__", {"most_rows": 4})
    links = [{"href": f"http://a.example/{n}"} for n in range(4)]
    pages = [{"url": f"http://a.example/{n}", "title": "one"} for n in range(4)]
    task_id = crawled({**pages[0], "links": links}, *pages[1:])
    book = workbook(ledger, task_id, tmp_path / "a.xlsx", "url", "title")
    found = dict(zip(book, filters(tmp_path / "a.xlsx"), strict=True))
    assert found == {"pages": "A1:B4", "pages (2)": "A1:B2", "about": None}
    book = workbook(ledger, task_id, tmp_path / "a.xlsx")
    found = dict(zip(book, filters(tmp_path / "a.xlsx"), strict=True))
    assert (found["links"], found["links (2)"]) == ("A1:F4", "A1:F2")


def test_rows_beyond_one_sheet_go_on_in_the_next(ledger, crawled, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report.write_xlsx, "__kwdefaults__", {"most_rows": 4})
    task_id = crawled(*(page(n) for n in range(8)))
    book = workbook(ledger, task_id, tmp_path / "a.xlsx", "url")
    assert list(book) == ["pages", "pages (2)", "pages (3)", "about"]
    assert [len(rows) for rows in book.values()][:-1] == [4, 4, 3]
    found = [row[0] for name in list(book)[:-1] for row in book[name][1:]]
    assert found == [f"http://site.test/{n}" for n in range(8)]
    assert any("3 sheets" in str(row[1]) for row in book["about"])


SECRETS = {
    "url": "http://site.test/?token=PLANTEDsecret1",
    "final_url": "http://user:PLANTEDsecret2@site.test/",
    "links": [{"href": "http://site.test/?sid=PLANTEDsecret6", "text": "here"}],
    "error": "api_key: PLANTEDsecret7",
    "cookies": ["PLANTEDsecret8"],
    "headers": {"Set-Cookie": "sid=PLANTEDsecret9"},
}
PUBLISHED = {
    "title": "AuthType Basic AuthName",
    "content": "password=PLANTEDsecret4, Authorization: Bearer PLANTEDsecret3xyz",
}


@pytest.mark.parametrize("shape", ["pages.jsonl", "result.json"])
@pytest.mark.parametrize("form", FORMATS)
def test_exports_have_no_secret(ledger, crawled, with_result, tmp_path, form, shape) -> None:
    bad = page(1, **SECRETS)
    head = {"summary": {"note": "token=PLANTEDsecret10"}}
    if shape == "pages.jsonl":
        task_id = crawled(bad, head=head)
    else:
        task_id = with_result("crawl", wrapped({**head, "pages": [bad | PUBLISHED]}))
    if form == "xlsx":
        told = repr(workbook(ledger, task_id, tmp_path / "a.xlsx"))
    else:
        told = streamed(ledger, task_id, form)
    assert "PLANTED" not in told
    assert "[redacted]" in told


@pytest.mark.parametrize("form", [one for one in TEXT_FORMATS if FORMATS[one].bulky])
def test_what_a_page_published_is_exported_as_it_is(ledger, crawled, form) -> None:
    task_id = crawled(page(1, **PUBLISHED))
    told = streamed(ledger, task_id, form)
    assert PUBLISHED["title"] in told
    assert PUBLISHED["content"] in told


def test_earlier_errors_have_a_column(ledger, crawled) -> None:
    earlier = {"attempts": 3, "earlier_errors": ["page used too much memory", "HTTP 503"]}
    task_id = crawled(page(1), {**page(2), **earlier})
    rows = csv_rows(streamed(ledger, task_id, "csv"))
    told = [row["earlier_errors"] for row in rows]
    assert told == ["", '["page used too much memory","HTTP 503"]']
    assert list(rows[0]).index("earlier_errors") < list(rows[0]).index("error")


def test_what_was_taken_out_of_a_page_has_a_column(ledger, crawled) -> None:
    pages = [page(n) for n in range(1, 3)]
    task_id = crawled(*pages[:1], {**pages[1], "redacted": 7})
    rows = csv_rows(streamed(ledger, task_id, "csv"))
    assert [row["redacted"] for row in rows] == ["", "7"]


def test_each_custom_field_has_a_column(ledger, crawled) -> None:
    pages = (page(1, fields={"price": "=12", "tags": ["a", "b"]}), page(2, fields={"size": "L"}))
    (one, two) = csv_rows(streamed(ledger, crawled(*pages, page(3)), "csv"))[:2]
    assert (one["fields.price"], one["fields.tags"], one["fields.size"]) == (
        "'=12",
        '["a","b"]',
        "",
    )
    assert two["fields.size"] == "L"
    assert "fields" not in one
