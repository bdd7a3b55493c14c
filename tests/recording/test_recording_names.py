"""How the recorder names elements: stable, the only match, and as Playwright understands it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from engine.browser.egress import Policy
from engine.browser.page_script import naming_script
from engine.browser.session import BrowserSession, InstanceOptions

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
    told: dict[str, Any] = await page.evaluate(naming_script(expression))
    return told


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


async def test_every_name_of_every_element_is_found_again_by_playwright_and_means_it_alone() -> (
    None
):
    async with showing(PAGE) as page:
        count = await page.evaluate(f"({ALL})().length")
        assert count > 40
        for number in range(count):
            told = await named(page, f"(({ALL})()[{number}])")
            names = [told["testid"], told["byRole"], told["css"], told["path"]]
            assert told["css"], told
            for name in filter(None, names):
                found = page.locator(name)
                assert await found.count() == 1, (name, told)
                same = f"(element) => element === ({ALL})()[{number}]"
                assert await found.evaluate(same), (name, told)
