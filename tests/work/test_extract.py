"""Stored page content is bounded, valid and visible."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pages import rendered_text
from engine.pages.documents import decode
from engine.pages.extract import MAX_LINK_BYTES, clip, extract, extract_now
from engine.pages.fetch import (
    MAX_ATTRIBUTES,
    MAX_LINK_CHARS,
    MAX_TEXT_KB,
    SMALL_CHARS,
    Fetched,
    bounded,
)
from engine.pages.static_engine import judge
from tests.work.random_pages import random_page

FORMS = ("markdown", "text", "structured")
ENOUGH = "<p>" + "word " * 60 + "</p>"


def taken(html, form="text", **more):
    url = "http://example.com/a/b"
    return extract_now(
        Fetched(url, url, 200, "text/html", html=html, engine="static", **more), form
    )


def test_a_page_at_which_the_markdown_converter_fails_keeps_its_text():
    page = taken('<p>Before</p><pre><li> <a href="/x"><p></p></a></li></pre><p>After', "markdown")
    assert page.content.split() == ["Before", "After"]
    assert [one["href"] for one in page.anchors] == ["http://example.com/x"]


@pytest.mark.parametrize("form", FORMS)
def test_scripts_styles_and_hidden_parts_are_left_out(form):
    page = taken(
        "<body><p>seen</p><script>one()</script><style>two{}</style><p hidden>three</p>"
        "<template>four</template><noscript>five</noscript></body>",
        form,
    )
    told = json.dumps(page.content)
    assert "seen" in told
    assert not any(word in told for word in ("one", "two", "three", "four", "five"))


def test_links_are_absolute_and_levelled_and_follow_the_base():
    page = taken("<base href='/x/'><a href='y#z'>1</a><a href='y'>2</a><a href='mailto:a@b'>3</a>")
    assert [link.url for link in page.links] == ["http://example.com/x/y"]


def test_links_in_markdown_are_absolute():
    assert "(http://example.com/c)" in taken("<a href='/c'>see</a>", "markdown").content


def test_links_have_their_texts_seen_or_not():
    page = taken(
        "<a href=/1> one <b>link</b>\n</a><a href=/2><img alt=picture></a><a href=/1>again</a>"
        "<p hidden><a href=/3>unseen</a></p><map><area href=/4 alt=area></map>"
        "<a href=/5></a><a href=/5 aria-label=label></a><a href=/6>" + "x" * 900 + "</a>"
    )
    assert [(link["href"][-2:], link["text"]) for link in page.anchors] == [
        ("/1", "one link"),
        ("/2", "picture"),
        ("/3", "unseen"),
        ("/4", "area"),
        ("/5", "label"),
        ("/6", "x" * 512),
    ]


def test_the_list_of_links_is_bounded_and_says_so():
    page = taken("".join(f"<a href='/{n}{'x' * 4_000}'>x</a>" for n in range(1_000)))
    assert page.truncated
    assert len(json.dumps(page.anchors)) <= MAX_LINK_BYTES + 1_000
    assert len(page.links) == 1_000


def test_frames_of_the_same_host_are_links():
    page = taken(
        "<frameset><frame src=one><frame src=http://example.com:81/two>"
        "<frame src=http://other.example/three></frameset>"
    )
    assert [link.url for link in page.links] == [
        "http://example.com/a/one",
        "http://example.com:81/two",
    ]


def test_a_page_of_80_000_elements_is_all_there():
    page = taken("".join(f"<p>row <b>{n}</b></p>\n" for n in range(40_000)))
    assert not page.truncated
    assert page.content.count("row") == 40_000


def test_a_page_with_too_many_links_keeps_the_first_and_counts_all():
    page = taken("".join(f"<a href='/{n}'>x</a>" for n in range(21_000)))
    assert (len(page.links), page.links_found, page.links_over) == (20_000, 21_000, 1_000)


def test_the_links_of_a_page_with_an_endless_base_take_no_more_than_their_share():
    base = f"<base href='http://example.com/{'x' * 4_000}/'>"
    page = taken(base + "".join(f"<a href='{n}'>x</a>" for n in range(9_000)))
    assert sum(len(link.url) for link in page.links) <= MAX_LINK_CHARS
    assert len(page.links) + page.links_over == page.links_found == 9_000


@pytest.mark.parametrize("form", FORMS)
def test_content_is_cut_at_its_cap_and_says_so(form):
    page = taken("<p>" + "\u65e5\u672c " * 400_000 + "</p>", form)
    size = len(page.content.encode()) if form != "structured" else len(json.dumps(page.content))
    assert page.truncated
    assert size <= MAX_TEXT_KB * 1024


@given(st.text(max_size=60), st.integers(0, 80))
def test_a_cut_never_splits_a_character(text, limit):
    text = text.encode("utf-8", "replace").decode()
    kept, cut = clip(text, limit)
    assert len(kept.encode()) <= limit
    assert text.startswith(kept)
    assert cut == (kept != text)


@pytest.mark.parametrize("form", FORMS)
def test_lone_surrogates_and_nul_become_replacement_marks(form):
    page = taken("<title>a\ud800b</title><p>c\udfff\0d</p>", form)
    json.dumps(page.content, ensure_ascii=False).encode()
    assert page.title == "a\ufffdb"


def test_a_title_is_one_line_and_short():
    assert taken("<title>  a \n b " + "x" * 9_000 + "</title>").title.startswith("a b xx")
    assert len(taken("<title>" + "x" * 9_000 + "</title>").title) == 512


def test_a_page_nested_without_end_is_parsed_in_part():
    began = time.process_time()
    page = taken("<div>" * 200_000 + "deep", "markdown")
    assert page.truncated
    assert time.process_time() - began < 30  # half a second, if depth is bounded


def test_structure_has_every_part():
    page = taken(
        "<html lang=en><meta name=Description content=d><title>t</title><h2>h</h2><p>p</p>"
        "<a href=/x>l</a><img src=/i alt=a>",
        "structured",
    )
    assert page.content == {
        "title": "t",
        "description": "d",
        "lang": "en",
        "headings": [{"level": 2, "text": "h"}],
        "paragraphs": ["p"],
        "links": [{"href": "http://example.com/x", "text": "l"}],
        "images": [{"src": "http://example.com/i", "alt": "a"}],
        "blocks": [
            {"type": "heading", "level": 2, "text": "h"},
            {"type": "paragraph", "text": "p"},
            {"type": "text", "text": "l"},
        ],
    }


def test_cells_below_and_beside_a_large_cell_keep_their_column():
    page = taken(
        "<table><tr><th rowspan=2>item<th colspan=2>price<tr><th>net<th>gross"
        "<tr><td colspan=2>sum<td>3</table>"
        "<table><tr><td rowspan=0>all<td>1<tr><td>2<tr><td rowspan=x>3</table>",
        "structured",
    )
    assert [block["rows"] for block in page.content["blocks"]] == [
        [["item", "price"], ["", "net", "gross"], ["sum", "", "3"]],
        [["all", "1"], ["", "2"], ["", "3"]],
    ]


def test_a_table_of_endless_cells_is_read_within_bounds():
    rows = "<tr><td colspan=1000 rowspan=0>a<td>b" * 20_000
    (table,) = taken(f"<table>{rows}</table>", "structured").content["blocks"]
    assert len(table["rows"]) == 20_000
    assert sum(map(len, table["rows"])) < 1_100_000


def test_structure_keeps_every_block_in_order():
    page = taken(
        "loose <b>words</b><ol><li>one <i>1</i><li><p>two</p><ul><li>a</ul></ol>"
        "<table><caption>c</caption><tr><th>x<th>y<tr><td>1<td><ul><li>2<li>3</ul></table>"
        "<pre>  def f():\n    pass</pre><blockquote><p>q</p>r</blockquote>"
        "<dl><dt>t<dd>d<dd>e<dt>u<dt>v<dd><pre> w</pre></dl>end<hr>",
        "structured",
    )
    assert page.content["blocks"] == [
        {"type": "text", "text": "loose words"},
        {"type": "list", "ordered": True, "items": ["one 1", "two\n\na"]},
        {"type": "table", "rows": [["x", "y"], ["1", "2\n3"]], "caption": "c"},
        {"type": "code", "text": "  def f():\n    pass"},
        {"type": "quote", "text": "q\n\nr"},
        {
            "type": "definitions",
            "items": [{"term": "t", "text": "d\ne"}, {"term": "u\nv", "text": " w"}],
        },
        {"type": "text", "text": "end"},
    ]


@given(st.integers(0, 100_000))
def test_the_blocks_hold_every_word_of_the_text(seed):
    html = random_page(seed)
    told = [
        words for block in taken(html, "structured").content["blocks"] for words in _told(block)
    ]
    assert " ".join(told).split() == taken(html).content.split()


@given(st.integers(0, 100_000))
def test_taking_plain_elements_in_one_piece_changes_no_text(seed):
    html = random_page(seed).replace("\u200b", "")
    quick = [taken(html).content, taken(html, "structured").content]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendered_text, "_RUN", rendered_text._TOKEN)
        patch.setattr(rendered_text, "_PLAIN_BLOCKS", {})
        assert quick == [taken(html).content, taken(html, "structured").content]


def test_text_behind_the_last_plain_element_is_text():
    assert rendered_text.rendered_text("<p>a</p><b>b<i>c</i></b> d") == "a\n\nbc d"


def test_a_tag_with_a_crowd_of_attributes_is_left_out_wherever_its_quotes_stand():
    crowd = " x" * (MAX_ATTRIBUTES + 1)
    for begin in ("<p", "<p title='>'", '<p id="a>b"'):
        html = f"<b class='c'>one</b>{begin}{crowd} y=1>two</p>" + " " * SMALL_CHARS
        assert crowd not in bounded(html)
        assert "one" in bounded(html)
    fits = f"<p{' x' * MAX_ATTRIBUTES}>one</p>" + " " * SMALL_CHARS
    assert bounded(fits) == fits


def _told(block):
    yield block.get("caption", "")
    yield block.get("text", "")
    for item in [*block.get("items", ()), *(cell for row in block.get("rows", ()) for cell in row)]:
        yield from item.values() if isinstance(item, dict) else [item]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "unseen",
    [
        "<textarea>gone</textarea>",
        "<video>gone</video>",
        "<audio>gone</audio>",
        "<canvas>gone</canvas>",
        "<object data=x>gone</object>",
        "<datalist><option>gone</datalist>",
        "<details>gone <summary>seen</summary><p>gone</details>",
        "<dialog>gone</dialog>",
        "<ruby>x<rp>gone</rp></ruby>",
        "<meter>gone</meter><progress>gone</progress>",
        "<p style='display:none'>gone</p><p hidden>gone</p><p popover>gone</p>",
        "<p>x<noscript><p>gone</p></noscript>",
    ],
)
def test_what_no_browser_shows_is_no_text(unseen, form):
    page = taken(f"<p>before</p>{unseen}<p>after</p>", form)
    told = json.dumps(page.content)
    assert "before" in told
    assert "after" in told
    assert "gone" not in told


def test_words_are_cut_at_blocks_only():
    page = taken(
        "<p>one <b>w</b>ord<wbr>s \n and<br>a line</p>\u4e2d<i>\u6587</i><div>x</div>"
        "<table><tr><td>1<td> 2 <tr><td>3</table><pre>  a\n    b</pre>"
    )
    assert page.content == ("one words and\na line\n\n\u4e2d\u6587\nx\n1\t2\n3\n  a\n    b")


def test_a_page_of_open_elements_without_end_has_its_text_in_time():
    began = time.process_time()
    page = taken("<b><q><ul><li><table><tr><td>x" * 12_000)
    assert "x" in page.content
    assert time.process_time() - began < 30  # a second, if no element is looked at twice


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("caf\u00e9".encode(), "text/html", "caf\u00e9"),
        ("caf\u00e9".encode("cp1252"), "text/html", "caf\u00e9"),
        ("\u20ac".encode("cp1252"), "text/html; charset=ISO-8859-1", "\u20ac"),
        ('<meta charset="shift_jis">\u65e5'.encode("shift_jis"), "text/html", None),
        (b"\xef\xbb\xbfx", "text/html; charset=latin-1", "x"),
        # names that mean larger sets on the web, and names that only the web has
        ("\u4e2d\u20ac\u3400".encode("gb18030"), "text/html; charset=gb2312", "\u4e2d\u20ac\u3400"),
        ("\u2460\u9ad9".encode("cp932"), "text/html; charset=Shift_JIS", "\u2460\u9ad9"),
        ("\u65e5".encode("cp932"), "text/html; charset=x-sjis", "\u65e5"),
        ("\u4e2d".encode("gbk"), "text/html; charset=gb_2312-80", "\u4e2d"),
        ("\u4e2d".encode("big5"), "text/html; charset=cn-big5", "\u4e2d"),
        ("\u043f".encode("mac-cyrillic"), "text/html; charset=x-mac-cyrillic", "\u043f"),
        ("\ub620".encode("cp949"), "text/html; charset=euc-kr", "\ub620"),
        ("\u5605".encode("big5hkscs"), "text/html; charset=big5", "\u5605"),
        ("\u011e\u20ac".encode("cp1254"), "text/html; charset=iso-8859-9", "\u011e\u20ac"),
        ("\u0e01\u20ac".encode("cp874"), "text/html; charset=tis-620", "\u0e01\u20ac"),
        ("\u043f".encode("cp1251"), "text/html; charset=x-cp1251", "\u043f"),
        ("x".encode("utf-16"), "text/html", "x"),
        (b"x", "text/html; charset=hex", "x"),
        (b"x", "text/html; charset=nonsense", "x"),
    ],
)
def test_character_sets(body, content_type, text):
    assert decode(body, content_type) == (text or '<meta charset="shift_jis">\u65e5')


@pytest.mark.parametrize(
    "before",
    [
        '<?xml version="1.0" encoding="windows-1251"?><html><p>',
        f"<!doctype html><style>/*{'x' * 3000}*/</style><meta charset=windows-1251><p>",
        f"<head><script>{'x' * 3000}</script><meta charset=windows-1251></head><p>",
    ],
)
def test_a_character_set_is_found_where_browsers_look_for_it(before: str) -> None:
    text = f"{before}\u041f\u0440\u0438\u0432\u0435\u0442"
    assert decode(text.encode("cp1251"), "text/html") == text


@pytest.mark.parametrize(
    "before",
    [
        '<?xml version="1.0" encoding="utf-8"?><html><meta charset=windows-1251><p>',
        '<?xml version="1.0" encoding="odd"?><html><meta charset=windows-1251><p>',
        "<meta charset=odd><meta charset=windows-1251><p>",
        "<!-- <meta charset=utf-8> --><meta charset=windows-1251><p>",
        f"<script>'<div><meta charset=utf-8>{'x' * 2000}'</SCRIPT><meta charset=windows-1251><p>",
    ],
)
def test_the_element_that_browsers_take_tells_the_character_set(before: str) -> None:
    text = f"{before}\u041f\u0440\u0438\u0432\u0435\u0442"
    assert decode(text.encode("cp1251"), "text/html") == text


@pytest.mark.parametrize("part", ["<meta ", "<script>", "<!--", "<style", "<?xml "])
def test_the_search_for_a_character_set_takes_linear_time(part: str) -> None:
    began = time.process_time()
    for _ in range(3):
        assert decode((part * 20_000).encode(), "text/html") == part * 20_000
    assert time.process_time() - began < 1.5


def test_a_character_set_in_the_content_of_a_page_is_not_its_own() -> None:
    text = f"<body><p>{'x' * 3000} h\u00e9 <meta charset=windows-1251>"
    assert decode(text.encode("cp1252"), "text/html") == text


def test_a_body_cut_inside_a_character_keeps_its_character_set():
    assert decode("h\u00e9 caf\u00e9".encode()[:-1], "text/html", cut=True) == "h\u00e9 caf\ufffd"


@given(st.binary(max_size=200), st.text(max_size=30))
def test_no_body_breaks_the_decoding(body, label):
    decode(body, f"text/html; charset={label}")


@pytest.mark.parametrize(
    ("html", "needs"),
    [
        (ENOUGH, False),
        (ENOUGH + "<script type='application/ld+json'>{}</script>", False),
        (ENOUGH + "<script type='application/json'>{}</script>", False),
        (ENOUGH + "<script>x</script>", True),
        (ENOUGH + "<script src=x></script>", True),
        (ENOUGH + "<script type=module>x</script>", True),
        (ENOUGH + "<p onclick=x>", True),
        (ENOUGH + "<a href='java\nscript:x'>", True),
        (ENOUGH + "<iframe src=x></iframe>", True),
        (ENOUGH + "<i><template shadowrootmode=open>x</template></i>", True),
        (ENOUGH + "<template>x</template>", False),
        ("<p>short</p>", True),
        ("", True),
    ],
)
def test_the_judgement_whether_a_page_needs_a_browser(html, needs):
    assert judge(html).needs_browser is needs


@pytest.mark.parametrize("name", ['"', "'", '="', "<", 'a"b', '""'])
def test_a_stray_sign_in_a_tag_takes_no_text_away(name: str) -> None:
    html = f'<p>one <a href="/x"{name}>two</a> three <b>four</b></p><p>"five" <i>six</i></p>'
    fetched = Fetched("http://a/", "http://a/", 200, "text/html", html=html, engine="static")
    said = str(extract_now(fetched, "text").content).split()
    assert said == ["one", "two", "three", "four", '"five"', "six"]


class CountingThreads(ThreadPoolExecutor):
    """The threads of a loop; `calls` counts what they were given."""

    calls = 0

    def submit(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        return super().submit(*given, **named)


async def test_a_page_of_few_words_and_many_links_is_extracted_off_the_loop() -> None:
    url = "https://a.test/"
    threads = CountingThreads(1)
    asyncio.get_running_loop().set_default_executor(threads)
    for number, calls in ((1, 0), (5_000, 1)):
        links = [f"{url}{one}" for one in range(number)]
        page = Fetched(url, url, 200, "text/html", html="<p>x", links=links)
        assert len((await extract(page, "text")).links) == number
        assert threads.calls == calls
