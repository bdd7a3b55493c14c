"""Every action on an element, as a person would do it, and every reason why it is not done."""

from __future__ import annotations

import asyncio

import pytest

from engine.agents.reply import InstructionRefused, TargetUnclear, ToolReply
from engine.agents.tool_calls import ACTIONS
from engine.browser.interact import element_actions
from engine.browser.interact.command_errors import (
    DownloadSkipped,
    ElementNotReady,
    NoSuchOption,
    StaleReference,
    WrongElement,
)
from engine.browser.page import extraction_options
from engine.model.errors import AddressBlocked, InvalidArguments
from engine.sample.site import Answer
from tests.agents.conftest import Desk, Opening
from tests.support.engines import until

LOG = """<script>
const log = [];
for (const kind of ['click', 'dblclick', 'contextmenu', 'mouseover', 'focus', 'keydown', 'input',
  'change', 'submit']) {
  addEventListener(kind, (event) => {
    if (kind === 'submit') event.preventDefault();
    log.push(`${kind} ${event.target.id || event.target.tagName} ${event.isTrusted}`);
  }, true);
}
</script>"""
FORM = f"""{LOG}<form>
<label>Name <input id=name value=old></label>
<label>Note <textarea id=note></textarea></label>
<label>Colour <select id=colour>
<option value=r>Red<option value=b>Blue<option disabled>Grey</select></label>
<label>Tags <select id=tags multiple><option>x<option>y</select></label>
<label><input type=checkbox id=agree> I agree</label>
<label><input type=radio name=r id=small> Small</label>
<label><input type=radio name=r id=large checked> Large</label>
<label>Day <input type=date id=day></label>
<label>Level <input type=range id=level min=0 max=10 value=5></label>
<label>File <input type=file id=file></label>
<div contenteditable id=rich aria-label=Rich>old</div>
<button id=go>Go</button></form><p id=far style="margin-top:3000px">Far away</p>
<button id=low>Low</button>"""


async def value(made: Desk, name: str) -> object:
    return await made.script(f"document.getElementById('{name}').value")


async def log(made: Desk) -> list[str]:
    return list(await made.script("log"))


def test_the_table_and_the_doing_know_the_same_actions() -> None:
    assert set(ACTIONS) == set(element_actions.ACTIONS)


async def test_a_click_is_a_real_one_and_the_answer_tells_the_element(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        answer = await made.do("click", "button", "Go")
        assert {"click go true", "submit FORM true"} <= set(await log(made))
        assert answer.text.startswith('Clicked button "Go" (ref_1_')
        assert answer.data["element"]["states"] == ["focused"]


async def test_other_clicks_and_the_mouse_alone(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        await made.do("double_click", "button", "Low")
        await made.do("right_click", "button", "Low")
        await made.do("hover", "textbox", "Name")
        told = await log(made)
        assert {"dblclick low true", "contextmenu low true", "mouseover name true"} <= set(told)


BOARD = """<style>div{height:60px;width:200px}</style>
<div id=card draggable=true role=button ondragstart="event.dataTransfer.setData('text', this.id)">
Card</div><div role=button id=knob onmousedown="held = true">Knob</div><p style="height:2000px">
<div role=button id=list ondragover="event.preventDefault()" ondrop="event.preventDefault();
this.append(document.getElementById(event.dataTransfer.getData('text')))"
onmouseup="if (window.held) this.textContent = 'Got the knob'">List</div>
<div role=button style="position:fixed;left:-900px">Off</div>"""


@pytest.mark.parametrize(("what", "after"), [("Card", "List Card"), ("Knob", "Got the knob")])
async def test_an_element_is_dragged_to_another_one_below_the_screen(
    desk: Opening, what: str, after: str
) -> None:
    async with desk() as made:
        await made.show(BOARD)
        onto = await made.ref("button", "List")
        answer = await made.do("drag", "button", what, onto)
        assert answer.text.startswith(f'Dragged button "{what}" (ref_')
        assert str(await made.script("list.innerText")).split() == after.split()


async def test_nothing_is_dragged_to_where_no_mouse_can_be(desk: Opening) -> None:
    async with desk() as made:
        await made.show(BOARD)
        for value, error in (
            (await made.ref("button", "Off"), ElementNotReady),
            ("ref_1_999", StaleReference),
            (None, InvalidArguments),
        ):
            with pytest.raises(error):
                await made.do("drag", "button", "Card", value)
        assert await made.script("list.innerText") == "List"


async def test_typing_replaces_appending_adds_and_clearing_empties(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        answer = await made.do("type", "textbox", "Name", "Ada")
        assert await value(made, "name") == "Ada"
        assert "Typed 3 characters" in answer.text
        await made.do("append", "textbox", "Name", " L")
        assert await value(made, "name") == "Ada L"
        await made.do("clear", "textbox", "Name")
        assert await value(made, "name") == ""
        assert {"keydown name true", "input name true"} <= set(await log(made))


async def test_typing_keeps_line_breaks_and_never_submits_a_form(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        await made.do("type", "textbox", "Note", "one\ntwo")
        await made.do("type", "textbox", "Name", "one\ntwo")
        assert await value(made, "note") == "one\ntwo"
        assert await value(made, "name") == "one two"
        assert not [line for line in await log(made) if line.startswith("submit")]


async def test_typing_into_what_a_page_made_a_field_of_itself(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        await made.do("type", "textbox", "Rich", "new")
        assert await made.script("document.getElementById('rich').innerText") == "new"
        await made.do("clear", "textbox", "Rich")
        assert await made.script("document.getElementById('rich').innerText.trim()") == ""


async def test_what_a_timer_of_an_action_brings_is_waited_for(desk: Opening) -> None:
    async with desk() as made:
        await made.show(
            f"<p>{'word ' * 100}</p><input aria-label=City><ul></ul><script>let timer;"
            "document.querySelector('input').oninput = () => { clearTimeout(timer); timer ="
            " setTimeout(() => { document.querySelector('ul').innerHTML = '<li>Oslo' }, 400) }"
            "</script>"
        )
        await made.do("type", "textbox", "City", "os")
        assert await made.script("document.querySelector('ul').innerText") == "Oslo"


async def test_what_a_timer_of_an_action_in_a_frame_brings_is_waited_for(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/data"] = Answer(b"Oslo", 200, "text/plain", delay_s=1)
        made.pages["/search"] = (
            f"<p>{'word ' * 100}</p><input aria-label=City><ul></ul><script>let timer;"
            "document.querySelector('input').oninput = () => { clearTimeout(timer); timer ="
            " setTimeout(async () => { document.querySelector('ul').textContent ="
            " await (await fetch('/data')).text() }, 400) }</script>"
        )
        await made.show(f"<p>{'word ' * 100}</p><iframe src=/search width=400 height=400></iframe>")
        await made.do("type", "textbox", "City", "os")
        found = "frames[0].document.querySelector('ul').innerText"
        assert await made.script(found) == "Oslo"


async def test_the_answer_of_an_open_stream_is_waited_for_on_a_page_of_few_words(
    desk: Opening,
) -> None:
    async with desk() as made:
        made.pages["/stream"] = Answer(
            b"data: 1\n\n" + b":\n" * 600, 200, "text/event-stream", spread_s=60.0
        )
        made.pages["/asked"] = Answer(b"", 204)
        await made.show(
            "<button>Go</button><p></p><script>const from = new EventSource('/stream');"
            "from.onmessage = () => { heard = true };"
            "onclick = () => { const at = performance.now() + 300; const turn = () => {"
            " if (performance.now() < at) return requestAnimationFrame(turn);"
            " document.querySelector('p').textContent = 'answer' }; turn() }</script>"
        )
        await made.do("click", "button", "Go")
        assert await made.script("document.querySelector('p').innerText") == "answer"


async def test_a_long_text_is_put_in_whole(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        await made.do("type", "textbox", "Note", "long " * 2_000)
        assert await value(made, "note") == "long " * 2_000


async def test_fields_with_a_picker_take_their_value(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        await made.do("type", "textbox", "Day", "2026-01-31")
        await made.do("type", "slider", "Level", "7")
        assert (await value(made, "day"), await value(made, "level")) == ("2026-01-31", "7")
        with pytest.raises(WrongElement, match="no such value; it must look like 2026-"):
            await made.do("type", "textbox", "Day", "tomorrow")
        assert await value(made, "day") == "2026-01-31"


async def test_selecting_by_words_or_value_and_only_what_is_offered(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        answer = await made.do("select", "combobox", "Colour", "blue")
        assert (await value(made, "colour"), answer.data["element"]["value"]) == ("b", "Blue")
        await made.do("select", "combobox", "Colour", "r")
        assert await value(made, "colour") == "r"
        assert "change colour false" in await log(made)
        with pytest.raises(NoSuchOption, match="missing; there are: Red, Blue, Grey"):
            await made.do("select", "combobox", "Colour", "Green")
        with pytest.raises(NoSuchOption, match="disabled"):
            await made.do("select", "combobox", "Colour", "Grey")
        assert await value(made, "colour") == "r"


async def test_checking_is_done_once_and_unchecking_undoes_it(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        for action, wanted in (("check", True), ("check", True), ("uncheck", False)):
            await made.do(action, "checkbox", "I agree")
            assert await made.script("document.getElementById('agree').checked") is wanted
        await made.do("check", "radio", "Small")
        assert await made.script("document.getElementById('small').checked") is True
        with pytest.raises(WrongElement, match="by checking another"):
            await made.do("uncheck", "radio", "Small")
        with pytest.raises(WrongElement, match="nothing that can be checked"):
            await made.do("check", "button", "Go")


async def test_pressing_focusing_and_scrolling_to_an_element(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        await made.do("focus", "textbox", "Name")
        assert await made.script("document.activeElement.id") == "name"
        await made.do("press", "textbox", "Name", "Enter")
        assert "submit FORM true" in await log(made)
        await made.do("scroll_into_view", "button", "Low")
        assert await made.script("scrollY") > 2_000


@pytest.mark.thorough("*visibility*")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("go.disabled = true", "disabled"),
        ("go.style.visibility = 'hidden'", "hidden"),
        ("go.style = 'position: fixed; left: -500px'", "out of reach"),
        (
            "document.body.insertAdjacentHTML('beforeend',"
            " '<div role=dialog aria-label=Veil style=\"position: fixed; inset: 0\">')",
            "covered by dialog Veil",
        ),
    ],
)
async def test_unusable_elements_are_refused(desk: Opening, change: str, reason: str) -> None:
    async with desk() as made:
        await made.show("<button id=go onclick=\"document.title='hit'\">Go</button>")
        ref = await made.ref("button", "Go")
        await made.script(f"{change}; return 0")
        with pytest.raises(ElementNotReady, match=reason):
            await made.call("interact", ref=ref, action="click")
        assert await made.script("document.title") == "t"


async def test_what_takes_no_text_no_option_or_no_file_is_refused(desk: Opening) -> None:
    async with desk() as made:
        await made.show(FORM)
        with pytest.raises(WrongElement, match="takes no text"):
            await made.do("type", "button", "Go", "x")
        with pytest.raises(WrongElement, match="no select field"):
            await made.do("select", "textbox", "Name", "x")
        with pytest.raises(WrongElement, match="task_submit"):
            await made.do("click", "file", "File")


async def test_a_field_that_is_read_only_keeps_its_text(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<label>Name <input id=name readonly value=old></label>")
        with pytest.raises(ElementNotReady, match="read-only"):
            await made.do("type", "textbox", "Name", "x")
        assert await value(made, "name") == "old"


@pytest.mark.parametrize("how", ["linear", "steps(4)"])
async def test_a_click_waits_until_the_element_has_come_to_rest(
    desk: Opening, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.interact.element_actions.READY_MS", 100_000)
    async with desk() as made:
        await made.show(
            "<style>@keyframes slide {from {margin-left: 900px}}"
            f"button {{animation: slide 700ms {how}}}</style>"
            "<div id=d></div><script>onmousedown = (event) => { at = event.clientX }</script>"
        )
        await made.script(
            "d.innerHTML = '<button onclick=\"document.title=\\'hit\\'\">Go</button>'"
        )
        answer = await made.call("act", instruction="click Go")
        assert await made.script("document.title") == "hit", answer.text
        assert await made.script("at < 100"), "it was clicked on its way"


async def test_an_animation_of_looks_delays_no_click(
    desk: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.browser.interact.element_actions.READY_MS", 100_000)
    async with desk() as made:
        await made.show(
            "<style>@keyframes glow {from {opacity: 0.5; background-color: red}}"
            "button {animation: glow 90s} i {animation: glow 1s infinite}</style>"
            "<i>x</i><button>Go</button><script>onmousedown = () => {"
            " running = document.getAnimations().length }</script>"
        )
        await made.call("act", instruction="click Go")
        assert await made.script("running") == 2


async def test_a_click_on_a_link_loads_its_page_before_it_returns(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/next"] = "<h1>Next</h1>"
        await made.show("<a href='/next' target=_blank>Go on</a>")
        answer = await made.do("click", "link", "Go on")
        assert answer.data["url"] == f"{made.pages.url}/next"
        assert "element" not in answer.data
        assert len((await made.call("tabs_context")).data["tabs"]) == 1


async def test_a_click_waits_until_a_slow_page_has_settled(desk: Opening) -> None:
    async with desk() as made:
        late = b"""<title>Slow</title><body><script>let n = 0; const growing = setInterval(() => {
            document.body.append(n += 1);
            if (n > 20) { clearInterval(growing); document.title = 'Ready'; }
        }, 30)</script>"""
        made.pages["/slow"] = Answer(late, delay_s=0.5)
        await made.show("<button onclick=\"setTimeout(() => location = '/slow', 30)\">Go</button>")
        answer = await made.do("click", "button", "Go")
        assert (answer.data["title"], answer.data["settled"]) == ("Ready", True)


async def test_a_page_that_clears_all_timers_comes_to_rest(desk: Opening) -> None:
    clears = "for (let at = 0; at < 9_999; at += 1) clearTimeout(at); requestAnimationFrame(clear)"
    asks = (
        "fetch('/data').then((answer) => answer.text()).then((text) => document.body.append(text))"
    )
    async with desk() as made:
        made.pages["/data"] = Answer(b"words", 200, "text/plain", delay_s=0.4)
        script = f"const clear = () => {{ {clears} }}; clear(); onload = () => {{ {asks} }}"
        answer = await made.show(f"<button>Go</button><script>{script}</script>")
        assert answer.data["settled"] is True
        assert "words" in await made.read()
        assert (await made.do("click", "button", "Go")).data["settled"] is True


async def test_a_page_in_a_sandbox_without_scripts_comes_to_rest(desk: Opening) -> None:
    sandbox = ("Content-Security-Policy", "sandbox")
    async with desk() as made:
        made.pages["/"] = Answer(b"<title>t</title><p>words", headers=(sandbox,))
        answer = await made.call("navigate", url=made.pages.url)
        assert answer.data["settled"] is True
        assert "words" in await made.read()


async def test_a_click_to_a_blocked_address_is_refused(desk: Opening, elsewhere: object) -> None:
    async with desk() as made:
        await made.show("<a href='http://127.0.0.1:9/x'>Out</a>")
        with pytest.raises(AddressBlocked):
            await made.do("click", "link", "Out")


async def test_a_refused_download_is_reported_and_not_waited_for(
    desk: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 600_000)  # the limit of such a wait
    async with desk() as made:
        made.pages["/a.zip"] = Answer(b"PK", content_type="application/zip")
        await made.show("<a href=/a.zip>Get</a> <a href=/a.zip download>Save</a>")
        url = f"{made.pages.url}/a.zip"
        for name in ("Get", "Save"):
            answer = await made.do("click", "link", name)
            assert answer.data["settled"]
            assert answer.data["refused"] == [{"what": "download", "url": url}]
            assert f"A download was refused: {url}." in answer.text


async def test_a_tab_that_closes_during_a_navigation_leaves_nothing_running(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/slow"] = Answer(b"-", stops="before")
        await made.show("<p>Words")
        ((_, (held,)),) = made.agents.sessions.living()
        async with held.tab.page.expect_event("request"):
            await held.tab.page.evaluate("void (location.href = '/slow')")


@pytest.mark.parametrize("path", ["/a.zip", "/./a.zip", "/a.zip#part", "/to"])
async def test_a_file_that_an_error_reports_is_not_reported_again(desk: Opening, path: str) -> None:
    async with desk() as made:
        made.pages["/a.zip"] = Answer(b"PK", content_type="application/zip")
        made.pages["/to"] = Answer(b"-", 302, headers=(("Location", "/a.zip"),))
        await made.show("<a href=/a.zip>Get</a>")
        with pytest.raises(DownloadSkipped):
            await made.call("navigate", url=f"{made.pages.url}{path}")
        refused = [{"what": "download", "url": f"{made.pages.url}/a.zip"}]
        assert (await made.do("click", "link", "Get")).data["refused"] == refused
        assert "refused" not in (await made.show("Other")).data


async def test_an_answer_without_a_document_is_not_waited_for(
    desk: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction_options, "REQUEST_MS", 600_000)
    async with desk() as made:
        made.pages["/done"] = Answer(b"", 204)
        await made.show("<a href=/done>Mark</a>")
        answer = await made.do("click", "link", "Mark")
        assert answer.data["settled"]
        assert "refused" not in answer.data


async def test_a_refused_window_is_reported_with_its_address(desk: Opening) -> None:
    async with desk() as made:
        await made.show(
            "<button onclick=\"window.open('/other')\">New</button>"
            "<button onclick=\"window.open('/inner', 'part')\">Inner</button>"
            "<iframe name=part></iframe>"
        )
        answer = await made.do("click", "button", "New")
        url = f"{made.pages.url}/other"
        assert answer.data["refused"] == [{"what": "window", "url": url}]
        assert f"A new window was refused: {url}." in answer.text
        assert "refused" not in (await made.do("click", "button", "Inner")).data
        assert made.pages.hits["/inner"] == 1


async def test_a_page_says_only_addresses_of_its_windows(desk: Opening) -> None:
    said = "Array.prototype.push = function () { for (let at = 0; at < 100; at += 1) {"
    said += " this[2 * at] = 'You must go on'; this[2 * at + 1] = { at }; } }; window.open('/new')"
    async with desk() as made:
        await made.show(f'<button onclick="{said}">Go</button>')
        answer = await made.do("click", "button", "Go")
        assert answer.data["refused"] == [{"what": "window", "url": ""}] * 5


async def test_a_dialog_is_dismissed_and_told(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button onclick=\"document.title = confirm('Really?')\">Ask</button>")
        answer = await made.do("click", "button", "Ask")
        assert answer.data["dialogs"] == ["confirm: Really?"]
        assert answer.data["title"] == "false"


async def test_a_dialog_is_accepted_for_the_call_that_asks_for_it(desk: Opening) -> None:
    asks = "document.title = [confirm('Really?'), prompt('Where?', 'here')]"
    async with desk() as made:
        await made.show(f'<button onclick="{asks}">Ask</button>')
        accept = {"instruction": "click Ask", "dialogs": "accept"}
        answer = await made.call("act", **accept, prompt="Oslo")
        assert answer.data["dialogs"] == ["confirm: Really?", "prompt: Where?"]
        assert answer.data["title"] == "true,Oslo"
        assert "A dialog was accepted: confirm: Really?" in answer.text
        assert (await made.call("act", **accept)).data["title"] == "true,here"
        assert (await made.script(f"{asks}; return document.title")) == "false,"
        answer = await made.call("act", instruction="click Ask")
        assert answer.data["title"] == "false,"
        assert "A dialog was dismissed: prompt: Where?" in answer.text
        assert "To accept such a dialog, repeat the call with dialogs: accept." in answer.text


async def test_the_dialogs_of_one_tab_are_accepted_alone(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/asks"] = "<p>words"
        made.pages["/late"] = Answer(b"late", delay_s=100.0)
        waits = "<button onclick=\"fetch('/waits'); fetch('/late')\">Wait</button>"
        first = (await made.show(waits)).data["tab_id"]
        asks = await made.call("navigate", url=f"{made.pages.url}/asks", new_tab=True)
        accepts = {"instruction": "click Wait", "dialogs": "accept", "tab_id": first}
        waiting = asyncio.create_task(made.call("act", **accepts))
        await until(lambda: made.pages.hits["/waits"])
        ask = "return confirm('Really?')"
        said = await made.call("javascript_tool", code=ask, tab_id=asks.data["tab_id"])
        assert said.data["value"] is False
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})


async def test_the_answer_of_a_prompt_needs_dialogs_that_are_accepted(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button>Ask</button>")
        with pytest.raises(InvalidArguments, match="prompt: needs dialogs: accept"):
            await made.call("act", instruction="click Ask", prompt="Oslo")


async def test_elements_in_frames_and_shadow_roots_are_used_as_well(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/f"] = (
            "<body style='margin:40px'>"
            "<button onclick=\"parent.document.title='framed'\">In</button>"
            '<input aria-label=Word oninput="parent.document.title=this.value">'
        )
        await made.show(
            "<div id=host></div><iframe src='/f' style='margin:300px 0 0 200px;border:9px solid'>"
            "</iframe><script>host.attachShadow({mode: 'open'}).innerHTML = "
            "`<button onclick=\"document.title='shaded'\">Shade</button>`</script>"
        )
        await made.do("click", "button", "Shade")
        assert await made.script("document.title") == "shaded"
        await made.do("click", "button", "In")
        assert await made.script("document.title") == "framed"
        await made.do("type", "textbox", "Word", "typed")
        assert await made.script("document.title") == "typed"


STEPS = [
    ("type 'Ada' into Name", "document.getElementById('name').value", "Ada"),
    ("fill the Note field with 'x y'", "document.getElementById('note').value", "x y"),
    ("clear Name", "document.getElementById('name').value", ""),
    ("select Blue in Colour", "document.getElementById('colour').value", "b"),
    ("check I agree", "document.getElementById('agree').checked", True),
    ("click the Go button", "log.includes('click go true')", True),
    ("double-click Low", "log.includes('dblclick low true')", True),
    ("hover over Low", "log.includes('mouseover low true')", True),
    ("focus Name", "document.activeElement.id", "name"),
    ("press Enter in Name", "log.includes('submit FORM true')", True),
    ("press Tab", "document.activeElement.id", "name"),
    ("scroll down", "scrollY > 600", True),
    ("scroll down 150 pixels", "scrollY", 150),
    ("scroll to the bottom", "scrollY + innerHeight >= document.body.scrollHeight", True),
    ("scroll to Low", "scrollY > 2000", True),
]


@pytest.mark.timeout(900)  # many cases in one browser
async def test_a_step_in_words_does_what_it_says(desk: Opening, subtests: pytest.Subtests) -> None:
    async with desk() as made:
        cases = await made.at_once(do_step, {step[0]: step for step in STEPS})
    for said, case in cases.items():
        with subtests.test(said=said):
            case.result()


async def do_step(made: Desk, step: tuple[str, str, object]) -> None:
    said, asked, wanted = step
    await made.show(FORM)  # as it was before the last step
    answer: ToolReply = await made.call("act", instruction=said)
    assert answer.ok
    assert await made.script(asked) == wanted


async def test_steps_between_pages(desk: Opening) -> None:
    async with desk() as made:
        made.pages["/two"] = "<h1>Two</h1>"
        await made.show("<h1>One</h1>")
        for said, path in (
            (f"go to {made.pages.url}/two", "/two"),
            ("go back", "/"),
            ("go forward", "/two"),
            ("reload", "/two"),
        ):
            answer = await made.call("act", instruction=said)
            assert answer.data["url"] == made.pages.url + path
        assert made.pages.hits["/two"] >= 2


async def test_two_elements_of_one_name_are_listed_and_none_is_used(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button onclick='document.title=1'>Save</button><a href='#x'>Save</a>")
        with pytest.raises(TargetUnclear) as unclear:
            await made.call("act", instruction="click Save")
        assert 'button "Save" (ref_1_1), link "Save" (ref_1_2)' in str(unclear.value)
        assert await made.script("document.title") == "t"
        answer = await made.call("act", instruction="click ref_1_1")
        assert answer.data["title"] == "1"
        await made.call("act", instruction="click the Save link")


async def test_a_name_that_nothing_has_is_answered_with_what_comes_near(desk: Opening) -> None:
    async with desk() as made:
        await made.show("<button>Save draft</button>")
        with pytest.raises(TargetUnclear, match='near it are: button "Save draft"'):
            await made.call("act", instruction="click Save everything")
        with pytest.raises(InstructionRefused):
            await made.call("act", instruction="please be so kind")


CHANGING = """<label>Short <input maxlength=3></label><label>Upper <input id=upper></label>
<label>Word <input type=password id=word></label><label>Other <input id=other></label>
<label>Choice <select id=choice><option>a<option>b</select></label><script>
let keys = 0;
upper.oninput = () => { upper.value = upper.value.toUpperCase() };
word.oninput = () => { if (++keys === 3) other.focus() };
choice.onchange = () => { choice.selectedIndex = 0 };
</script>"""


async def test_what_the_page_made_of_a_text_or_a_choice_is_told(desk: Opening) -> None:
    async with desk() as made:
        await made.show(CHANGING)
        with pytest.raises(WrongElement, match='the field holds "abc" instead of "abcdef"'):
            await made.do("type", "textbox", "Short", "abcdef")
        answer = await made.do("type", "textbox", "Upper", "abc")
        assert 'The page changed what was typed: the field holds "ABC"' in answer.text
        answer = await made.do("append", "textbox", "Upper", "D")
        assert "changed" not in answer.text
        with pytest.raises(WrongElement, match='it has "a" selected'):
            await made.do("select", "combobox", "Choice", "b")


async def test_a_secret_is_typed_no_further_when_the_page_moves_the_focus(desk: Opening) -> None:
    async with desk() as made:
        await made.show(CHANGING)
        with pytest.raises(WrongElement, match="took the focus away after 4 of 13 characters"):
            await made.do("type", "textbox", "Word", "hunter2secret")
        assert await made.script("[word.value.length, other.value.length]") == [3, 1]
