"""HTML report: one page to read or print, with nothing in it but text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from engine.export.table import About, Table, text_of
from engine.model.display import display_lines
from engine.text.messages import ENGLISH

# No link and no image: an address in a report is text, as the policy enforces.
TEMPLATE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif }
body { margin: 2rem; max-width: 120rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
.partial { border-left: .3rem solid #c60; padding-left: .6rem; font-weight: 600 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem }
dt { font-weight: 600 }
dd { margin: 0; overflow-wrap: anywhere }
table { border-collapse: collapse; margin-top: 1.5rem; width: 100% }
th, td { border: 1px solid #8886; padding: .25rem .5rem; text-align: left; vertical-align: top }
th { position: sticky; top: 0; background: Canvas }
td { white-space: pre-wrap; overflow-wrap: break-word; max-width: 40rem }
@media print { body { margin: 0 } th { position: static } td { overflow-wrap: anywhere } }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p{% if partial %} class="partial"{% endif %}>{{ note }}</p>
<dl>
{% for name, value in facts %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}
</dl>
<table>
<thead><tr>{% for name in names %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for cells in rows %}
<tr>{% for cell in cells %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
<p>{{ written() }}</p>
{% for line in notes() %}
<p>{{ line }}</p>
{% endfor %}
</body>
</html>
"""


def write_html(out: BinaryIO, table: Table) -> None:
    """Write the report row by row; the template escapes every value."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    about = table.about
    pieces = environment.from_string(TEMPLATE).generate(
        title=_shown(about.name or about.url or f"{about.kind} {about.task_id}"),
        partial=about.partial,
        note=about.note,
        facts=[(name, _shown(text)) for name, text in facts(about)],
        names=[_shown(column.name) for column in table.columns],
        rows=_cells(table),
        written=lambda: ENGLISH["export.rows"].format(count=table.tally.rows),
        notes=table.tally.notes,
    )
    for piece in pieces:
        out.write(piece.encode())


def facts(about: About) -> list[tuple[str, str]]:
    """List the facts about the task as names and texts; empty ones are omitted."""
    values = {name: getattr(about, name) for name in about.__struct_fields__ if name != "summary"}
    values.update({f"summary.{name}": value for name, value in about.summary.items()})
    return [(name, text_of(value)) for name, value in values.items() if value not in ("", None)]


def _cells(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        yield [_shown(text_of(value)) for value in table.values(row)]


def _shown(text: str) -> str:
    return display_lines(text)
