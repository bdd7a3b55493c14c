"""An application of one document with 41 pages behind `#`, as hash routers have them.

Its pages are drawn when the fragment changes and when the document is loaded; some draw from an
answer that comes late. A page tells by `drawn` how often its document has drawn one.
"""

from __future__ import annotations

from engine.sample.site import Answer

ORDERS = 37
BANG, ROUTES = "#!/archive", ["#/orders", "#/about", "#!/archive"]
ROUTES += [f"#/orders/{number}" for number in range(1, ORDERS + 1)]
PATH = "/app/"

_APPLICATION = """<!doctype html><html><head><title>Orders</title></head><body>
<nav><a href="#/">Home</a> <a href="#/orders">Orders</a> <a href="#/about">About</a>
<a href="#!/archive">Archive</a></nav><main id="main"></main><script>
let drawn = 0;
const orders = (from, to) => Array.from({length: to - from + 1}, (_, n) =>
  `<li><a href="#/orders/${from + n}">Order ${from + n}</a></li>`).join("");
const pages = {
  "": () => "<h1>Home</h1><p>Welcome. <a href='#news'>News</a></p><h2 id='news'>News</h2>",
  orders: () => `<h1>Orders</h1><ul>${orders(1, ORDERS)}</ul>`,
  about: () => "<h1>About</h1><p>Made <a href='#/orders/1#items'>by hand</a>.</p>",
  archive: () => "<h1>Archive</h1><p>Nothing was put away yet.</p>",
};
const show = async () => {
  const [name, number] = location.hash.replace(/^#!?\\/?/, "").split("#")[0].split("/");
  let made = (pages[name] || (() => "<h1>There is no such page</h1>"))();
  if (name === "orders" && number) {
    const answer = await fetch(`/app/orders/${number}.json`);
    made = `<h1>Order ${number}</h1><p>${(await answer.json()).item}</p>`;
  }
  drawn += 1;
  document.title = document.createRange().createContextualFragment(made).firstChild.textContent;
  document.querySelector("main").innerHTML = `${made}<p>drawn ${drawn}</p>`;
};
addEventListener("hashchange", show);
show();
</script></body></html>""".replace("ORDERS", str(ORDERS))


def text_of(route: str) -> str:
    """What the page at `route` says and no other does."""
    if route.startswith("#/orders/"):
        return f"Item number {route.rpartition('/')[2]}."
    known = {"": "Welcome", "#/orders": "Order 37", "#/about": "by hand", BANG: "put away"}
    return known[route]


def answers() -> dict[str, Answer]:
    """The application as a site serves it, by path."""
    made = {PATH: Answer(_APPLICATION.encode())}
    for number in range(1, ORDERS + 1):
        told = f'{{"item": "Item number {number}."}}'.encode()
        late_s = 0.3 if number % 5 == 0 else 0.0
        answer = Answer(told, content_type="application/json", delay_s=late_s)
        made[f"{PATH}orders/{number}.json"] = answer
    return made
