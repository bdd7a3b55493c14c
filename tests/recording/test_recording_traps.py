"""Pages that change under the mouse: an element is named as it was when the button went down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.recording.conftest import Operator
from tests.recording.trap_pages import PAGES, served


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    with served(PAGES) as url:
        yield url


async def use_the_list(operator: Operator) -> None:
    for text in ("Buy milk", "Walk the dog", "Call Ada"):
        await operator.type(".new-todo", text)
        await operator.page.keyboard.press("Enter")
    await operator.click("li:nth-of-type(2) .toggle")
    await operator.page.locator("li:nth-of-type(1) label").dblclick()
    await operator.page.keyboard.type(" and bread")
    await operator.page.keyboard.press("Enter")
    await operator.click("text=Active")
    await operator.click("li:has-text('Ada') .toggle")  # goes away with the click
    await operator.recorded("check", 2)


async def test_a_checkbox_is_named_as_it_was_before_the_page_answered(
    recording: Any, pages: str
) -> None:
    async with recording(f"{pages}/todo") as running:
        await use_the_list(running.operator)
        await running.stop()
        actions = running.result()["actions"]
    entry = "{{what_needs_to_be_done"
    assert [(one["selector"], one["on"]) for one in actions if one["type"] == "check"] == [
        (f'li:has(:text-is("{entry}_2}}}}")) >> role=checkbox', True),
        (f'li:has(:text-is("{entry}_3}}}}")) >> role=checkbox', True),
    ]
    double = [one for one in actions if one["type"] == "click" and one.get("count") == 2]
    assert [one["selector"] for one in double] == [f'text="{entry}}}}}"']


async def test_what_the_page_takes_away_at_the_press_is_clicked_nevertheless(
    recording: Any, pages: str
) -> None:
    async with recording(f"{pages}/tabs") as running:
        operator = running.operator
        await operator.click("text=Billing")
        await operator.click("text=Choose")
        await operator.click("text=blue")
        await operator.recorded("click", 3)
        await running.stop()
        actions = running.result()["actions"][1:]
    assert [one["selector"] for one in actions] == [
        'role=tab[name="Billing"]',
        'role=button[name="Choose"]',
        'text="blue"',
    ]
    assert not [one for one in actions if "+9" in str(one) or "r1" in str(one)]
