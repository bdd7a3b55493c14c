"""What one sitemap file lists: every format, and whatever could be wrong or meant badly with it."""

import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.work.sitemap import MAX_BYTES, MAX_ENTRIES, MAX_TAG, NotASitemap, read_sitemap

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
        (b"<urlset>" + ONE + b"<url><loc>http://a/?a=1&b=2</loc></url>" + ONE, 1, "at line 1"),
        (b"<urlset>" + ONE + b"<url>&lol;</url></urlset>", 1, "damaged"),
        (gzip.compress(b"<urlset>" + ONE * 50, mtime=0)[:-9], 50, "ends too early"),
        (b"<urlset>" + ONE * 60_000 + b"</urlset>", MAX_ENTRIES, "more than 50,000"),
        (b"http://a/1\n" + b"x" * 200_000, 2, "no address"),
        (b"<urlset>" + ONE + b"<a>" * 100, 1, "more elements"),
    ],
)  # fmt: skip
def test_what_came_before_a_damage_counts(body, kept, reason):
    found = read_sitemap(body)
    assert len(found.entries) == kept
    assert reason in found.problem


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
