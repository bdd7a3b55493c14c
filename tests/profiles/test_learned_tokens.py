"""Tokens that a site sets during a task are masked, and displace none that the user gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from engine.browser.chromium.browser_session import BrowserSession
from engine.browser.chromium.cookie_jar import MOST_ASKED, hear_cookies
from engine.browser.page.secret_mask import SecretMask
from engine.execution.task_context import TaskContext
from engine.kinds.commands.command_check import check
from engine.kinds.commands.commands_kind import _CommandRun
from engine.kinds.context import Clock
from engine.kinds.profile_use import using_profile
from engine.kinds.spec import Tools
from engine.model.config import Settings
from engine.model.records import TaskId
from engine.profiles.profile import Profile
from engine.profiles.profile_store import ProfileStore
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import MOST_LATER, Hidden, Scrub
from engine.secrets.value_search import Search

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

SITE: Final = "https://shop.example"
OWN: Final = "0wn-5e551on-0123456789abcdef"
PROFILE: Final = Profile(
    name="shop", url=SITE, sites=("shop.example",), created_at=1, signed_in_at=1
)


def own(value: str = OWN) -> dict[str, Any]:
    return {"name": "sid", "value": value, "domain": "shop.example", "path": "/", "expires": -1}


def many(count: int = MOST_LATER + 10) -> list[Hidden]:
    return [Hidden(f"s1te-{number:012x}-token", "[redacted]") for number in range(count)]


def test_the_tokens_of_a_site_displace_no_secret_that_the_user_gave() -> None:
    mask = SecretMask()
    mask.add_given([Hidden("hunter2-of-ann", "[redacted]")])
    mask.add_later(many())
    assert mask.hide("It is hunter2-of-ann.") == "It is [redacted]."
    assert mask.hide(many()[-1].value) == "[redacted]"
    assert mask.hide(many()[0].value) == many()[0].value


async def test_the_tokens_of_a_site_displace_neither_the_profile_nor_the_proxy(home: Path) -> None:
    ProfileStore(home).save(PROFILE, {"cookies": [own()], "origins": []})
    unwritten: Any = None
    context = TaskContext(unwritten, TaskId("task"), Clock(), unwritten)
    async with using_profile("shop", context, Tools(Settings.at(home=home), unwritten)) as sign_in:
        assert sign_in is not None
        context.conceal([Hidden("of-the-proxy-1", "[redacted]")])
        for listener in sign_in.on_secrets:
            listener(many())
        assert context.clean(f"{OWN}, of-the-proxy-1") == "[redacted], [redacted]"
        assert context.clean(many()[-1].value) == "[redacted]"
        assert context.clean(many()[0].value) == many()[0].value


@pytest.mark.parametrize("way", ["/a;jsessionid={}?x=1", "/a?sid={}", "/s/{}/a"])
def test_a_renewed_session_is_masked_also_when_it_is_in_the_address_of_the_page(way: str) -> None:
    new, told = "n3w-5e551on-fedcba9876543210", list[Hidden]()
    sign_in = SignIn(PROFILE, {"cookies": [own()], "origins": []})
    sign_in.on_secrets.append(told.extend)
    url = SITE + way.format(new)
    sign_in.hear([f"other={new}; Path=/"], url, url)
    assert bool(told) is not way.startswith("/s/")  # of another cookie a part of the path is none
    sign_in.hear([f"sid={new}; Path=/; HttpOnly"], url, url)
    assert [one.value for one in told] == [new]
    assert [one.value for one in sign_in.secrets] == [OWN, new]


def test_a_part_of_the_path_is_no_token() -> None:
    sign_in = SignIn(PROFILE, {"cookies": [own()], "origins": []})
    page = f"{SITE}/item/7f3a9c-one-of-many-99x1y2"
    sign_in.hear(["seen=7f3a9c-one-of-many-99x1y2"], page, page)
    assert [one.value for one in sign_in.secrets] == [OWN]


@pytest.mark.parametrize(
    ("host", "domain", "is_learned"),
    [
        ("shop.example", "", True),
        ("www.shop.example", "Shop.example", True),
        ("ads.test", "", False),
        ("ads.test", "shop.example", False),  # which a browser refuses
    ],
)
def test_only_cookies_of_the_sites_of_a_profile_are_learned(
    host: str, domain: str, is_learned: bool
) -> None:
    sign_in = SignIn(PROFILE, {"cookies": [own()], "origins": []})
    sign_in.hear([f"t=t0ken-0123456789abcdef; Domain={domain}"], f"https://{host}/x.js", SITE)
    assert len(sign_in.secrets) == 1 + is_learned


@pytest.mark.parametrize(
    ("value", "is_learned"),
    [
        ("iphone-15-pro-max", False),
        ("samsung_galaxy_s24_ultra_256GB", False),
        ("2026-11-27T15:30:00.000Z", False),
        ("Fri%2C%2027%20Nov%202026%2015%3A30%3A00%20GMT", False),
        ("/berlin/mitte/10", False),
        ("a1b2c3d4e5f6", False),
        ("aaaaaaaaaaaaaaa1", False),
        ("9f86d081884c7d65", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123XYZ_-9", True),
        ("dGhpcyBpcyBhIHRva2Vu1234", True),
        ("scr1pt-0123456789-token", True),
    ],
)
def test_words_and_times_of_other_cookies_are_no_tokens(value: str, is_learned: bool) -> None:
    sign_in = SignIn(PROFILE, {"cookies": [own()], "origins": []})
    sign_in.hear([f"other={value}; Path=/"], f"{SITE}/a", f"{SITE}/a")
    assert (len(sign_in.secrets) > 1) is is_learned


def test_new_values_are_compiled_once_for_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()

    def compiled(values: Sequence[str]) -> Search:
        made.append(len(values))
        return Search(values)

    monkeypatch.setattr("engine.secrets.given_secrets.Search", compiled)
    scrub = Scrub(())
    for one in many(20):
        scrub = scrub.with_more([one])
    assert scrub.hide(many()[19].value) == scrub.hide(many()[0].value) == "[redacted]"
    assert made == [20]


async def test_commands_mask_the_newest_tokens_and_all_that_was_typed(home: Path) -> None:
    sign_in = SignIn(PROFILE, {"cookies": [own()], "origins": []})
    unwritten: Any = None
    context = TaskContext(unwritten, TaskId("task"), Clock(), unwritten)
    args = {"action": "goto", "url": SITE}
    command = {"tool_name": "browser_navigate", "intention": "a", "args": args}
    plan = check({"task_name": "a", "task_intention": "b", "commands": [command]})
    tools = Tools(Settings.at(home=home), BrowserSession())
    run = _CommandRun(plan, context, tools, sign_in)
    stage = run._stage()
    run._use(stage, "inst_1")
    stage.conceal("typed-word-1")
    for listener in sign_in.on_secrets:
        listener(many())
    assert stage.scrub.hide(f"typed-word-1, {many()[-1].value}") == "[redacted], [redacted]"
    assert stage.scrub.hide(many()[0].value) == many()[0].value
    assert set(stage.hidden) == {"typed-word-1", *(one.value for one in many()[-MOST_LATER:])}


async def test_addresses_that_hold_a_picture_are_not_kept_while_cookies_are_heard() -> None:
    listeners: dict[str, Callable[[dict[str, Any]], None]] = {}
    heard: list[str] = []

    class Wire:
        def on(self, name: str, listener: Callable[[dict[str, Any]], None]) -> None:
            listeners[name] = listener

        async def send(self, *_: object) -> None:
            return None

    await hear_cookies(
        cast("CDPSession", Wire()),
        lambda: "https://a.test/",
        lambda _, answered, __: heard.append(answered),
    )
    asks, answers = (
        listeners["Network.requestWillBeSent"],
        listeners["Network.responseReceivedExtraInfo"],
    )
    asks({"requestId": "1", "request": {"url": "https://b.test/x"}})
    for number in range(2 * MOST_ASKED):
        asks({"requestId": f"d{number}", "request": {"url": "data:image/png;base64,AAAA"}})
    answers({"requestId": "1", "headers": {"Set-Cookie": "a=b"}})
    assert heard == ["https://b.test/x"]
