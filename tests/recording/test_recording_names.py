"""How the recorder names elements: stable, the only match, and as Playwright understands it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import BrowserSession
from engine.egress.egress_policy import Policy

PAGE = """
<main>
  <button id='one' data-testid='save' class='css-1x2y3z'>Save</button>
  <button data-test='twice'>A</button><button data-test='twice'>B</button>
  <button id='go'>Go  <b>on</b></button>
  <button id='close' aria-label='Close it'>x</button>
  <button class='like'>Like</button><button class='like'>Like</button>
  <button id='icon'><svg><title>Bell</title></svg></button>
  <button id='before' style='quotes:none'>Next</button>
  <button><span hidden>Secretly</span>Plain</button>
  <label>Your name <input id='r_93af81c2'></label>
  <label for='mail'>E-mail</label><input id='mail'>
  <input name='city' placeholder='City'><input name='zip' title='Zip code'>
  <input type='radio' name='size' value='s'><input type='radio' name='size' value='m'>
  <a href='/help'>Help</a> <a href='/news?id=4'>News 20260101</a>
  <div role='tab' tabindex=0>First tab</div><div role='tab' tabindex=0>Second tab</div>
  <ul><li><span>eins</span></li><li><span>zwei</span></li></ul>
  <div id=':r4:'><i>generated</i></div>
  <select aria-label='Colour'><option>red</option><option>blue</option></select>
  <input type='submit' value='Send "it"'>
  <h1>A heading</h1>
  <open-box></open-box>
  <p><em>deep</em></p>
</main>
<style>#before::before { content: 'First: ' }</style>
<script>
customElements.define('open-box', class extends HTMLElement {
  connectedCallback() {
    this.attachShadow({mode: 'open'}).innerHTML = '<button>Inside</button><p><u>a</u><u>b</u></p>';
  }
});
</script>
"""
ALL = """() => {
  const found = [];
  const visit = (root) => {
    for (const element of root.querySelectorAll('*')) {
      if (['SCRIPT', 'STYLE', 'TITLE'].includes(element.tagName)) continue;
      if (element.closest('svg,head,[hidden]')) continue;
      found.push(element);
      if (element.shadowRoot) visit(element.shadowRoot);
    }
  };
  visit(document);
  return found;
}"""


ITEMS = """
<ul class='todo-list'>
  <li class='completed'><input class='toggle' type='checkbox' checked><label>Buy milk</label>
    <button class='destroy'></button></li>
  <li class='editing'><input class='toggle' type='checkbox'><label>Walk "the" dog</label>
    <button class='destroy'></button></li>
  <li><ul><li>Buy <b>milk</b></li></ul></li></ul>
<table><tr><td>Smith</td><td><button>Edit</button></td></tr>
  <tr><td>Smithson</td><td><button>Edit</button></td></tr></table>
<div class='card is-open'><h3>Widget</h3><button>Add</button></div>
<div class='card'><h3>Gadget</h3><button>Add</button></div>
<dialog open aria-labelledby='title'><h2 id='title'>Settings</h2><button>Close</button></dialog>
<div role='dialog' aria-label='Other'><button>Close</button>
  <button aria-hidden='true'>X</button></div>
<div role='dialog' hidden aria-label='Third'><button>Close</button></div>
<fieldset><legend>Size</legend><label><input type='checkbox'> Large</label></fieldset>
<fieldset><legend>Cup</legend><label><input type='checkbox'> Large</label></fieldset>
<form aria-label='Find'><input name='type' aria-label='Kind'></form>
<table><thead><tr><th scope='col' role='columnheader'>Price</th><th>Price of all</th></tr></thead>
  <tr><th role='rowheader'>Smithy</th><td role='cell'>12</td></tr></table>
<p><button>Same</button><button>Same</button></p><p><i>cell</i> text <i>cell</i></p>
<style>.destroy::after { content: 'x' }</style>
"""
GENERATED = [
    *("xxoe+qU=", ":r1:", "«r2»", "_r_3_", "ember123", "radix-:r4:-trigger-one"),
    *(
        "react-aria-12-tab-one",
        "mui-417",
        "headlessui-tabs-tab-3",
        "mat-input-3",
        "rc-tabs-0-tab-1",
    ),
    *("0b9e2f6c-4f0e-4c1e-9d2c-1a2b3c4d5e6f", "j_id12", "ui-id-4", "el-id-1024-3", "qzxwvbnmk"),
]
GENERATED_CLASSES = [
    *("css-1q2w3e", "sc-bdVaJa", "jsx-2519", "_foo_x1y2z", "_root_1kx9q_12", "Button_root__x7Hd2"),
    *("makeStyles-root-12", "tss-k2j3", "emotion-0", "svelte-1a2b3c"),
]
STATES = [
    *("completed", "active", "selected", "open", "focus", "hover", "is-loading", "has-error"),
    *(
        "ui-state-active",
        "router-link-active",
        "tab--selected",
        "isOpen",
        "ng-dirty",
        "Mui-checked",
    ),
]
KEPT = ["account", "sign-in", "tab-2", "mainMenu", "billing_address", "step3", "HTMLView", "nav"]


@asynccontextmanager
async def showing(markup: str) -> AsyncIterator[Any]:
    browser = BrowserSession()
    try:
        options = InstanceOptions(policy=Policy(None))
        async with browser.instance(options) as instance:
            page = await instance.page()
            await page.set_content(f"<!doctype html><title>t</title><body>{markup}")
            yield page
    finally:
        await browser.aclose()


async def named(page: Any, expression: str) -> dict[str, Any]:
    describer = files("engine.browser").joinpath("describe.js").read_text("utf-8")
    told: dict[str, Any] = await page.evaluate(
        f"(() => {{ {describer} return describer().describe({expression}); }})()"
    )
    return told


WITHIN = [
    ("li.completed .toggle", 'li:has(:text-is("Buy milk")) >> role=checkbox'),
    ("li.editing .destroy", 'li:has(:text-is("Walk \\"the\\" dog")) >> role=button'),
    ("tr:nth-of-type(2) button", 'tr:has(:text-is("Smithson")) >> role=button[name="Edit"]'),
    (".card button", 'div.card:has(:text-is("Widget")) >> role=button[name="Add"]'),
    ("dialog button", 'role=dialog[name="Settings"] >> role=button[name="Close"]'),
    ("fieldset input", 'role=group[name="Size"] >> role=checkbox[name="Large"]'),
]


async def test_unnamed_controls_are_named_by_their_context() -> None:
    async with showing(ITEMS) as page:
        for element, selector in WITHIN:
            told = await named(page, f"document.querySelector({element!r})")
            assert told["byRole"] is None
            assert told["within"][0][1] == selector, element
        head = await named(page, "document.querySelector('[role=columnheader]')")
        assert (head["role"], head["name"]) == ("columnheader", "Price")
        assert head["byRole"] is None  # the other one's role and name are not certain
        row = await named(page, "document.querySelector('[role=rowheader]')")
        assert row["byRole"] == 'role=rowheader[name="Smithy"]'
        same = await named(page, "document.querySelector('p button')")
        assert same["number"] == 'role=button[name="Same"] >> nth=0'
        hidden = await named(page, "document.querySelector('[aria-hidden]')")
        assert not any("role=button" in name for name in every_name(hidden))


async def test_no_selector_holds_a_generated_id_or_class_or_one_that_says_a_state() -> None:
    ids = [f"<button id='{one}'>Same</button><label for='{one}'>L</label>" for one in GENERATED]
    classes = [f"<button class='{one}'>Same</button>" for one in (*GENERATED_CLASSES, *STATES)]
    async with showing("".join([*ids, *classes])) as page:
        for number, bad in enumerate([*GENERATED, *GENERATED_CLASSES, *STATES]):
            told = await named(page, f"document.querySelectorAll('button')[{number}]")
            parts = set(re.findall(r"[\w-]{3,}", bad))
            assert not [one for one in every_name(told) for part in parts if part in one], bad
        for number in range(len(GENERATED)):
            told = await named(page, f"document.querySelectorAll('label')[{number}]")
            assert not [one for one in every_name(told) if "for=" in one], GENERATED[number]


async def test_an_id_that_a_person_gave_is_a_selector() -> None:
    async with showing("".join(f"<button id='{one}'>Same</button>" for one in KEPT)) as page:
        for number, name in enumerate(KEPT):
            told = await named(page, f"document.querySelectorAll('button')[{number}]")
            assert told["strong"] == f"#{name}"


ROLES = [
    ("#one", ('[data-testid="save"]', 'role=button[name="Save"]')),
    ("[data-test=twice]", (None, 'role=button[name="A"]')),
    ("#go", (None, 'role=button[name="Go on"]')),
    ("#close", (None, 'role=button[name="Close it"]')),
    (".like", (None, None)),
    ("#icon", (None, None)),  # what it is called is not certain
    ("#before", (None, None)),
    ("#r_93af81c2", (None, 'role=textbox[name="Your name"]')),
    ("#mail", (None, 'role=textbox[name="E-mail"]')),
    ("[name=city]", (None, 'role=textbox[name="City"]')),
    ("[name=zip]", (None, 'role=textbox[name="Zip code"]')),
    ("a", (None, 'role=link[name="Help"]')),
    ("select", (None, 'role=combobox[name="Colour"]')),
    ("[type=submit]", (None, 'role=button[name="Send \\"it\\""]')),
    ("h1", (None, 'role=heading[name="A heading"]')),
]


CSS = [
    ("#mail", "#mail"),
    ("[name=city]", 'input[name="city"]'),
    ("[name=size][value=m]", 'input[name="size"][value="m"]'),
    ("a", 'a[href="/help"]'),
    ("i", "i"),
    ("em", "em"),
    ("li:nth-of-type(2) span", "li:nth-of-type(2) > span"),
    (".like", "button:nth-of-type(6)"),
]


async def test_a_test_id_comes_first_then_role_and_name_where_they_are_certain() -> None:
    async with showing(PAGE) as page:
        for element, names in ROLES:
            told = await named(page, f"document.querySelector({element!r})")
            assert (told["testid"], told["byRole"]) == names, element


async def test_css_is_short_and_passes_over_what_looks_generated() -> None:
    async with showing(PAGE) as page:
        for element, css in CSS:
            told = await named(page, f"document.querySelector({element!r})")
            assert told["css"] == css
            assert ":r4:" not in str(told["css"])


def every_name(told: dict[str, Any]) -> list[str]:
    single = (told[key] for key in ("testid", "byRole", "strong", "text", "number", "css", "path"))
    return [*filter(None, single), *(selector for _, selector in told["within"])]


@pytest.mark.thorough("page")
@pytest.mark.parametrize("markup", [PAGE, ITEMS], ids=["page", "items"])
async def test_every_recorded_locator_is_unique_in_playwright(markup: str) -> None:
    async with showing(markup) as page:
        count = await page.evaluate(f"({ALL})().length")
        assert count > 40
        for number in range(count):
            told = await named(page, f"(({ALL})()[{number}])")
            assert told["css"], told
            for name in every_name(told):
                found = page.locator(name)
                assert await found.count() == 1, (name, told)
                same = f"(element) => element === ({ALL})()[{number}]"
                assert await found.evaluate(same), (name, told)
