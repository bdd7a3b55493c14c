"""State of the server for other programs, and what they need to connect."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QVBoxLayout

from engine.model.display import display
from engine.server.hosts.config_change import config_path
from engine.server.hosts.host_table import (
    HOSTS,
    LITERAL_TOKEN,
    TOKEN_VARIABLE,
    Host,
    Machine,
    http_snippet,
)
from gui.context.window_context import WindowContext
from gui.engine_link.program_server import ServerState, ServerStatus
from gui.i18n import language
from gui.settings.setting_controls import TallPart
from gui.style.questions import Question
from gui.style.theme import TonedLabel, plain_label
from gui.style.widgets import arrange

MCP_PATH = "/mcp"


class ServerPart(TallPart):
    """State in words; buttons copy the address, the path of the token and a configuration.

    The token itself is never shown or copied.
    """

    def __init__(self, ctx: WindowContext) -> None:
        super().__init__(ctx)
        self._programs = ctx.bridge.programs
        self.state = TonedLabel("", "muted", self)
        self.state.setWordWrap(True)
        self._address = self.add(self.tr("Copy address"))
        self._token = self.add(self.tr("Copy path of the token"))
        self.fill_up()
        self._renew = self.add(self.tr("New token…"))
        self._again = self.add(self.tr("Try again"))
        self.hosts = QComboBox(self)
        self.hosts.setAccessibleName(self.tr("Program to configure"))
        for host in HOSTS.values():
            if host.http_entry is not None:
                self.hosts.addItem(host.title, host.name)
        self._config = self.add(self.tr("Copy configuration"))
        self._lay_out()
        self._address.clicked.connect(self._copy_address)
        self._token.clicked.connect(self._copy_token_path)
        self._renew.clicked.connect(self._ask_renew)
        self._again.clicked.connect(self._programs.try_again)
        self._config.clicked.connect(self._copy_config)
        # Connected to methods, because a lambda would outlive the page.
        self._programs.changed.connect(self._refresh)
        ctx.preferences.changed.connect(self._hear)
        self._refresh()

    def _lay_out(self) -> None:
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        label = plain_label(self.tr("For"), self)
        label.setBuddy(self.hosts)
        # In three rows, because a fourth button in one has no room in German.
        hosts = arrange(QHBoxLayout(), label, self.hosts, self._config, 1, margins=0)
        column.insertWidget(0, self.state)
        column.insertLayout(2, hosts)
        column.insertLayout(3, arrange(QHBoxLayout(), self._renew, self._again, 1, margins=0))

    def _hear(self, key: str) -> None:
        if key == "programs.serve":
            self._refresh()

    def _refresh(self) -> None:
        status = self._programs.status
        runs = status.state is ServerState.RUNNING
        failed = status.state is ServerState.FAILED
        tone, words = self._words(status)
        self.state.show_tone(tone)
        self.state.show_text(words)
        for part in (self._address, self._token, self.hosts, self._config):
            part.setEnabled(runs)
        self._renew.setEnabled(runs or failed)
        self._again.setVisible(failed)
        if not runs:
            self.say("")

    def _words(self, status: ServerStatus) -> tuple[str, str]:
        """Return tone and text of a status."""
        if status.state is ServerState.RUNNING:
            words = self.tr("Running at {0} (MCP at {1}).")
            return "good", words.format(status.url, status.url + MCP_PATH)
        if status.error is not None:
            return "bad", self.tr("Not running: {0}").format(language.told(status.error))
        if status.state is ServerState.STARTING:
            return "muted", self.tr("Starting…")
        if status.state is ServerState.STOPPING:
            return "muted", self.tr("Ending the connections…")
        if self.ctx.preferences.get("programs.serve", bool):
            return "muted", self.tr("Not running yet: it starts when the list is loaded.")
        return "muted", self.tr("Not running: nothing listens.")

    # Actions.

    def _copy_address(self) -> None:
        QGuiApplication.clipboard().setText(self._programs.status.url)
        self.say(self.tr("The address was copied."), "good")

    def _copy_token_path(self) -> None:
        file = self._programs.status.token_file
        QGuiApplication.clipboard().setText(str(file))
        words = self.tr("Copied: {0}. The token is in that file; keep it private.")
        self.say(words.format(display(str(file))), "good")

    def _copy_config(self) -> None:
        host, status = HOSTS[self.hosts.currentData()], self._programs.status
        snippet = http_snippet(host, status.url + MCP_PATH) or ""
        QGuiApplication.clipboard().setText(snippet)
        words = self.tr("Copied: this belongs into {0}.").format(display(str(self._file_of(host))))
        self.say(f"{words} {self._token_words(host, snippet, status)}", "good")

    def _file_of(self, host: Host) -> Path:
        environ = self.ctx.bridge.engine.settings.environ
        machine = Machine(sys.platform, str(Path.home()), environ)
        return config_path(host, machine) or Path(host.title)

    def _token_words(self, host: Host, snippet: str, status: ServerStatus) -> str:
        """Return how the host gets the token."""
        file = display(str(status.token_file))
        if LITERAL_TOKEN in snippet:
            words = self.tr("Replace {0} there by the token in {1}, and keep the file private.")
            return words.format(LITERAL_TOKEN, file)
        if TOKEN_VARIABLE in snippet:
            words = self.tr("{0} reads the token from the variable {1}; it is in {2}.")
            return words.format(host.title, TOKEN_VARIABLE, file)
        return self.tr("{0} asks for the token, which is in {1}.").format(host.title, file)

    def _ask_renew(self) -> None:
        question = Question(self.window())
        question.ask(self.tr("New token"), self.tr("Make a new token?"))
        question.add_text(
            self.tr(
                "Programs with the old token are refused, and open connections end. Put the new "
                "one into each configuration that has the old one."
            )
        )
        question.add_button("renew", self.tr("Make a new token"), destroys=True)
        question.add_button("keep", self.tr("Keep the token"), default=True)
        question.open_for(renew=self._programs.renew_token)
