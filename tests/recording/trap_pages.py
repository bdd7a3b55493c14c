"""Small pages that react as real applications do, each with one trap."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
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

# Ids are others with every load, a tab is chosen when the button goes down; the menu opens then,
# too, and covers the page, and its entries go away when one is pressed: no click is told of.
TABS: Final = """<h1>Tabs</h1><div role="tablist"></div><div id="panel"></div>
<div id="choice">none</div><div id="opener"><button id=":r1:">Choose</button></div>
<div id="menu" style="pointer-events: auto"></div>
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
const menu = document.querySelector("#menu"), opener = document.querySelector("#opener button");
opener.addEventListener("pointerdown", () => {
  document.body.style.pointerEvents = "none";  // nothing but the menu can be clicked now
  menu.innerHTML = '<div class="option">red</div><div class="option">blue</div>';
});
menu.addEventListener("pointerdown", (event) => {
  document.querySelector("#choice").textContent = event.target.textContent;
  document.body.style.pointerEvents = "";
  menu.innerHTML = "";
});
</script>"""

# A dialog that is there twice, one of them hidden; the box of a switch is not to be seen, and the
# names of what is chosen are made up by a program.
MODAL: Final = """<h1>Modal</h1><style>.switch input { opacity: 0; width: 0; height: 0; }</style>
<button id="open">Settings</button> <button id="other">Account</button><p id="said"></p>
<div role="dialog" aria-labelledby="t1" class="modal fade" hidden><h2 id="t1">Settings</h2>
<label class="switch"><input type="checkbox" id="radix-:r9:"> <b>Mails</b></label>
<select><option value="9f8e7d6c5b4a">English</option>
<option value="1a2b3c4d5e6f">Deutsch</option></select>
<button class="close">Close</button></div>
<div role="dialog" aria-labelledby="t2" class="modal fade" hidden><h2 id="t2">Account</h2>
<label class="switch"><input type="checkbox" id="radix-:r10:"> <b>Mails</b></label>
<button class="close">Close</button></div>
<script>
const [settings, account] = document.querySelectorAll(".modal");
document.querySelector("#open").onclick = () => { settings.hidden = false; };
document.querySelector("#other").onclick = () => { account.hidden = false; };
for (const modal of [settings, account]) modal.querySelector(".close").onclick = () => {
  modal.hidden = true;
  const [title, box, list] = ["h2", "input", "select"].map((css) => modal.querySelector(css));
  document.querySelector("#said").textContent +=
    ` closed ${title.textContent} ${box.checked} ${list?.value ?? ""}`;
};
document.querySelector("#said").oncontextmenu = (event) => {
  event.preventDefault();
  document.querySelector("#said").textContent += " menu";
};
</script>"""

# The editor makes what it holds out of keys: a line begun by "# " becomes a heading.
EDITOR: Final = """<h1>Editor</h1><div class="editor is-empty" contenteditable></div>
<p id="held"></p><script>
const editor = document.querySelector(".editor");
editor.innerHTML = "<p><br></p>";
const tell = () => { document.querySelector("#held").textContent = editor.innerHTML; };
editor.addEventListener("keydown", (event) => {
  editor.classList.toggle("is-empty", !editor.textContent);
  if (event.key === "Enter") {
    event.preventDefault();
    document.execCommand("insertParagraph");
    document.execCommand("formatBlock", false, "p");
  }
  const block = getSelection().anchorNode?.parentElement;
  if (event.key === " " && block?.textContent === "#") {
    event.preventDefault();
    document.execCommand("delete");
    document.execCommand("formatBlock", false, "h2");
  }
  setTimeout(tell, 0);
});
editor.addEventListener("input", tell);
</script>"""

# Buttons of rows, menus in menus and what scripts open are there only while the mouse is over
# something else: of the style sheet, of a script, and of one that adds to the end of the page.
HOVER: Final = """<h1>Hover</h1><style>
li .destroy { display: none } li:hover { .destroy { display: inline } }
nav ul { display: none } nav li:hover > ul, nav li li:hover > ul { display: block }
nav { margin: 1em; width: 8em }
</style>
<ol><li><b>Milk</b> <i class="tools"><button class="destroy">x</button></i></li>
<li><b>Bread</b> <i class="tools"><button class="destroy">x</button></i></li></ol>
<nav><li>File<ul><li>Export<ul><li><a href="#pdf">As PDF</a></li></ul></li></ul></li></nav>
<p><button id="more">More</button></p><p id="said"></p>
<script>
const said = document.querySelector("#said");
document.querySelectorAll(".destroy").forEach((one) => { one.onclick = () => {
  said.textContent += " without " + one.closest("li").querySelector("b").textContent;
  one.closest("li").remove();
}; });
document.querySelector("a").onclick = () => { said.textContent += " #pdf"; };
document.querySelector("#more").onmouseenter = () => setTimeout(() => {
  const menu = document.createElement("div");
  menu.innerHTML = "<button>Rename</button>";
  menu.firstChild.onclick = () => { said.textContent += " renamed"; menu.remove(); };
  document.body.append(menu);
}, 20);
</script>"""

# One entry is dragged as the browser drags, a card follows the pointer, a slider takes pixels.
DRAG: Final = """<h1>Drag</h1><style>
.card, .zone { position: absolute; width: 90px; height: 40px; background: silver }
.zone { top: 220px; left: 320px; width: 200px; height: 120px }
.track { position: absolute; top: 400px; width: 300px; height: 8px; background: gray }
.thumb { position: absolute; top: 394px; left: 0; width: 20px; height: 20px; background: black }
</style>
<ul><li draggable="true">Milk</li><li>Bread</li></ul>
<div class="card" style="left: 20px; top: 220px">Card</div><div class="zone">Zone</div>
<div class="track"></div><div class="thumb"></div><p id="said"></p>
<script>
const said = document.querySelector("#said"), say = (text) => { said.textContent += ` ${text};`; };
const [milk, bread] = document.querySelectorAll("li");
bread.ondragover = (event) => event.preventDefault();
bread.ondrop = (event) => { event.preventDefault(); say("Milk on Bread"); };
const follow = (element, end) => {
  element.onpointerdown = (down) => {
    down.preventDefault();
    element.setPointerCapture(down.pointerId);
    const { offsetLeft, offsetTop } = element;
    element.onpointermove = (event) => {
      element.style.left = `${offsetLeft + event.clientX - down.clientX}px`;
      if (end.length) element.style.top = `${offsetTop + event.clientY - down.clientY}px`;
    };
    element.onpointerup = (event) => { element.onpointermove = null; end(event); };
  };
};
follow(document.querySelector(".card"), (event) => {
  const under = document.elementsFromPoint(event.clientX, event.clientY);
  say(under.some((one) => one.className === "zone") ? "in the zone" : "missed");
});
const thumb = document.querySelector(".thumb");
follow(thumb, () => say(`at ${thumb.offsetLeft}`));
</script>"""

PAGES: Final = {
    "drag": DRAG,
    "hover": HOVER,
    "todo": TODO,
    "tabs": TABS,
    "modal": MODAL,
    "editor": EDITOR,
}


@contextmanager
def served(pages: Mapping[str, str], folder: Path | None = None) -> Iterator[str]:
    """The address of a server that has each page under its name, and the files of `folder`."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.strip("/"))
            if page is None and folder is not None:
                super().do_GET()
                return
            body = f"<!doctype html><meta charset=utf-8><title>t</title>{page}".encode()
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with listening(partial(Handler, directory=str(folder or "/nonexistent"))) as url:
        yield url


@contextmanager
def listening(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve `handler` from a thread, and yield the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
