"""Every message id is used in the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.budgets import BUDGETS, DOMAINS, NEXT
from engine.model.kind_traits import TRAITS
from engine.model.records import ROUTES
from engine.model.status import Facet, Reason, Standing
from engine.results.site_audit import REPORTS
from engine.results.units import CONSENT_RESULTS
from engine.text.messages import ENGLISH
from engine.text.words import LEFT_OUT, REMARKS, SITEMAP_LIMITS
from gui.details.audit_tab import PROBLEMS
from gui.details.event_table import TITLES
from gui.details.facts import FIELDS
from gui.details.panel import TABS
from gui.tasks.columns import COLUMNS, CONTRACTS

ROOT = Path(__file__).resolve().parents[2]
STANDINGS = [state.value for state in Standing]
NOUNS = ("units", *(one.unit_noun for one in TRAITS.values()))
NUMBERS = ("one", "many")
# How the program builds ids from values: each entry is an f-string of it.
BUILT = {
    *(f"status.{state}" for state in STANDINGS),
    *(f"why.{state}{more}" for state in STANDINGS for more in ("", ".foreign")),
    *(f"facet.{facet.value}" for facet in Facet),
    *(f"attention.{reason.value}" for reason in Reason),
    *(f"column.{column.key}{more}" for column in COLUMNS for more in ("", ".long")),
    *(f"unit.{noun}.{of}{number}" for noun in NOUNS for of in ("", "of.") for number in NUMBERS),
    *(
        message.format(one)
        for one in REMARKS
        for message in ("page.{}", "pages.{}", "pages.{}.one")
    ),
    *(f"left_out.{one}{more}" for one in LEFT_OUT for more in ("", ".one")),
    *(f"sitemap_limit.{one}" for one in SITEMAP_LIMITS),
    *(f"field.{field}" for field in FIELDS),
    *(f"events.{title}" for title in TITLES),
    *(f"{name}.{route}" for name in ("route", "facet.route", "caller") for route in ROUTES),
    *(f"caller.named.{route}" for route in ROUTES),
    *(f"kind.{kind}" for kind in TRAITS),
    *(f"budget.{status}" for status in ("ok", "warning")),
    *(f"said.budget.{level}" for level in NEXT),
    *(f"said.guard.{answer}" for answer in ("allowed", "refused")),
    *(f"budget.name.{key}" for key in (*BUDGETS, DOMAINS)),
    *(f"budget.short.{key}" for key in (*BUDGETS, DOMAINS)),
    *(f"budget.level.{level}" for level in NEXT),
    *(f"contract.{state}" for state in CONTRACTS),
    *(f"advice.{advice}" for advice in NEXT.values() if advice),
}
BUILT |= {f"audit.{one.name}{more}" for one in REPORTS for more in ("", ".about")}
BUILT |= {f"audit.column.{column.name}" for one in REPORTS for column in one.columns}
BUILT |= {f"consent.{result}" for result in CONSENT_RESULTS}
BUILT |= {f"audit.problem.{problem}" for problem in PROBLEMS}
BUILT |= {f"details.{key}" for key in ("timeline", *(kind.key for kind in TABS))}
# Why a body stopped is one word of its result; a table of who ends how would say it twice.
BUILT |= {one for one in ENGLISH if one.startswith("ended.")}
BUILT |= {"connection.direct", "connection.playwright"}  # by the summary of a crawl
# Actions of a recording are worded by their type and how they were done (see action_words).
BUILT |= {one for one in ENGLISH if one.startswith(("action.", "role."))}
# Names that stand in the files, and are looked up there.
BUILT |= {one for one in ENGLISH if one.startswith(("log.", "part.", "report."))}
EVENTS = "event."  # kinds come from the files of strangers, too


def literals() -> Iterator[str]:
    """Every string that stands in the program, but for the messages themselves."""
    for folder in ("engine", "gui"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.name in ("messages.py", "detail_messages.py"):
                continue
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


@pytest.fixture(scope="module")
def written() -> set[str]:
    return set(literals())


@pytest.mark.parametrize("message_id", [one for one in ENGLISH if not one.startswith(EVENTS)])
def test_every_message_is_used(message_id: str, written: set[str]) -> None:
    subject = message_id.removeprefix("subject.")  # of what the doctor found
    assert {message_id, subject} & written or message_id in BUILT
