"""The measurement of `./dev bench real`: its equality and its server."""

from __future__ import annotations

import urllib.error
import urllib.request

from tests.bench.real_sites.comparing import is_links_equal, is_text_equal
from tests.bench.real_sites.reference import Seen
from tests.bench.real_sites.server import Site, serve


def _seen(text: str, shadow: str = "", links: tuple[str, ...] = ()) -> Seen:
    return Seen(text, text, shadow, links, "")


def test_text_is_equal_byte_for_byte_but_for_as_many_redactions_as_the_page_counts() -> None:
    seen = _seen("the key AKIA1 opens")
    kept = {"content": "the key [redacted] opens"}
    assert is_text_equal({"content": "the key AKIA1 opens"}, seen)
    assert not is_text_equal({"content": "the key AKIA1  opens"}, seen)
    assert not is_text_equal(kept, seen)
    assert is_text_equal({**kept, "redacted": 1}, seen)


def test_shadow_text_counts_in_any_order() -> None:
    seen = _seen("one two", shadow="two three")
    assert is_text_equal({"content": "one two three\ntwo"}, seen)
    assert not is_text_equal({"content": "one two three"}, seen)
    assert not is_text_equal({"content": "one two two [redacted]"}, seen)
    assert is_text_equal({"content": "one two two [redacted]", "redacted": 1}, seen)


def test_links_are_a_set_of_web_addresses_and_a_number_where_no_list_is_kept() -> None:
    seen = _seen("", links=("http://a.test/x", "http://a.test/x#y", "mailto:b@a.test"))
    assert is_links_equal({"links_found": 1}, seen)
    assert is_links_equal({"links": [{"href": "http://a.test/x", "text": ""}]}, seen)
    assert not is_links_equal({"links": [{"href": "http://a.test/z", "text": ""}]}, seen)


def test_the_flaky_site_fails_once_for_each_page_and_counts_what_was_asked_for() -> None:
    site = Site("flaky", files={"/index.html": "<p>Here"}, failing=100)
    with serve([site]) as served:
        url = f"{served['flaky'].url}/"
        answers = [_status(url), _status(url)]
        assert answers == [503, 200] or answers == [0, 200]
        assert served["flaky"].asked()["/"] == 2


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0
