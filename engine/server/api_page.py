"""`GET /`: the OpenAPI document as a page without scripts and without any further request."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from engine.kinds.traits import CRAWL_TRAITS
from engine.server.openapi import TAGS, document

CSS: Final = """\
:root {
  color-scheme: light dark;
  --line: light-dark(#d9dde3, #343a43);
  --soft: light-dark(#f5f6f8, #1b1f25);
  --dim: light-dark(#5b6472, #9aa4b2);
  --accent: light-dark(#1f5fbf, #7fb0ff);
  font: 15px/1.5 system-ui, sans-serif;
}
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.5rem 5rem }
h1 { font-size: 1.7rem; margin: 0 }
h1 small { color: var(--dim); font-size: .95rem; font-weight: 400; margin-left: .5rem }
h2 { border-bottom: 1px solid var(--line); font-size: 1.15rem; margin: 2.5rem 0 .8rem;
  padding-bottom: .35rem }
h2 small { color: var(--dim); font-size: .85rem; font-weight: 400; margin-left: .5rem }
p { margin: .5rem 0; max-width: 46rem }
code, pre { font: .86rem/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0;
  overflow-x: auto; padding: .6rem .8rem }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0 }
summary { align-items: baseline; cursor: pointer; display: grid; gap: 0 .75rem;
  grid-template-columns: 3.6rem minmax(13rem, auto) 1fr; list-style: none; padding: .45rem .75rem }
summary::-webkit-details-marker { display: none }
summary:hover, details[open] > summary { background: var(--soft) }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px }
summary span { color: var(--dim) }
b { border-radius: .25rem; color: #fff; font-size: .72rem; letter-spacing: .03em; padding: .12rem 0;
  text-align: center }
.get { background: #1f6fb2 } .post { background: #2c7a47 } .delete { background: #b3402f }
div { border-top: 1px solid var(--line); padding: .6rem .9rem .8rem }
h3 { color: var(--dim); font-size: .82rem; font-weight: 600; margin: .9rem 0 .3rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); font-weight: 400; padding: .3rem .9rem .3rem 0;
  text-align: left; vertical-align: top }
tr:last-child > * { border-bottom: 0 }
th { width: 10rem } td:nth-child(2) { color: var(--dim); width: 9rem }
td { overflow-wrap: anywhere }
i { color: var(--accent); font-size: .8rem; font-style: normal }
@media (max-width: 40rem) {
  summary { grid-template-columns: 3.6rem 1fr } summary span { grid-column: 2 } th { width: auto }
}
"""
TEMPLATE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ info.title }}: HTTP</title>
<style>{{ css }}</style>
</head>
<body>
<h1>{{ info.title }} <small>{{ info.version }}, HTTP on this machine</small></h1>
<p>Every request but this page needs the token. It is in the file that <code>octask serve</code>
names, and that only you can read.</p>
<pre>{{ first }}</pre>
<p>The same as a document for programs: <code>GET /openapi.json</code> (OpenAPI 3.1).
MCP is served at <code>/mcp</code>, WebSocket messages at <code>/ws</code>.</p>
{% for tag in tags %}
<h2>{{ tag.name }} <small>{{ tag.said }}</small></h2>
{% for one in tag.operations %}
<details><summary><b class="{{ one.method }}">{{ one.method|upper }}</b>
<code>{{ one.path }}</code><span>{{ one.summary }}</span></summary>
<div>
{% if one.description %}
<p>{{ one.description }}</p>
{% endif %}
{% for title, rows in one.tables %}
<h3>{{ title }}</h3>
<table>
{% for row in rows %}
<tr><th><code>{{ row.name }}</code>{% if row.required %} <i>required</i>{% endif %}</th>
<td>{{ row.type }}</td><td>{{ row.said }}</td></tr>
{% endfor %}
</table>
{% endfor %}
<h3>Example</h3>
<pre>{{ one.example }}</pre>
</div></details>
{% endfor %}
{% endfor %}
</body>
</html>
"""
# The token goes through a pipe: every user may see the arguments of a process.
FIRST: Final = """\
FILE=@TOKEN_FILE@
URL=$(jq -r .url $FILE)
oc() { jq -r '"header = \\"Authorization: Bearer \\(.token)\\""' $FILE | curl -sS -K - "$@"; }
oc $URL/tasks?limit=3"""
_PLACE: Final = "@TOKEN_FILE@"
_BODIES: Final = {
    "post_tasks": {"kind": CRAWL_TRAITS.name, "args": {"url": "https://example.com/"}},
    "post_tasks_id_wait": {"timeout_ms": 60_000},
    "post_tasks_id_finish": {"outcome": "completed"},
    "post_contracts": {"expected_total": 3, "items": ["a", "b", "c"]},
    "post_contracts_id_update": {"completed": ["a"]},
    "post_task_runs": {"goal": "Read every page"},
    "post_runs": {"task_thread_id": "thread-1"},
    "post_runs_id_fail": {"reason": "the site is closed"},
    "post_tasks_cancel": {"task_ids": ["0123456789abcdef"]},
    "post_tasks_id_update": {"phase": "verify"},
    "post_task_runs_id_checkpoint": {"summary": "half of the pages are read"},
    "post_task_runs_id_needs_help": {"reason": "a captcha"},
}

Row = dict[str, Any]


def api_page(token_file: Path) -> tuple[str, str]:
    """Return the page, and the content security policy that allows its style alone."""
    html, policy = page_template()
    return html.replace(_PLACE, escape(shlex.quote(str(token_file)))), policy


@cache
def page_template() -> tuple[str, str]:
    """Return the page without the path of the token's file, and its content security policy."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    doc = document()
    html = environment.from_string(TEMPLATE).render(
        info=doc["info"], css=Markup(CSS), first=FIRST, tags=_tags(doc)
    )
    digest = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return html, f"default-src 'none'; {allowed}; frame-ancestors 'none'"


def _tags(doc: dict[str, Any]) -> list[Row]:
    by_tag: dict[str, list[Row]] = {}
    for path, methods in doc["paths"].items():
        for method, operation in methods.items():
            row = _operation(path, method, operation)
            by_tag.setdefault(operation["tags"][0], []).append(row)
    return [{"name": name, "said": said, "operations": by_tag[name]} for name, said in TAGS.items()]


def _operation(path: str, method: str, operation: dict[str, Any]) -> Row:
    said = operation.get("description", "")
    in_query = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
    tables = []
    if in_query:
        rows = [_row(one["name"], one["schema"], one["required"], one) for one in in_query]
        tables.append(("Query", rows))
    if fields := _fields(operation):
        tables.append(("Body (JSON)", fields))
    same = said.rstrip(".") == operation["summary"]
    return {
        "path": path,
        "method": method,
        "summary": operation["summary"],
        "description": "" if same else said,
        "tables": tables,
        "example": _example(path, method, operation["operationId"]),
    }


def _fields(operation: dict[str, Any]) -> list[Row]:
    if "requestBody" not in operation:
        return []
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    schema = schema.get("oneOf", [schema])[0]
    required = schema.get("required", ())
    return [
        _row(name, one, name in required, one) for name, one in schema.get("properties", {}).items()
    ]


def _row(name: str, schema: Row, required: bool, described: Row) -> Row:
    said = str(described.get("description", ""))
    if schema.get("default") not in (None, False):
        said = f"{said} (default {schema['default']})"
    if "enum" in schema:
        said = f"{said}: " * bool(said) + ", ".join(map(str, schema["enum"]))
    return {"name": name, "required": required, "type": _type(schema), "said": said}


def _type(schema: Row) -> str:
    if "enum" in schema:
        return "text"
    if schema.get("type") == "array":
        return "list of " + _type(schema.get("items", {})) if schema.get("items") else "list"
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    kind = str(schema.get("type", "any"))
    return {"string": "text", "integer": "number", "boolean": "true or false"}.get(kind, kind)


def _example(path: str, method: str, operation_id: str) -> str:
    words = ["curl" if path == "/" else "oc"]
    if method == "delete":
        words.append("-X DELETE")
    if path.endswith("/events"):
        words.append("-N")
    body = _BODIES.get(operation_id)
    if body is not None:
        words.append(f"--json '{json.dumps(body)}'")
    elif method == "post":
        words.append("--json '{}'")
    return " ".join((*words, "$URL" + path.replace("{id}", "$ID")))
