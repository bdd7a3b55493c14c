"""Parsing of one sitemap file: every format, and damaged or hostile ones."""

import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.sitemap.sitemap_file import (
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_TAG,
    NotASitemap,
    read_sitemap,
    recover,
)

ONE = b"<url><loc>http://a.example/1</loc></url>"


def locs(body):
    return [entry.loc for entry in read_sitemap(body).entries]


def test_a_sitemap_lists_its_pages_and_when_they_changed():
    found = read_sitemap(
        b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        b"<url><loc> http://a.example/1?a=1&amp;b=2 </loc><lastmod>2026-01-02</lastmod></url>"
        b"<url><loc><![CDATA[http://a.example/2]]></loc><lastmod>yesterday</lastmod></url>"
        b"</urlset>"
    )
    assert found.kind == "pages"
    assert found.entries == [
        ("http://a.example/1?a=1&b=2", "2026-01-02"),
        ("http://a.example/2", ""),
    ]
    assert found.problem == ""


def test_only_the_sitemaps_own_elements_count_whatever_their_prefix():
    body = (
        b"<sm:urlset><sm:url><sm:loc>http://a.example/1</sm:loc>"
        b"<image:image><image:loc>http://a.example/pic</image:loc></image:image>"
        b"<xhtml:link rel='alternate' href='http://a.example/de'/></sm:url></sm:urlset>"
    )
    assert locs(body) == ["http://a.example/1"]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"<sitemapindex><sitemap><loc>http://a/x</loc></sitemap></sitemapindex>", "index", ["http://a/x"]),
        (b"<rss><channel><link>http://a/</link><item><link>http://a/1</link></item></channel></rss>",
         "pages", ["http://a/1"]),
        (b"<feed><link href='http://a/'/><entry><link rel='self' href='http://a/s'/>"
         b"<link href='http://a/1'/></entry></feed>", "pages", ["http://a/1"]),
        (b"\xef\xbb\xbfhttp://a/1\r\n\r\nhttp://a/2\n", "pages", ["http://a/1", "http://a/2"]),
        (gzip.compress(b"<urlset>" + ONE, mtime=0) + gzip.compress(b"</urlset>", mtime=0), "pages", ["http://a.example/1"]),
        ("<urlset><url><loc>http://a/é</loc></url></urlset>".encode("utf-16"), "pages", ["http://a/é"]),
        ("<?xml version='1.0' encoding='windows-1252'?><urlset><url><loc>http://a/é</loc></url></urlset>"
         .encode("cp1252"), "pages", ["http://a/é"]),
    ],
)  # fmt: skip
def test_formats_and_encodings(body, kind, expected):
    found = read_sitemap(body)
    assert (found.kind, [entry.loc for entry in found.entries]) == (kind, expected)
    assert found.problem == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it is empty"),
        (b" \n ", "it is empty"),
        (b"<!doctype html><html><body>Not found</body></html>", "it is a web page"),
        (b"<html><body>", "it is a web page"),
        (b"hello there", "neither XML nor a list"),
        (b"<foo/>", "another kind (<foo>)"),
        (b'<!DOCTYPE urlset [<!ENTITY a "b">]><urlset/>', "declares a document type"),
        (b'<!DOCTYPE urlset SYSTEM "file:///etc/passwd"><urlset/>', "declares a document type"),
        (gzip.compress(b"<urlset>", mtime=0)[:9], "gzip data ends too early"),
        (b"\x1f\x8bnonsense", "gzip data is damaged"),
        (gzip.compress(b"", mtime=0) * 3_000, "too many parts"),
        (b'<urlset a="' + b"x" * (2 * MAX_TAG), "a tag without end"),
    ],
)
def test_what_is_no_sitemap_is_said_with_the_reason(body, reason):
    with pytest.raises(NotASitemap, match=r".*") as refused:
        read_sitemap(body)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("body", "kept", "reason"),
    [
        (b"<urlset>" + ONE + b"<url>&lol;</url></urlset>", 1, "damaged"),
        (gzip.compress(b"<urlset>" + ONE * 50, mtime=0)[:-9], 50, "ends too early"),
        (b"<urlset>" + ONE * 60_000 + b"</urlset>", MAX_ENTRIES, "more than 50,000"),
        (b"http://a/1\n" + b"x" * 200_000, 1, "no address"),
        (b"http://a/1\nsee also\nhttp://a/2", 2, "no address"),
        (b"<urlset>" + ONE + b"<url><loc>http://a.example/cut", 1, "ends too early"),
        (b"<urlset>&" + ONE + b"<!DOCTYPE x [<!ENTITY a 'b'>]>" + ONE, 1, "document type"),
        (b"<urlset>&" + ONE + b'<url a="' + b"x" * (2 * MAX_TAG), 1, "tag without end"),
        (b"<urlset>&" + ONE * 60_000, MAX_ENTRIES, "more than 50,000"),
        (b"<urlset>&" + ONE + b"<a>" * 100, 1, "more elements"),
        (b"<urlset>" + ONE + b"<a>" * 100, 1, "more elements"),
    ],
)  # fmt: skip
def test_what_came_before_a_damage_counts(body, kept, reason):
    found = read_sitemap(body)
    assert len(found.entries) == kept
    assert reason in found.problem


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<url><loc>http://a/?a=1&b=2&amp;copy=3&copy=4</loc></url>", "?a=1&b=2&copy=3&copy=4"),
        (b"<url><loc>http://a/1&#x26;2&#38;3&#xD800;</loc></url>&", "1&2&3\ufffd"),
        (b"<url><loc><![CDATA[http://a/?a&amp;b]]></loc></url>&", "?a&amp;b"),
        (b"<!-- <url><loc>http://a/no</loc></url> > --><url><loc>http://a/1</loc></url>&", "1"),
        (b"<url><loc>http://a/1<lastmod>2026</lastmod></url>", "1"),
        (b"<url><loc>http://a/1</loc><changefreq></url>", "1"),
        (b"<url><loc>http://a/1</loc></url></url></b>", "1"),
        (b"<url><loc>http://a/1</loc><image:loc>http://a/i</image:loc></url><<", "1"),
        (b"<url a=\"x>y\" b='z'><loc>http://a/1</loc></url>&", "1"),
        (b"<url><loc>http://a/1</loc></url>\x01", "1"),
        (b"<url><loc>http://a/1</loc>", "1"),
    ],
)
@pytest.mark.parametrize("whole", [b"<urlset>%s%s</urlset>", b"Warning: <b>x</b>\n<urlset>%s%s"])
def test_a_damage_costs_no_entry_but_its_own(body, expected, whole):
    found = read_sitemap(whole % (body, ONE))
    kept = [entry.loc for entry in found.entries]
    assert kept == [f"http://a/{expected}", "http://a.example/1"]
    assert found.problem


def test_an_address_that_nobody_closed_ends_where_the_date_begins():
    found = read_sitemap(b"<urlset><url><loc>http://a/1<lastmod>2026</lastmod></url></urlset>")
    assert found.entries == [("http://a/1", "2026")]


def test_what_was_read_in_spite_of_a_damage_is_told():
    found = read_sitemap(b"<urlset>" + ONE + b"&" + ONE * 3)
    assert found.problem.startswith("it is damaged at line 1: ")
    assert found.problem.endswith("; entries that were read all the same: 3")
    assert read_sitemap(b"\n<b>x<urlset>" + ONE).problem.startswith("something else stands before")


class Heard:
    """What a damaged file tells, in one list; texts that follow each other are one."""

    def __init__(self):
        self.told = []

    def on_start(self, name, attributes):
        self.told.append(("start", name, attributes))

    def on_end(self, name):
        self.told.append(("end", name))

    def on_text(self, text):
        if self.told and self.told[-1][0] == "text":
            text = self.told.pop()[1] + text
        self.told.append(("text", text))

    def on_doctype(self):
        self.told.append(("doctype",))


SIGNS = ["<", ">", "&", "<url>", "</url>", "<loc", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>"]
SIGNS += ["'", '"', "=", " a", "http://a/1", "&amp;", "&#1;", "/>"]


@given(st.lists(st.sampled_from(SIGNS), max_size=40).map("".join), st.integers(1, 7))
def test_how_a_damaged_file_comes_in_pieces_changes_nothing(text, size):
    whole, cut = Heard(), Heard()
    recover([text], whole)
    recover([text[at : at + size] for at in range(0, len(text), size)], cut)
    assert cut.told == whole.told


@pytest.mark.parametrize(
    "part", ["<a ", "<!-", "&", '<a "', "<a b='", "<![CDATA[", "</", "<?", "<"]
)
def test_no_damage_makes_the_reading_begin_anew_again_and_again(part):
    body = b"<urlset>" + ONE + part.encode() * (2 * 1024 * 1024 // len(part))
    started = time.process_time()
    assert len(read_sitemap(body).entries) == 1
    assert time.process_time() - started < 20


def test_a_gzip_bomb_is_left_at_the_protocols_size_and_never_held():
    bomb = gzip.compress(b"<urlset>" + ONE + b" " * (4 * MAX_BYTES), mtime=0)
    assert len(bomb) < 1_000_000
    started = time.process_time()
    found = read_sitemap(bomb)
    assert len(found.entries) == 1
    assert "larger than 50 MiB" in found.problem
    assert time.process_time() - started < 40


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda more: b"<urlset>" + more))
def test_any_bytes_are_read_or_refused_in_words(body):
    try:
        found = read_sitemap(body)
    except NotASitemap:
        return  # any other error fails the test
    assert all(entry.loc for entry in found.entries)
