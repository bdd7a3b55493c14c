"""Shop of the sample site: forms and controls for clicks, typing and choices.

The page shows the result again (`#state`), so that two ways to the same end can be compared. Forms
are sent by GET: the input is then in the address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

from engine.sample.pages import shell
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
