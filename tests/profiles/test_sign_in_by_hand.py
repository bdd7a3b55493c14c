"""Signing in in a browser window, from the command line and from the window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.model.errors import InvalidArguments
from engine.model.proxies import DefaultProxy
from engine.profiles.profile_store import ProfileEmpty, ProfilesNotWritable, ProfileStore
from engine.profiles.storage_state import read_cookie_file
from engine.service.engine import Engine
from engine.service.profiles import ProfileExists, ProfileUnchecked
from tests.support.engines import opened
from tests.support.login_site import PASSWORD, USER, LoginSite
from tests.support.octask import Octask
from tests.support.screens import screen_of_its_own


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with screen_of_its_own(monkeypatch) as number:
        yield number


async def sign_in(engine: Engine) -> Any:
    """Do what a person does in the window; return its page."""
    page = engine.instances.living()[-1].pages[0]
    await page.fill("#user", USER)
    await page.fill("#password", PASSWORD)
    await page.click("#go")
    await page.wait_for_selector("#who")
    return page


@pytest.mark.thorough("True")
@pytest.mark.parametrize("closes", [True, False])
async def test_a_window_that_is_closed_or_said_to_be_done_leaves_a_profile(
    home: Path, screen: str, login_site: LoginSite, closes: bool
) -> None:
    async with opened(home) as engine:
        request = await engine.profiles.request("shop", f"{login_site.url}/home")
        async with engine.profiles.signing_in(request) as window:
            page = await sign_in(engine)
            if closes:
                await page.close()
            else:
                window.done.set()
            await window.until_done()
            made = await engine.profiles.save(request, await window.seen())
        assert made.login_pages == (f"{login_site.url}/login",)
        assert made.check_url == f"{login_site.url}/home"
        assert (await engine.profiles.check("shop")).signed_in is True
        login_site.expire()
        assert (await engine.profiles.check("shop")).signed_in is False
        with pytest.raises(ProfileExists):
            await engine.profiles.request("shop", login_site.url)
        again = await engine.profiles.request("shop", "", renews=True)
        assert again.url == f"{login_site.url}/home"


async def test_a_window_that_is_closed_before_the_sign_in_makes_no_profile(
    home: Path, screen: str, login_site: LoginSite
) -> None:
    async with opened(home) as engine:
        request = await engine.profiles.request("shop", f"{login_site.url}/home")
        async with engine.profiles.signing_in(request) as window:
            await engine.instances.living()[-1].pages[0].close()
            await window.until_done()
            with pytest.raises(ProfileEmpty):
                await engine.profiles.save(request, await window.seen())
        assert not ProfileStore(home).has("shop")


async def test_a_sign_in_that_could_not_be_stored_is_refused_before_its_window_opens(
    home: Path,
) -> None:
    home.mkdir(exist_ok=True)
    (home / "profiles").mkdir()
    (home / "profiles" / "states").write_text("a file where the folder has to be")
    async with opened(home) as engine:
        with pytest.raises(ProfilesNotWritable) as refused:
            await engine.profiles.request("shop", "http://127.0.0.1:1/")
        assert str(home / "profiles") in str(refused.value)
        assert "--root" not in refused.value.advice


async def test_every_mistake_of_a_request_is_told(home: Path) -> None:
    async with opened(home) as engine:
        with pytest.raises(InvalidArguments) as wrong:
            await engine.profiles.request(
                "shop", "nowhere:1", sites=("a b",), check_url="x:y", check_selector=">>"
            )
        paths = [one.path for one in wrong.value.problems]
        assert paths == ["url", "check_url", "check_selector", "site"]


def test_octask_imports_cookies_and_tells_whether_they_sign_in(
    octask: Octask, login_site: LoginSite, tmp_path: Path
) -> None:
    assert "No profile yet" in octask("profile")
    session = login_site.new_session()
    file = tmp_path / "cookies.txt"
    file.write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{session}\n")
    said = octask("profile", "import", "shop", str(file), f"{login_site.url}/home")
    assert "signed in at the last check" in said
    assert session not in said
    octask("profile", "import", "shop", str(file), login_site.url, code=1)
    (found,) = json.loads(octask("profile", "list", "--json"))
    assert (found["name"], found["sites"], found["signed_in"]) == ("shop", ["127.0.0.1"], True)
    args = ["--delay-ms", "0", "--max-depth", "0", "--engine", "static", "--json"]
    octask("start", "crawl", f"{login_site.url}/page/0", "--profile", "shop", *args)
    login_site.expire()
    assert "SIGNED OUT" in octask("profile", "check", "shop", code=1)
    assert "octask profile renew shop" in octask(
        *("start", "crawl", f"{login_site.url}/page/0", "--profile", "shop", *args[:-1]), code=1
    )
    octask("profile", "remove", "shop")
    octask("profile", "show", "shop", code=4)


def test_a_token_in_the_address_of_a_profile_is_not_shown(
    octask: Octask, login_site: LoginSite, tmp_path: Path
) -> None:
    token = "s3Tk9wQz71LmX0"
    file = tmp_path / "cookies.txt"
    file.write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{login_site.new_session()}\n")
    address = f"{login_site.url}/home?access_token={token}#id_token={token}"
    said = octask("profile", "import", "shop", str(file), address)
    said += octask("profile", "show", "shop") + octask("profile", "show", "shop", "--json")
    said += octask("profile", "list", "--json") + octask("profile", "check", "shop", "--json")
    login_site.expire()
    said += octask("profile", "remove", "shop")
    said += octask("profile", "import", "shop", str(file), address, code=1)
    assert f"{login_site.url}/home?access_token=[redacted]" in said
    assert token not in said


def test_a_window_to_sign_in_needs_a_screen(
    octask: Octask, login_site: LoginSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    said = octask("profile", "new", "shop", login_site.url, code=1)
    assert "screen" in said
    assert "recording" not in said.lower()


async def test_a_check_goes_through_the_proxy_of_all_tasks(
    home: Path, login_site: LoginSite, tmp_path: Path
) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{login_site.new_session()}\n")
    async with opened(home, proxy=DefaultProxy("http://127.0.0.1:1")) as engine:
        request = await engine.profiles.request("shop", f"{login_site.url}/home")
        await engine.profiles.take(request, read_cookie_file(file))
        with pytest.raises(ProfileUnchecked, match="proxy"):
            await engine.profiles.check("shop")
    assert not login_site.requests
