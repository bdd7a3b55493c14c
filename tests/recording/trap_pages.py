"""Small pages that answer to what is done as real applications do, each with one trap."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

# The list is made anew with every change: classes say the state, controls have no name, a double
# click puts a field in the place of the words, and what is done can go away under the mouse.
TODO: Final = """<h1>todos</h1>
<input class="new-todo" placeholder="What needs to be done?">
<ul class="todo-list"></ul>
<p><a href="#/" class="selected">All</a> <a href="#/active">Active</a></p><p id="left"></p>
<script>
const todos = [], list = document.querySelector("ul"), entry = document.querySelector(".new-todo");
let editing = null;
const render = () => {
  const onlyActive = location.hash === "#/active";
  list.replaceChildren(...todos.filter((todo) => !onlyActive || !todo.done).map((todo) => {
    const item = document.createElement("li");
    item.className = todo.done ? "completed" : "";
    item.innerHTML = todo === editing ? '<input class="edit">' :
      '<div class="view"><input class="toggle" type="checkbox"><label></label>' +
      '<button class="destroy">x</button></div>';
    if (todo === editing) {
      const field = item.firstChild;
      field.value = todo.text;
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        todo.text = field.value.trim();
        editing = null;
        render();
      });
      return item;
    }
    const [box, words, remove] = item.firstChild.children;
    words.textContent = todo.text;
    box.checked = todo.done;
    box.addEventListener("click", () => { todo.done = box.checked; render(); });
    words.addEventListener("dblclick", () => { editing = todo; render(); });
    remove.addEventListener("click", () => { todos.splice(todos.indexOf(todo), 1); render(); });
    return item;
  }));
  list.querySelector(".edit")?.focus();
  document.querySelector("#left").textContent = todos.filter((todo) => !todo.done).length + " left";
};
entry.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !entry.value.trim()) return;
  todos.push({ text: entry.value.trim(), done: false });
  entry.value = "";
  render();
});
addEventListener("hashchange", render);
render();
</script>"""

# Ids are others with every load, a tab is chosen when the button goes down, and the entries of
# the menu go away when it does.
TABS: Final = """<h1>Tabs</h1><div role="tablist"></div><div id="panel"></div>
<div id="choice">none</div><div id="menu"></div>
<script>
const random = () => Array.from(crypto.getRandomValues(new Uint8Array(6)), (n) =>
  "abcdefghijklmnopqrstuvwxyz+=ABCDEFG0123456789"[n % 45]).join("") + "+9=";
const names = ["Account", "Billing", "Team"];
const show = (chosen) => {
  document.querySelector("[role=tablist]").replaceChildren(...names.map((name) => {
    const tab = document.createElement("button");
    tab.id = random();
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", name === chosen);
    tab.className = name === chosen ? "tab is-active" : "tab";
    tab.textContent = name;
    tab.addEventListener("mousedown", () => show(name));
    return tab;
  }));
  document.querySelector("#panel").textContent = "Settings of " + chosen;
};
show("Account");
const menu = document.querySelector("#menu");
const close = () => { menu.innerHTML = '<button id=":r1:">Choose</button>'; };
menu.addEventListener("click", (event) => {
  if (event.target.textContent !== "Choose") return;
  menu.innerHTML = '<div class="option">red</div><div class="option">blue</div>';
});
menu.addEventListener("pointerdown", (event) => {
  if (!event.target.matches(".option")) return;
  document.querySelector("#choice").textContent = event.target.textContent;
  close();
});
close();
</script>"""

PAGES: Final = {"todo": TODO, "tabs": TABS}


@contextmanager
def served(pages: Mapping[str, str]) -> Iterator[str]:
    """The address of a server that has each page under its name."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.strip("/"))
            body = f"<!doctype html><meta charset=utf-8><title>t</title>{page}".encode()
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
