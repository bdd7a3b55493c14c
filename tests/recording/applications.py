"""Five applications out of npm packages, put together in a folder and served from there.

The packages are looked for in the folder that `RECORDING_NODE_MODULES` names, as `npm install`
makes it; nothing of them is part of this repository.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    *("react", "react-dom", "todomvc-app-css", "@radix-ui/react-tabs", "@radix-ui/react-dialog"),
    *("@radix-ui/react-checkbox", "@radix-ui/react-select", "bootstrap", "quill", "esbuild"),
    "tabulator-tables",
)

TODO: Final = """
import React, { useState } from "react";
import { createRoot } from "react-dom/client";

function Item({ todo, change, remove }) {
  const [text, setText] = useState(null);
  const save = () => { change({ ...todo, title: text.trim() }); setText(null); };
  return <li className={todo.done ? "completed" : ""}>
    <div className="view">
      {text === null ? <>
        <input className="toggle" type="checkbox" checked={todo.done}
          onChange={(event) => change({ ...todo, done: event.target.checked })} />
        <label onDoubleClick={() => setText(todo.title)}>{todo.title}</label>
        <button className="destroy" onClick={() => remove(todo)} />
      </> : <input className="new-todo" value={text}
        ref={(node) => node?.focus()}
        onChange={(event) => setText(event.target.value)} onBlur={save}
        onKeyDown={(event) => event.key === "Enter" && save()} />}
    </div></li>;
}

function App() {
  const [todos, setTodos] = useState([]), [filter, setFilter] = useState("All");
  const add = (event) => {
    const title = event.target.value.trim();
    if (event.key !== "Enter" || !title) return;
    setTodos([...todos, { id: crypto.randomUUID(), title, done: false }]);
    event.target.value = "";
  };
  const shown = todos.filter((todo) => filter === "All" || todo.done === (filter === "Completed"));
  return <section className="todoapp">
    <h1>todos</h1>
    <input className="new-todo" placeholder="What needs to be done?" onKeyDown={add} />
    <main className="main"><ul className="todo-list">{shown.map((todo) =>
      <Item key={todo.id} todo={todo}
        change={(now) => setTodos(todos.map((one) => one.id === now.id ? now : one))}
        remove={() => setTodos(todos.filter((one) => one !== todo))} />)}
    </ul></main>
    <footer className="footer"><span className="todo-count">
      {todos.filter((todo) => !todo.done).length} items left!</span>
      <ul className="filters">{["All", "Active", "Completed"].map((name) => <li key={name}>
        <a href="#/" className={name === filter ? "selected" : ""}
          onClick={(event) => { event.preventDefault(); setFilter(name); }}>{name}</a></li>)}
      </ul></footer></section>;
}
createRoot(document.querySelector("#root")).render(<App />);
"""

RADIX: Final = """
import React, { useState } from "react";
import { createRoot } from "react-dom/client";
import * as Tabs from "@radix-ui/react-tabs";
import * as Dialog from "@radix-ui/react-dialog";
import * as Checkbox from "@radix-ui/react-checkbox";
import * as Select from "@radix-ui/react-select";

function App() {
  const [saved, setSaved] = useState("nothing"), [mails, setMails] = useState(false);
  const [language, setLanguage] = useState("en");
  return <main><h1>Profile</h1>
    <Tabs.Root defaultValue="account"><Tabs.List aria-label="Parts">
      {["account", "billing", "team"].map((name) =>
        <Tabs.Trigger key={name} value={name}>{name}</Tabs.Trigger>)}</Tabs.List>
      {["account", "billing", "team"].map((name) => <Tabs.Content key={name} value={name}>
        <p>This is {name}</p>
        <Dialog.Root><Dialog.Trigger>Edit</Dialog.Trigger><Dialog.Portal><Dialog.Overlay />
          <Dialog.Content aria-describedby={undefined}><Dialog.Title>Edit {name}</Dialog.Title>
            <label>Name <input name="name" /></label>
            <Checkbox.Root aria-label="Mails" checked={mails} onCheckedChange={setMails}>
              <Checkbox.Indicator>v</Checkbox.Indicator></Checkbox.Root>
            <Select.Root value={language} onValueChange={setLanguage}>
              <Select.Trigger aria-label="Language"><Select.Value /></Select.Trigger>
              <Select.Portal><Select.Content><Select.Viewport>
                {["en", "de", "fr"].map((one) => <Select.Item key={one} value={one}>
                  <Select.ItemText>{one}</Select.ItemText></Select.Item>)}
              </Select.Viewport></Select.Content></Select.Portal></Select.Root>
            <Dialog.Close onClick={(event) => setSaved(
              name + " " + event.target.closest("[role=dialog]").querySelector("input").value)}>
              Save</Dialog.Close>
          </Dialog.Content></Dialog.Portal></Dialog.Root></Tabs.Content>)}
    </Tabs.Root>
    <p id="state">{saved}, {String(mails)}, {language}</p></main>;
}
createRoot(document.querySelector("#root")).render(<App />);
"""

MODAL: Final = """<link rel="stylesheet" href="bootstrap/bootstrap.min.css">
<script src="bootstrap/bootstrap.bundle.min.js"></script><h1>Orders</h1>
<div class="dropdown"><button class="btn dropdown-toggle" data-bs-toggle="dropdown">More</button>
<ul class="dropdown-menu"><li><button class="dropdown-item" data-bs-toggle="modal"
data-bs-target="#m1">Rename</button></li><li><button class="dropdown-item" data-bs-toggle="modal"
data-bs-target="#m2">Delete</button></li></ul></div>
<div class="modal fade" id="m1" tabindex="-1" aria-labelledby="t1"><div class="modal-dialog">
<div class="modal-content"><div class="modal-header"><h5 id="t1">Rename it</h5>
<button class="btn-close" data-bs-dismiss="modal" aria-label="Close"></button></div>
<div class="modal-body"><input class="form-control" aria-label="New name">
<div class="form-check form-switch"><input class="form-check-input" type="checkbox" id="s1">
<label class="form-check-label" for="s1">Everywhere</label></div></div>
<div class="modal-footer"><button class="btn ok" data-bs-dismiss="modal">Save</button></div>
</div></div></div>
<div class="modal fade" id="m2" tabindex="-1" aria-labelledby="t2"><div class="modal-dialog">
<div class="modal-content"><div class="modal-header"><h5 id="t2">Delete it</h5>
<button class="btn-close" data-bs-dismiss="modal" aria-label="Close"></button></div>
<div class="modal-footer"><button class="btn ok" data-bs-dismiss="modal">Save</button></div>
</div></div></div><p id="state"></p><script>
for (const modal of document.querySelectorAll(".modal"))
  modal.querySelector(".ok").addEventListener("click", () => {
    document.querySelector("#state").textContent += modal.querySelector("h5").textContent + " " +
      (modal.querySelector(".form-control")?.value ?? "") + " " +
      (modal.querySelector("[type=checkbox]")?.checked ?? "") + "; ";
  });
</script>"""

QUILL: Final = """<link rel="stylesheet" href="quill/quill.snow.css"><h1>Notes</h1>
<div id="editor"></div><pre id="held"></pre><script src="quill/quill.js"></script><script>
const quill = new Quill("#editor", { theme: "snow" });
quill.on("text-change", () => {
  document.querySelector("#held").textContent = JSON.stringify(quill.getContents());
});
</script>"""

TABLE: Final = """<link rel="stylesheet" href="tabulator/tabulator.min.css"><h1>People</h1>
<div id="table"></div><pre id="held"></pre><script src="tabulator/tabulator.min.js"></script>
<script>
const names = ["Smith", "Jones", "Smithson", "Baker"];
const data = names.map((name, n) => ({ id: n, name, city: "Town " + "ABCD"[n], vip: false }));
const table = new Tabulator("#table", {
  data, layout: "fitColumns", editTriggerEvent: "dblclick",
  columns: [
    { formatter: "rowSelection", hozAlign: "center", headerSort: false, width: 60 },
    { title: "Name", field: "name", editor: "input" }, { title: "City", field: "city" },
    { title: "Vip", field: "vip", formatter: "tickCross", headerSort: false,
      cellClick: (event, cell) => cell.setValue(!cell.getValue()) } ],
});
const tell = () => { document.querySelector("#held").textContent = JSON.stringify(
  [table.getData("active"), table.getSelectedData().map((one) => one.name)]); };
for (const name of ["cellEdited", "rowSelectionChanged", "dataSorted"]) table.on(name, tell);
</script>"""


def missing() -> str:
    """Why the applications cannot be made here; empty where they can."""
    given = os.environ.get("RECORDING_NODE_MODULES", "")
    if not given:
        return "RECORDING_NODE_MODULES names no folder with npm packages"
    lacking = [name for name in PACKAGES if not (Path(given) / name).is_dir()]
    return f"RECORDING_NODE_MODULES lacks {', '.join(lacking)}" if lacking else ""


def made(folder: Path) -> None:
    """Write the applications into `folder`: todo, radix, modal, quill and table, each `.html`."""
    modules = Path(os.environ["RECORDING_NODE_MODULES"])
    for name, dist in (
        ("bootstrap", ("css", "js")),
        ("quill", ("",)),
        ("tabulator", ("css", "js")),
    ):
        (folder / name).mkdir()
        package = "tabulator-tables" if name == "tabulator" else name
        for part in dist:
            for file in (modules / package / "dist" / part).iterdir():
                if file.suffix in (".css", ".js"):
                    (folder / name / file.name).write_bytes(file.read_bytes())
    css = modules / "todomvc-app-css" / "index.css"
    (folder / "todo.css").write_bytes(css.read_bytes())
    for name, source in (("todo", TODO), ("radix", RADIX)):
        (folder / f"{name}.jsx").write_text(source)
        built = ("--bundle", f"--outfile={folder / name}.js", f"{folder / name}.jsx")
        subprocess.run(
            [modules / ".bin" / "esbuild", *built, "--log-level=error"],
            check=True,
            env={**os.environ, "NODE_PATH": str(modules)},
        )
        link = f'<link rel="stylesheet" href="{name}.css"><div id="root"></div>'
        write(folder, name, f'{link}<script src="{name}.js"></script>')
    for name, page in (("modal", MODAL), ("quill", QUILL), ("table", TABLE)):
        write(folder, name, page)


def write(folder: Path, name: str, body: str) -> None:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
    (folder / f"{name}.html").write_text(head + body, "utf-8")
