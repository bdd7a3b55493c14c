"""Other programs on the window's engine: off by default, and what the settings do to them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QLabel, QPlainTextEdit, QPushButton, QSpinBox

from engine.server.hosts.host_table import HOSTS
from engine.server.local_server import CANCEL_S, GRACE_S, LocalServer
from engine.server.optional_libraries import ServerNotInstalled
from gui.context.preferences import DEFAULTS
from gui.engine_link import program_server
from gui.engine_link.bridge import CLOSE_S
from gui.engine_link.program_server import ProgramServer, ServerState
from gui.settings.program_access import server_settings
from gui.settings.setting_parts import ServerPart
from gui.settings.settings_dialog import SettingsDialog
from gui.startup.session import Session
from gui.style.questions import Question
from tests.gui.program_client import NAME, play
from tests.gui.test_settings_dialog import editor, settings_of
from tests.gui.windows import appearing, opened, press, until
from tests.support import engines
from tests.support.endless_site import endless
from tests.support.ports import free_port

OFF_S = 3.0
SERVED = ("mcp", "starlette", "uvicorn", "websockets", "pydantic", "anyio")


@asynccontextmanager
async def serving(
    home: Path, port: int = 0, environ: dict[str, str] | None = None
) -> AsyncIterator[Session]:
    """A window that other programs may use."""
    async with opened(home, environ=environ or {}) as session:
        session.window.preferences.set("programs.port", port)
        await switch(session, on=True)
        yield session


async def switch(session: Session, *, on: bool) -> None:
    session.window.preferences.set("programs.serve", on)
    wanted = ServerState.RUNNING if on else ServerState.OFF
    await stands(session, wanted)


async def stands(session: Session, wanted: ServerState) -> None:
    programs = session.bridge.programs
    await until(lambda: programs.status.state is wanted, programs.changed)


def page_of(session: Session) -> tuple[SettingsDialog, ServerPart]:
    dialog = settings_of(session)
    dialog.show_page("programs.")
    (part,) = dialog.findChildren(ServerPart)
    return dialog, part


def file_of(session: Session) -> Path:
    found = session.bridge.programs.status.token_file
    assert found is not None
    return found


def port_of(session: Session) -> int:
    return int(session.bridge.programs.status.url.rpartition(":")[2])


def lists(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    settings = session.bridge.engine.settings
    return settings.allow_private, settings.allow_secrets


def listens(port: int) -> bool:
    with socket.socket() as made:
        return made.connect_ex(("127.0.0.1", port)) == 0


async def test_nothing_listens_and_no_token_exists_before_it_is_switched_on(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        assert DEFAULTS["programs.serve"] is False
        assert session.bridge.programs.status.state is ServerState.OFF
        assert session.window.status.programs.isHidden()
        assert not (tmp_path / "home" / "server").exists()
        dialog, part = page_of(session)
        assert part.state.text() == "Not running: nothing listens."
        off = {button.text() for button in part.findChildren(QPushButton) if button.isEnabled()}
        assert off == {"Try again"}  # hidden
        dialog.accept()


def test_a_window_that_serves_nobody_imports_no_library_of_the_server(tmp_path: Path) -> None:
    assert in_a_fresh_window(_IMPORTS, tmp_path, *SERVED) == {"off": [], "on": sorted(SERVED)}


def in_a_fresh_window(source: str, place: Path, *words: str) -> Any:
    """What `source` printed as JSON, in a process that has imported nothing for a test."""
    told = subprocess.run(
        [sys.executable, "-c", source, str(place / "home"), *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(place), "QT_QPA_PLATFORM": "offscreen"},
    )
    return json.loads(told.stdout)


_IMPORTS = """
import json, sys
from pathlib import Path
from gui.startup.loop import run
from gui.app import make_application
from tests.gui.windows import opened, until

def served():
    return sorted({*sys.argv[2:]} & {*sys.modules})

async def look():
    async with opened(Path(sys.argv[1])) as session:
        session.window.acts["settings"].trigger()
        off = served()
        session.window.preferences.set("programs.port", 0)
        session.window.preferences.set("programs.serve", True)
        programs = session.bridge.programs
        await until(lambda: programs.status.state == "running", programs.changed)
        print(json.dumps({"off": off, "on": served()}))

run(make_application(), look())
"""


async def test_switched_on_it_listens_and_keeps_the_token_private(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog, part = page_of(session)
        port = editor(dialog, "Port")
        assert isinstance(port, QSpinBox)
        assert port.value() == 8947
        port.setValue(0)
        assert port.text() == "Any free port"
        (box,) = [one for one in dialog.findChildren(QCheckBox) if "on this machine" in one.text()]
        box.click()
        await stands(session, ServerState.RUNNING)
        url = session.bridge.programs.status.url
        assert listens(port_of(session))
        assert part.state.text() == f"Running at {url} (MCP at {url}/mcp)."
        file = file_of(session)
        access = json.loads(file.read_text())
        assert access["url"] == url
        if os.name == "posix":
            assert file.stat().st_mode & 0o777 == 0o600
        shown = " ".join(label.text() for label in dialog.findChildren(QLabel))
        assert access["token"] not in shown
        dialog.accept()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_starts_lists_gets_and_cancels_and_the_row_has_its_name(
    tmp_path: Path, mode: str
) -> None:
    async with serving(tmp_path / "home") as session:
        found = await play(file_of(session), "envelope", mode)
        assert found["tools"] > 20
        assert found["listed"] == [found["task_id"]]
        assert (found["status"], found["then"]) == ("RUNNING", "CANCELLED"), found
        model = session.window.model

        def row() -> Any:
            entry: Any = getattr(model.view_of(found["task_id"]), "entry", None)
            return entry if getattr(entry, "status", "") == "CANCELLED" else None

        entry = await until(row, session.bridge.batch)
        assert (entry.engine.client, entry.engine.route) == (NAME, "mcp")
        columns = [
            model.headerData(at, Qt.Orientation.Horizontal) for at in range(model.columnCount())
        ]
        assert model.index(0, columns.index("Client")).data() == NAME


async def test_a_host_with_the_tasks_extension_gets_a_handle(tmp_path: Path, site: Any) -> None:
    async with serving(tmp_path / "home") as session:
        preferences = session.window.preferences
        preferences.set("programs.allow_private", [site.url.split("/")[2]])
        found = await play(file_of(session), "handles", site.url)
        assert (found["first"], found["then"]) == ("working", "cancelled")
        assert session.window.model.view_of(found["task_id"]) is not None


@pytest.mark.parametrize(
    "step",
    [
        "test_a_crawl_is_started_listed_cancelled_and_found_again",
        "test_a_run_cannot_be_called_complete_before_its_items_are",
        "test_an_envelope_counts_the_calls_that_name_it",
    ],
)
async def test_the_seeds_verifications_hold_against_the_window(
    step: str, tmp_path: Path, site: Any
) -> None:
    endless(site)
    async with serving(tmp_path / "home") as session:
        preferences = session.window.preferences
        preferences.set("programs.allow_private", [site.url.split("/")[2]])
        assert await play(file_of(session), "verification", step, site.url)


async def test_lists_of_the_settings_hold_for_the_next_request(tmp_path: Path, site: Any) -> None:
    environ = {"GIVEN": "x"}
    async with serving(tmp_path / "home", environ=environ) as session:
        preferences, engine = session.window.preferences, session.bridge.engine
        file, port = file_of(session), port_of(session)
        refused = await play(file, "crawl", site.url)
        assert refused["status"] == "FAILED"
        assert await play(file, "secret", "GIVEN") == "missing_secret"
        preferences.set("programs.allow_private", [site.url.split("/")[2], "nonsense/"])
        preferences.set("programs.allow_secrets", ["GIVEN", "no name"])
        assert (await play(file, "crawl", site.url))["status"] == "COMPLETED"
        assert await play(file, "secret", "GIVEN") is None
        assert port_of(session) == port, "the server went on"
        assert lists(session) == ((site.url.split("/")[2],), ("GIVEN",))
        await switch(session, on=False)
        assert lists(session) == ((), ())
        operators = await engine.requests.start(
            "crawl", {"url": site.url, "max_pages": 1, "engine": "static"}
        )
        assert (await engine.tasks.wait(operators.task_id)).status == "COMPLETED"


async def test_switching_off_refuses_connections_and_ends_open_ones(tmp_path: Path) -> None:
    with free_port() as port:
        await switching_off(tmp_path / "home", port)


async def switching_off(home: Path, port: int) -> None:
    """Switch a server off whose host waits for ten minutes."""
    async with serving(home, port) as session:
        file = file_of(session)
        host = asyncio.ensure_future(play(file, "waiting"))
        await until(
            lambda: session.bridge.own_tasks or session.window.model.total, session.bridge.batch
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert GRACE_S + CANCEL_S <= OFF_S
        session.window.preferences.set("programs.serve", False)
        await stands(session, ServerState.OFF)
        assert not listens(port)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        await host
        assert json.loads(file.read_text())["url"] is None
        assert session.window.status.programs.isHidden()


async def test_the_window_closes_in_time_while_a_host_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert GRACE_S + CANCEL_S < CLOSE_S
    with free_port() as port:
        async with serving(tmp_path / "home", port) as session:
            host = asyncio.ensure_future(play(file_of(session), "waiting"))
            await until(lambda: session.window.model.total, session.bridge.batch)
        assert not listens(port)
        await host  # it would have waited for ten minutes
    assert "did not close in time" not in caplog.text


async def test_a_port_in_use_is_told_with_a_way_out(tmp_path: Path) -> None:
    with free_port() as port, socket.create_server(("127.0.0.1", port)) as other:
        async with opened(tmp_path / "home") as session:
            dialog, part = page_of(session)
            session.window.preferences.set("programs.port", port)
            session.window.preferences.set("programs.serve", True)
            await stands(session, ServerState.FAILED)
            said = part.state.text()
            assert said == (
                f"Not running: Another program listens on port {port} of this machine. "
                "Choose another port, or 0 for a free one."
            )
            status = session.window.status.programs
            assert (status.isVisible(), status.text()) == (True, "Closed to programs")
            other.close()
            press(dialog, "Try again")
            await stands(session, ServerState.RUNNING)
            assert port_of(session) == port
            assert status.text() == "Open to programs"
            dialog.accept()


async def test_another_port_moves_the_server_and_the_next_window_has_the_same(
    tmp_path: Path,
) -> None:
    with free_port() as first, free_port() as port:
        async with serving(tmp_path / "home", first) as session:
            assert port_of(session) == first
            token = json.loads(file_of(session).read_text())["token"]
            session.window.preferences.set("programs.port", port)
            programs = session.bridge.programs
            await until(lambda: programs.status.url.endswith(f":{port}"), programs.changed)
            assert not listens(first)
        async with serving(tmp_path / "home", port) as session:
            assert port_of(session) == port
            assert json.loads(file_of(session).read_text())["token"] == token


async def test_a_library_that_is_missing_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ServerNotInstalled(name="mcp")

    monkeypatch.setattr(program_server, "import_server", missing)
    async with opened(tmp_path / "home") as session:
        dialog, part = page_of(session)
        session.window.preferences.set("programs.serve", True)
        await stands(session, ServerState.FAILED)
        assert "pip install 'openchrome-monitor[server]'" in part.state.text()
        dialog.accept()


async def test_a_server_that_ends_by_itself_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as session:
        programs: ProgramServer = session.bridge.programs
        server = programs._server
        assert isinstance(server, LocalServer)
        await server.stop()
        await stands(session, ServerState.FAILED)
        programs.try_again()
        await stands(session, ServerState.RUNNING)


async def test_a_new_token_is_asked_for_and_ends_the_old_one(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as session:
        dialog, _ = page_of(session)
        file = file_of(session)

        def token() -> str:
            return str(json.loads(file.read_text())["token"])

        old = token()
        for answer in ("Keep the token", "Make a new token"):
            assert token() == old
            with appearing(Question) as told:
                press(dialog, "New token…")
                question = await told
            press(question, answer)
        await stands(session, ServerState.STARTING)
        await stands(session, ServerState.RUNNING)
        assert token() != old
        dialog.accept()


async def test_address_path_and_configuration_are_copied_and_never_the_token(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path / "home") as session:
        dialog, part = page_of(session)
        url, clipboard = session.bridge.programs.status.url, QGuiApplication.clipboard()
        token = json.loads(file_of(session).read_text())["token"]
        press(dialog, "Copy address")
        assert clipboard.text() == url
        press(dialog, "Copy path of the token")
        assert clipboard.text() == str(file_of(session))
        names = [part.hosts.itemData(at) for at in range(part.hosts.count())]
        assert names == [host.name for host in HOSTS.values() if host.http_entry]
        for at in range(part.hosts.count()):
            part.hosts.setCurrentIndex(at)
            press(dialog, "Copy configuration")
            assert f"{url}/mcp" in clipboard.text()
            assert token not in clipboard.text() + part.said.text()
            assert str(file_of(session)) in part.said.text()
        dialog.accept()


async def test_the_status_bar_opens_the_page(tmp_path: Path) -> None:
    async with serving(tmp_path / "home") as session:
        link = session.window.status.programs
        assert link.isVisible()
        assert link.accessibleName() == "Open to programs"
        assert session.bridge.programs.status.url in link.toolTip()
        with appearing(SettingsDialog) as told:
            link.click()
            dialog = await told
        (part,) = dialog.findChildren(ServerPart)
        assert part.isVisible()
        dialog.accept()


async def test_lines_are_kept_when_left_and_mistakes_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as session:
        dialog, _ = page_of(session)
        preferences = session.window.preferences
        field = editor(dialog, "Private addresses")
        assert isinstance(field, QPlainTextEdit)
        dialog.activateWindow()
        field.setFocus()
        await engines.until(field.hasFocus)
        field.insertPlainText("Intranet:8080\nhttp://x:80\n")
        assert server_settings(preferences).allow_private == ()
        QTest.keyClick(field, Qt.Key.Key_Tab)
        assert preferences.get("programs.allow_private", list) == ["Intranet:8080", "http://x:80"]
        assert server_settings(preferences).allow_private == ("intranet:8080",)
        shown = [one.text() for one in dialog.findChildren(QLabel) if one.isVisible()]
        assert "Not used: http://x:80. Each line is a host and a port." in shown
        press(dialog, "Restore this page’s defaults")
        assert field.toPlainText() == ""
        dialog.accept()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("programs.port", 99_999),
        ("programs.port", "x"),
        ("programs.allow_private", "localhost:80"),
        ("programs.allow_secrets", [7, {}, "a b"]),
        ("programs.serve", "yes"),
    ],
)
async def test_a_broken_preference_changes_nothing_else(
    tmp_path: Path, key: str, value: object
) -> None:
    async with opened(tmp_path / "home") as session:
        preferences = session.window.preferences
        preferences.set(key, value)
        found = server_settings(preferences)
        assert (found.enabled, found.allow_private, found.allow_secrets) == (False, (), ())
        assert found.port == (65_535 if value == 99_999 else 8947)
        dialog, _ = page_of(session)
        said = [one.text() for one in dialog.findChildren(QLabel) if one.isVisible()]
        if isinstance(value, int):
            assert "99999 was chosen; 65535 is what can be." in said
        if isinstance(value, list):
            assert "Not used: a b. Each line is the name of a variable." in said
        dialog.accept()


async def test_the_page_speaks_german(tmp_path: Path, german: None) -> None:
    async with serving(tmp_path / "home") as session:
        dialog, part = page_of(session)
        url = session.bridge.programs.status.url
        assert part.state.text() == f"Läuft unter {url} (MCP unter {url}/mcp)."
        assert session.window.status.programs.text() == "Für Programme offen"
        dialog.accept()
