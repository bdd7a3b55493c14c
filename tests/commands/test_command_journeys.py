"""Command tasks in realistic journeys: clicks, checkboxes, frames, several matches."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.interact import command_target
from engine.cli.progress import CommandLines
from engine.cli.run import report
from engine.kinds.commands.command_check import check
from engine.model.addresses import Glob
from engine.model.errors import InvalidArguments
from engine.sample.site import Answer
from fixtures.site.site import Site
from tests.commands.command_states import instance_options
from tests.commands.conftest import Booth, Opening, do, failure, mistakes, results, task
from tests.support.at_once import ended
from tests.support.far_limits import keep_own_limits

LOG = """<pre id=log></pre><script>
for (const name of ["click", "dblclick", "contextmenu", "auxclick", "keydown"])
  addEventListener(name, (event) => {
    const held = ["shiftKey", "ctrlKey"].filter((key) => event[key]).join("+");
    const said = [name, event.target.id, event.key || event.detail, held];
    log.textContent += said.join(" ").trim() + "\\n";
  });
</script>"""


def page(body: str) -> Answer:
    return Answer(f"<!doctype html><title>t</title><body>{body}</body>".encode())


async def too_late(booth: Booth, goto: dict[str, Any], command: dict[str, Any], why: str) -> None:
    """The command runs into its limit, and tells why; a busy machine gets more time for that."""
    for limit_ms in (1_000, 5_000, 20_000):
        command["args"]["timeout"] = limit_ms
        code, said = await failure(booth, goto, command)
        assert code == "COMMAND_TIMEOUT"
        if why in said:
            return
    raise AssertionError(said)


async def test_text_and_html_hold_open_shadow_roots(opened: Opening, site: Site) -> None:
    site.answers["/shadow"] = page(
        "<main>a<div><template shadowrootmode=open><p>in <slot></slot></p></template>slotted</div>"
        "</main><p id=plain>plain <b>words</b></p>"
    )
    async with opened() as booth:
        _, text, inside, html, whole, plain = await results(
            booth,
            do("goto", url=f"{site.url}/shadow"),
            do("get_text", selector="main"),
            do("get_text", selector="div p"),
            do("get_html", selector="main"),
            do("get_html"),
            do("get_html", selector="#plain"),
        )
    assert text["text"] == "a\n\nin slotted"
    assert inside["text"] == "in slotted"
    declared = (
        '<div><template shadowrootmode="open"><p>in <slot></slot></p></template>slotted</div>'
    )
    assert html["html"] == f"<main>a{declared}</main>"
    assert whole["html"].startswith("<!DOCTYPE html><html>")
    assert declared in whole["html"]
    assert plain["html"] == '<p id="plain">plain <b>words</b></p>'


async def test_clicks_take_a_count_a_button_and_modifiers(opened: Opening, site: Site) -> None:
    site.answers["/log"] = page("<button id=b>b</button><input id=field>" + LOG)
    async with opened() as booth:
        *_, said = await results(
            booth,
            do("goto", url=f"{site.url}/log"),
            do("click", selector="#b", count=2),
            do("click", selector="#b", button="right"),
            do("click", selector="#b", button="middle"),
            do("click", selector="#b", modifiers="Control+Shift"),
            do("press", selector="#field", key="Control+A"),
            do("get_text", selector="#log"),
        )
    assert [line for line in said["text"].splitlines() if "keydown b" not in line] == [
        "click b 1",
        "click b 2",
        "dblclick b 2",
        "contextmenu b 0",
        "auxclick b 1",
        "auxclick b 1",
        "click b 1 shiftKey+ctrlKey",
        "keydown field Control ctrlKey",
        "keydown field A ctrlKey",
    ]


BOXES = """
<ul><li><label id=one><input type=checkbox> Milk</label>
<li><label id=two><input type=checkbox checked> Bread</label></ul>
<div id=switch role=switch tabindex=0 aria-checked=false onclick="
  this.setAttribute('aria-checked', this.getAttribute('aria-checked') !== 'true')">Wake</div>
<input type=radio id=radio>
<input type=checkbox id=leaves onclick="this.remove()">
<input type=checkbox id=stuck onclick="event.preventDefault()">
<p id=text>no box</p>"""
STATES = "[...document.querySelectorAll('label input')].map((box) => box.checked)"


async def test_check_and_uncheck_are_idempotent(opened: Opening, site: Site) -> None:
    site.answers["/boxes"] = page(BOXES)
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/boxes"),
            do("check", selector="#one"),
            do("check", selector="#one"),
            do("uncheck", selector="#two input"),
            do("evaluate", script=STATES),
            do("check", selector="role=switch[name='Wake']"),
            do("check", selector="role=switch[name='Wake']"),
            do("get_html", selector="#switch"),
            do("check", selector="#radio"),
            do("check", selector="#leaves"),
        )
        assert done[1] == done[2] == {"checked": True, "done": True, "url": f"{site.url}/boxes"}
        assert done[4] == {"value": [True, False]}
        assert 'aria-checked="true"' in done[7]["html"]
        for command, reason in (
            (do("check", selector="#stuck"), "it was clicked and did not change"),
            (do("check", selector="#text"), "nothing that can be checked"),
            (do("uncheck", selector="#radio"), "checking another one"),
        ):
            start = (do("goto", url=f"{site.url}/boxes"), do("check", selector="#radio"))
            code, said = await failure(booth, *start, command)
            assert code == "EXECUTION_ERROR"
            assert reason in said


REPLACED = """
<button id=go onclick="replace(30)">Go</button><p><input type=checkbox id=box></p>
<script>
const replace = (times) => requestAnimationFrame(() => {
  box.parentNode.innerHTML = "<input type=checkbox id=box>";
  if (times) replace(times - 1);
});
</script>"""


async def test_a_box_that_the_page_replaces_before_the_click_is_searched_again(
    opened: Opening, site: Site
) -> None:
    site.answers["/replaced"] = page(REPLACED)
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/replaced"),
            do("click", selector="#go"),
            do("check", selector="#box"),
            do("evaluate", script="box.checked"),
        )
    assert done[-1] == {"value": True}


async def test_a_pressed_key_is_masked_like_typed_text(opened: Opening, site: Site) -> None:
    site.answers["/log"] = page("<input id=field oninput='log.textContent = value'><p id=log></p>")
    async with opened() as booth:
        done = await booth.run(
            do("goto", url=f"{site.url}/log"),
            do("press", selector="#field", key="7"),
            do("get_text", selector="#log"),
        )
    assert done["commands"][1]["args"]["key"] == "[redacted]"
    assert done["commands"][2]["status"] == "success"


async def test_several_matches_are_told_and_the_first_is_used(opened: Opening, site: Site) -> None:
    rows = "".join(f"<li onclick='out.textContent={n}'>row {n}</li>" for n in range(3))
    site.answers["/rows"] = page(f"<ul>{rows}</ul><p id=out></p>")
    async with opened() as booth:
        done = await booth.run(
            do("goto", url=f"{site.url}/rows"),
            do("click", selector="li"),
            do("get_text", selector="#out"),
            do("click", selector="li", button="right", timeout=300),
            do("type", selector="li", text="x", timeout=500),
        )
        light = await booth.engine.tasks.command_task(done["id"], results=False)
    assert light is not None
    click, out = done["commands"][1:3]
    warning = "3 elements match the selector; the first was used"
    assert (click["result"]["matches"], click["result"]["warning"]) == (3, warning)
    assert out["result"] == {"text": "0"}
    assert [one.get("warning") for one in light["commands"][:3]] == [None, warning, None]


async def test_an_alternative_is_used_where_the_selector_meets_nothing_or_several(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_target, "PATIENCE_MS", 200)
    rows = "".join(f"<li class=n{n} onclick='out.textContent={n}'>row {n}</li>" for n in range(3))
    site.answers["/rows"] = page(f"<ul>{rows}</ul><p id=out></p><b class=n9>other</b>")
    others = ["li[[", "li", ".n9", '.n{{number}}:text-is("row 2")']
    async with opened() as booth:
        done = await booth.run(
            do("goto", url=f"{site.url}/rows"),
            do("click", selector="#gone", alternatives=[".no", *others[:2], others[3]]),
            do("get_text", selector="#out"),
            do("click", selector="li", alternatives=[".n9", ".n1"]),
            do("get_text", selector="#out", alternatives=[".n9"]),
            do("click", selector="li", alternatives=[".n9"]),
            do("click", selector="#gone", alternatives=["#away"], timeout=900),
            variables={"number": 2},
        )
        lines = next(booth.home.glob("tasks/*/events.jsonl")).read_text().splitlines()
    told = [json.loads(line).get("data", {}) for line in lines]
    events = [one["note"] for one in told if one.get("phase") == "command"]
    found = [one.get("result") for one in done["commands"]]
    used = '.n2:text-is("row {{number}}")'
    assert found[1]["used_selector"] == used
    assert found[1]["warning"] == f"the first selector met nothing; used {used}"
    assert found[2] == {"text": "{{number}}"}
    assert found[3]["warning"] == "the first selector met 3 elements; used .n1"
    assert found[4] == {"text": "1"}  # the selector met one: no alternative is looked at
    assert "used_selector" not in found[5]  # what an alternative means is none of the three
    assert found[5]["matches"] == 3
    assert done["commands"][6]["error"]["code"] == "COMMAND_TIMEOUT"
    assert events == [
        f"Command 2: the first selector met nothing; used {used}",
        "Command 4: the first selector met 3 elements; used .n1",
    ]


async def test_appended_text_stands_behind_what_a_field_holds(opened: Opening, site: Site) -> None:
    site.answers["/held"] = page("<input id=f value=one><div id=e contenteditable>two</div>")
    async with opened() as booth:
        done = await booth.run(
            do("goto", url=f"{site.url}/held"),
            do("type", selector="#f", text=" more", append=True, keep_text=True),
            do("type", selector="#e", text=" more", append=True, keep_text=True),
            do("evaluate", script="f.value + ', ' + e.textContent"),
        )
    assert done["commands"][3]["result"] == {"value": "one more, two more"}


def test_a_warning_is_shown_in_the_report_and_on_the_command_line(tmp_path: Path) -> None:
    command = {
        **do("click", selector="li"),
        "id": "task_1_1_cmd_0",
        "status": "success",
        "warning": "3 elements match the selector; the first was used",
    }
    done = {"id": "task_1_1", "name": "t", "status": "completed", "createdAt": 1}
    shown = CommandLines(several=False).line({**done, "commands": [command]}, 0, command)
    assert shown.endswith(": 3 elements match the selector; the first was used [warning]")
    xml = report([({**done, "commands": [command]}, tmp_path)]).decode()
    assert '<property name="warning" value="3 elements match the selector' in xml
    assert "<system-out>warning: 3 elements match" in xml


OUTER = "<h1>Outer</h1><iframe id=near src='/near'></iframe>"
INNER = """<h2>Inner</h2><input id=name><button onclick="out.textContent = 'hi ' + name_.value">go
</button><p id=out></p><iframe src='{far}/far' width=300 height=200></iframe>
<script>const name_ = document.getElementById('name')</script>"""
FAR = "<button id=deep onclick=\"this.textContent='pressed'\">deep</button>"


async def test_commands_act_in_frames_of_any_site(opened: Opening, site: Site) -> None:
    far = f"http://localhost:{site.port}"
    site.answers["/outer"] = page(OUTER)
    site.answers["/near"] = page(INNER.format(far=far))
    site.answers["/far"] = page(FAR)
    nested = ["#near", f"iframe[src='{far}/far']"]
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/outer"),
            do("wait_for", selector="h2", frame="#near"),
            do("type", selector="#name", text="Ada", frame="#near", keep_text=True),
            do("click", selector="button", frame="#near"),
            do("get_text", selector="#out", frame="#near"),
            do("click", selector="#deep", frame=nested),
            do("get_text", selector="#deep", frame=nested),
            do("evaluate", script="location.pathname", frame=nested),
            do("get_html", frame="#near"),
            do("get_viewport_dom", frame="#near"),
            do("screenshot", frame="#near"),
        )
        assert done[4] == {"text": "hi Ada"}
        assert done[6] == {"text": "pressed"}
        assert done[7] == {"value": "/far"}
        assert "<h2>Inner</h2>" in done[8]["html"]
        assert done[9]["url"].endswith("/near")
        assert (done[10]["width"], done[10]["height"]) == (304, 155)
        said = await failure(
            booth, do("goto", url=f"{site.url}/outer"), do("click", selector="#deep", frame="h1")
        )
    assert said == ("EXECUTION_ERROR", "the frame selector met an element that is no frame")


@pytest.mark.thorough
async def test_ambiguous_and_missing_frames_are_reported(opened: Opening, site: Site) -> None:
    site.answers["/frames"] = page("<iframe class=f src=/inner></iframe>" * 2)
    site.answers["/inner"] = page("<p>one</p><p>two</p><iframe srcdoc='<b>deep</b>'></iframe>")
    goto = do("goto", url=f"{site.url}/frames")
    first = "the first was used"
    async with opened() as booth:
        done = await results(
            booth,
            goto,
            do("click", selector="p", frame=".f"),
            do("get_text", selector="b", frame=["iframe", "iframe"]),
            do("evaluate", script="1", frame="iframe"),
            do("screenshot", frame=".f"),
            do("wait_for", selector="p >> nth=0", frame=".f"),
            do("expect", selector="p", count=2, frame=".f"),
            do("drag", selector="p >> nth=0", target="p", frame=".f"),
            do("drag", selector="p", x=1, frame=".f >> nth=0"),
        )
        told = [(one.get("matches"), one.get("frame_matches")) for one in done]
        assert told == [(None, None), (2, 2), *[(None, 2)] * 6, (2, None)]
        assert (done[7]["target_matches"], done[8].get("target_matches")) == (2, None)
        both = f"2 elements match the selector; {first}; and 2 frames match; {first}"
        assert done[1]["warning"] == both
        target = f"2 elements match the target; {first}; and 2 frames match; {first}"
        assert done[7]["warning"] == target
        for command, frame in (
            (do("click", selector="p", frame="#none"), "#none"),
            (do("get_html", frame=[".f", "#none"]), "#none"),
            (do("expect", selector="p", text="x", frame=["#none", "#neither"]), "#none"),
        ):
            await too_late(booth, goto, command, f"the frame {frame} was not found on the page")
        missing = do("drag", selector="p", target="#none", frame=".f")
        await too_late(booth, goto, missing, "#none (it is not there or hidden)")


@pytest.mark.thorough
async def test_wait_for_gone_fails_for_a_missing_frame(opened: Opening, site: Site) -> None:
    site.answers["/frame"] = page(
        """<iframe id=f srcdoc="<p>in</p><iframe class=deep srcdoc='<b>deep</b>'></iframe>">
        </iframe><button onclick=f.remove()>close</button>"""
    )
    goto, inner = do("goto", url=f"{site.url}/frame"), ["#f", ".deep"]
    absent: list[dict[str, Any]] = [
        do("expect", selector="b", state="hidden"),
        do("expect", selector="b", count=0),
        do("wait_for", gone="b"),
    ]
    async with opened() as booth:
        for frame in (["#typo"], ["#f", ".typo"]):
            for one in absent:
                named = {**one, "args": {**one["args"], "frame": frame}}
                await too_late(booth, goto, named, f"the frame {frame[-1]} was not found on")
        here = [{**one, "args": {**one["args"], "frame": "#f"}} for one in absent]
        await results(booth, goto, *here)  # the frame is there, and what it holds is not
        gone = [{**one, "args": {**one["args"], "frame": inner}} for one in absent]
        seen = do("get_text", selector="b", frame=inner)
        await results(booth, goto, seen, do("click", selector="button"), *gone)
        # A frame that is named beside what concerns the page alone is not looked for.
        await results(booth, goto, do("expect", title="t", frame="#typo"))


async def test_wait_for_gone_waits_for_a_late_frame(opened: Opening, site: Site) -> None:
    late = """setTimeout(() => { const f = document.createElement("iframe");
      f.srcdoc = "<b>in</b>"; f.onload = () => setTimeout(() => f.remove(), 3_000);
      document.body.append(f) }, 300)"""
    site.answers["/late"] = page(f"<script>{late}</script>")
    goto, look = do("goto", url=f"{site.url}/late"), "return !!window.frames.length"
    asked = {"frame": "iframe", "timeout": 60_000}
    gone = do("wait_for", gone="b", **asked), do("expect", selector="b", state="hidden", **asked)
    async with opened() as booth:
        seen = [results(booth, goto, one, do("evaluate", script=look)) for one in gone]
        (_, _, there), _ = await asyncio.gather(*seen)
    assert there == {"value": False}  # only `wait_for` waits for that as well


async def test_an_alternative_of_a_target_is_used_where_the_target_meets_nothing_or_several(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_target, "PATIENCE_MS", 200)
    drop = "onmouseup='out.textContent=this.className' style='height:40px'"
    zones = "".join(f"<div class=z{n} {drop}>zone</div>" for n in range(3))
    site.answers["/zones"] = page(
        f"<i style=user-select:none>drag me</i>{zones}<p id=out></p><p class=hid hidden>zone</p>"
    )
    out = do("get_text", selector="#out")
    others = ["li[[", "div", ".none", ".z1"]
    async with opened() as booth:
        done = await booth.run(
            do("goto", url=f"{site.url}/zones"),
            do("drag", selector="i", target="#gone", target_alternatives=others),
            out,
            do("drag", selector="i", target="div", target_alternatives=["#out", ".z2"]),
            out,
            do("drag", selector="i", target="div", target_alternatives=["#out"]),
            out,
            do("drag", selector="i", target=".hid", target_alternatives=[".z1"]),
            do("drag", selector="i", target="#gone", target_alternatives=["#no"], timeout=900),
        )
        lines = next(booth.home.glob("tasks/*/events.jsonl")).read_text()
    found = [one.get("result") for one in done["commands"]]
    assert [found[at]["text"] for at in (2, 4, 6)] == ["z1", "z2", "z0"]
    assert (found[1]["used_target"], found[3]["used_target"]) == (".z1", ".z2")
    assert found[1]["warning"] == "the first target met nothing; used .z1"
    assert found[3]["warning"] == "the first target met 3 elements; used .z2"
    assert "Command 2: the first target met nothing; used .z1" in lines
    assert (found[5]["target_matches"], "used_target" in found[5]) == (3, False)
    assert found[7]["used_target"] == ".z1"
    error = done["commands"][8]["error"]
    assert error["code"] == "COMMAND_TIMEOUT"
    assert "#gone (it is not there or hidden)" in error["message"]


def test_alternatives_of_a_target_mean_nothing_without_it() -> None:
    with pytest.raises(InvalidArguments) as caught:
        check(task(do("drag", selector="i", x=3, target_alternatives=["b"])))
    assert mistakes(caught.value) == {"commands[0].args.target_alternatives": "contradiction"}


@pytest.mark.thorough
@pytest.mark.timeout(900)  # many cases in one browser
async def test_what_a_reason_quotes_takes_none_of_our_own_words_with_it(
    opened: Opening, site: Site, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    keep_own_limits(monkeypatch)
    site.answers["/form"] = page("<label>Name</label>")
    goto = {**do("goto", url=f"{site.url}/form"), "intention": "Open the form for the password"}
    async with opened() as booth:
        names = ("Password:", 'Secret: "', "the token =", "Set-Cookie: ")
        cases = await ended({name: quoted(booth, goto, name) for name in names}, most=2)
    for name, case in cases.items():
        with subtests.test(name=name):
            case.result()


async def quoted(booth: Booth, goto: dict[str, Any], name: str) -> None:
    named = f"label:text-is({json.dumps(name)})"
    last = {**do("click", selector="#x", timeout=2_000), "intention": f"Type the {name}"}
    late, met, done = await asyncio.gather(
        failure(booth, goto, do("click", selector=named, timeout=2_000)),
        failure(booth, goto, do("expect", selector="label", text=name, timeout=2_000)),
        booth.run(goto, last),
    )
    assert late[1].startswith("not done within 2 s: label:text-is(")
    assert late[1].endswith(" (there is no such element)")
    assert met[1].endswith(' of label, found "Name"')
    assert done["error"]["message"].endswith(
        "): not done within 2 s: #x (there is no such element)"
    )


def test_a_text_for_a_dialog_that_is_dismissed_is_a_mistake() -> None:
    said = do("dialog", answer="dismiss", text="{{name}}")
    with pytest.raises(InvalidArguments) as caught:
        check(task(do("dialog", answer="accept", text="a"), said, variables={"name": "x"}))
    assert mistakes(caught.value) == {"commands[1].args.text": "contradiction"}
    assert "means nothing with answer dismiss: leave it out" in str(caught.value)


def test_mistakes_in_lists_and_choices_are_told_with_their_places() -> None:
    document = task(
        do("click", selector="#a", count=4, button="back", modifiers=["Hyper"]),
        do("get_text", selector="#a", frame=[]),
        do("get_text", selector="#a", frame=["#f", 3]),
        do("get_text", selector="#a", frame=["#f", "{{gone}}"]),
        do("press", selector="#a", key="Entr"),
        variables={"known": "#f"},
    )
    with pytest.raises(InvalidArguments) as caught:
        check(document)
    assert mistakes(caught.value) == {
        "commands[0].args.count": "invalid_value",
        "commands[0].args.button": "invalid_value",
        "commands[0].args.modifiers": "invalid_value",
        "commands[1].args.frame": "invalid_value",
        "commands[2].args.frame": "invalid_value",
        "commands[3].args.frame[1]": "unknown_variable",
        "commands[4].args.key": "invalid_value",
    }
    plan = check(task(do("get_text", selector="p", frame=["{{known}}"]), variables={"known": "#f"}))
    assert plan.steps[0].args["frame"] == ("#f",)


def test_an_unknown_action_is_answered_with_all_that_there_are() -> None:
    wrong = {**do("click", selector="#a"), "args": {"action": "clik", "selector": "#a"}}
    with pytest.raises(InvalidArguments) as caught:
        check(task(wrong))
    said = str(caught.value)
    assert "did you mean click?" in said
    assert all(name in said for name in ("check", "hover", "select", "type"))
    elsewhere = {**do("click", selector="#a"), "tool_name": "browser_content"}
    with pytest.raises(InvalidArguments, match="it is an action of browser_interact"):
        check(task(elsewhere))


LATER = """<p id=out>waiting</p><div id=spinner>busy</div><input id=field value=old>
<input id=box type=checkbox checked><button id=off disabled>off</button>
<ul><li>a</li><li>b</li></ul><script>setTimeout(() => {
  out.textContent = "All   done"; spinner.hidden = true; field.value = "new";
  document.title = "Ready"; history.pushState(null, "", "/later/done?step=2");
}, 300)</script>"""


async def test_waiting_for_text_address_and_for_what_must_go(opened: Opening, site: Site) -> None:
    site.answers["/later"] = page(LATER)
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/later"),
            do("wait_for", text="all done"),
            do("wait_for", gone="#spinner", url="**/done?step=*", load_state="load"),
            do("wait_for", selector="p", text="done"),
        )
        assert done[2] == {"found": True, "url": f"{site.url}/later/done?step=2"}
        goto = do("goto", url=f"{site.url}/later")
        for command, reason in (
            (do("wait_for", gone="ul"), "ul (it is still there)"),
            (do("wait_for", url="/never"), f"/never (the address is {site.url}/later"),
            (do("wait_for", text="never"), "never (it is not there or hidden)"),
        ):
            await too_late(booth, goto, command, reason)


MET: list[dict[str, Any]] = [
    {"selector": "#out", "text": "All done"},
    {"selector": "#out", "contains": "ll do", "state": "visible"},
    {"selector": "#spinner", "state": "hidden"},
    {"selector": "#nothing", "state": "hidden", "count": 0},
    {"selector": "#field", "value": "new", "state": "enabled"},
    {"selector": "#off", "state": "disabled"},
    {"selector": "#box", "state": "checked"},
    {"selector": "li", "count": 2},
    {"title": "Ready", "url": "**/later/{done,gone}?step=2"},
]
UNMET: list[tuple[dict[str, Any], str]] = [
    ({"selector": "#out", "text": "done"}, 'expected text "done" of #out, found "All done"'),
    ({"selector": "#out", "contains": "x"}, 'expected contains "x" of #out, found "All done"'),
    ({"selector": "ul", "state": "hidden"}, "expected state hidden of ul, found visible"),
    ({"selector": "#box", "state": "unchecked"}, "expected state unchecked of #box, found checked"),
    ({"selector": "li", "count": 3}, "expected count 3 of li, found 2"),
    (
        {"selector": "#nothing", "text": "x"},
        'expected text "x" of #nothing, found there is no such element',
    ),
    ({"title": "Done"}, 'expected title "Done", found "Ready"'),
    ({"url": "/later"}, 'expected url "/later", found "{url}/later/done?step=2"'),
]


async def test_a_failed_expectation_reports_the_actual_value(opened: Opening, site: Site) -> None:
    site.answers["/later"] = page(LATER)
    goto = do("goto", url=f"{site.url}/later")
    async with opened() as booth:
        done = await results(booth, goto, *(do("expect", **each) for each in MET))
        assert [each["expected"] for each in done[1:]] == [True] * len(MET)
        opened_here = await booth.engine.instances.launch(instance_options(site))
        shared = {"instanceId": opened_here.id}
        await results(booth, goto, do("wait_for", text="All done"), **shared)
        for wanted, reason in UNMET:
            said = await failure(booth, do("expect", **wanted, timeout=50), **shared)
            assert said == ("EXECUTION_ERROR", reason.replace("{url}", site.url))


async def test_an_expectation_repeats_nothing_that_is_secret(opened: Opening, site: Site) -> None:
    site.answers["/login"] = page(
        "<input id=user><input id=pass type=password value=preset-by-the-page>"
        "<p id=out></p>"
        "<script>user.oninput = () => { out.textContent = 'hi ' + user.value }</script>"
    )
    goto = do("goto", url=f"{site.url}/login")
    typed = do("type", selector="#user", text={"secret": "env:WHO"})
    async with opened(environ={"WHO": "correct-horse"}) as booth:
        said = [
            await failure(booth, goto, typed, do("expect", **each, timeout=50))
            for each in (
                {"selector": "#out", "text": "nobody"},
                {"selector": "#pass", "value": "x"},
                {"selector": "#pass", "value": {"secret": "env:WHO"}},
            )
        ]
    assert [message for _, message in said] == [
        'expected text "nobody" of #out, found "hi [redacted]"',
        'expected value "x" of #pass, found [redacted]',
        'expected value "[redacted]" of #pass, found [redacted]',
    ]


async def test_what_lies_over_an_element_is_told(opened: Opening, site: Site) -> None:
    long = "A text that is much longer than what a message would show of it " * 2
    site.answers["/covered"] = page(
        "<button id=b>x</button><div id=cover class=modal style='position:fixed;inset:0'>"
        "<span style='position:fixed;inset:0'>Cookies?</span></div>"
    )
    site.answers["/long"] = page(
        f"<button id=b>x</button><div style='position:fixed;inset:0'>{long}</div>"
    )
    async with opened() as booth:
        for path, cover in (
            ("covered", '<span>Cookies?</span> from <div id="cover" class="modal">…</div>'),
            ("long", "<div>…</div>"),
        ):
            goto = do("goto", url=f"{site.url}/{path}")
            why = f"(something else lies over it: {cover})"
            await too_late(booth, goto, do("click", selector="#b"), why)


DRAGS = """<style>div { width: 80px; height: 80px; display: inline-block }</style>
<div id=card draggable=true>card</div><div id=list>list</div><div id=knob>knob</div>
<pre id=log></pre>
<script>
const say = (text) => { log.textContent += text + " " };
card.ondragstart = (event) => event.dataTransfer.setData("text", "the card");
list.ondragover = (event) => event.preventDefault();
list.ondrop = (event) => say(event.dataTransfer.getData("text"));
let moves = 0, from = 0;
knob.onpointerdown = (event) => { from = event.clientX; knob.setPointerCapture(event.pointerId) };
knob.onpointermove = (event) => { if (event.buttons) moves += 1 };
knob.onpointerup = (event) => say(event.clientX - from + (moves > 5 ? " px" : " jumped"));
</script>"""


async def test_dragging_works_with_drops_and_with_pointers(opened: Opening, site: Site) -> None:
    site.answers["/drags"] = page(DRAGS)
    async with opened() as booth:
        *_, said = await results(
            booth,
            do("goto", url=f"{site.url}/drags"),
            do("drag", selector="#card", target="#list"),
            do("drag", selector="#knob", x=120),
            do("get_text", selector="#log"),
        )
    assert said == {"text": "the card 120 px"}


async def test_options_are_selected_by_value_label_or_index(opened: Opening, site: Site) -> None:
    site.answers["/sizes"] = page(
        "<select><option value=s>Small<option value=l>Large<option value=x>Huge</select>"
    )
    async with opened() as booth:
        _, *chosen = await results(
            booth,
            do("goto", url=f"{site.url}/sizes"),
            do("select", selector="select", value="l"),
            do("select", selector="select", label="Huge"),
            do("select", selector="select", index=0),
        )
    assert chosen == [{"selected": ["l"]}, {"selected": ["x"]}, {"selected": ["s"]}]


def test_arguments_that_need_or_exclude_each_other_are_told() -> None:
    document = task(
        do("wait_for", timeout=5),
        do("select", selector="#a", label="A", index=1),
        do("drag", selector="#a"),
        do("drag", selector="#a", target="#b", y=4),
        do("expect", timeout=5),
        do("expect", text="x", count=-1),
    )
    with pytest.raises(InvalidArguments) as caught:
        check(document)
    assert mistakes(caught.value) == {
        "commands[0].args.selector": "missing",
        "commands[1].args.label": "contradiction",
        "commands[1].args.index": "contradiction",
        "commands[2].args.target": "missing",
        "commands[3].args.target": "contradiction",
        "commands[4].args.state": "missing",
        "commands[5].args.count": "invalid_value",
        "commands[5].args.selector": "missing",
    }
    plan = check(task(do("expect", title=""), do("wait_for", gone="#a")))
    assert [step.timeout_ms for step in plan.steps] == [5_000, 30_000]


PIECE = st.text(alphabet="ab/.?+", max_size=6)


@given(st.lists(PIECE, min_size=1, max_size=4), PIECE)
def test_a_glob_matches_what_its_stars_may_stand_for(pieces: list[str], filling: str) -> None:
    plain, wild = "".join(pieces), "**".join(pieces)
    assert Glob(plain).matches(plain) or plain.startswith("/")
    assert Glob(f"x{wild}").matches(f"x{filling.join(pieces)}")
    one = "*".join(pieces)
    assert Glob(f"x{one}").matches(f"x{filling.join(pieces)}") or "/" in filling


def test_a_glob_of_a_path_passes_over_the_host() -> None:
    assert Glob("/cart/*").matches("https://shop.example/cart/3")
    assert not Glob("/cart/*").matches("https://shop.example/cart/3/4")
    assert Glob("**/{cart,basket}?a=1").matches("https://shop.example/basket?a=1")
    assert not Glob("https://shop.example/").matches("https://shop.example/cart")


@pytest.mark.thorough
async def test_what_is_typed_in_a_frame_is_covered_in_pictures(opened: Opening, site: Site) -> None:
    far = f"http://localhost:{site.port}"
    site.answers["/outer"] = page(f"<iframe src={far}/field></iframe><iframe src=/field></iframe>")
    site.answers["/field"] = page("<input id=name>")
    pictures = []
    async with opened() as booth:
        for text in ("iiiiiiii", "WWWWWWWW"):
            done = await booth.run(
                do("goto", url=f"{site.url}/outer"),
                do("type", selector="#name", text=text, frame=f"iframe[src^='{far}']"),
                do("type", selector="#name", text=text, frame="iframe[src='/field']"),
                do("screenshot"),
            )
            (folder,) = (one.parent for one in booth.home.glob("tasks/*/artifacts/command-004.png"))
            pictures.append((folder / "command-004.png").read_bytes())
            (folder / "command-004.png").unlink()
            assert done["status"] == "completed"
    assert pictures[0] == pictures[1]
