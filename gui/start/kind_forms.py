"""The form of each kind as a table: which fields, in which words, in which place.

Ranges, choices and defaults are not here: they are the engine's (`engine.service.forms`).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from PySide6.QtCore import QObject

from engine.text.words import count
from gui.start.presets import Kept

Place = Literal["first", "limits", "more"]
Editor = Literal["line", "prose", "lines", "number", "seconds", "choice", "check", "several"]

Options = tuple[tuple[str, str], ...]


class Line(NamedTuple):
    """One field. `shade` stands in it while it is empty, `none` is said of a number not set."""

    key: str
    name: str
    editor: Editor
    place: Place = "more"
    hint: str = ""
    shade: str = ""
    none: str = ""
    options: Options = ()
    suffix: str = ""


class KindWords(NamedTuple):
    """A kind as a person chooses it."""

    kind: str
    title: str
    doing: str
    sign: str


# Arguments that are asked for in JSON only: other faces have them, or they need an open browser.
JSON_ONLY: Final = {"recording": ("headed",), "oc_evidence_bundle": ("tab",)}
MS: Final = " ms"
REFERENCE: Final = '{"secret": "env:NAME"}'


class FormWords(QObject):
    """The words of every form, in the language of the window."""

    def lacking(self, kept: Kept) -> str:
        """What of a request that was kept has to be given again; nothing for none."""
        lines = []
        if kept.lost:
            lines.append(self.tr("Something in it was secret and was not kept: type it in again."))
        if kept.urls and len(kept.urls) < kept.listed:
            words = self.tr("The list was too long to be kept: these are the first {0} of {1}.")
            lines.append(words.format(count(len(kept.urls)), count(kept.listed)))
        return "\n".join(lines)

    def kinds(self) -> tuple[KindWords, ...]:
        """All that can be started, in the order in which it is offered."""
        return (
            KindWords("crawl", self.tr("Crawl"), self.tr("Crawl a site"), "globe"),
            KindWords(
                "crawl_sitemap", self.tr("Sitemap"), self.tr("Crawl what a sitemap lists"), "list"
            ),
            KindWords("recording", self.tr("Recording"), self.tr("Record what you do"), "record"),
            KindWords(
                "oc_evidence_bundle", self.tr("Evidence"), self.tr("Keep a page as it is"), "camera"
            ),
            KindWords(
                "oc_session_snapshot", self.tr("Snapshot"), self.tr("Remember a session"), "tabs"
            ),
            KindWords("commands", self.tr("Commands"), self.tr("Run commands in order"), "steps"),
            KindWords(
                "browser_task", self.tr("Agent task"), self.tr("Open a task for an agent"), "agent"
            ),
        )

    def doing(self, kind: str) -> str:
        """What a task of this kind does."""
        return next((each.doing for each in self.kinds() if each.kind == kind), kind)

    def lines(self, kind: str) -> tuple[Line, ...]:
        """The fields of one kind."""
        made = {
            "crawl": self._crawl,
            "crawl_sitemap": self._sitemap,
            "recording": self._recording,
            "oc_evidence_bundle": self._evidence,
            "oc_session_snapshot": self._snapshot,
            "browser_task": self._envelope,
        }
        return made[kind]() if kind in made else ()

    def _address(self, name: str) -> Line:
        hint = self.tr("https:// is added when it is missing.")
        shade = self.tr("example.com/docs")
        return Line("url", name, "line", "first", hint, shade)

    def _crawl(self) -> tuple[Line, ...]:
        stars = self.tr("One pattern a line. ** stands for anything, * for anything but a slash.")
        site = self.tr("the address’s own site")
        further = self.tr("One address a line; the crawl begins at each of them.")
        return (
            self._address(self.tr("Address")),
            Line("max_pages", self.tr("Pages, at most"), "number", "limits"),
            Line("max_depth", self.tr("Links deep, at most"), "number", "limits"),
            *self._engine_and_format(),
            *self._pages(),
            Line("urls", self.tr("Further addresses"), "lines", hint=further),
            Line("include_patterns", self.tr("Only addresses like"), "lines", hint=stars),
            Line("exclude_patterns", self.tr("Never addresses like"), "lines"),
            Line("scope", self.tr("Stay within"), "line", shade=site),
            *self._login(),
            *self._manners(),
        )

    def _sitemap(self) -> tuple[Line, ...]:
        found = self.tr("found by itself: robots.txt, then /sitemap.xml")
        every = self.tr("every address that it lists")
        return (
            self._address(self.tr("Site")),
            Line("sitemap_url", self.tr("Sitemap"), "line", "first", shade=found),
            Line("max_pages", self.tr("Pages, at most"), "number", "limits"),
            Line("filter", self.tr("Only addresses like"), "line", "limits", shade=every),
            *self._engine_and_format(),
            *self._pages(),
            Line("other_origins", self.tr("Also addresses of other sites"), "check"),
            *self._login(),
            *self._manners(),
        )

    def _engine_and_format(self) -> tuple[Line, ...]:
        engines = (
            ("browser", self.tr("Browser (Chromium)")),
            ("auto", self.tr("Automatic: browser where needed")),
            ("static", self.tr("Static: no scripts, fastest")),
        )
        formats = (
            ("markdown", self.tr("Markdown")),
            ("text", self.tr("Plain text")),
            ("structured", self.tr("Structured (JSON)")),
        )
        return (
            Line("engine", self.tr("Engine"), "choice", "limits", options=engines),
            Line("output_format", self.tr("Content as"), "choice", "limits", options=formats),
        )

    def _pages(self) -> tuple[Line, ...]:
        shots = (
            ("none", self.tr("None")),
            ("failed", self.tr("Of failed pages")),
            ("all", self.tr("Of every page")),
        )
        quiet = self.tr("At least 500 ms on a page that scripts wrote.")
        passing = self.tr("After a network error, a timeout or a busy server.")
        return (
            Line("delay_ms", self.tr("Pause per host"), "number", suffix=MS),
            Line("concurrency", self.tr("Pages at once"), "number"),
            Line("timeout_ms", self.tr("Time per page"), "number", suffix=MS),
            Line("settle_ms", self.tr("Quiet before it is taken"), "number", suffix=MS, hint=quiet),
            Line("retries", self.tr("Retries of a failed page"), "number", hint=passing),
            Line("screenshot", self.tr("Screenshots"), "choice", options=shots),
            self._fragments(),
            Line("max_elements", self.tr("Elements per page, at most"), "number"),
            Line("max_text_kb", self.tr("Content per page, at most"), "number", suffix=" KiB"),
            Line("keep_links", self.tr("Keep each page's links"), "check"),
            self._wait_for(),
        )

    def _fragments(self) -> Line:
        ways = (
            ("ignore", self.tr("The same page")),
            ("routes", self.tr("Pages of their own")),
        )
        hint = self.tr("Applications that keep their pages behind # have one address otherwise.")
        name = self.tr("Addresses with #/ or #!")
        return Line("fragments", name, "choice", hint=hint, options=ways)

    def _wait_for(self) -> Line:
        return Line("wait_for", self.tr("Wait for element"), "line", shade=self.tr("main article"))

    def _manners(self) -> tuple[Line, ...]:
        return (
            Line("respect_robots", self.tr("Obey robots.txt"), "check"),
            Line("block_resources", self.tr("Leave out pictures, fonts and media"), "check"),
            self._redact_content(),
        )

    def _redact_content(self, *, counted: bool = True) -> Line:
        hint = self.tr("Private keys, signed tokens and keys of well-known services.")
        if counted:
            hint = self.tr("Private keys, signed tokens and keys of well-known services, counted.")
        text = self.tr("Redact keys in page content")
        return Line("redact_content", text, "check", hint=hint)

    def _login(self) -> tuple[Line, ...]:
        hint = self.tr("Not kept. Or where it is: {0}").format(REFERENCE)
        return (
            Line("username", self.tr("User"), "line"),
            Line("password", self.tr("Password"), "line", hint=hint),
        )

    def _recording(self) -> tuple[Line, ...]:
        shots = (
            ("navigation", self.tr("Of every new page")),
            ("each", self.tr("After every action")),
            ("none", self.tr("None")),
        )
        until = self.tr("until it is stopped")
        text = self.tr("Without this only the length of what is typed is kept; never passwords.")
        return (
            self._address(self.tr("Address")),
            Line("label", self.tr("Label"), "line", "limits"),
            Line("duration_ms", self.tr("For"), "seconds", "limits", none=until),
            Line("screenshots", self.tr("Screenshots"), "choice", "limits", options=shots),
            Line("headless", self.tr("Without a visible window"), "check", "limits"),
            Line("width", self.tr("Window width"), "number", suffix=" px"),
            Line("height", self.tr("Window height"), "number", suffix=" px"),
            *self._login(),
            Line("keep_text", self.tr("Keep what is typed"), "check", hint=text),
            self._redact_content(counted=False),
        )

    def _evidence(self) -> tuple[Line, ...]:
        parts = (
            ("dom", self.tr("The page as HTML")),
            ("screenshot", self.tr("A screenshot")),
            ("phash", self.tr("A fingerprint of how it looks")),
            ("network", self.tr("Its requests")),
            ("console", self.tr("What its console says")),
        )
        return (
            self._address(self.tr("Address")),
            Line("include", self.tr("What to keep"), "several", "limits", options=parts),
            Line("label", self.tr("Label"), "line", "limits"),
            Line("network_window_ms", self.tr("Watch requests for"), "number", suffix=MS),
            Line("timeout_ms", self.tr("Time for the page"), "number", suffix=MS),
            self._wait_for(),
            *self._login(),
            Line("full_page", self.tr("The whole page, not only what fits a screen"), "check"),
            self._redact_content(),
        )

    def _snapshot(self) -> tuple[Line, ...]:
        line = self.tr("One a line.")
        living = self.tr("One a line; without any, the tabs that agents have open here.")
        return (
            Line("objective", self.tr("What the session is for"), "prose", "first"),
            Line("current_step", self.tr("Where it stands"), "line", "limits"),
            Line("next_actions", self.tr("What comes next"), "lines", "limits", line),
            Line("completed_steps", self.tr("What is done"), "lines", hint=line),
            Line("tabs", self.tr("Addresses of its tabs"), "lines", hint=living),
            Line("notes", self.tr("Notes"), "prose"),
            Line("label", self.tr("Label"), "line"),
            Line("timeout_ms", self.tr("Time for a tab"), "number", suffix=MS),
            Line("visit", self.tr("Open these addresses"), "check"),
            Line("screenshot", self.tr("A screenshot of every tab"), "check"),
            Line("include_cookies", self.tr("Also cookies (they are secrets)"), "check"),
            Line("include_storage", self.tr("Also what sites store (may be secret)"), "check"),
            self._redact_content(counted=False),
        )

    def _envelope(self) -> tuple[Line, ...]:
        phases = (
            ("explore", self.tr("Explore")),
            ("act", self.tr("Act")),
            ("verify", self.tr("Verify")),
            ("recover", self.tr("Recover")),
        )
        driven = self.tr("Nothing runs here by itself: an agent drives it through its tools.")
        return (
            Line("objective", self.tr("What is to be reached"), "prose", "first", driven),
            Line("phase", self.tr("It begins to"), "choice", "limits", options=phases),
        )
