"""The arguments with which a task looks like another device, and its headers."""

from __future__ import annotations

from typing import Any

import pytest

from engine.kinds.crawl.crawl_args import parse_crawl, still_served
from engine.kinds.evidence_kind import parse_evidence
from engine.kinds.look_arguments import LOOK
from engine.kinds.recording.recording_kind import parse_recording
from engine.kinds.registry import KINDS
from engine.kinds.sitemap.sitemap_crawl import parse_sitemap
from engine.kinds.snapshot_kind import parse_snapshot
from engine.model import redact
from engine.model.errors import InvalidArguments

URL = "https://example.com/docs"


def problems(**given: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidArguments) as refused:
        parse_crawl({"url": URL, **given})
    return [(one.path, one.message) for one in refused.value.problems]


def test_every_kind_that_opens_pages_has_them() -> None:
    having = {name for name, kind in KINDS.items() if LOOK.items() <= kind.arguments.items()}
    assert having == {name for name in KINDS if name not in ("commands", "oc_site_audit")}


def test_a_look_is_read_as_it_is_meant() -> None:
    args = parse_crawl(
        {
            "url": URL,
            "device": "iphone 15",
            "viewport": "390 x 844",
            "user_agent": " Agent/1 ",
            "locale": "de_at",
            "timezone": "europe/berlin",
            "headers": ["X-Key:  value with: colon "],
        }
    )
    look = args.look
    assert look.device is not None
    assert look.device.name == "iPhone 15"
    assert look.size == (390, 844)
    assert look.agent == "Agent/1"
    assert (look.locale, look.timezone) == ("de-AT", "Europe/Berlin")
    assert look.headers.pairs == (("X-Key", "value with: colon"),)
    assert look.headers.origins == {"https://example.com"}


def test_headers_are_for_every_start_address_of_each_kind() -> None:
    headers = ["X-Key: abcdef"]
    more = parse_crawl({"url": URL, "urls": ["http://a.example:81/x"], "headers": headers})
    assert more.look.headers.origins == {"https://example.com", "http://a.example:81"}
    listed = parse_sitemap({"sitemap_url": "https://s.example/s.xml", "headers": headers})
    assert listed.pages.look.headers.origins == {"https://s.example"}
    tabs = {"objective": "x", "visit": True, "tabs": [URL, "http://b.example/"]}
    seen = parse_snapshot({**tabs, "headers": headers})
    assert seen.look.headers.origins == {"https://example.com", "http://b.example"}
    assert [one.value for one in seen.secrets] == ["abcdef"]
    for parse in (parse_evidence, parse_recording):
        assert parse({"url": URL, "headers": headers}).look.headers.origins == {
            "https://example.com"
        }


@pytest.mark.parametrize(
    ("given", "path", "part"),
    [
        ({"device": "iPhone 15x"}, "device", "near are iPhone 15"),
        ({"device": "zzzz"}, "device", "is no known device"),
        ({"viewport": "390"}, "viewport", "such as 390x844"),
        ({"viewport": "99x844"}, "viewport", "between 100 and 8,000"),
        ({"user_agent": "a\nb"}, "user_agent", "one line"),
        ({"user_agent": "ü"}, "user_agent", "ASCII"),
        ({"user_agent": "x" * 600}, "user_agent", "512"),
        ({"locale": "german"}, "locale", "such as de or de-DE"),
        ({"timezone": "Berlin"}, "timezone", "did you mean Europe/Berlin?"),
        ({"timezone": "../../etc/passwd"}, "timezone", "is no time zone"),
        ({"timezone": "localtime"}, "timezone", "is no time zone"),
        ({"headers": "X-Key: 1"}, "headers", "must be a list"),
        ({"headers": ["X-Key"]}, "headers", "Name: value"),
        ({"headers": [{"X-Key": "1"}]}, "headers", "Name: value"),
        ({"headers": ["X Key: 1"]}, "headers", "Name: value"),
        ({"headers": ["X-Key: "]}, "headers", "a value for X-Key"),
        ({"headers": ["X-Key: 1", "x-key: 2"]}, "headers", "twice"),
        ({"headers": ["User-Agent: x"]}, "headers", "user_agent"),
        ({"headers": ["Accept-Language: de"]}, "headers", "locale"),
        ({"headers": ["X-Key: " + "x" * 5000]}, "headers", "4,096 characters"),
        ({"headers": [f"X-{number}: 1" for number in range(51)]}, "headers", "50 entries"),
        ({"engine": "static", "viewport": "390x844"}, "viewport", "needs the browser engine"),
        ({"engine": "static", "timezone": "UTC"}, "timezone", "needs the browser engine"),
        (
            {"headers": ["authorization: x"], "username": "ann"},
            "headers",
            "does not go with username",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_argument(given: Any, path: str, part: str) -> None:
    ((found, message),) = problems(**given)
    assert found == path
    assert part in message


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "content-length", "Connection", "Cookie", "Transfer-Encoding", "Sec-CH-UA"),
        *("Origin", "Proxy-Authorization", "Referer", "Upgrade", "Accept-Encoding"),
    ],
)
def test_headers_of_the_engine_are_refused(name: str) -> None:
    ((path, message),) = problems(headers=[f"{name}: x"])
    assert path == "headers"
    assert "which the engine sets" in message


@pytest.mark.parametrize("sign", ["\r\nX-Other: 1", "\n", "\r", "\0", "ü", "\x7f"])
def test_a_value_cannot_hold_another_header_and_is_in_no_message(sign: str) -> None:
    ((_, message),) = problems(headers=[f"X-Key: s3cret{sign}s3cret"])
    assert "s3cret" not in message
    assert "X-Key" in message


def test_with_the_static_engine_a_device_gives_its_user_agent() -> None:
    args = parse_crawl({"url": URL, "engine": "static", "device": "Pixel 7", "locale": "de"})
    assert "Pixel 7" in str(args.look.agent)


def test_a_look_needs_a_page_that_is_opened() -> None:
    for parse, given in (
        (parse_evidence, {"tab": "tab_1"}),
        (parse_snapshot, {"objective": "x", "tabs": [URL]}),
    ):
        with pytest.raises(InvalidArguments) as refused:
            parse({**given, "device": "Pixel 7", "headers": ["X-Key: 1"]})
        assert {one.path for one in refused.value.problems} == {"device", "headers"}


def test_a_recording_has_the_window_of_its_device() -> None:
    args = parse_recording({"url": URL, "device": "Pixel 7", "width": 1280, "height": 800})
    assert (args.width, args.height) == args.look.size == (412, 839)


@pytest.mark.parametrize(
    ("header", "hidden"),
    [
        ("Authorization: Bearer abc.def", {"Bearer abc.def", "abc.def"}),
        ("X-Key: abcdef", {"abcdef"}),
        ("X-Site: example.com", set()),  # the address itself would be hidden
        ("DNT: 1", set()),  # as each of these would hide half of a page
        ("X-Env: staging", set()),
        ("X-Build: 7f3a9c0d11e2", {"7f3a9c0d11e2"}),
    ],
)
def test_a_value_that_looks_like_a_secret_is_one(header: str, hidden: set[str]) -> None:
    args = parse_crawl({"url": URL, "headers": [header]})
    assert {one.value for one in args.secrets} == hidden
    assert not any(value in repr(args) for value in hidden)


def test_a_basic_header_hides_its_password() -> None:
    args = parse_crawl({"url": URL, "headers": ["Authorization: Basic YW5uOnMzY3JldCE="]})
    assert "s3cret!" in {one.value for one in args.secrets}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("X-Key: value", "X-Key: [redacted]"),
        ("X-Key: env:NAME", "X-Key: env:NAME"),
        ("Authorization: Bearer env:NAME", "Authorization: Bearer env:NAME"),
        ("X-Key: s3cret env:NAME", "X-Key: [redacted]"),
        ("X-Key: env:NAME s3cret", "X-Key: [redacted]"),
        ("X-Key: env:NA-ME", "X-Key: [redacted]"),
        ("X-Key: [redacted]", "X-Key: [redacted]"),
        ("nothing", "nothing"),
    ],
)
def test_only_names_and_references_are_stored(given: str, kept: str) -> None:
    stored = redact.value({"args": {"headers": [given]}})
    assert stored == {"args": {"headers": [kept]}}
    assert redact.value(stored) == stored


@pytest.mark.parametrize("parse", [parse_crawl, parse_sitemap])
@pytest.mark.parametrize(
    ("engine", "given", "refused"),
    [
        ("static", {"screenshot": "failed"}, ["screenshot"]),
        ("static", {"screenshot": "all", "wait_for": "#a"}, ["wait_for", "screenshot"]),
        ("static", {"scroll": True}, ["scroll"]),
        ("auto", {"wait_for": "#a"}, []),
        ("auto", {"scroll": True}, ["scroll"]),
        ("auto", {"screenshot": "failed"}, []),
        ("static", {"screenshot": "none", "wait_for": None, "scroll": False}, []),
        ("browser", {"screenshot": "all", "wait_for": "#a"}, []),
    ],
)
def test_an_engine_refuses_what_only_a_browser_can_do(
    parse: Any, engine: str, given: dict[str, Any], refused: list[str]
) -> None:
    found: list[tuple[str, str, str]] = []
    try:
        parse({"url": URL, "engine": engine, **given})
    except InvalidArguments as error:
        found = [(one.path, one.code, one.message) for one in error.problems]
    assert found == [(name, "not_together", "needs the browser engine") for name in refused]


@pytest.mark.parametrize("given", [{"wait_for": "#a"}, {"screenshot": "all"}])
def test_auto_uses_the_browser_alone_for_what_every_page_needs(given: dict[str, Any]) -> None:
    assert parse_crawl({"url": URL, "engine": "auto"}).engine == "auto"
    assert parse_crawl({"url": URL, "engine": "auto", **given}).engine == "browser"


def test_a_stored_request_goes_on_without_what_its_engine_ignored() -> None:
    stored = {"url": URL, "engine": "static", "screenshot": "failed", "wait_for": "#a"}
    with pytest.raises(InvalidArguments):
        parse_crawl(stored)
    assert parse_crawl(still_served(stored)).engine == "static"
    kept = {**stored, "engine": "browser"}
    assert still_served(kept) == kept
