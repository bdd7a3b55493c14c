"""A command task whose own instance looks like another device."""

from __future__ import annotations

from typing import Any

import pytest

from engine.kinds.commands.command_check import check
from engine.model.errors import InvalidArguments
from engine.sample.site import Answer
from tests.commands.conftest import Opening, do, mistakes, results, task

WIDTH = "[innerWidth, navigator.language, navigator.maxTouchPoints > 0].join()"
SHOWN = {"device": "Pixel 7", "locale": "fr-CH", "timezone": "Asia/Tokyo"}


async def test_its_pages_see_the_device(opened: Opening, site: Any) -> None:
    head = b"<meta name=viewport content='width=device-width'>"
    site.answers["/phone"] = Answer(head)
    zone = "Intl.DateTimeFormat().resolvedOptions().timeZone"
    commands = do("goto", url=f"{site.url}/phone"), do("evaluate", script=f"{WIDTH} + {zone}")
    async with opened() as booth:
        _, seen = await results(booth, *commands, **SHOWN)
    assert "412,fr-CH,trueAsia/Tokyo" in seen.values()


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"device": "Pixel 77"}, {"device": "invalid_value"}),
        ({"viewport": "x"}, {"viewport": "invalid_value"}),
        ({"headers": ["X: 1"]}, {"headers": "unknown_argument"}),
        ({"device": "Pixel 7", "instanceId": "inst_1"}, {"device": "not_together"}),
    ],
)
def test_what_is_wrong_with_its_look_is_told(fields: dict[str, Any], wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidArguments) as refused:
        check(task(do("goto", url="http://a.example/"), **fields))
    assert {path: mistakes(refused.value)[path] for path in wrong} == wrong
