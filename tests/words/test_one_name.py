"""One thing has one name: labels, messages and help avoid the words that the glossary names."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from engine.text.cli_messages import ENGLISH as CLI
from engine.text.messages import ENGLISH
from engine.verbs.verb_table import VERBS
from tests.words.source_texts import ROOT, window_texts

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
_, _, AVOIDED = GLOSSARY.partition("## Words that labels do not use")
INSTEAD = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", AVOIDED, re.MULTILINE)[1:])


def shown() -> Iterator[str]:
    yield from window_texts()
    yield from ENGLISH.values()
    yield from CLI.values()
    for verb in VERBS.values():
        yield verb.help
        yield from (param.help for param in verb.params)


@pytest.mark.parametrize("word", INSTEAD)
def test_no_label_has_a_word_that_the_glossary_replaces(word: str) -> None:
    found = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    assert [text for text in shown() if found.search(text)] == []
