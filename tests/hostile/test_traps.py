"""Each trap ends as promised, in real Chromium and without a browser, and keeps to its own page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fixtures.hostile.site import SAFE
from tests.hostile.conftest import Seen, taken

pytestmark = pytest.mark.timeout(900)  # the first test of each engine waits for two crawls
LIMIT_MS = 8_000  # what does not end has begun by then, on a crowded machine as well
# What never ends, and so is ended at its limit.
WAITING = ("/slow/headers", "/slow/body", "/slow/stuck", "/behave/busy", "/frames/nested")
CUT = ("/slow/body", "/slow/stuck", "/flood/text", "/chunks/cut", "/length/short")
LARGE = ("/big?mb=60", "/gzip?mb=100", "/line?mb=8")
MOVED = ("/redirect/loop", "/redirect/self", "/redirect/chain/40", "/cookie-loop")
REFUSED = ("/redirect/canary", "/redirect/number", "/redirect/mapped", "/redirect/two-hops",
           "/redirect/password", "/redirect/canary?code=307", "/redirect/slashes")  # fmt: skip
NOT_WEB = ("/redirect/file", "/redirect/data", "/redirect/chrome")
SAVED = ("/save/traversal", "/save/absolute", "/save/nul", "/save-endless")
ODD = ("/status/204", "/status/304", "/closed/empty", "/closed/garbage", "/headers/cookies",
       "/charset/broken", "/charset/bom", "/type/outside", "/text/markup", "/text/nul",
       "/redirect/metadata", "/auth/407", "/slow/headers", "/attributes", "/interim")  # fmt: skip
BOTH = (*SAFE, *CUT, *MOVED, *REFUSED, *NOT_WEB, *SAVED, *ODD, "/schemes/", "/fragments/")
SCRIPTED = ("/behave/alerts", "/behave/alert-forever", "/behave/beforeunload", "/behave/print",
            "/behave/popups", "/behave/popup-forever", "/behave/permissions", "/behave/js-loop",
            "/behave/late-loop", "/behave/busy", "/behave/push-state", "/refresh/loop",
            "/refresh/slow", "/refresh/file", "/save-pushed", "/lies", "/lies/fakes", "/clobbers",
            "/policy/csp", "/policy/trusted", "/frames/nested", "/frames/srcdoc", "/frames/data",
            "/reach/location", "/reach/late-location", "/reach/frame", "/reach/popup")  # fmt: skip


class Both(NamedTuple):
    """The traps that end by themselves, and those that are ended at a short limit."""

    quick: Seen
    waiting: Seen

    def _of(self, path: str) -> Seen:
        return self.waiting if path in WAITING else self.quick

    def error(self, path: str) -> str:
        return self._of(path).error(path)

    def page(self, path: str) -> dict[str, Any]:
        return self._of(path).page(path)

    @property
    def canary(self) -> list[str]:
        return self.quick.canary + self.waiting.canary

    @property
    def left(self) -> list[str]:
        return self.quick.left + self.waiting.left


def _seen(home: Path, paths: Sequence[str], engine: str) -> Both:
    waiting = [path for path in paths if path in WAITING]
    quick = [path for path in paths if path not in WAITING]
    return Both(
        taken(home, quick, engine=engine, timeout_ms=60_000),
        # Two more attempts would take as long as the first one, and end like it.
        taken(home, waiting, engine=engine, timeout_ms=LIMIT_MS, concurrency=8, retries=0),
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Both:
    home = tmp_path_factory.mktemp("home")
    return _seen(home, (*BOTH, *SCRIPTED), "browser")


@pytest.fixture(scope="module")
def static(tmp_path_factory) -> Both:
    return _seen(tmp_path_factory.mktemp("home"), (*BOTH, *LARGE), "static")


@pytest.fixture(params=["browser", "static"])
def seen(request) -> Both:
    return request.getfixturevalue(request.param)


@pytest.mark.thorough("browser")
@pytest.mark.case("R61")
def test_honest_pages_beside_traps_are_whole(seen):
    for path in SAFE:
        page = seen.page(path)
        assert "error" not in page, (path, page)
        assert "grey heron" in page["content"]
    assert (seen.canary, seen.left) == ([], [])


@pytest.mark.case("R64")
@pytest.mark.parametrize("path", MOVED)
def test_redirects_without_end_say_so(seen, path):
    assert seen.error(path) == "too many redirects"


@pytest.mark.case("R65")
@pytest.mark.parametrize("path", REFUSED)
def test_a_redirect_to_a_private_place_is_one_item_with_the_reason(seen, path):
    assert seen.error(path) == "blocked: private address" or path == "/redirect/slashes"
    assert seen.canary == []


@pytest.mark.case("R66")
@pytest.mark.parametrize("path", NOT_WEB)
def test_a_redirect_to_what_is_not_the_web_is_refused(seen, path):
    assert seen.error(path) == "blocked: only http and https addresses can be opened"


@pytest.mark.case("R66")
def test_links_to_what_is_not_the_web_are_left_alone_and_counted(seen):
    assert seen.quick.told.summary["links_not_web"] >= 15
    assert not any("://" in path for path in seen.quick.told.pages)


@pytest.mark.case("R67")
@pytest.mark.parametrize("path", CUT)
def test_of_a_page_that_does_not_end_what_came_is_kept_and_marked(seen, path):
    page = seen.page(path)
    assert page["truncated"], page
    assert page.get("error") is None
    assert len(page["content"]) > 10


@pytest.mark.case("R67")
def test_headers_that_never_come_end_at_the_limit(seen):
    assert f"within {LIMIT_MS // 1_000} s" in seen.error("/slow/headers")


@pytest.mark.case("R68")
@pytest.mark.parametrize("path", LARGE)
def test_a_page_that_is_too_large_is_cut_and_says_so(static, path):
    page = static.page(path)
    assert page["truncated"]
    assert 100_000 < len(page["content"].encode()) <= 2_048 * 1024


@pytest.mark.case("R71")
@pytest.mark.parametrize("path", SAVED)
def test_a_download_is_skipped_and_nothing_is_saved(seen, path):
    assert seen.error(path) == "download skipped"
    kept = {place.name for place in seen.quick.told.folder.rglob("*") if place.is_file()}
    assert kept <= {"meta.json", "events.jsonl", "pages.jsonl", "result.json", "lock", ".lock"}


@pytest.mark.case("R69")
def test_alerts_are_answered_and_counted_and_their_storm_is_ended(browser):
    assert browser.page("/behave/alerts")["dialogs_dismissed"] == 30
    assert "Words of alerts" in browser.page("/behave/alerts")["content"]
    assert browser.error("/behave/alert-forever") == "the page opened one dialog after another"
    for path in ("/behave/beforeunload", "/behave/print", "/behave/permissions"):
        assert "And after" in browser.page(path)["content"]


@pytest.mark.case("R70")
def test_windows_are_closed_and_counted(browser):
    assert browser.page("/behave/popups")["windows_closed"] == 20
    assert browser.page("/behave/popup-forever")["windows_closed"] > 0
    assert browser.left == []


@pytest.mark.case("R71")
def test_a_page_that_starts_downloads_is_kept_without_them(browser):
    assert "Have some files" in browser.page("/save-pushed")["content"]


def test_pages_that_send_themselves_on_without_end_say_so(browser):
    assert browser.error("/behave/js-loop") == "too many redirects"
    # A page that waits longer than it takes to be still is taken between two of its turns.
    assert browser.error("/refresh/loop") in ("", "too many redirects")


@pytest.mark.parametrize("path", ["/lies", "/lies/fakes", "/clobbers"])
def test_what_a_page_overrides_or_hides_changes_nothing_of_what_is_read(browser, path):
    page = browser.page(path)
    assert "error" not in page, page
    assert any(words in page["content"] for words in ("The truth is here", "Not clobbered"))
    assert page["links_found"] == 1


def test_a_page_in_a_sandbox_without_scripts_is_read_like_any_other(browser):
    page = browser.page("/policy/csp")
    assert ("error" in page, page["settled"]) == (False, True)
    assert "Under a policy" in page["content"]


def test_a_tag_with_fifty_thousand_attributes_takes_no_minutes(static):
    assert static.page("/attributes")["truncated"]
    assert "words" in static.page("/attributes")["content"]


@pytest.mark.case("R65")
@pytest.mark.parametrize("path", ["/reach/location", "/reach/refresh"])
def test_a_page_that_leads_to_a_private_place_is_refused(browser, path):
    if path in browser.quick.told.pages:
        assert browser.error(path) == "blocked: private address"
    assert browser.canary == []
