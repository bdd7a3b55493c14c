"""The consent rules in the window: what is installed, a download, and a package as a file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from engine.browser.chromium import consent_rules
from engine.sample.site import Answer, Request
from gui.commands.consent_rules_dialog import ConsentRulesDialog
from gui.startup.session import Session
from tests.gui.windows import appearing, dialog_by_act, opened
from tests.support.consent_package import DIGESTS, STAND_IN, VERSION, download_answer, package
from tests.support.engines import until
from tests.support.serving import served


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data" / "consent-rules.json"
    monkeypatch.setattr(consent_rules, "place", lambda: path)
    return path


@pytest.fixture
def may_answer() -> threading.Event:
    """What the server of the download waits for; set unless a test clears it."""
    event = threading.Event()
    event.set()
    return event


@pytest.fixture
def environ(
    monkeypatch: pytest.MonkeyPatch, may_answer: threading.Event
) -> Iterator[dict[str, str]]:
    """The environment of a window that downloads from a server of this test."""
    monkeypatch.setattr(consent_rules, "DIGESTS", DIGESTS)

    def answer(request: Request) -> Answer:
        may_answer.wait()
        return download_answer(request)

    with served(answer) as url:
        monkeypatch.setattr(consent_rules, "LIMIT_S", 600.0)  # only a cancellation ends a wait
        yield {"OC_CONSENT_RULES_URL": f"{url}/npm"}
        may_answer.set()  # before the server waits for its answers


async def rules_of(session: Session) -> ConsentRulesDialog:
    return await dialog_by_act(session.window, "consent_rules", ConsentRulesDialog)


def installs() -> bool:
    """Whether an installation is going on."""
    return any(task.get_name() == "install the consent rules" for task in asyncio.all_tasks())


async def test_the_tested_version_is_downloaded(tmp_path: Path, environ: dict[str, str]) -> None:
    async with opened(tmp_path / "home", environ=environ) as session:
        dialog = await rules_of(session)
        await until(lambda: dialog.state.text() == "No rules are installed.")
        assert dialog.bar.isHidden()
        dialog.download.click()
        assert dialog.cancel.isVisible()
        assert dialog.bar.isVisible()
        assert not dialog.from_file.isEnabled()
        await until(lambda: not dialog.cancel.isVisible())
        assert dialog.state.text().startswith(f"Version {consent_rules.VERSION} is installed in ")
        assert consent_rules.load().script == STAND_IN
        dialog.close()
        again = await rules_of(session)
        await until(lambda: again.state.text().startswith(f"Version {consent_rules.VERSION} "))
        again.close()


async def test_a_download_can_be_cancelled(
    tmp_path: Path, environ: dict[str, str], may_answer: threading.Event
) -> None:
    may_answer.clear()
    async with opened(tmp_path / "home", environ=environ) as session:
        dialog = await rules_of(session)
        dialog.download.click()
        await until(installs)
        dialog.cancel.click()
        await until(lambda: not installs())
        assert dialog.download.isEnabled()
        assert dialog.bar.isHidden()
        assert not consent_rules.is_installed()
        dialog.download.click()
        await until(installs)
        dialog.close()  # cancels as well
        await until(lambda: not installs())
    assert not consent_rules.is_installed()


async def test_a_package_is_installed_from_a_file(tmp_path: Path) -> None:
    given = package(tmp_path / "given.tgz")
    async with opened(tmp_path / "home") as session:
        dialog = await rules_of(session)
        with appearing(QFileDialog) as shown:
            dialog.from_file.click()
            chooser = await shown
        chooser.fileSelected.emit(str(given))
        chooser.reject()
        await until(lambda: dialog.state.text().startswith(f"Version {VERSION} is installed"))
        dialog.close()


async def test_a_file_that_is_no_package_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "x.tgz").write_bytes(b"no package")
    async with opened(tmp_path / "home") as session:
        dialog = await rules_of(session)
        dialog.install_file(str(tmp_path / "x.tgz"))
        await until(dialog.banner.isVisible)
        told = dialog.banner.accessibleName()
        assert told.startswith("The consent rules cannot be used")
        assert told.count("Get the package again") == 1
        assert dialog.download.isEnabled()
        dialog.close()
