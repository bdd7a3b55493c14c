"""A site with a login form: a session cookie, a token in the form, pages behind it, and an end."""

from __future__ import annotations

import http.server
import re
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, quote, urlsplit

USER = "ann"
PASSWORD = "correct-horse-7"
_HIDDEN = re.compile(r"^/page/(\d+)$")


class LoginSite:
    """Pages /page/0, /page/1, … that lead on, all behind /login.

    With `rotates` a session gets a new cookie at each so many pages, and the old one is refused.
    `expires_after` ends all sessions after so many pages, once. `inline` shows the login form in
    the place of a page, under its own address, instead of a redirect. `links_session` adds
    a link whose address has the session. With `shows_new` a page that gives out a new session
    shows it as well.
    """

    def __init__(self, pages: int = 50) -> None:
        self.pages = pages
        self.rotates = 0
        self.expires_after = 0
        self.inline = False
        self.links_session = False
        self.shows_new = False
        self.sitemap = ""
        self.sessions: set[str] = set()
        self.requests: Counter[str] = Counter()
        self.cookies: list[str] = []  # the session cookies that were given out
        self.served = 0
        self.url = ""
        self.tokens: set[str] = set()
        self.lock = threading.Lock()

    @property
    def secrets(self) -> list[str]:
        """Every value that nobody may find anywhere."""
        return [PASSWORD, *self.cookies]

    def expire(self) -> None:
        """End all sessions."""
        with self.lock:
            self.sessions.clear()

    @contextmanager
    def running(self) -> Iterator[LoginSite]:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.site = self
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            serving.join()

    def new_session(self) -> str:
        digits = list("0123456789abcdef" * 2)  # as wide as any other in a picture
        secrets.SystemRandom().shuffle(digits)
        session = f"s1{''.join(digits)}"
        with self.lock:
            self.sessions.add(session)
            self.cookies.append(session)
        return session


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    site: LoginSite


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _site(self) -> LoginSite:
        assert isinstance(self.server, _Server)
        return self.server.site

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        with self._site.lock:
            self._site.requests[path] += 1
        if path == "/robots.txt":
            return self._send(404, "none")
        if path == "/sitemap.xml" and self._site.sitemap:
            return self._send(200, self._site.sitemap, kind="application/xml")
        if path == "/login":
            return self._form()
        if path == "/logout":
            with self._site.lock:
                self._site.sessions.discard(self._session)
            return self._redirect("/login")
        if path == "/public":
            return self._send(200, "<title>Public</title>For everybody")
        if self._session not in self._site.sessions:
            if self._site.inline:
                return self._form()
            return self._redirect(f"/login?next={quote(self.path)}")
        return self._page(path)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        given = parse_qs(self.rfile.read(length).decode())
        token = given.get("token", [""])[0]
        known = (USER, PASSWORD, True)
        if (
            given.get("user", [""])[0],
            given.get("password", [""])[0],
            (token in self._site.tokens),
        ) != known:
            return self._send(403, "<title>Wrong</title>Wrong name or password")
        session = self._site.new_session()
        to = parse_qs(urlsplit(self.path).query).get("next", ["/home"])[0]
        return self._redirect(to, f"sid={session}; HttpOnly; Path=/; SameSite=Lax")

    @property
    def _session(self) -> str:
        found = SimpleCookie(self.headers.get("Cookie", "")).get("sid")
        return found.value if found else ""

    def _form(self) -> None:
        token = secrets.token_hex(8)
        with self._site.lock:
            self._site.tokens.add(token)
        self._send(
            200,
            f"<title>Sign in</title><form method=post action='/login?"
            f"{urlsplit(self.path).query}'>"
            f"<input type=hidden name=token value={token}>"
            "<label>User <input name=user id=user></label>"
            "<label>Password <input name=password type=password id=password></label>"
            "<button id=go>Sign in</button></form>",
        )

    def _page(self, path: str) -> None:
        found = _HIDDEN.match(path)
        number = int(found[1]) if found else None
        if number is not None and number >= self._site.pages:
            return self._send(404, "none")
        extra = shown = ""
        if number is not None:
            with self._site.lock:
                self._site.served += 1
                if self._site.expires_after and self._site.served >= self._site.expires_after:
                    self._site.expires_after = 0
                    self._site.sessions.clear()
            if self._site.rotates and self._site.served % self._site.rotates == 0:
                with self._site.lock:
                    self._site.sessions.discard(self._session)
                new = self._site.new_session()
                extra = f"sid={new}; HttpOnly; Path=/; SameSite=Lax"
                style = "<style>body { font-family: monospace }</style>"  # each session as wide
                shown = f'{style}<p>Now {new}</p><a href="/of/{new}">New</a>'
        links = range(self._site.pages) if number is None else (2 * number + 1, 2 * number + 2)
        there = [to for to in links if to < self._site.pages]
        anchors = "".join(f'<a href="/page/{to}">{to}</a> ' for to in there)
        title = path if number is None else f"Page {number}"
        return self._send(
            200,
            f"<title>{title}</title><p id=who>Hello {USER}, session {self._session}</p>"
            f'{anchors}<a href="/logout">Sign out</a>{self._own_link(number)}'
            f"{shown if self._site.shows_new else ''}",
            extra,
        )

    def _own_link(self, number: int | None) -> str:
        return (
            f'<a href="/of/{self._session}">Mine</a>'
            if number == 0 and self._site.links_session
            else ""
        )

    def _redirect(self, to: str, cookie: str = "") -> None:
        self._send(302, "", cookie, to)

    def _send(
        self, status: int, body: str, cookie: str = "", to: str = "", kind: str = "text/html"
    ) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if cookie:
            self.send_header("Set-Cookie", cookie)
        if to:
            self.send_header("Location", to)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
