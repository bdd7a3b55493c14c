"""Pages of the sample site for command tasks: a login, a product, an encyclopaedia.

The five examples of seed 002 use them, with the same selectors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from typing import Final

from engine.sample.pages import shell
from engine.sample.server import Answer, Request

LOGIN: Final = ("user@example.com", "password123")  # the login of the example
_ARTICLES: Final = ("Artificial Intelligence", "Grey heron", "Rain gauge")


def _page(title: str, body: str) -> Answer:
    return Answer(shell(title, f"<main>{body}</main>"))


# The server reads no bodies, so the page checks the login itself; no input gets into an address.
_LOGIN = f"""<h1>Log in</h1><form id="login-form">
<p><label>Email <input id="email" type="email"></label></p>
<p><label>Password <input id="password" type="password"></label></p>
<p><button id="login-btn" type="submit">Log in</button></p></form><p id="wrong" hidden></p>
<script>
const form = document.querySelector('#login-form');
form.addEventListener('submit', (event) => {{
  event.preventDefault();
  const given = [form.email.value, form.password.value];
  const known = {json.dumps(LOGIN)};
  if (given[0] === known[0] && given[1] === known[1]) {{
    sessionStorage.setItem('who', given[0]);
    setTimeout(() => location.assign('/dashboard'), 50);
  }} else {{
    const wrong = document.querySelector('#wrong');
    wrong.hidden = false;
    wrong.textContent = 'Unknown email or password';
  }}
}});
</script>"""

_DASHBOARD = """<h1>Dashboard</h1><div id="place">Nobody is logged in.</div><script>
const who = sessionStorage.getItem('who');
if (who) setTimeout(() => {
  const box = document.createElement('div');
  box.className = 'dashboard';
  box.textContent = 'Welcome back, ' + who;
  document.querySelector('#place').replaceWith(box);
}, 60);
</script>"""

_PRODUCT = """<h1>Shop</h1><div id="late">Loading…</div><script>
setTimeout(() => {
  document.querySelector('#late').outerHTML = `<div class="product-details">
  <h2 class="product-title">Tin whistle in D</h2><p class="product-price">€ 12.50</p>
  <img class="product-image" src="/assets/bird.svg" alt="The whistle" width="160" height="120">
  <select id="colour"><option value="b">Brass</option><option value="n">Nickel</option></select>
  <p id="hint">Hold the pointer here</p></div>`;
  const hint = document.querySelector('#hint');
  hint.addEventListener('mouseenter', () => { hint.textContent = 'In stock'; });
}, 60);
</script>"""

_WIKI = """<h1>Encyclopaedia</h1><form action="/wiki/search">
<input id="searchInput" name="search" type="search" placeholder="Search"></form>"""


def _search(request: Request) -> Answer:
    words = request.query.get("search", "")
    title = next((name for name in _ARTICLES if name.lower() == words.lower()), "")
    if not title:
        return _page("Nothing found", f'<h1 id="noresult">Nothing for {escape(words)}</h1>')
    text = "".join(f"<p>Paragraph {number} about it.</p>" for number in range(1, 81))
    return _page(title, f'<h1 id="firstHeading">{escape(title)}</h1>{text}')


def _health(request: Request) -> Answer:
    health = {"status": "ok", "requestId": request.headers.get("x-request-id", "")}
    return Answer(json.dumps(health).encode(), content_type="application/json")


PAGES: Final[Mapping[str, Callable[[Request], Answer]]] = {
    "/login": lambda request: _page("Log in", _LOGIN),
    "/dashboard": lambda request: _page("Dashboard", _DASHBOARD),
    "/product/123": lambda request: _page("Tin whistle in D", _PRODUCT),
    "/wiki": lambda request: _page("Encyclopaedia", _WIKI),
    "/wiki/search": lambda request: replace(_search(request), delay_s=0.05),
    "/health": _health,
}


def command_answer(request: Request) -> Answer | None:
    """Answer a path of these pages; None for any other."""
    maker = PAGES.get(request.path)
    return maker(request) if maker is not None else None
