"""Which pages make a crawl ask whether its profile is still signed in, and how often."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engine.kinds.crawl.signed_out import PASSWORD_FIELD, SignInCheck
from engine.model.addresses import Address, address_of
from engine.model.errors import PageError
from engine.pages.custom_fields import FieldRule
from engine.pages.fetch import Fetched, is_passing
from engine.profiles.profile import Profile
from engine.profiles.sign_in import SignedOut, SignIn

SITE = "https://shop.example"
HOME = Fetched(f"{SITE}/home", f"{SITE}/home", 200, html="<p>Hello</p>")
OUT = Fetched(f"{SITE}/home", "https://login.example/in", 200, html="<p>Who are you?</p>")


def address(path: str) -> Address:
    found = address_of(path if "://" in path else SITE + path)
    assert found is not None
    return found


def fetched(landed: str, status: int = 200, *, password: bool = False) -> Fetched:
    found = Fetched(f"{SITE}/a", address(landed).url, status, html="<p>x</p>")
    found.values = {PASSWORD_FIELD.name: "password"} if password else {}
    return found


class Site:
    """The page of the check, which counts its loads."""

    def __init__(self, answer: Fetched | PageError, **profile: Any) -> None:
        self.answer = answer
        self.loads = 0
        given: dict[str, Any] = {
            "sites": ("shop.example", "login.example"),
            "login_pages": ("https://login.example/in", f"{SITE}/login"),
            "check_url": f"{SITE}/home",
        }
        self.profile = Profile(
            name="shop", url=SITE, created_at=1, signed_in_at=1, **{**given, **profile}
        )
        self.sign_in = SignIn(self.profile, {"cookies": [], "origins": []})
        self.check = SignInCheck(self.sign_in, self.load)

    async def load(self, _: Address, rules: tuple[FieldRule, ...]) -> Fetched:
        self.loads += 1
        if isinstance(self.answer, PageError):
            raise self.answer
        return self.answer

    async def sees(self, page: Fetched, asked: str = "/a") -> None:
        own = msgspec.structs.replace(page, values=dict(page.values))
        await self.check.expect_signed_in(address(asked), own)


@pytest.mark.parametrize(
    "page",
    [
        fetched("/a", password=True),
        fetched("/a", 401),
        fetched("https://login.example/in?next=%2Fa"),
        fetched("https://login.example/choose"),
        fetched("https://sso.other/name-first"),
        fetched("/login?next=%2Fa"),  # of a site that asks for the name first
        Fetched(
            f"{SITE}/a", f"{SITE}/a", 200, html="<INPUT name=p TYPE='password'>", engine="static"
        ),
    ],
)
async def test_a_suspect_page_stops_the_crawl_if_the_site_says_so(page: Fetched) -> None:
    site = Site(OUT)
    with pytest.raises(SignedOut, match="shop"):
        await site.sees(page)
    assert site.loads == 1
    assert site.sign_in.lost
    with pytest.raises(SignedOut):  # of another worker, without asking again
        await site.sees(page)
    assert site.loads == 1


@pytest.mark.parametrize(
    "page",
    [
        fetched("/a"),
        fetched("/b", 404),
        fetched("/a", 500),
        fetched("/a", 403),
    ],
)
async def test_other_pages_cost_nothing(page: Fetched) -> None:
    site = Site(OUT)
    await site.sees(page)
    assert site.loads == 0


async def test_the_login_page_itself_may_be_crawled() -> None:
    site = Site(OUT)
    await site.sees(fetched("https://login.example/in"), "https://login.example/in")
    assert site.loads == 0


async def test_an_address_is_checked_once_and_another_one_with_the_same_page_again() -> None:
    site = Site(HOME)
    login = fetched("/login?next=%2Fadmin")
    for _ in range(3):
        await site.sees(login, "/admin")
    assert site.loads == 1
    await site.sees(login, "/b")
    assert site.loads == 2
    site.answer = OUT  # the session has ended: what was no sign then is one now
    with pytest.raises(SignedOut):
        await site.sees(login, "/c")


async def test_a_site_with_a_password_field_on_every_page_is_not_asked_each_time() -> None:
    site = Site(HOME, asks_always=True)
    await site.sees(fetched("/a", password=True))
    assert site.loads == 0


async def test_an_element_of_the_page_decides_where_one_was_named() -> None:
    site = Site(HOME, check_selector="p")
    site.answer = Fetched(f"{SITE}/home", f"{SITE}/home", 200, html="<p>Hello</p>", engine="static")
    await site.sees(fetched("/a", 401))
    site = Site(HOME, check_selector="#account")
    site.answer = Fetched(f"{SITE}/home", f"{SITE}/home", 200, html="<p>Hello</p>", engine="static")
    with pytest.raises(SignedOut):
        await site.sees(fetched("/a", 401))


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_page_of_the_check_with_an_error_is_no_proof_of_a_sign_in(status: int) -> None:
    site = Site(Fetched(f"{SITE}/home", f"{SITE}/home", status))
    with pytest.raises(SignedOut):
        await site.sees(fetched("/a", 401))


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_busy_site_signs_nobody_out(status: int) -> None:
    site = Site(Fetched(f"{SITE}/home", f"{SITE}/home", status))
    with pytest.raises(PageError, match=str(status)) as busy:
        await site.sees(fetched("/a", 401))
    assert is_passing(busy.value)
    assert not site.sign_in.lost


async def test_a_page_of_the_check_on_another_site_is_no_proof_of_a_sign_in() -> None:
    site = Site(Fetched(f"{SITE}/home", "https://sso.other/name-first", 200, html="<p>x</p>"))
    with pytest.raises(SignedOut):
        await site.sees(fetched("/a", 401))


async def test_a_site_that_does_not_answer_signs_nobody_out() -> None:
    site = Site(PageError("timeout", "no answer"))
    with pytest.raises(PageError, match="no answer"):
        await site.sees(fetched("/a", 401))
    assert not site.sign_in.lost
