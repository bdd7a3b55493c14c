"""Forms whose fields have the names of properties: the fields shadow them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.sample.site import Answer
from tests.recording.test_recording_names import named, showing

SHADOWING = ("children", "childNodes", "matches", "nodeType", "parentElement", "parentNode")


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_elements_of_a_form_are_named_whatever_its_fields_are_called(
    subtests: pytest.Subtests,
) -> None:
    for name in SHADOWING:
        form = (
            f"<form id=words><input name=adults><select name={name}><option>1</select>"
            "<button>Search</button><p>a</p><p>b</p><iframe></iframe><iframe></iframe></form>"
            "<button aria-labelledby=words></button>"
        )
        with subtests.test(name=name):
            async with showing(form) as page:
                elements = "document.querySelectorAll('button, p, option')"
                for number in range(5):
                    told = await named(page, f"{elements}[{number}]")
                    for css in (told["css"], told["path"]):
                        same = f"(css) => document.querySelector(css) === {elements}[{number}]"
                        assert await page.evaluate(same, css)
                inside = await named(page.frames[2], "document.body")
                assert inside["frame"][0].endswith("iframe:nth-of-type(2)")


PAGE = """<!doctype html><style>
  .more { display: none } .menu:hover .more { display: inline } form, nav { padding: 30px }
</style>
<form><input name=adults><input name=children><button type=button>Search</button></form>
<form id=near><input name=closest></form>
<form id=moved><input name=matches></form>
<nav class=menu><form><input name=parentElement><button type=button class=more>First</button>
</form></nav>
<form class=menu><input name=matches><button type=button class=more>Second</button></form>
<div contenteditable><form><button name=parentElement></button><p contenteditable id=words>words</p>
</form></div>
<form id=gone onpointerdown="this.remove()"><input name=matches></form>"""


async def corner(page: Any, css: str) -> tuple[float, float]:
    """A point of an element. Playwright's own actions fail on such forms."""
    await page.wait_for_function(f"document.querySelector({css!r}).offsetWidth")
    box = f"document.querySelector({css!r}).getBoundingClientRect()"
    x, y = await page.evaluate(f"[{box}.x + 5, {box}.y + 5]")
    return x, y


async def test_a_click_at_which_its_element_goes_is_recorded_by_a_busy_page(
    recording: Any, site: Any
) -> None:
    site.answers["/forms"] = Answer(PAGE.encode())
    async with recording(f"{site.url}/forms") as running:
        operator = running.operator
        page = operator.page
        places = [await corner(page, css) for css in ("#gone", "#near")]
        wire = await page.context.new_cdp_session(page)
        busy = "const end = performance.now() + 1000; while (performance.now() < end);"
        sent = [wire.send("Runtime.evaluate", {"expression": busy})]
        for x, y in places:
            for kind in ("mousePressed", "mouseReleased"):
                told = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
                sent.append(wire.send("Input.dispatchMouseEvent", told))
        await asyncio.gather(*sent)
        await operator.recorded("click", 2)
        await running.stop()
        actions = [(one["type"], one.get("selector")) for one in running.result()["actions"][1:]]
    assert [kind for kind, _ in actions] == ["click", "click"]
    assert [selector for _, selector in actions] == ["#gone", "#near"]


async def test_actions_in_forms_are_recorded_whatever_their_fields_are_called(
    recording: Any, site: Any
) -> None:
    site.answers["/forms"] = Answer(PAGE.encode())
    async with recording(f"{site.url}/forms") as running:
        operator = running.operator
        page = operator.page
        await operator.type("[name=children]", "2")
        await operator.click("text=Search")
        await page.mouse.click(*await corner(page, "#near"))
        for menu in ("nav.menu", "form.menu"):
            await page.mouse.move(*await corner(page, menu))
            await page.mouse.click(*await corner(page, f"{menu} .more"))
        await page.mouse.click(*await corner(page, "#words"))
        await page.mouse.click(*await corner(page, "#gone"))
        x, y = await corner(page, "#moved")
        await page.mouse.move(x, y)
        await page.mouse.down()
        await page.mouse.move(x + 20, y)
        await page.mouse.up()
        await operator.recorded("drag")
        await running.stop()
        actions = [(one["type"], one.get("selector")) for one in running.result()["actions"][1:]]
    assert [kind for kind, _ in actions] == [
        *("click", "type", "click", "click", "hover", "click", "hover", "click", "click"),
        *("click", "drag"),
    ]
