"""Which sites a profile is for, which of its values are secret, and how its cookies are renewed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.addresses import address_of
from engine.model.errors import InvalidArguments
from engine.profiles.profile import (
    ProfileRequest,
    SignInSeen,
    is_sign_out,
    profile_name,
    profile_of,
)
from engine.profiles.storage_state import hidden_values, of_sites, read_cookie_file, renewed

TOKEN = "s1abcdef0123456789"
LABELS = st.text("abcxyz", min_size=1, max_size=4)
HOSTS = st.lists(LABELS, min_size=2, max_size=4).map(".".join)


def cookie(name: str, domain: str, value: str = TOKEN, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "domain": domain, "path": "/", "expires": -1, **more}


def is_sent(domain: str, host: str) -> bool:
    """Whether a browser sends a cookie to a host. Source: RFC 6265, section 5.1.3."""
    if not domain.startswith("."):
        return domain == host
    return host == domain[1:] or host.endswith(domain)


@given(HOSTS, HOSTS, st.booleans())
def test_a_cookie_that_a_site_gets_is_kept_with_the_profile(
    site: str, domain: str, shared: bool
) -> None:
    one = cookie("sid", f".{domain}" if shared else domain)
    kept = of_sites({"cookies": [one]}, [site])["cookies"]
    if is_sent(one["domain"], site):
        assert kept == [one]
    related = domain == site or domain.endswith(f".{site}") or site.endswith(f".{domain}")
    if not related:
        assert kept == []


def test_nothing_of_another_site_is_kept() -> None:
    state = {
        "cookies": [cookie("a", "shop.example"), cookie("b", ".ads.example"), cookie("c", "p.le")],
        "origins": [
            {"origin": "https://shop.example", "localStorage": []},
            {"origin": "https://notshop.example", "localStorage": []},
        ],
    }
    kept = of_sites(state, ["shop.example"])
    assert [one["name"] for one in kept["cookies"]] == ["a"]
    assert [one["origin"] for one in kept["origins"]] == ["https://shop.example"]


@pytest.mark.parametrize(
    ("path", "signs_out"),
    [
        *[
            ("/logout", True),
            ("/user/sign-out", True),
            ("/a/log_off/", True),
            ("/logout.php", True),
        ],
        *[("/index.php?action=logout&x=1", True), ("/abmelden", True), ("/user-logout?x", True)],
        *[("/docs/logouts", False), ("/how-to-log-out", False), ("/blog/outlook", False)],
        *[("/logout;jsessionid=1", True), ("/signout-oidc", True), ("/Special:UserLogout", True)],
        *[("/logout-guide", False), ("/", False), ("/signup", False)],
    ],
)
def test_links_that_sign_out_are_recognised(path: str, signs_out: bool) -> None:
    address = address_of(f"https://shop.example{path}")
    assert address is not None
    assert is_sign_out(address) is signs_out


def test_tokens_are_masked_and_common_words_are_not() -> None:
    stored = json.dumps({"user": {"token": "eyJhbGciOiJIUzI1NiJ9.e30.abc123"}, "theme": "dark"})
    state = {
        "cookies": [
            cookie("sid", "x"),
            cookie("lang", "x", "en-US"),
            cookie("q", "x", "a%3D1b2c3d4e5f6"),
        ],
        "origins": [
            {
                "origin": "https://x",
                "localStorage": [{"name": "auth", "value": stored}],
                "indexedDB": [{"stores": [{"records": [{"value": {"key": "k1234567890abcd"}}]}]}],
            }
        ],
    }
    values = {one.value for one in hidden_values(state)}
    assert {TOKEN, "eyJhbGciOiJIUzI1NiJ9.e30.abc123", "k1234567890abcd", "a=1b2c3d4e5f6"} <= values
    assert not values & {"en-US", "dark"}
    assert TOKEN not in repr(hidden_values(state))


def test_only_cookies_of_the_profile_that_changed_in_a_context_are_renewed() -> None:
    began = {"cookies": [cookie("a", ".x.example", "1"), cookie("b", "x.example", "1")]}
    now = {"cookies": [cookie("a", ".x.example", "2"), cookie("b", "x.example", "1")]}
    seen = [
        cookie("a", "x.example", "1"),
        cookie("b", "x.example", "3"),
        cookie("new", "x.example"),
    ]
    found = renewed(now, seen, began)["cookies"]
    assert [(one["name"], one["value"]) for one in found] == [("a", "2"), ("b", "3")]
    longer = [cookie("a", ".x.example", "1", expires=99)]
    assert renewed(began, longer, began)["cookies"][0]["expires"] == 99
    assert found[0]["domain"] == ".x.example"


def seen(**more: Any) -> SignInSeen:
    given = {
        "sites": ("shop.example", "login.example"),
        "login_pages": ("https://login.example/in",),
        "last_url": "https://shop.example/home?x=1",
        "asks": False,
        "everything": {"cookies": [cookie("sid", "shop.example")], "origins": []},
    }
    return SignInSeen(**{**given, **more})


def test_a_profile_is_checked_by_the_last_page_of_its_sign_in() -> None:
    asked = ProfileRequest(name="shop", url="https://shop.example/")
    found, state = profile_of(seen(), asked, 5)
    assert found.check_url == "https://shop.example/home?x=1"
    assert found.sites == ("shop.example", "login.example")
    assert len(state["cookies"]) == 1
    # A window that was closed on the login page says nothing of a page for users.
    found, _ = profile_of(seen(last_url="https://login.example/in?next=1"), asked, 5)
    assert found.check_url == "https://shop.example/"


def test_a_new_sign_in_keeps_what_the_profile_was_told() -> None:
    told = ProfileRequest(
        name="shop",
        url="https://shop.example/",
        sites=("shop.example",),
        check_url="https://shop.example/me",
        check_selector="#me",
    )
    before, _ = profile_of(seen(), told, 5)
    assert before.sites == ("shop.example",)
    again = ProfileRequest(name="shop", url=before.url, before=before)
    found, _ = profile_of(seen(login_pages=()), again, 9)
    assert (found.check_url, found.check_selector) == ("https://shop.example/me", "#me")
    assert (found.created_at, found.signed_in_at) == (5, 9)
    assert found.login_pages == before.login_pages


@pytest.mark.parametrize(
    "name", ["", "A", "a b", "../x", "a/b", "-a", "x" * 41, "con", "lpt1", None, 3]
)
def test_names_that_are_no_file_names_everywhere_are_refused(name: object) -> None:
    with pytest.raises(ValueError, match=r"profile|device"):
        profile_name(name)


def test_cookies_are_read_in_three_forms(tmp_path: Path) -> None:
    file = tmp_path / "cookies"
    file.write_text(
        "# Netscape HTTP Cookie File\n"
        "#HttpOnly_.shop.example\tTRUE\t/\tTRUE\t2000000000\tsid\tabc\n"
        "shop.example\tFALSE\t/x\tFALSE\t0\tlang\ten\n"
    )
    first, second = read_cookie_file(file)["cookies"]
    assert (first["domain"], first["httpOnly"], first["secure"]) == (".shop.example", True, True)
    assert (second["domain"], second["path"], second["expires"]) == ("shop.example", "/x", -1)
    file.write_text(
        json.dumps(
            [
                {
                    "name": "sid",
                    "value": "abc",
                    "domain": "shop.example",
                    "hostOnly": False,
                    "expirationDate": 2_000_000_000.5,
                    "sameSite": "no_restriction",
                    "secure": True,
                }
            ]
        )
    )
    (only,) = read_cookie_file(file)["cookies"]
    assert (only["domain"], only["expires"], only["sameSite"]) == (
        ".shop.example",
        2_000_000_000.5,
        "None",
    )
    state = {"cookies": [only], "origins": [{"origin": "https://shop.example", "localStorage": []}]}
    file.write_text(json.dumps(state))
    assert read_cookie_file(file) == state


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"no cookies",
        b"\xff\xfe",
        b"[1, null]",
        b'{"cookies": 5, "origins": 7}',
        b'[{"name": "a", "value": "b", "domain": "%s"}]' % b".".join([b"a"] * 200),
    ],
)
def test_a_file_without_cookies_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "cookies"
    file.write_bytes(content)
    with pytest.raises(InvalidArguments):
        read_cookie_file(file)
    with pytest.raises(InvalidArguments):
        read_cookie_file(tmp_path / "missing")
