"""Stored markup contains no values of secret fields."""

from __future__ import annotations

import time

import pytest

from engine.browser.page.secret_mask import without_secret_values


@pytest.mark.parametrize(
    "field",
    [
        '<input type="password" value="hunter2">',
        '<input value="hunter2" id="a>b" type="PASSWORD">',
        '<input autocomplete="section-a cc-number" value="hunter2">',
        '<INPUT\ntype="password"\nvalue="hunter2',
    ],
)
def test_a_secret_fields_value_is_replaced(field: str) -> None:
    told = without_secret_values(f"<p>hunter2 is a word</p>{field}")
    assert told.count("hunter2") == 1
    assert 'value="[redacted]"' in told


@pytest.mark.parametrize(
    "markup",
    [
        '<input type="text" value="hunter2" data-type="password">',
        '<p title="<input type=&quot;password&quot;">value="x"</p>',
        '<input type="password" data-value="x">',
    ],
)
def test_everything_else_stays_as_it_is(markup: str) -> None:
    assert without_secret_values(markup) == markup


def test_markup_that_is_made_to_be_slow_is_not() -> None:
    began = time.process_time()
    for part in ('<input "', "<input ", '<input type="password" value="', '<input a="b" \''):
        without_secret_values(part * 200_000)
    assert time.process_time() - began < 40
