"""Pages whose elements are not what their names say, or whose scripts change copies of them."""

from __future__ import annotations

import pytest

from engine.egress.egress_policy import Policy
from engine.pages.custom_fields import FieldRule
from engine.pages.extract import extract_now
from engine.pages.fetch import PageOptions
from engine.pages.static_engine import open_static
from engine.sample.site import Answer
from tests.browser.conftest import Making, Pages
from tests.support.connections import BOTH_CONNECTIONS

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


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
@BOTH_CONNECTIONS
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


@pytest.mark.thorough
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


# Links, and their names: the words that a reader sees, or those of an image.
NAMED = {
    "<a href=/1><img data-src=/a><noscript><img src=/a.png alt=Shoe></noscript></a>": "",
    "<a href=/2><svg><style>.st0 { fill: red }</style><path d='M0 0'/></svg>Home</a>": "Home",
    "<a href=/3><script>let one = 1</script><template>no</template>Plan</a>": "Plan",
    "<a href=/4><img alt=''><img alt=Second></a>": "Second",
    "<a href=/5>A <b>bold</b> one</a>": "A bold one",
    "<svg><a href=/6><text>Map</text></a></svg>": "Map",
    "<svg><a xlink:href=/7><text>Old</text></a></svg>": "Old",
}


async def test_links_are_found_in_drawings_and_named_as_readers_see_them(
    browsing: Making, pages: Pages
) -> None:
    pages["/"] = "".join(NAMED) + "<svg><a href='http://['><text>x</text></a></svg>"
    async with browsing(pages.url) as made, open_static(Policy.for_start(pages.url)) as static:
        page = await made.fetcher.fetch(pages.url, PATIENT)
        parsed = extract_now(await static.fetch(pages.url, PATIENT), "text")
        shown = extract_now(page, "text")
    wanted = [f"{pages.url}/{number}" for number in range(1, len(NAMED) + 1)]
    assert page.links == [one["href"] for one in parsed.anchors] == wanted
    assert list(page.link_texts) == list(NAMED.values())
    assert [one["text"] for one in parsed.anchors] == list(NAMED.values())
    facts = shown.facts, parsed.facts
    assert [one and one.links_internal for one in facts] == [len(NAMED)] * 2


HIDDEN = {
    "a closed one": "<details><summary>seen</summary>bare <b>unseen</b></details>",
    "until it is found": "<div hidden=Until-Found>bare <b>unseen</b></div>",
    "a form until it is found": "<form hidden=until-found>bare<input name=childNodes></form>",
}


@pytest.mark.parametrize("beside", ["", SHADOW], ids=["plain", "beside a shadow root"])
async def test_hidden_text_is_kept_neither_in_the_text_nor_in_the_markup(
    browsing: Making, pages: Pages, subtests: pytest.Subtests, beside: str
) -> None:
    async with browsing(pages.url) as made:
        for name, markup in HIDDEN.items():
            with subtests.test(name=name):
                pages["/"] = f"<p>first</p>{markup}<details open>open</details>{beside}"
                page = await made.fetcher.fetch(pages.url, PATIENT)
                for kept in (page.text, page.html):
                    assert "first" in kept
                    assert "open" in kept
                    assert "bare" not in kept
                    assert "unseen" not in kept


DISPLAYED = {
    "inline": "<span hidden=until-found>bare <b>bold</b></span>",
    "without a box": "<div hidden=until-found style='display: contents'>bare <b>bold</b></div>",
    "by a style sheet": "<style>details::details-content { content-visibility: visible;"
    " display: contents }</style><details><summary>seen</summary>bare <b>bold</b></details>",
}


async def test_text_that_is_displayed_in_spite_of_its_element_is_kept(
    browsing: Making, pages: Pages, subtests: pytest.Subtests
) -> None:
    async with browsing(pages.url) as made:
        for name, markup in DISPLAYED.items():
            with subtests.test(name=name):
                pages["/"] = f"<p>first</p>{markup}"
                page = await made.fetcher.fetch(pages.url, PATIENT)
                for kept in (page.text, page.html):
                    assert "bare" in kept
                    assert "bold" in kept
        pages["/"] = f"<p>first</p>{DISPLAYED['inline']}{SHADOW}"
        page = await made.fetcher.fetch(pages.url, PATIENT)
        assert "bare bold" in page.text
        assert "bare" in page.html


async def test_a_frame_of_xml_in_a_page_of_html_is_read_like_one_of_html(
    browsing: Making, pages: Pages
) -> None:
    pages["/in"] = Answer(IN_XML.replace("HERE", "").encode(), 200, "application/xhtml+xml")
    pages["/"] = "<p>first</p><iframe src=/in></iframe>"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert f'href="{pages.url}/one"' in page.html
    assert "javascript:" not in page.html
    assert "typed" not in page.html


async def test_tables_and_capitals_beside_a_shadow_root_read_as_without_one(
    browsing: Making, pages: Pages
) -> None:
    markup = (
        "<table><thead><tr><th>a<th>b<tbody><tr><td>1<td>2<tr><td>3<td>4</table>"
        "<p style='text-transform: capitalize'>it's o\u2019neil, 2nd 'one' and-more</p>"
    )
    async with browsing(pages.url) as made:
        pages["/"] = markup
        plain = await made.fetcher.fetch(pages.url, PATIENT)
        pages["/"] = f"{markup}<div><template shadowrootmode=open></template></div>"
        shadowed = await made.fetcher.fetch(pages.url, PATIENT)
    assert shadowed.text.strip() == plain.text.strip()


IN_XML = f"""<html xmlns='{XHTML}'><head><title>t</title><meta name='description' content='d'/>
<link rel='x' href='/x'/></head><body><a href='/one'>one</a> <a href='javascript:0'>script</a>
<img src='/a.png' alt='picture'/><textarea>typed</textarea><iframe src='/in'></iframe>
<svg xmlns='http://www.w3.org/2000/svg'><style>.a {{}}</style>
<a href='/two'><text>two</text></a></svg>
HERE</body></html>"""


@pytest.mark.parametrize("root", ["", "shadow"])
async def test_a_document_of_xml_is_read_like_one_of_html(
    browsing: Making, pages: Pages, root: str
) -> None:
    makes = "document.body.appendChild(document.createElement('div')).attachShadow({mode: 'open'})"
    script = f"<script>{makes}.append('shadow')</script>" if root else ""
    markup = IN_XML.replace("HERE", script)
    async with browsing(pages.url) as made:
        pages["/"] = Answer(markup.encode(), 200, "application/xhtml+xml")
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert page.text.split() == ["one", "script", "two", *([root] if root else [])]
    assert page.links == [f"{pages.url}/{name}" for name in ("one", "in", "two")]
    for kept in (f'href="{pages.url}/one"', f'src="{pages.url}/a.png"', 'content="d"'):
        assert kept in page.html
    for left in ("javascript:", "typed", "iframe", 'rel="x"', "<title"):
        assert left not in page.html


async def test_the_text_of_frames_in_shadow_roots_is_part_of_the_page(
    browsing: Making, pages: Pages
) -> None:
    root = "<div><template shadowrootmode=open>{}</template></div>"
    pages["/in"] = f"in {root.format('<iframe src=/deep></iframe>')}"
    pages["/deep"] = "deep"
    hidden = "<iframe src=/deep hidden></iframe>"
    pages["/"] = f"<p>first</p>{root.format(f'<iframe src=/in></iframe>{hidden}')}"
    async with browsing(pages.url) as made:
        page = await made.fetcher.fetch(pages.url, PATIENT)
    assert (page.text.split(), page.frames) == (["first", "in", "deep"], 2)
    assert "deep" in page.html
