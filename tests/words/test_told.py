"""The engine's own sentences are translated in the window."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ledger.filesystem_checks import Mount, disk_concern, unreliable_notices
from engine.model.errors import EngineError, InvalidArguments, LedgerUnusable, NothingTaken, Problem
from engine.model.records import Units
from engine.results.action_words import action_words
from engine.text import messages, words
from gui.i18n import language
from gui.i18n.language import (
    FOLDER,
    MOST_CHARS,
    NAMES,
    ReasonTranslator,
    Template,
    pseudo_text,
    texts,
)
from tests.words.told_texts import WHOLE, told_texts

LANGUAGES = [code for code in NAMES if code != "en"]
SYSTEM = (
    *(errno.EACCES, errno.EDQUOT, errno.EEXIST, errno.EFBIG, errno.EIO, errno.EISDIR, errno.EMFILE),
    *(errno.ENFILE, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS),
)
GAP = re.compile(r"\{(\d+)\}")


@pytest.fixture(params=LANGUAGES)
def recognised(request: pytest.FixtureRequest) -> ReasonTranslator:
    told = texts(request.param).told
    assert isinstance(told, ReasonTranslator)
    return told


def test_every_reason_that_the_engine_words_has_its_words(recognised: ReasonTranslator) -> None:
    reasons = {one: GAP.sub(lambda gap: f"«{gap[1]}»", one) for one in told_texts()}
    assert len(reasons) > 300
    assert [one for one, reason in reasons.items() if recognised(reason) == reason] == []


def test_a_reason_is_translated_while_another_thread_reads_the_translations() -> None:
    heard = list[str]()

    class Watched(ReasonTranslator):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_whole" and value:  # so that the other thread takes all for read
                heard.append(self("late by 7 s"))

    told = Watched({"late by {0} s": "{0} s zu spät", "late": "spät"})
    told("late")
    assert heard == ["7 s zu spät"]
    assert told("late by 7 s") == "7 s zu spät"


def test_no_fact_is_lost_in_between(recognised: ReasonTranslator) -> None:
    for one in told_texts():
        said = recognised(GAP.sub(lambda gap: f"«{gap[1]}»", one))
        assert sorted(re.findall("«.»", said)) == sorted(f"«{at}»" for at in GAP.findall(one)), one


@pytest.mark.parametrize("reason", [*WHOLE, *map(os.strerror, SYSTEM)])
def test_composed_texts_are_translated(recognised: ReasonTranslator, reason: str) -> None:
    assert recognised(reason) != reason


def mounted(kind: str) -> list[Mount]:
    return [Mount("/", kind)]


def test_what_is_said_of_the_place_of_a_ledger_has_them_too(recognised: ReasonTranslator) -> None:
    for kind in ("nfs4", "strangefs"):
        concern = disk_concern(Path("/nowhere"), partial(mounted, kind))
        assert concern is not None
        said = recognised(str(concern))
        assert concern.text not in said
        assert concern.advice not in said
        assert kind in said
    deaf = unreliable_notices(Path("/nowhere"), partial(mounted, "strangefs"))
    assert recognised(deaf) not in ("", deaf)


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_has_the_same_gaps_in_every_language(code: str) -> None:
    told = json.loads((FOLDER / f"{code}.json").read_text("utf-8"))["told"]
    for source, said in told.items():
        assert sorted(Template.of(source).names) == sorted(Template.of(said).names), source
        assert said.strip() == said != "", source


def test_a_reason_within_a_reason_is_told_as_well(recognised: ReasonTranslator) -> None:
    german = texts("de").told
    assert german("No page could be taken: the server did not answer").endswith(
        "der Server hat nicht geantwortet"
    )
    assert german("[Errno 13] Permission denied: '/x'") == "[Errno 13] Zugriff verweigert: '/x'"
    assert german("is not an argument of a crawl; did you mean url?") == (
        "ist als Argument nicht bekannt (ein Crawl); meinten Sie url?"
    )


def test_what_others_say_stays_as_it_is(recognised: ReasonTranslator) -> None:
    for foreign in ("", "shop is closed", "404: Not Found", "Größe: 3", "{0} {x} }{", "%s"):
        assert recognised(foreign) == foreign


def test_a_long_text_is_not_looked_through(recognised: ReasonTranslator) -> None:
    hostile = "must be between " + " and ".join(["1"] * 100_000)
    assert len(hostile) > MOST_CHARS
    began = time.process_time()
    assert recognised(hostile) == hostile
    assert recognised(": " * (MOST_CHARS // 2)) == ": " * (MOST_CHARS // 2)
    assert time.process_time() - began < 20.0


@given(st.text(max_size=300))
def test_nothing_makes_it_fail(text: str) -> None:
    assert isinstance(ReasonTranslator({"{0} of {1}": "{1}: {0}", "a {{b}}": "c"})(text), str)


def test_gaps_may_change_their_places() -> None:
    told = ReasonTranslator({"{0} of {1}": "{1}: {0}", "a {{b}}": "c {{d}}"})
    assert told("three of  seven") == " seven: three"
    assert told("a {b}") == "c {d}"


def test_mistakes_and_errors_are_told_in_the_language(spoken_german: None) -> None:
    problem = Problem("url", "missing", "is needed: the address to start at")
    assert language.mistake(problem).startswith("url: wird gebraucht: ")
    assert language.told(InvalidArguments((problem, problem))).count("url: wird gebraucht") == 2
    assert "wird" not in str(InvalidArguments((problem,)))
    unusable = LedgerUnusable(path="/l", reason="this is not a folder")
    assert language.sentence(unusable) == "/l: dies ist kein Ordner"
    taken = NothingTaken(reason="the server did not answer")
    assert "hat nicht geantwortet" in language.sentence(taken)
    assert language.translated(problem).path == "url"
    most = Problem("max_pages", "invalid_value", "must be between 1 and 1,000,000")
    assert language.mistake(replace(most, message="not done within 1.5 s")).endswith("nach 1,5 s")
    assert language.mistake(most) == "max_pages: muss zwischen 1 und 1.000.000 liegen"
    assert language.advice(unusable) not in ("", LedgerUnusable.advice_text)


def test_in_the_pseudo_language_every_reason_is_marked() -> None:
    messages.use({}, told=pseudo_text)
    try:
        assert messages.retold("is empty").startswith("[")
    finally:
        messages.use({})
    assert messages.retold("is empty") == "is empty"


@pytest.fixture
def spoken_german(qapp: object) -> object:
    from PySide6.QtCore import QLocale

    from tests.gui.windows import app

    before = QLocale()
    language.speak(app(), "de")
    yield
    language.speak(app(), "en")
    QLocale.setDefault(before)
    assert language.sentence(EngineError(message="is empty")) == "is empty"


def test_german_progress_calls_no_unit_that_failed_or_never_ran_done(spoken_german: object) -> None:
    told = words.progress_spoken("commands", Units(2, 3, failed=1))
    assert told == "2 von 3 Befehlen, davon 1 fehlgeschlagen"
    told = words.progress_spoken("crawl", Units(40, 40, failed=9))
    assert told == "40 von 40 Seiten, davon 9 fehlgeschlagen"
    assert words.progress_spoken("crawl", Units(1, 1)) == "1 von 1 Seite"


ACTIONS: tuple[dict[str, object], ...] = (
    {"type": "navigate", "url": "https://a.example/in%20the/page"},
    {"type": "navigated", "url": "https://a.example/"},
    {"type": "navigate", "how": "back"},
    {"type": "click", "role": "link"},
    {"type": "click", "role": "button", "name": "Back"},
    {"type": "click", "role": "button", "name": "Go", "count": 2, "button": "right"},
    {"type": "click", "role": "generic", "name": "Own “role”"},
    {"type": "click", "role": "link", "selector": "#menu > li.first"},
    {"type": "key", "key": "Tab", "role": "textbox", "name": "Password", "selector": "#p"},
    {"type": "key", "key": "Control+A"},
    {"type": "type", "role": "searchbox", "name": "Find", "text": "{{find}}"},
    {"type": "select", "role": "combobox", "name": "Size", "values": ["M", "L"]},
    {"type": "scroll", "dy": 300},
    {"type": "dialog", "answer": "accepted", "name": "Sure?"},
    {"type": "close_tab", "tab": 1},
)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_stored_action_is_translated_to_what_the_list_of_actions_says(
    spoken_german: object, action: dict[str, object]
) -> None:
    stored = action_words(action, english=True)
    assert messages.retold(stored) == action_words(action) != stored


@pytest.mark.parametrize(
    "text",
    [
        *("Check the prices", "Click the login link.", "Press the button", "Go to the next page"),
        *("Type a report into the log", "Select all in the list", "Scroll on", "Drag it"),
    ],
)
def test_a_note_of_an_agent_is_not_taken_for_an_action(spoken_german: object, text: str) -> None:
    assert messages.retold(text) == text


def test_the_end_of_a_command_is_told_in_the_language(spoken_german: object) -> None:
    assert messages.retold("3. open the shop (error)") == "3. open the shop (fehlgeschlagen)"
    assert messages.retold("3. open (it) (success)") == "3. open (it) (gelungen)"
