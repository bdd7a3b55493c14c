"""Profiles in the window: sign in by a browser window, check, list, delete, and choose one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit

from engine.profiles.profile import Profile
from engine.profiles.profile_store import ProfileStore
from engine.service.rerun import Asked
from gui.commands.profiles_dialog import ProfileForm, ProfilesDialog
from gui.start.start_dialog import StartDialog
from gui.startup.session import Session
from gui.style.questions import Question
from tests.gui.result_ledgers import put_task
from tests.gui.task_views import a_view
from tests.gui.windows import appearing, dialog_by_act, dialog_of, opened, press
from tests.support.far_limits import be_patient
from tests.support.login_site import PASSWORD, USER, LoginSite
from tests.support.screens import screen_of_its_own

STATE: dict[str, Any] = {
    "cookies": [{"name": "sid", "value": "x1", "domain": "127.0.0.1", "path": "/", "expires": -1}],
    "origins": [],
}


@pytest.fixture(autouse=True)
def patient_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that answers late on a crowded machine is no broken one."""
    be_patient(monkeypatch)


@pytest.fixture
def login_site() -> Iterator[LoginSite]:
    with LoginSite().running() as site:
        yield site


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with screen_of_its_own(monkeypatch) as number:
        yield number


def kept(home: Path, name: str = "shop", url: str = "http://127.0.0.1:1/") -> None:
    made = Profile(name=name, url=url, sites=("127.0.0.1",), created_at=1, signed_in_at=1)
    ProfileStore(home).save(made, STATE)


def row(dialog: ProfilesDialog) -> list[str]:
    item = dialog.list.topLevelItem(0)
    return [] if item is None else [item.text(column) for column in range(item.columnCount())]


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


async def sign_in(session: Session) -> None:
    """Do what a person does in the browser's window."""
    await until(lambda: session.bridge.engine.instances.living())
    instance = session.bridge.engine.instances.living()[-1]
    await until(lambda: instance.pages)
    page = instance.pages[0]
    await page.wait_for_selector("#user")
    await page.fill("#user", USER)
    await page.fill("#password", PASSWORD)
    await page.click("#go")
    await page.wait_for_selector("#who")


async def test_a_person_signs_in_and_the_new_profile_is_checked(
    home: Path, screen: str, login_site: LoginSite
) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        assert row(dialog) == []
        with appearing(ProfileForm) as found:
            press(dialog, "&New…")
            form = await found
        assert not form.go.isEnabled()
        form.name.setText("Shop 1")
        form.url.setText(f"{login_site.url}/home")
        assert "lower-case" in form.mistake.text()
        form.name.setText("shop")
        assert not form.mistake.text()
        press(form, "Open the browser")
        await until(lambda: dialog.ready.isVisible())
        assert "Sign in in the browser window" in dialog.waiting.text()
        assert not dialog.new.isEnabled()
        await sign_in(session)
        dialog.ready.click()
        await until(lambda: row(dialog)[3:4] == ["signed in"])
        assert row(dialog)[:2] == ["shop", "127.0.0.1"]
        await until(lambda: not dialog.stop.isVisible())
        assert dialog.new.isEnabled()
        assert session.bridge.engine.instances.living() == ()
        login_site.expire()
        press(dialog, "&Check")
        await until(lambda: row(dialog)[3] == "signed out")


async def test_a_sign_in_that_is_called_off_closes_its_window_and_keeps_nothing(
    home: Path, screen: str, login_site: LoginSite
) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        with appearing(ProfileForm) as found:
            press(dialog, "&New…")
            form = await found
        form.name.setText("shop")
        form.url.setText(f"{login_site.url}/home")
        press(form, "Open the browser")
        await until(lambda: dialog.ready.isVisible())
        dialog.stop.click()
        await until(lambda: not session.bridge.engine.instances.living())
        assert not dialog.stop.isVisible()
        assert not ProfileStore(home).has("shop")


async def test_a_task_that_was_signed_out_offers_to_sign_in_again(
    home: Path, screen: str, login_site: LoginSite
) -> None:
    """Also where its profile was deleted meanwhile, which is said."""
    for number, (code, name) in enumerate([("signed_out", "shop"), ("dns", "shop")]):
        error = {"code": code, "message": "x"}
        asked = {"url": f"{login_site.url}/home", "profile": name}
        put_task(home, number, status="FAILED", error=error, args_summary=asked)
    for name in ("aside", "shop"):
        kept(home, name, f"{login_site.url}/home")
    async with opened(home) as session:
        window = session.window
        window.table.select_ids([f"{1:016x}"])
        button = window.details.overview.state_actions.buttons[window.acts["sign_in_again"]]
        assert not button.isVisible()
        window.table.select_ids([f"{0:016x}"])
        assert button.isVisible()
        with appearing(ProfilesDialog) as found:
            button.click()
            dialog = await found
        await until(lambda: dialog.ready.isVisible())
        assert dialog.list.chosen_id == "shop"
        dialog.close()
        await until(lambda: not session.bridge.engine.instances.living())
        ProfileStore(home).remove("shop")
        with appearing(ProfilesDialog) as found:
            button.click()
            dialog = await found
        await until(lambda: "no profile “shop”" in dialog.banner.accessibleName())
        dialog.close()


def cookie_file(folder: Path, value: str) -> Path:
    """Cookies as an extension of a browser writes them, also of a site that is not wanted."""
    cookies = [
        {"name": "sid", "value": value, "domain": "127.0.0.1", "hostOnly": True, "path": "/"},
        {"name": "ad", "value": "1", "domain": ".ads.example", "hostOnly": False, "path": "/"},
    ]
    file = folder / "cookies.json"
    file.write_text(json.dumps(cookies))
    return file


async def test_a_file_of_cookies_becomes_a_profile_that_is_checked(
    home: Path, tmp_path: Path, login_site: LoginSite
) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        with appearing(QFileDialog) as choosing:
            press(dialog, "&Import…")
            chooser = await choosing
        with appearing(ProfileForm) as found:
            file = cookie_file(tmp_path, login_site.new_session())
            chooser.setDirectory(str(tmp_path))
            chooser.selectFile(str(file))
            chooser.accept()
            form = await found
        told = " ".join(one.text() for one in form.findChildren(QLabel))
        assert "127.0.0.1, ads.example" in told
        form.name.setText("shop")
        form.url.setText(f"{login_site.url}/home")
        press(form, "Import")
        await until(lambda: row(dialog)[3:4] == ["signed in"])
        assert row(dialog)[:2] == ["shop", "127.0.0.1"]
        assert [one["name"] for one in ProfileStore(home).state("shop")["cookies"]] == ["sid"]


async def test_a_file_without_cookies_is_refused_before_anything_is_typed(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_text("https://example.com/\n")
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        dialog.import_file(tmp_path / "list.txt")
        await until(lambda: "holds no cookies" in dialog.banner.accessibleName())
        assert not dialog.findChildren(ProfileForm)
        dialog.import_file(tmp_path)
        await until(lambda: "is not a file" in dialog.banner.accessibleName())


async def test_no_other_form_opens_while_a_file_is_read(home: Path, tmp_path: Path) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        dialog.import_file(cookie_file(tmp_path, "value"))
        assert (dialog.new.isEnabled(), dialog.stop.isVisible()) == (False, True)
        dialog.stop.click()
        assert (dialog.new.isEnabled(), dialog.stop.isVisible()) == (True, False)
        with appearing(ProfileForm) as found:
            dialog.import_file(tmp_path / "cookies.json")
            form = await found
        assert dialog.findChildren(ProfileForm) == [form]
        form.reject()


async def test_an_address_that_a_file_has_no_cookies_for_is_told_in_the_form(
    home: Path, tmp_path: Path
) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        with appearing(ProfileForm) as found:
            dialog.import_file(cookie_file(tmp_path, "value"))
            form = await found
        form.name.setText("shop")
        form.url.setText("https://other.example/home")
        press(form, "Import")
        await until(lambda: "has no cookies for other.example" in form.mistake.text())
        assert form.isVisible()
        assert not ProfileStore(home).has("shop")
        form.reject()


async def test_a_profile_is_deleted_after_a_question(home: Path) -> None:
    kept(home)
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        await until(lambda: row(dialog))
        assert row(dialog)[3] == "not checked"
        with appearing(Question) as asked:
            press(dialog, "&Delete…")
            question = await asked
        press(question, "Delete")
        await until(lambda: not row(dialog))
        assert not ProfileStore(home).has("shop")


async def test_who_uses_a_profile_is_told_before_it_is_deleted(home: Path) -> None:
    kept(home)
    kept(home, "bank")
    async with opened(home) as session:
        for name, profile in (("Offers", "shop"), ("<b>Prices</b>", "shop"), ("Rates", "bank")):
            asked = Asked("crawl", {"url": "http://127.0.0.1:1/", "profile": profile}, name)
            await session.bridge.engine.schedules.add(asked, {"every_minutes": 60})
        args = {"url": "http://127.0.0.1:1/", "profile": "shop"}
        tasks = [a_view(1, "RUNNING", name="Now", args=args), a_view(2, "RUNNING", name="Other")]
        session.window.model.put_many(tasks)
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        await until(lambda: dialog.schedules)
        dialog.list.setCurrentIndex(dialog.list.model().index(1, 0))
        with appearing(Question) as asking:
            press(dialog, "&Delete…")
            question = await asking
        told = [one.text() for one in question.findChildren(QLabel)]
        assert any(text.endswith("without it: Offers, <b>Prices</b>") for text in told)
        assert "Tasks that use it now: Now" in told
        press(question, "Keep it")
        dialog.close()


async def test_a_mistake_keeps_the_form(home: Path) -> None:
    kept(home)
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        with appearing(ProfileForm) as found:
            press(dialog, "&New…")
            form = await found
        form.name.setText("shop")
        form.url.setText("example.com")
        press(form, "Open the browser")
        await until(lambda: "exists already" in form.mistake.text())
        assert form.isVisible()


async def test_a_mistake_in_the_name_covers_no_field(home: Path) -> None:
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        with appearing(ProfileForm) as found:
            press(dialog, "&New…")
            form = await found
        form.name.setText("my shop/x")
        await until(form.mistake.isVisible)
        await until(lambda: form.sites.geometry().bottom() < form.check_url.geometry().top())
        assert form.check_url.geometry().bottom() < form.check_selector.geometry().top()


async def test_the_start_dialog_offers_the_profiles(home: Path) -> None:
    kept(home)
    kept(home, "bank")
    async with opened(home) as session:
        session.window.acts["new"].trigger()
        dialog = dialog_of(session)
        assert isinstance(dialog, StartDialog)
        editor = dialog.form["profile"].editor
        assert isinstance(editor, QLineEdit)
        completer = editor.completer()
        assert completer is not None
        await until(lambda: completer.model().rowCount() == 2)
        completer.setCompletionPrefix("ban")
        assert completer.currentCompletion() == "bank"
        popup = completer.popup()
        assert popup is not None
        QTest.keyClick(editor, Qt.Key.Key_Down)  # those who know no name see them all
        await until(popup.isVisible)
        assert completer.completionCount() == 2
        QTest.keyClick(popup, Qt.Key.Key_Escape)
        await until(lambda: not popup.isVisible())
        QTest.mouseClick(editor, Qt.MouseButton.LeftButton)
        await until(popup.isVisible)
        popup.hide()
        for other in (Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton):
            QTest.mouseClick(editor, other)  # which open a menu, or paste
            assert not popup.isVisible()
        dialog.form["url"].value = "https://example.com/"
        dialog.form["profile"].value = "bank"
        assert dialog.tabs.asked is not None
        assert dialog.tabs.asked.args["profile"] == "bank"


async def test_a_token_in_the_address_of_a_profile_is_not_shown(
    home: Path, login_site: LoginSite
) -> None:
    kept(home, url=f"{login_site.url}/home?access_token=s3Tk9wQz71LmX0")
    async with opened(home) as session:
        dialog = await dialog_by_act(session.window, "profiles", ProfilesDialog)
        await until(lambda: row(dialog)[:1] == ["shop"])
        press(dialog, "&Check")
        said = dialog.waiting.text()
        await until(lambda: row(dialog)[3:4] == ["signed out"])
        told = [label.text() for label in dialog.findChildren(QLabel)]
        assert "access_token=[redacted]" in said
        assert not [text for text in told if "s3Tk9wQz71LmX0" in text]
