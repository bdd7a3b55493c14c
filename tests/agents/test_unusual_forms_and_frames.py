"""Forms whose fields shadow properties, elements without a box, frames of every kind, XHTML."""

from __future__ import annotations

from html import escape

import pytest

from engine.browser.interact.command_errors import ElementNotReady
from engine.sample.site import Answer
from tests.agents.conftest import Desk, Opening

# Names of fields that are also properties of the form.
SHADOWING = (
    *("assignedSlot", "childNodes", "closest", "labels", "localName", "matches", "namespaceURI"),
    *("nodeType", "parentElement", "parentNode", "required", "shadowRoot", "tagName"),
)


def form_with(name: str) -> str:
    return (
        f"<form name=order onclick='return false'><input name={name} aria-label=Word>"
        "<button onclick='document.title += 1'>Search</button> words</form>"
    )


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_form_is_read_and_used_whatever_its_fields_are_called(
    desk: Opening, subtests: pytest.Subtests
) -> None:
    async with desk() as made:
        cases = await made.at_once(use_form, {name: form_with(name) for name in SHADOWING})
    for name, case in cases.items():
        with subtests.test(name=name):
            case.result()


async def use_form(made: Desk, markup: str) -> None:
    await made.show(markup)
    assert (await made.read()).endswith('button "Search"] words')
    found = (await made.call("find", query="Search")).data["matches"]
    assert found[0]["role"] == "button"
    form = (await made.call("find", query="form order")).data["matches"][0]
    assert (form["role"], form.get("states", [])) == ("form", [])
    await made.do("type", "textbox", "Word", "x")
    await made.do("click", "button", "Search")
    assert await made.script("document.title") == "t1"
    await made.call("interact", ref=form["ref"], action="hover")


BOXLESS = "display:contents"
HOST = "<script>host.attachShadow({mode: 'open'}).innerHTML = `"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (f"<div style='{BOXLESS}'>bare words</div>", "bare words"),
        (f"<div style='{BOXLESS};visibility:hidden'>bare words</div>", ""),
        (f"<div hidden><p style='{BOXLESS}'>bare words</p></div>", ""),
        (
            f"<div id=host></div>{HOST}<slot>fallback <b>words</b></slot>`</script>",
            "fallback words",
        ),
        (f"<div id=host>given</div>{HOST}<slot>fallback</slot>`</script>", "given"),
        (f"<button>web<i style='{BOXLESS}'>site</i></button>", '[ref_1_1 button "website"]'),
        (
            f"<div id=host style='cursor:pointer'>Go</div>{HOST}<slot></slot>`</script>",
            '[ref_1_1 clickable "Go"]',
        ),
    ],
)
async def test_text_of_elements_without_a_box_is_read(
    desk: Opening, markup: str, text: str
) -> None:
    async with desk() as made:
        await made.show(markup)
        assert await made.read() == text


async def test_a_slot_in_a_clickable_host_is_not_clickable_itself(desk: Opening) -> None:
    async with desk() as made:
        await made.show(
            f"<div id=host style='cursor:pointer'>Go</div>{HOST}<slot></slot>`</script>"
        )
        found = (await made.call("find", query="Go")).data["matches"]
        assert [one["role"] for one in found].count("clickable") == 1


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_link_without_a_box_is_clicked_through_its_content(
    desk: Opening, subtests: pytest.Subtests
) -> None:
    hidden = "<div style='visibility:hidden;height:9px'></div>"
    contents = {
        "a box": "<div>Card</div>",
        "a nested box": f"<span style='{BOXLESS}'><div>Card</div></span>",
        "a box after a hidden one": f"<div hidden>No</div>{hidden}<div>Card</div>",
        "a box far below": "<div style='margin-top:3000px'>Card</div>",
    }
    async with desk() as made:
        for name, content in contents.items():
            with subtests.test(name=name):
                await made.show(f"<a href=#there style='{BOXLESS}'>{content}</a>")
                await made.do("click", "link", "Card")
                assert await made.script("location.hash") == "#there"
        await made.show(f"<a href=#there style='{BOXLESS}' aria-label=Empty></a>")
        with pytest.raises(ElementNotReady, match="hidden"):
            await made.do("click", "link", "Empty")


GRID = "<body style='margin:0;font-size:8px'>" + "".join(
    "<button style='position:absolute;margin:0;padding:0;width:40px;height:20px;"
    f"left:{number % 8 * 40}px;top:{number // 8 * 20}px' "
    f'onclick="top.document.title={number}">{number}</button>'
    for number in range(80)
)


def frame(style: str, content: str = GRID, size: str = "320px;height:200px") -> str:
    return f'<iframe style="width:{size};{style}" srcdoc="{escape(content)}"></iframe>'


STRAIGHT = {
    "border": frame("border:20px solid"),
    "padding": frame("padding:70px 10px 20px 70px"),
    "scale": frame("transform:scale(.5)"),
    "scale of each side": frame("transform-origin:0 0;scale:1.2 .7"),
    "zoom": frame("zoom:.5"),
    "zoom, border and padding": frame("zoom:1.5;border:9px solid;padding:30px"),
    "a zoomed page": f"<style>body {{ zoom:.5 }}</style>{frame('padding:40px')}",
    "a scaled parent": f"<p style='transform:scale(.6) translateZ(0)'>{frame('padding:5px')}</p>",
    "nested frames": frame(
        "transform:scale(.8);padding:30px",
        f"<body style='margin:7px'>{frame('zoom:.7;border:8px solid;padding:20px')}",
        "500px;height:300px",
    ),
}
TURNED = {
    "rotate": frame("rotate:180deg"),
    "rotated by a transform": frame("transform:rotate(90deg)"),
    "mirrored": frame("scale:-1 1"),
    "mirrored by a transform": frame("transform:scaleY(-1)"),
    "tilted": f"<div style='perspective:300px'>{frame('transform:rotateX(40deg)')}</div>",
    "a rotated parent": f"<div style='transform:rotate(20deg)'>{frame('')}</div>",
    "a rotated outer frame": frame("transform:skewX(30deg)", frame(""), "500px;height:300px"),
}


async def opened(made: Desk, markup: str) -> None:
    await made.show(markup)
    assert '"79"' in await made.read()


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_click_in_a_frame_reaches_the_element_itself(
    desk: Opening, subtests: pytest.Subtests
) -> None:
    async with desk() as made:
        cases = await made.at_once(click_in_frame, STRAIGHT)
    for name, case in cases.items():
        with subtests.test(name=name):
            case.result()


async def click_in_frame(made: Desk, markup: str) -> None:
    await opened(made, markup)
    for number in ("0", "19", "79"):
        await made.do("click", "button", number)
        assert await made.script("document.title") == number


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_click_in_a_turned_frame_is_refused(
    desk: Opening, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.interact.element_actions.READY_MS", 300)  # it stays so
    async with desk() as made:
        cases = await made.at_once(click_in_turned_frame, TURNED)
    for name, case in cases.items():
        with subtests.test(name=name):
            case.result()


async def click_in_turned_frame(made: Desk, markup: str) -> None:
    await opened(made, markup)
    with pytest.raises(ElementNotReady, match="in a rotated, skewed or mirrored frame"):
        await made.do("click", "button", "19")
    assert await made.script("document.title") == "t"


ECHO = "<input type='password' aria-label='Word'/><p id='out'>-</p>"


async def echo(made: Desk, document: str) -> None:
    """A visitor's password, which the page repeats, is not in the page's text."""
    await made.script(f"{document}.querySelector('input[type=password]').value = 'sesame-hunter'")
    out = f"{document}.querySelector('#out').textContent = 'Yours is sesame-' + 'hunter'"
    await made.script(f"{out}; return 0")
    text = await made.read()
    assert "Yours is" in text
    assert "sesame-hunter" not in text


async def test_a_frameset_is_read_searched_and_used(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/menu"] = "<h1>Menu</h1><button onclick='top.document.title=1'>Open</button>"
        made.pages["/main"] = f"<p>Sign in</p>{ECHO}"
        made.pages["/"] = Answer(
            b"<title>t</title><frameset cols='30%,*'><frame src=/menu><frame src=/main></frameset>"
        )
        await made.call("navigate", url=made.pages.url)
        found = (await made.call("find", query="Open")).data["matches"]
        assert (found[0]["role"], found[0]["name"]) == ("button", "Open")
        await made.do("click", "button", "Open")
        assert await made.script("document.title") == "1"
        await made.do("type", "textbox", "Word", "x")
        field = (await made.call("find", query="Word")).data["matches"][0]
        assert "focused" in field["states"]
        await echo(made, "frames[1].document")


XHTML = f"""<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title>
<script>let hidden = "script";</script></head><body><h2>Head</h2><a href="/x">Link</a>
<details><summary>More</summary>inside</details>
<label>Name <input value="Ada"/></label><select aria-label="Size"><option>S</option></select>
<button onclick="document.title = 'hit'">Go</button>{ECHO}</body></html>"""


async def test_an_xhtml_document_is_read_and_used_like_html(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/"] = Answer(XHTML.encode(), content_type="application/xhtml+xml")
        await made.call("navigate", url=made.pages.url)
        elements = (await made.call("read_page")).data["elements"]
        assert [(one["role"], one["name"]) for one in elements] == [
            ("heading", "Head"),
            ("link", "Link"),
            ("button", "More"),
            ("textbox", "Name"),
            ("combobox", "Size"),
            ("button", "Go"),
            ("textbox", "Word"),
        ]
        assert "inside" not in await made.read()
        await made.do("click", "button", "Go")
        assert await made.script("document.title") == "hit"
        await echo(made, "document")
