"""Pages whose elements are not what their names say, or whose scripts change copies of them."""

from __future__ import annotations

import pytest

from engine.pages.custom_fields import FieldRule
from engine.pages.fetch import PageOptions
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages

PATIENT = PageOptions(timeout_ms=100_000)
SHADOW = "<div><template shadowrootmode=open><b>shadow</b> <slot></slot></template>words</div>"
XHTML = "http://www.w3.org/1999/xhtml"
UNUSUAL: dict[str, str | Answer] = {
    "a frame whose address is none": "words<iframe src='http://['></iframe>",
    "a frame whose port is none": "words<iframe src='http://a:b:c/'></iframe>",
    "a frameset with such a frame": Answer(
        b"<frameset cols=1,1><frame src='http://['><frame src=/in></frameset>"
    ),
    "links whose addresses are none": "words<a href='http://['>x</a><area href='http://a b'>",
    "a base whose address is none": "words<base href='http://['><a href=x></a><iframe src=in>",
    "a canonical address that is none": "words<link rel=canonical href='http://['>",
    "a frame in a formula": "words<math><iframe src=/in>x</iframe></math>",
    "a frame in a drawing": "words<svg width=9 height=9><iframe src=/in>x</iframe></svg>",
    "a link in a drawing": "words<svg width=9 height=9><a href='http://['><text>x</text></a></svg>",
    "an element of no namespace": f"""{SHADOW}<script>
        document.body.append(document.createElementNS(null, 'x'))</script>""",
    "a frame of another namespace": """words<script>
        const one = document.body.appendChild(document.createElementNS('urn:x', 'iframe'));
        one.textContent = 'inner'</script>""",
    "a form in the head": """words<script>
        const form = document.head.appendChild(document.createElement('form'));
        form.innerHTML = '<input name=matches><input name=remove>'</script>""",
    "frames in a document of XML": Answer(
        f"<html xmlns='{XHTML}'><head><title>t</title></head><body><p>words</p>"
        "<iframe src='http://['/><select><option>x</option></select></body></html>".encode(),
        200,
        "application/xhtml+xml",
    ),
    "a frame of no namespace": Answer(
        f"<r><iframe src='x'/><body xmlns='{XHTML}'>words</body></r>".encode(), 200, "text/xml"
    ),
}
READS_NOTHING = ("a frame of no namespace",)  # its text is in no body of a document


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_page_with_unusual_elements_is_read(
    browsing: Making, pages: Pages, subtests: pytest.Subtests
) -> None:
    pages["/in"] = "words"
    async with browsing(pages.url) as made:
        for name, answer in UNUSUAL.items():
            with subtests.test(name=name):
                pages["/"] = answer
                page = await made.fetcher.fetch(pages.url, PATIENT)
                assert ("words" in page.text, page.settled) == (name not in READS_NOTHING, True)


# A form whose fields, and a document whose images, have the names of all of their properties.
SHADOWED = """words <div id=host></div><script>
const namesOf = (one) => {
  const found = new Set();
  for (let at = one; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) found.add(name);
  }
  return [...found];
};
const append = Node.prototype.appendChild, body = document.body;
const makes = (tag, name) => {
  const one = Document.prototype.createElement.call(document, tag);
  one.setAttribute('name', name);
  return one;
};
const form = makes('form', '');
for (const name of namesOf(HTMLFormElement.prototype)) append.call(form, makes('input', name));
host.attachShadow({ mode: 'open' }).innerHTML = '<b>shadow</b>';
append.call(body, form);
for (const name of namesOf(HTMLDocument.prototype)) append.call(body, makes('img', name));
</script><p hidden>unseen</p>"""
HOW = {
    "plain": PATIENT,
    "scrolled": PageOptions(timeout_ms=100_000, scroll=True),
    "loaded further": PageOptions(timeout_ms=100_000, load_more="form"),
    "waited for": PageOptions(timeout_ms=100_000, wait_for="form"),
    "clicked": PageOptions(timeout_ms=100_000, click_links="b"),
    "with fields": PageOptions(timeout_ms=100_000, fields=(FieldRule("of", "form"),)),
}


@pytest.mark.timeout(900)  # many cases in one browser
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "playwright"])
async def test_a_page_is_read_whatever_the_names_of_its_fields(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, direct: bool
) -> None:
    pages["/"] = SHADOWED
    async with browsing(pages.url, direct=direct) as made:
        for name, options in HOW.items():
            with subtests.test(name=name):
                page = await made.fetcher.fetch(pages.url, options)
                assert page.text.split() == ["words", "shadow"]
                assert "unseen" not in page.html


# What a custom element does when it is made, also when a script copies it.
CHANGES = {
    "appends": "constructor() { super(); this.append(document.createElement('b'), 'inner'); }",
    "appends much": "constructor() { super();"
    " for (const one of 'abcdefghij') this.append(document.createElement('b'), one); }",
    "replaces": "constructor() { super(); this.innerHTML = '<b>b</b>'; }"
    " connectedCallback() { this.innerHTML = '<b>inner</b><i></i><u></u>'; }",
    "follows its attributes": "static observedAttributes = ['name'];"
    " attributeChangedCallback() { this.append(document.createElement('b')); }",
    "counts": "constructor() { super(); window.number = (window.number ?? 0) + 1;"
    " document.title = `made ${window.number}`; }",
    "fails again": "constructor() { super(); if (window.made) throw 0; window.made = true; }",
}
ELEMENT = """<my-card name=x>card</my-card><p>words</p><p hidden>unseen</p><script>
customElements.define('my-card', class extends HTMLElement { DOES });</script>"""


@pytest.mark.timeout(900)  # many cases in one browser
async def test_custom_elements_change_no_copy_of_their_page(
    browsing: Making, pages: Pages, subtests: pytest.Subtests
) -> None:
    async with browsing(pages.url) as made:
        for name, does in CHANGES.items():
            with subtests.test(name=name):
                pages["/"] = ELEMENT.replace("DOES", does)
                page = await made.fetcher.fetch(pages.url, PATIENT)
                assert page.text.split()[-1] == "words"
                assert page.html.count("<p>words</p>") == 1
                assert "unseen" not in page.html
                assert page.html.count("inner") == page.text.count("inner")
                assert page.title != "made 2"


async def test_a_frame_of_very_many_elements_is_merged(browsing: Making, pages: Pages) -> None:
    pages["/in"] = "<br>" * 150_000 + "words"
    pages["/"] = "<iframe src=/in></iframe>"
    options = PageOptions(timeout_ms=100_000, max_elements=200_000)
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, options)
    assert "words" in page.text
    assert "words" in page.html
