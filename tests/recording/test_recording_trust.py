"""Recordings contain no secrets, and pages cannot forge actions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.recording import recorder
from engine.browser.recording.recorder import RateCap
from engine.browser.recording.recorder_messages import (
    Heard,
    Target,
    Told,
    Went,
    is_secret_field,
    read_told,
)
from engine.kinds.recording.recording_actions import Action, Masks, Scribe
from engine.sample.site import Answer
from tests.recording.conftest import WAIT_S
from tests.recording.test_recording_export import exported
from tests.support.written_files import contents

NAME, MAIL, PASSWORD, CARD = "Adalovelacex", "ada@mail.example", "hunter2-zz9", "4111222233334444"


async def fill(operator: Any) -> None:
    """Fill the order, look at the password in plain letters, and send it all by its address."""
    await operator.type("#who", NAME)
    await operator.click("#echo")  # a button that bears what was typed
    await operator.type("[name=mail]", MAIL)
    await operator.type("[name=code]", PASSWORD[:7])
    await operator.click("text=Show it")
    await operator.click("[name=code]")
    await operator.page.keyboard.press("End")
    await operator.page.keyboard.type(PASSWORD[7:])
    await operator.type("[name=card]", CARD)
    await operator.type("[name=notes]", "first line")
    await operator.page.keyboard.press("Enter")
    await operator.page.keyboard.type("last line")
    await operator.click("#send")
    await operator.comes_to("Thank you")
    await operator.recorded("navigated")


def everything(home: Path) -> bytes:
    """Each file under the home but pictures, one after the other."""
    return b"\n".join(data for place, data in contents(home).items() if place.suffix != ".png")


@pytest.mark.case("R81")
async def test_typed_text_is_not_stored_by_default(recording: Any, site: Any, home: Path) -> None:
    async with recording(f"{site.url}/shop/order", screenshots="each") as running:
        await fill(running.operator)
        await running.stop()
        names = [one["variable"] for one in running.result()["actions"] if "variable" in one]
    kept = everything(home).replace(b"+", b" ").replace(b"%40", b"@")
    for typed in (NAME, MAIL, PASSWORD, PASSWORD[:7], CARD, "first line", "last line"):
        assert typed.encode() not in kept, typed
    assert names == ["your_name", "e_mail", "password", "password_2", "card_number", "notes"]
    assert b"who={{your_name}}&mail={{e_mail}}&code={{password_2}}" in kept


@pytest.mark.case("R81")
async def test_keep_text_excludes_passwords(recording: Any, site: Any, home: Path) -> None:
    async with recording(f"{site.url}/shop/order", keep_text=True) as running:
        await fill(running.operator)
        await running.stop()
        typed = [one for one in running.result()["actions"] if one["type"] == "type"]
    kept = everything(home)
    assert PASSWORD.encode() not in kept
    assert PASSWORD[:7].encode() not in kept
    assert CARD.encode() not in kept
    assert [one["text"] for one in typed] == [
        NAME,
        MAIL,
        "{{password}}",
        "{{password_2}}",
        "{{card_number}}",
        "first line\nlast line",
    ]
    assert [one.get("secret", False) for one in typed] == [False, False, True, True, True, False]


@pytest.mark.parametrize("switch", [True, False])
async def test_the_operator_says_whether_keys_in_what_pages_say_are_kept(
    recording: Any, site: Any, home: Path, tmp_path: Path, switch: bool
) -> None:
    key = "AKIA" + "ABCDEFGH" * 2
    body = f"<h1>{key}</h1><button>Use {key}</button><input aria-label='{key} of'>"
    site.answers["/keys"] = Answer(f"<!doctype html>{body}".encode())
    async with recording(f"{site.url}/keys", redact_content=switch) as running:
        await running.operator.click("button")
        await running.operator.type("input", "planted")
        await running.operator.click("h1")
        await running.operator.recorded("click", 2)
        await running.stop()
        actions = running.result()["actions"]
        task = json.dumps(exported(running, tmp_path))
    click, typed = (
        next(one for one in actions if one["type"] == sort) for sort in ("click", "type")
    )
    shown = "[redacted]" if switch else key
    assert (click["name"], typed["name"]) == (f"Use {shown}", f"{shown} of")
    assert (f'role=button[name="Use {key}"]' in (click["selector"], *click["alternatives"])) is (
        not switch
    )
    assert typed["text"].startswith("{{")
    assert (key.encode() in everything(home)) is (not switch)
    assert (key in task) is (not switch)
    assert b"planted" not in everything(home)


async def test_password_fields_stay_secret(recording: Any, site: Any, home: Path) -> None:
    async with recording(f"{site.url}/shop/order", keep_text=True) as running:
        await running.operator.page.evaluate(
            "document.querySelector('[name=code]').closest('label').firstChild.data = 'Word '"
        )
        await running.operator.click("[name=code]")
        await running.operator.click("text=Show it")
        await running.operator.type("[name=code]", PASSWORD)
        await running.operator.heard()
        await running.stop()
        typed = running.result()["actions"][-2]
        assert (typed["name"], typed["text"], typed["secret"]) == ("Word", "{{word}}", True)
    assert PASSWORD.encode() not in everything(home)


FORGERIES = """
const field = document.querySelector('#who');
field.focus();
field.value = 'forged';
for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true}));
document.execCommand('insertText', false, 'forged');
document.querySelector('[name=gift]').click();
document.querySelector('#echo').click();
document.querySelector('#echo').dispatchEvent(new MouseEvent('click', {bubbles: true, detail: 1}));
dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
scrollTo(0, 10);
for (const name of Object.getOwnPropertyNames(window)) {
  if (/^(tell|send|record|recorder)/.test(name) && typeof window[name] === 'function') {
    window[name](JSON.stringify({kind: 'key', key: 'F9'}));
  }
}
"""


async def test_pages_cannot_detect_or_forge_the_recorder(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        operator = running.operator
        before = "Object.getOwnPropertyNames(window).filter((name) => /tell_|record/.test(name))"
        assert await operator.page.evaluate(before) == []
        await operator.page.evaluate(FORGERIES)
        await operator.click("text=By bird")
        await operator.recorded("check")
        await running.stop()
        result = running.result()
        assert [one["type"] for one in result["actions"]] == ["navigate", "check"]
        assert result["actions"][-1]["name"] == "By bird"
        assert result["dropped"] == 0


async def test_overwritten_builtins_do_not_affect_recording(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/order") as running:
        await running.operator.page.evaluate(
            "JSON.stringify = () => '{}'; Element.prototype.closest = () => null;"
            "Document.prototype.querySelectorAll = () => [];"
            "Event.prototype.composedPath = () => []"
        )
        await running.operator.click("text=As a gift")
        checked = await running.operator.recorded("check")
        assert checked["selector"] == 'role=checkbox[name="As a gift"]'


async def test_rewritten_documents_are_recorded(recording: Any, site: Any) -> None:
    async with recording(f"{site.url}/shop/") as running:
        await running.operator.page.evaluate(
            "document.open(); document.write('<h1>New</h1><button>Go on</button>');document.close()"
        )
        await running.operator.click("text=Go on")
        assert (await running.operator.recorded("click"))["name"] == "Go on"


@given(st.lists(st.floats(0, 5), max_size=200).map(sorted))
def test_no_second_sees_more_messages_than_are_allowed(times: list[float]) -> None:
    cap = RateCap(10)
    let_in = [at for at in times if cap.allows(at)]
    assert all(late - early >= 1.0 for early, late in pairwise_by(let_in, 10))
    assert len(let_in) >= min(10, len(times))


def pairwise_by(times: list[float], step: int) -> list[tuple[float, float]]:
    return list(zip(times, times[step:], strict=False))


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "null",
        "[]",
        '{"kind": "launch"}',
        '{"kind": "click", "target": {"tag": 5}}',
        '{"kind": "type", "text": {"deep": 1}}',
        '{"kind": "click", "target": null, "count": "many"}',
        '{"kind": "key", "key": "' + "x" * 70_000 + '"}',
        '{"kind": "key", "key": "\ud800"}',
    ],
)
def test_a_message_of_another_shape_is_no_message(payload: str) -> None:
    assert read_told(payload) is None or read_told(payload) == Told("key", key="\ufffd")


@pytest.mark.parametrize(
    ("target", "secret"),
    [
        (Target("input", type="password"), True),
        (Target("input", type="text", name="Passwort"), True),
        (Target("input", hints=["userPin"]), True),
        (Target("input", hints=["spinning"]), False),
        (Target("input", hints=["", "", "section-a cc-csc"]), True),
        (Target("input", hints=["", "", "one-time-code"]), True),
        (Target("input", hints=["", "", "username"]), False),
        (Target("input", hints=["card_number"]), True),
        (Target("input", name="API key (secret)"), True),
        (Target("input", name="Company"), False),
        (Target("input", name="OTP"), True),
    ],
)
def test_fields_for_secrets_are_known_by_what_they_are_called(target: Target, secret: bool) -> None:
    assert is_secret_field(target) is secret


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=4, max_size=30)


def css_escaped(sign: str) -> str:
    if sign.isascii() and sign.isalpha():
        return sign
    return f"\\{ord(sign):x} " if sign.isdigit() or ord(sign) < 32 else f"\\{sign}"


@given(typed=WORD.filter(lambda text: text.strip() == text and len(set(text)) > 2))
def test_whatever_was_typed_stands_nowhere_in_the_actions(typed: str) -> None:
    scribe = Scribe(Masks(keep_text=False))
    field = Target("input", css="#q", path="body > input", frame=[], hints=["q"])
    escaped = typed.replace("\\", "\\\\").replace('"', '\\"')
    by_role, css = f'role=button[name="{escaped}"]', "#" + "".join(map(css_escaped, typed))
    echo = Target("button", name=f"Clear {typed}", by_role=by_role, css=css, frame=[])
    happenings: list[Heard | Went] = [
        Heard(1, 0, "http://a.test/", Told("type", target=field, text=typed[: end + 1]))
        for end in range(len(typed))
    ]
    happenings += [
        Went(2, 0, "http://a.test/?q=" + typed.replace("&", "%26").replace("#", "%23"), "form"),
        Heard(3, 0, "http://a.test/", Told("click", target=echo)),
    ]
    found = [action for one in happenings for action in scribe.take(one)] + scribe.close()
    assert [action.type for action in found] == ["type", "navigated", "click"]
    assert found[0].text == "{{q}}"
    if typed not in "http://a.test/?q={{q}} Clear {{q}}":
        assert typed not in found[1].url
        assert typed not in found[2].words()
        assert typed not in str(found[2].selector).replace('role=button[name="Clear {{q}}"]', "")


def address_after(steps: list[str], address: str) -> str:
    """The recorded address of a page that opens after a secret was typed in these steps."""
    scribe = Scribe(Masks(keep_text=False))
    field = Target("input", css="#p", path="body > input", frame=[], type="password", hints=["p"])
    for text in steps:
        scribe.take(Heard(1, 0, "http://a.test/", Told("type", target=field, text=text)))
    found = [*scribe.take(Went(2, 0, address, "form")), *scribe.close()]
    return next(action.url for action in found if action.type == "navigated")


def test_the_first_letters_of_a_secret_hide_no_other_part_of_an_address() -> None:
    steps = ["s", "se", "sec", "secr", "secre", "secret"]
    assert address_after(steps, "http://a.test/cart?size=s") == "http://a.test/cart?size=s"
    assert address_after(steps, "http://a.test/sec/cart") == "http://a.test/sec/cart"
    assert address_after(steps, "http://a.test/secr?x=secret") == "http://a.test/{{p}}?x={{p}}"


@given(
    typed=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=3),
    again=st.sampled_from([[], [""], ["", "#another"]]),
)
def test_a_short_secret_stands_nowhere_alone_in_an_address(typed: str, again: list[str]) -> None:
    steps = [*(typed[: end + 1] for end in range(len(typed))), *again]
    for address in (f"http://a.test/?q={quote(typed)}", f"http://a.test/{quote(typed)}/x"):
        assert "{{p}}" in address_after(steps, address)


def echoing(typed: str) -> Target:
    """An entry of a list that shows what was typed, with every sort of selector for it."""
    escaped = typed.replace("\\", "\\\\").replace('"', '\\"')
    return Target(
        "button",
        name=typed,
        testid=f'[data-testid="{escaped}"]',
        by_role=f'role=button[name="Delete {escaped}"]',
        within=[
            ("item", f'li:has(:text-is("{escaped}")) >> role=button'),
            ("role", f"#{''.join(map(css_escaped, typed))} >> role=button"),
            ("item", f'li:has(:text-is("{escaped.upper()}")) >> role=button'),
        ],
        strong=f'input[aria-label="x{escaped}y"]',
        text=f'text="{escaped}"',
        number=f'role=button[name="{escaped}"] >> nth=1',
        css=f"li.{''.join(map(css_escaped, typed))} > p",
        path="body > ul > li > button",
        frame=[],
    )


def clicked_after(typed: str, *, secret: bool, keep_text: bool) -> Action:
    """The click on an element that shows what was typed before."""
    scribe = Scribe(Masks(keep_text=keep_text))
    field = Target("input", type="password" if secret else "text", hints=["q"], frame=[])
    told = Told("type", target=field, text=typed)
    echo = Told("click", target=echoing(typed))
    found = [scribe.take(Heard(1, 0, "http://a.test/", one)) for one in (told, echo)]
    return found[1][1]


@given(
    typed=WORD.filter(lambda text: text.strip() == text and len(set(text)) > 2), keep=st.booleans()
)
def test_a_typed_secret_is_in_no_selector_and_no_alternative(typed: str, keep: bool) -> None:
    click = clicked_after(typed, secret=True, keep_text=keep)
    kept = [str(click.selector), *click.alternatives]
    if typed.casefold() not in "body > ul > li > button role=button nth=1":
        assert [one for one in kept if typed.casefold() in one.casefold()] == []
    assert [one for one in kept if "{{" in one] == []
    assert kept[-1] == "body > ul > li > button"


def test_a_selector_names_the_variable_where_the_page_repeats_plain_text() -> None:
    click = clicked_after("Buy milk", secret=False, keep_text=False)
    assert [click.selector, *click.alternatives] == [
        '[data-testid="{{q}}"]',
        'role=button[name="Delete {{q}}"]',
        'li:has(:text-is("{{q}}")) >> role=button',
        'text="{{q}}"',
        'role=button[name="{{q}}"] >> nth=1',
        "body > ul > li > button",
    ]
    kept = clicked_after("Buy milk", secret=False, keep_text=True)
    assert kept.selector == '[data-testid="Buy milk"]'


async def test_a_page_that_floods_its_history_neither_fills_the_recording_nor_holds_its_end_up(
    recording: Any, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_STEPS", 1)  # a flood on the slowest machine, too
    monkeypatch.setattr("engine.execution.runner.HARD_STOP_S", 1.2)  # as it is without this test
    async with recording(f"{site.url}/shop/") as running:
        page = running.operator.page
        await page.evaluate(
            "window.n = 0; const flood = () => history.replaceState(0, '', `/flood/${n++}`);"
            " for (let i = 0; i < 200; i++) flood(); setInterval(flood, 10); 0"
        )
        await page.wait_for_function("n > 250", polling=50, timeout=WAIT_S * 1000)
        async with asyncio.timeout(2 * WAIT_S):
            await running.stop()
        result = running.result()
        # On a machine that is busy with the flood the end is cut short: made of what is on disk.
        assert result.get("dropped", 1) > 0
        assert result["action_count"] < 200
