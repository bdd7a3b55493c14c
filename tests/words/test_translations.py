"""Every text has its words in every language; nothing is left over, nothing is lost in between."""

from __future__ import annotations

import json
import re
from string import Formatter

import pytest

from engine.text import messages
from engine.text.messages import ENGLISH
from engine.text.words import count, decimal, rate, took
from gui.i18n.language import FOLDER, NAMES, Texts, pseudo_text
from tests.words.source_texts import error_texts, missing, sources, window_texts

LANGUAGES = [code for code in NAMES if code != "en"]
# The same in German: names, units, signs, and words that German has taken over.
SAME = {
    *("Proxy", "Playwright", "Viewport", "socks5://host:1080", "tls://host:8790", "Worker"),
    *(
        " GB",
        " s",
        "#",
        "+",
        "{0} ({1} s)",
        "−",
        "1:1",
        "URL",
        "WARC",
        "Audit",
        "H1",
        "Links",
        "Robots",
        "JSON",
        "Markdown",
        "example.com/docs",
    ),
    *("{0} ({1})", "{0}: {1}", "{0} × {1} · {2} %", "main article"),
    *("Browser", "Browser (Chromium)", "Budget", "Budgets"),
    *("&Details", "Host", "Live", "● Live", "Name", "&Name", "Normal", "Phase: {0}", "Sitemap"),
    *("Port", "Server", "Status", "Text", "Version", "✖ Problem"),
    *("390x844", "de-DE", "Europe/Berlin", "iPhone 15, Pixel 7, iPad Mini"),
    *("Authorization: Bearer env:TOKEN", "[onclick], [role=menuitem]"),
}
SAME_MESSAGES = {
    *("subject.proxy", "connection.playwright"),
    *(
        "kind.crawl",
        "kind.crawl_sitemap",
        "facet.title",
        "facet.sentence",
        "column.status",
        "column.budget",
        "column.host",
        "report.field.host",
        "report.field.client",
    ),
    *("changes.counted", "details.tab.count"),
    *(f"audit.column.{name}" for name in ("code", "links_out", "bytes", "problem", "rel")),
    *("column.attention", "column.forced.at", "column.phase", "task.unnamed", "error.with_code"),
    *(
        "unit.tabs.one",
        "unit.tabs.many",
        "unit.tabs.of.one",
        "unit.tabs.of.many",
        "field.budget",
        "field.ledger",
        "event.budget",
        "refused.line",
    ),
    *(
        "budget.worst",
        "budget.spoken",
        "budget.short.allowedDomains",
        "events.chip",
        "age.ahead",
        "column.root",
    ),
    *(one for one in ENGLISH if one.startswith(("progress.", "rate."))),
    *("column.client", "caller.named", "route.mcp", "route.http"),
    *(
        f"report.field.{name}"
        for name in ("n", "url", "status", "bytes", "text", "name", "phase", "ledger")
    ),
}
SAME_ERRORS = {"{path}: {reason}", "{reason}", "{way_out}", "{suggested_next_action}"} | {
    "{element} {reason}",
    "{reason}{candidates}",
}
SPECIALS = re.compile(r"&(.)")


@pytest.fixture(params=LANGUAGES)
def spoken(request: pytest.FixtureRequest) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(
        (FOLDER / f"{request.param}.json").read_text("utf-8")
    )
    return found


def pairs(spoken: dict[str, dict[str, object]]) -> list[tuple[str, str]]:
    """Each English text with its translation."""
    wanted = sources()
    found = [(wanted["messages"][key], text) for key, text in spoken["messages"].items()]
    found += [(source, text) for source, text in spoken["window"].items()]
    for code, parts in wanted["errors"].items():
        # The file is typed as nested objects.
        found += [(text, spoken["errors"][code][part]) for part, text in parts.items()]  # type: ignore[index]
    return [(source, str(text)) for source, text in found]


def fields(text: str) -> list[str]:
    """What stands in braces, with how it is formatted."""
    return sorted(f"{name}:{form}" for _, name, form, _ in Formatter().parse(text) if name)


def test_nothing_is_missing(spoken: dict[str, dict[str, object]]) -> None:
    assert missing(spoken) == {"messages": {}, "errors": {}, "window": {}}


def test_nothing_is_left_over(spoken: dict[str, dict[str, object]]) -> None:
    wanted = sources()
    for part in ("messages", "errors", "window"):
        assert set(spoken[part]) - set(wanted[part]) == set()
    for code, told in spoken["errors"].items():
        # The file is typed as nested objects.
        assert set(told) == set(wanted["errors"][code]), code  # type: ignore[call-overload]


def test_every_field_is_filled_in_as_in_english(spoken: dict[str, dict[str, object]]) -> None:
    for source, text in pairs(spoken):
        assert fields(text) == fields(source), source


def test_keys_ellipses_and_lines_stay(spoken: dict[str, dict[str, object]]) -> None:
    for source, text in pairs(spoken):
        assert text.strip(), source
        assert len(SPECIALS.findall(text)) == len(SPECIALS.findall(source)), source
        assert text.endswith("…") == source.endswith("…"), source
        assert text.startswith(" ") == source.startswith(" "), source
        assert text.count("\n") == source.count("\n"), source
        assert text == text.rstrip(), source


def test_what_is_the_same_in_german_is_known_to_be() -> None:
    spoken = json.loads((FOLDER / "de.json").read_text("utf-8"))
    assert {source for source, text in spoken["window"].items() if source == text} == SAME
    same = {key for key, text in spoken["messages"].items() if ENGLISH[key] == text}
    assert same <= SAME_MESSAGES
    told = error_texts()
    kept = {
        text
        for code, parts in spoken["errors"].items()
        for part, text in parts.items()
        if told[code][part] == text
    }
    assert kept <= SAME_ERRORS


def test_german_is_polite_and_sets_its_own_quotes() -> None:
    spoken = json.loads((FOLDER / "de.json").read_text("utf-8"))
    for _, text in pairs(spoken):
        assert not re.search(r"\b(du|dein|deine|deinen|dir)\b", text), text
        assert "“" not in text.replace("“", "", text.count("„")), text  # each opened by „
        assert text.count("„") == text.count("“"), text


def test_a_text_names_a_button_or_an_action_as_it_is_called(
    spoken: dict[str, dict[str, object]],
) -> None:
    names: dict[str, set[str]] = {}
    for source, text in pairs(spoken):
        names.setdefault(SPECIALS.sub(r"\1", source), set()).add(SPECIALS.sub(r"\1", text))
    wrong = [
        (source, name)
        for source, text in pairs(spoken)
        for name in re.findall("“([^”{}]+)”", source)
        if name in names and not any(one in text for one in names[name])
    ]
    assert wrong == []


def test_no_two_kinds_of_events_have_one_name(spoken: dict[str, dict[str, object]]) -> None:
    texts = [str(text) for key, text in spoken["messages"].items() if key.startswith("event.")]
    names = [text.strip("✕ ").casefold() for text in texts]
    assert sorted(names) == sorted(set(names))


def test_the_search_for_texts_finds_those_of_every_kind() -> None:
    found = window_texts()
    assert len(found) > 900
    assert {"&New task…", "Status", "✓ Done", "Recording and replay"} <= found


def test_numbers_are_grouped_as_the_language_does() -> None:
    spoken = json.loads((FOLDER / "de.json").read_text("utf-8"))
    messages.use(spoken["messages"], group=".", point=",")
    try:
        assert (count(1_234_567), decimal(1234.56, 1), took(6_040)) == (
            "1.234.567",
            "1.234,6",
            "6,0 s",
        )
        assert (rate(1.34), rate(0.05)) == ("1,3/s", "3,0/min")
    finally:
        messages.use({})
    assert (count(1_234_567), took(6_040), rate(0.05)) == ("1,234,567", "6.0 s", "3.0/min")


def test_a_language_without_a_text_says_it_in_english() -> None:
    nothing = Texts({})
    assert nothing.window("Cancel") is None
    assert nothing.error("no_screen", "title", "There is no screen") == "There is no screen"


def test_disguised_english_keeps_its_fields_and_is_a_third_longer() -> None:
    assert pseudo_text("Show {0} tasks").count("{0}") == 1
    assert pseudo_text("") == ""
    for text in window_texts():
        assert fields(pseudo_text(text)) == fields(text)
        assert len(pseudo_text(text)) >= len(text) * 4 // 3
