"""`type` and `select` report the page's value; a secret stays in its field."""

from __future__ import annotations

from typing import Any

import pytest

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.interact import typed_content
from engine.browser.interact.typed_content import Expected, judge
from engine.egress.egress_policy import Policy
from fixtures.site.site import Site
from tests.commands.conftest import Booth, Opening, do, failure, results
from tests.commands.test_command_journeys import page
from tests.support.written_files import contents

SECRET = "hunter2secret"
FIELDS = """<input id=max maxlength=3><input id=upper><input id=clears><input id=number type=number>
<input id=doubles><input id=shields><input id=phone><input id=trims><input id=plain>
<div id=rich contenteditable>old</div><input id=loses><textarea id=area></textarea>
<input id=key placeholder=empty><input id=key2><label id=label>Named <input id=named></label>
<input id=late><input id=mail type=email value=a@b><input id=gone><script>
const on = (name, work) => document.getElementById(name).addEventListener("input", work);
on("upper", (e) => { e.target.value = e.target.value.toUpperCase() });
on("clears", (e) => { e.target.value = "" });
on("late", (e) => setTimeout(() => { e.target.value = "" }));
on("doubles", (e) => { e.target.value += e.data });
on("phone", ({ target }) => {
  target.value = target.value.replace(/ /g, "").replace(/(...)(?=.)/g, "$1 ");
});
on("loses", (e) => { if (e.target.value.length == 2) e.target.blur() });
on("key", (e) => { if (e.target.value.length == 4) key2.focus() });
on("gone", (e) => { if (e.target.value.length == 4) e.target.remove() });
</script>"""
MOVES = """<style>* { font: 16px monospace }</style><input id=word type=password><input id=other>
<p id=echo></p><script>
let keys = 0;
word.oninput = () => { echo.textContent = word.value; if (++keys === 3) other.focus() };
</script>"""
BOXES = """<style>* { font: 16px monospace }</style><form>BOX BOX BOX BOX BOX BOX</form><script>
const form = document.querySelector("form");
form.innerHTML = form.innerHTML.replaceAll("BOX", "<input maxlength=1>");
for (const box of form.elements)
  box.oninput = () => { if (box.value) box.nextElementSibling?.focus() };
</script>"""


def typing(selector: str, text: str, **more: Any) -> dict[str, Any]:
    return do("type", selector=selector, text=text, **more)


async def test_typing_fails_when_the_field_has_another_value(opened: Opening, site: Site) -> None:
    site.answers["/fields"] = page(FIELDS)
    goto = do("goto", url=f"{site.url}/fields")
    held = {"max": "abc", "clears": "", "late": "", "doubles": "aabbccddeeff", "number": ""}
    async with opened() as booth:
        for name, content in (held | {"loses": "ab"}).items():
            kept = await failure(booth, goto, typing(f"#{name}", "abcdef", keep_text=True))
            said = f'the field holds "{content}" instead of "abcdef"'
            assert kept == ("EXECUTION_ERROR", said), name
        _, said = await failure(booth, goto, typing("#max", "abcdef"))
        assert said == "the field holds a text of length 3 instead of 6"
        _, said = await failure(booth, goto, typing("#loses", "abcdef"))
        assert (
            said == "the page took the focus away after 2 of 6 characters; nothing more was typed"
        )


async def test_a_reformatted_value_gives_a_warning(opened: Opening, site: Site) -> None:
    site.answers["/fields"] = page(FIELDS)
    async with opened() as booth:
        _, upper, phone, secret = await results(
            booth,
            do("goto", url=f"{site.url}/fields"),
            typing("#upper", "abc", keep_text=True),
            typing("#phone", "123456789", keep_text=True),
            typing("#phone", "987654321"),
        )
    changed = "the page changed what was typed: the field holds"
    assert upper == {"typed": 3, "warning": f'{changed} "ABC" instead of "abc"'}
    assert phone["warning"] == f'{changed} "123 456 789" instead of "123456789"'
    assert secret["warning"] == f"{changed} a text of length 11 instead of 9"


async def test_what_was_typed_as_it_should_be_has_no_warning(opened: Opening, site: Site) -> None:
    site.answers["/fields"] = page(FIELDS)
    async with opened() as booth:
        done = await results(
            booth,
            do("goto", url=f"{site.url}/fields"),
            typing("#plain", "pass WORD 1!"),
            typing("#plain", " more", append=True),
            do("press", selector="#plain", key="Home"),
            typing("#plain", "first ", append=True, keep_text=True),
            do("expect", selector="#plain", value="first pass WORD 1! more"),
            typing("#rich", "new words"),
            typing("#rich", " and more", append=True),
            do("expect", selector="#rich", text="new words and more"),
            typing("#area", "one\ntwo"),
            typing("#area", "long " * 300),
            typing("#number", "12.5"),
            typing("input:placeholder-shown", "abc"),
            typing("#label", "Ada"),
            typing("#label", " L", append=True),
            do("expect", selector="#named", value="Ada L"),
            typing("#plain", ""),
        )
    assert not [one for one in done if "warning" in one and "matches" not in one], done


async def test_a_field_may_disappear_when_complete(opened: Opening, site: Site) -> None:
    site.answers["/fields"] = page(FIELDS)
    leaves = "<input id=f oninput=\"if (value.length == 4) location = '/fields'\">"
    site.answers["/leaves"] = page(leaves)
    async with opened() as booth:
        _, gone, _, left = await results(
            booth,
            do("goto", url=f"{site.url}/fields"),
            typing("#gone", "1234"),
            do("goto", url=f"{site.url}/leaves"),
            typing("#f", "1234"),
        )
        assert gone["warning"] == typed_content.NOT_CHECKED
        assert left["typed"] == 4


async def shot(booth: Booth, *commands: dict[str, Any], **fields: Any) -> tuple[Any, bytes]:
    """Run a task that ends with a picture; return the task and the picture."""
    record = await booth.start(*commands, do("screenshot"), **fields)
    await booth.engine.tasks.wait(record.task_id)
    done = await booth.look(record.task_id)
    path = done["commands"][-1]["result"]["path"]
    return done, (booth.folder(record.task_id) / path).read_bytes()


async def test_a_secret_is_not_typed_into_another_field(opened: Opening, site: Site) -> None:
    site.answers["/moves"] = page(MOVES)
    site.answers["/none"] = page("<p>none</p>")
    goto = do("goto", url=f"{site.url}/moves")
    async with opened(environ={"WORD": SECRET}) as booth:
        options = InstanceOptions(policy=Policy.for_start(site.url))
        there = {"instanceId": (await booth.engine.instances.launch(options)).id}
        # `there` has the names of optional arguments.
        record = await booth.start(goto, typing("#word", {"secret": "env:WORD"}), **there)  # type: ignore[arg-type]
        await booth.engine.tasks.wait(record.task_id)
        done = await booth.look(record.task_id)
        error = done["commands"][1]["error"]
        assert error["code"] == "EXECUTION_ERROR"
        assert error["message"].startswith("the page took the focus away after 4 of 13 characters")
        script = "return [other.value.length, word.value.length]"
        later = await booth.run(
            do("evaluate", script=script), do("get_html"), do("get_text", selector="body"), **there
        )
        assert later["commands"][0]["result"]["value"] == [1, 3]
        files = contents(booth.home).values()
        assert not [data for data in files if b"unter" in data or b"hunte" in data]


async def test_one_character_boxes_take_a_code_and_are_masked(opened: Opening, site: Site) -> None:
    site.answers["/boxes"] = page(BOXES)
    goto = do("goto", url=f"{site.url}/boxes")
    first = "input >> nth=0"
    async with opened() as booth:
        one, hidden = await shot(booth, goto, typing(first, "482913"))
        _, other = await shot(booth, goto, typing(first, "517306"))
        kept, _ = await shot(booth, goto, typing(first, "482913", keep_text=True))
        _, too_many = await failure(booth, goto, typing(first, "4829137"))
        read = "return [...document.forms[0].elements].map((one) => one.value).join('').length"
        *_, value = await results(booth, goto, typing(first, "482913"), do("evaluate", script=read))
    assert hidden == other
    assert one["commands"][1]["result"]["warning"] == typed_content.SPREAD
    assert kept["commands"][1]["result"]["warning"] == typed_content.SPREAD
    assert too_many == "the field holds a text of length 1 instead of 7"
    assert value["value"] == 6


async def test_text_across_fields_warns_and_a_secret_fails(opened: Opening, site: Site) -> None:
    site.answers["/fields"] = page(FIELDS)
    goto = do("goto", url=f"{site.url}/fields")
    async with opened() as booth:
        _, spread = await results(booth, goto, typing("#key", "abcd-efgh", keep_text=True))
        _, said = await failure(booth, goto, typing("#key", "abcd-efgh"))
    assert spread["warning"] == typed_content.SPREAD
    assert said.startswith("the page took the focus away after 4 of 9")


async def test_a_secret_is_not_typed_into_another_frame(opened: Opening, site: Site) -> None:
    far = f"http://localhost:{site.port}"
    site.answers["/outer"] = page(
        f"<input id=top><iframe src={far}/inner></iframe>"
        "<script>onmessage = () => document.getElementById('top').focus()</script>"
    )
    site.answers["/inner"] = page(
        "<input id=f oninput=\"if (value.length == 3) parent.postMessage('x', '*')\">"
    )
    goto = do("goto", url=f"{site.url}/outer")
    async with opened() as booth:
        _, said = await failure(
            booth, goto, typing("#f", SECRET * 4, frame=f"iframe[src^='{far}']")
        )
    assert "the page took the focus away" in said


async def test_a_choice_that_the_page_takes_back_fails(opened: Opening, site: Site) -> None:
    options = "<option>a<option value=b>b<option value=c>c</select>"
    site.answers["/choice"] = page(
        f"<select id=s onchange='selectedIndex = 0'>{options}"
        f"<select id=late onchange='setTimeout(() => (selectedIndex = 0))'>{options}"
        f"<select id=goes onchange=\"location = '/choice?' + value\">{options}"
        f"<select id=good multiple>{options}"
    )
    goto = do("goto", url=f"{site.url}/choice")
    async with opened() as booth:
        for name in ("s", "late"):
            said = await failure(booth, goto, do("select", selector=f"#{name}", value="b"))
            reason = 'the page changed the choice: the field has "a" selected'
            assert said == ("EXECUTION_ERROR", reason)
        _, good, goes, _ = await results(
            booth,
            goto,
            do("select", selector="#good", label="c"),
            do("select", selector="#goes", value="b"),
            do("wait_for", url="**/choice?b"),
        )
    assert (good["selected"], goes["selected"]) == (["c"], ["b"])


@pytest.mark.parametrize(
    ("wanted", "held", "failed"),
    [
        ("abc", "abc", False),
        ("+49 (30) 1234", "+49301234", False),
        ("Straße", "STRASSE", False),
        ("!!!", "", True),
        ("!! !", "!!!", False),
        ("abc", "ab", True),
        ("abc", "abcd", True),
        ("", "x", True),
        ("a\r\nb", "a\nb", False),
    ],
)
def test_only_letters_and_digits_count(wanted: str, held: str, failed: bool) -> None:
    found = {"focus": "here", "kind": "value", "text": held, "spread": held}
    assert judge(Expected(wanted), found, secret=False).failed is failed
