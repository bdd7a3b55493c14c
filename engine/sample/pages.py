"""Ordinary pages of the sample site, and its shop.

Three trees have the same pages, loaded in different ways. `/static/N` is plain HTML. `/js/N` is an
empty shell whose title, text and links a script inserts 30-80 ms after load. `/page/N`, the tree
below `/`, has every third page by script. Page N of a tree links its ten children, its neighbours
and one page far away.

The shop has forms and controls for clicks, typing and choices. It shows the result again
(`#state`), so that two ways to the same end can be compared. Forms are sent by GET: the input is
then in the address.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from html import escape

from engine.sample.server import Answer, Request

_THINGS = ("Field guide", "Tin whistle", "Rain gauge")


def _page(title: str, body: str) -> Answer:
    return Answer(shell(title, f"<main><h1>{escape(title)}</h1>{body}</main>"))


def _front(request: Request) -> Answer:
    words = request.query.get("q", "")
    found = [name for name in _THINGS if words.lower() in name.lower()]
    things = "".join(
        f"<li><a href='/shop/thing/{_THINGS.index(name)}'>{name}</a></li>" for name in found
    )
    told = f"<p id='state'>Results for {escape(words)}: {len(found)}</p>" if words else ""
    return _page(
        "The shop",
        "<form action='/shop/'><label>Search <input name='q' type='search'></label>"
        f"<button>Find</button></form>{told}<ul>{things}</ul>"
        "<p><a href='/shop/order'>Order</a> <a href='/shop/long'>Terms</a></p>",
    )


_BASKET = """<p id='state'>In the basket: 0</p>
<div class='row'><button class='add'>Add</button><span>one of it</span></div>
<div class='row'><button class='add'>Add</button><span>ten of it</span></div>
<button data-testid='empty' id='b-91837'>Empty</button>
<size-picker></size-picker>
<script>
customElements.define('size-picker', class extends HTMLElement {
  connectedCallback() {
    this.attachShadow({mode: 'open'}).innerHTML =
      "<button part='s'>Small</button><button part='l'>Large</button>";
    this.shadowRoot.addEventListener('click', (event) => {
      this.setAttribute('size', event.target.textContent);
    });
  }
});
let count = 0;
function show(by) {
  count = by ? count + by : 0;
  document.querySelector('#state').textContent = 'In the basket: ' + count;
  history.pushState({}, '', '?basket=' + count);
}
const [one, ten] = document.querySelectorAll('.add');
one.addEventListener('click', () => show(1));
ten.addEventListener('click', () => show(10));
document.querySelector('[data-testid=empty]').addEventListener('click', () => show(0));
</script>
<p><a href='/shop/order'>Order</a> <a href='/shop/'>Back to the shop</a></p>"""

_ORDER = """<form action='/shop/done' id='order'>
<p><label for='who'>Your name</label> <input id='who' name='who' data-testid='who'></p>
<p><label>E-mail <input name='mail' type='email'></label></p>
<p><label>Password: <input name='code' type='password'></label>
<label><input type='checkbox' id='show'> Show it</label></p>
<p><label>Card number <input name='card' autocomplete='cc-number'></label></p>
<p><label>Size <select name='size'><option value='s'>Small</option>
<option value='m'>Middle</option><option value='l'>Large</option></select></label></p>
<p><label><input type='radio' name='how' value='post'> By post</label>
<label><input type='radio' name='how' value='bird'> By bird</label></p>
<p><label><input type='checkbox' name='gift' value='yes'> As a gift</label></p>
<p><label>Notes <textarea name='notes'></textarea></label></p>
<p><button id='send'>Send the order</button></p></form>
<p>Hello, <b id='greeting'></b>! <button id='echo'>Nobody</button></p>
<script>
const form = document.querySelector('#order');
form.who.addEventListener('input', () => {
  document.querySelector('#greeting').textContent = form.who.value;
  document.querySelector('#echo').textContent = form.who.value;
});
document.querySelector('#show').addEventListener('change', (event) => {
  form.code.type = event.target.checked ? 'text' : 'password';
});
</script>"""

_LONG = (
    "<p id='state'>At 0</p>"
    + "".join(f"<p>Paragraph {number}.</p>" for number in range(200))
    + """
<div id='box' style='height:120px;overflow:auto'><div style='height:2000px'>A tall box</div></div>
<script>
addEventListener('scroll', () => {
  document.querySelector('#state').textContent = 'At ' + Math.round(scrollY);
});
</script>"""
)


def _done(request: Request) -> Answer:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in sorted(request.query.items())
    )
    return _page("Thank you", f"<dl id='state'>{rows}</dl>")


def _thing(request: Request) -> Answer | None:
    number = request.path.removeprefix("/shop/thing/")
    if not (number.isascii() and number.isdigit() and int(number) < len(_THINGS)):
        return None
    return _page(_THINGS[int(number)], _BASKET)


_PAGES: Mapping[str, Callable[[Request], Answer]] = {
    "/shop/": _front,
    "/shop/order": lambda request: _page("Your order", _ORDER),
    "/shop/done": _done,
    "/shop/long": lambda request: _page("Terms", _LONG),
    "/shop/framed": lambda request: _page(
        "Framed", "<iframe name='inside' src='/shop/thing/1' width='600' height='400'></iframe>"
    ),
}


def shop_answer(request: Request) -> Answer | None:
    """Answer a path of the shop; None for any other."""
    maker = _PAGES.get(request.path)
    return maker(request) if maker is not None else _thing(request)


FANOUT = 10
TREES = ("page", "static", "js")
LATE_FROM_MS, LATE_SPAN_MS = 30, 51  # a script's pages come 30-80 ms after load

_BIRDS = (
    "wren",
    "heron",
    "swift",
    "dunlin",
    "siskin",
    "plover",
    "kestrel",
    "dipper",
    "curlew",
    "linnet",
)
_PLACES = (
    "the weir",
    "the old pier",
    "the reed bed",
    "the quarry",
    "the salt marsh",
    "the orchard",
    "the mill",
)
_DOINGS = (
    "was heard before sunrise",
    "built its second nest",
    "crossed against the wind",
    "stayed all frost",
)
_SKIES = (
    "thin high cloud",
    "drizzle until noon",
    "a dry east wind",
    "first warm evening",
    "fog on the water",
)


def title_of(number: int) -> str:
    """Title of page `number` in every tree; 0 is the tree's root."""
    return f"Field notes {number}" if number else "Field notes"


def marker(number: int) -> str:
    """Phrase that only page `number` has, and only once it is rendered."""
    return f"observation {number:06d} is complete"


def path_of(tree: str, number: int) -> str:
    if number:
        return f"/{tree}/{number}"
    return "/" if tree == "page" else f"/{tree}/"


def is_late(tree: str, number: int) -> bool:
    """Return whether a script inserts this page's content."""
    return tree == "js" or (tree == "page" and number % 3 == 2)


@lru_cache(maxsize=4096)
def paragraphs(number: int) -> tuple[str, ...]:
    """Build three paragraphs, the same on every run."""
    texts = []
    for part in range(3):
        seed = number * 31 + part * 7
        bird, place = _BIRDS[seed % 10], _PLACES[seed % 7]
        doing, sky = _DOINGS[seed % 4], _SKIES[seed % 5]
        texts.append(
            f"Note {number}.{part + 1}: {sky} over {place}. A {bird} {doing}, and a second {bird} "
            f"kept to the far side. Counted {seed % 23 + 2} in {seed % 50 + 10} minutes; "
            f"the glass stood at {980 + seed % 50}."
        )
    texts.append(f"This {marker(number)}.")
    return tuple(texts)


@lru_cache(maxsize=4096)
def numbers_from(number: int, pages: int) -> tuple[int, ...]:
    """Pages that page `number` of `pages` links, in order."""
    children = range(number * FANOUT + 1, number * FANOUT + FANOUT + 1)
    shared = (number - 1, number + 1, (number * 7 + 3) % (pages + 1)) if number else ()
    wanted = [child for child in (*children, *shared) if 0 < child <= pages and child != number]
    return tuple(dict.fromkeys(wanted))


def page_html(tree: str, number: int, pages: int) -> bytes:
    """HTML of page `number` of `tree` as sent."""
    if is_late(tree, number):
        return _late_html(tree, number)
    body = "".join(f"<p>{escape(text)}</p>" for text in paragraphs(number))
    items = "".join(
        f'<li><a href="{link["href"]}">{link["text"]}</a></li>'
        for link in _links(tree, number, pages)
    )
    bird = '<img src="/assets/bird.svg" alt="A bird" width="32" height="32">'
    main = f"<main><h1>{title_of(number)}</h1>{body}{bird}<ul>{items}</ul></main>"
    return shell(title_of(number), main, home=path_of(tree, 0))


def _late_html(tree: str, number: int) -> bytes:
    late_ms = LATE_FROM_MS + number * 17 % LATE_SPAN_MS
    place = f'<main id="page" data-api="/api{path_of(tree, number)}" data-late="{late_ms}">'
    return shell("…", f'{place}<p>Loading…</p></main><script src="/assets/page.js"></script>')


def _links(tree: str, number: int, pages: int) -> list[dict[str, str]]:
    return [
        {"href": path_of(tree, other), "text": title_of(other)}
        for other in numbers_from(number, pages)
    ]


def page_json(tree: str, number: int, pages: int) -> bytes:
    """JSON that the script of a late page fetches."""
    texts = {
        "title": title_of(number),
        "paragraphs": paragraphs(number),
        "home": path_of(tree, 0),
        "links": _links(tree, number, pages),
    }
    return json.dumps(texts).encode()


def shell(title: str, body: str, *, home: str = "/", head: str = "") -> bytes:
    """Build a whole document around `body`, which is HTML already."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="description" content="{escape(title)} of the sample site">{head}'
        '<link rel="stylesheet" href="/assets/site.css"></head>'
        f'<body><header><a href="{home}">Sample site</a></header>{body}'
        "<footer>Made for trying things out.</footer></body></html>"
    ).encode()
