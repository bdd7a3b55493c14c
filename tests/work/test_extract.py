"""What is kept of a page is bounded, valid and free of what nobody sees."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.work.documents import decode
from engine.work.extract import MAX_CONTENT_BYTES, clip, extract_now
from engine.work.fetch import Fetched
from engine.work.static import needs_browser

FORMS = ("markdown", "text", "structured")
ENOUGH = "<p>" + "word " * 60 + "</p>"


def taken(html, form="text", **more):
    url = "http://example.com/a/b"
    return extract_now(
        Fetched(url, url, 200, "text/html", html=html, engine="static", **more), form
    )


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


def test_a_page_with_too_many_links_keeps_the_first_and_counts_all():
    page = taken("".join(f"<a href='/{n}'>x</a>" for n in range(5_000)))
    assert (len(page.links), page.links_found) == (2_000, 5_000)


@pytest.mark.parametrize("form", FORMS)
def test_content_is_cut_at_its_cap_and_says_so(form):
    page = taken("<p>" + "\u65e5\u672c " * 150_000 + "</p>", form)
    size = len(page.content.encode()) if form != "structured" else len(json.dumps(page.content))
    assert page.truncated
    assert size <= MAX_CONTENT_BYTES


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
    }


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("caf\u00e9".encode(), "text/html", "caf\u00e9"),
        ("caf\u00e9".encode("cp1252"), "text/html", "caf\u00e9"),
        ("\u20ac".encode("cp1252"), "text/html; charset=ISO-8859-1", "\u20ac"),
        ('<meta charset="shift_jis">\u65e5'.encode("shift_jis"), "text/html", None),
        (b"\xef\xbb\xbfx", "text/html; charset=latin-1", "x"),
        ("x".encode("utf-16"), "text/html", "x"),
        (b"x", "text/html; charset=hex", "x"),
        (b"x", "text/html; charset=nonsense", "x"),
    ],
)
def test_character_sets(body, content_type, text):
    assert decode(body, content_type) == (text or '<meta charset="shift_jis">\u65e5')


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
        ("<p>short</p>", True),
        ("", True),
    ],
)
def test_the_judgement_whether_a_page_needs_a_browser(html, needs):
    assert needs_browser(html) is needs
