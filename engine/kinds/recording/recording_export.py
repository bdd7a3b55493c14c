"""Export of a recording as a command task (seed 002) for the same site.

Typed text becomes `{{variable}}`, and the user of the task supplies the values. Each command has
the other selectors of the recording as `alternatives`. An action without a command (a box in a
frame scrolled, files dropped) is omitted and listed in `metadata.notReplayed`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from engine.browser.interact.command_keys import read_key
from engine.browser.interact.command_uploads import MAX_FILES, read_name
from engine.kinds.commands.command_table import MAX_ALTERNATIVES, MAX_SCROLL_PX, placeholders
from engine.model import addresses, redact
from engine.results.action_words import action_words, element_words

_PLAYWRIGHTS_OWN: Final = re.compile(r"^(?:role|text)=|>>|:text-is\(")  # not CSS for a script
ALLOW_FILES: Final = "octask run --allow-files DIR, the folder that holds these files"
LANDMARK_MS: Final = 30_000
MAX_COMMANDS: Final = 1_000  # of one task; a longer recording is truncated, with a note
MAX_INTENTION: Final = 300
_MARKING: Final = "Mark this page, to know the next one from it"
# Sets an attribute and reads nothing; `engine.service.forms` does not count it as a script.
MARK: Final = "document.documentElement.setAttribute('data-left', '')"
_UNMARKED: Final = "html:not([data-left])"

_NAMED: Final = ("selector", "alternatives", "role", "name", "tag")

Action = Mapping[str, Any]
Command = dict[str, Any]


class Replay:
    """Builder of the commands of one recording, and of the list of omitted actions."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self.commands: list[Command] = []
        self.left_out: list[dict[str, Any]] = []
        self._acted: int | None = None  # index of the commands of the last action in a page
        self._tab = 0
        self._tabs = {0}  # tabs in use so far
        self._closed: set[int] = set()
        self._answer: Command = _answer({})  # the current answer to dialogs
        self._left_at: int | None = None  # the action that last opened a beforeunload dialog
        self._leaving: Command = _leaving({"answer": "accepted"})  # the same for beforeunload
        self._last = 0  # index of the commands of the last action
        self._asked_at: int | None = None  # index of the answer for that action
        self.variables: dict[str, dict[str, Any]] = {}
        for action in _folded(actions):
            if not self._add(action):
                break
            self._note_variable(action)

    def _add(self, action: Action) -> bool:
        """Add the commands of an action; return False when the task is full."""
        try:
            if action.get("type") == "dialog":
                self._answer_before(action)
                return True
            if action.get("type") == "close_tab":
                self._close_tab(action)
                return True
            self._note_unread(action)
            made = [*self._to_tab(action), *_commands(action)]
        except ValueError as refused:
            self.left_out.append({"action": action.get("n"), "why": str(refused)})
            return True
        if len(self.commands) + len(made) + 2 > MAX_COMMANDS:
            full = f"a task holds at most {MAX_COMMANDS:,} commands"
            self.left_out.append({"action": action.get("n"), "why": full})
            return False
        self._mark_before(action, made)
        moves = action.get("type") in ("navigate", "navigated")
        self._acted = None if moves or not made else len(self.commands)
        self._asked_at = None
        if made and action.get("type") != "navigated":
            self._last = len(self.commands)
        self.commands += made
        return True

    def _note_unread(self, action: Action) -> None:
        """List the style sheets that were unreadable, because a required hover may be missing."""
        for host in action.get("unread") or ():
            why = f"style sheets of {host} cannot be read, nor what shows under the mouse by them"
            self.left_out.append({"action": action.get("n"), "why": why})

    def _to_tab(self, action: Action) -> Iterator[Command]:
        """Switch to the tab of this action; open it if the operator did."""
        tab = int(action.get("tab") or 0)
        if tab == self._tab:
            return
        self._acted = None  # a mark belongs to the previous tab only
        opened = action.get("type") == "navigate" and action.get("how") == "typed"
        if tab not in self._tabs and opened:
            yield _command("browser_navigate", "Open a tab", action="new_tab")
        else:
            yield _command(
                "browser_navigate",
                f"Go to tab {tab + 1}",
                action="switch_tab",
                tab=self._place(tab),
            )
        self._tab = tab
        self._tabs.add(tab)

    def _place(self, tab: int) -> int:
        """Return the index of a tab among the open ones."""
        return tab - sum(closed < tab for closed in self._closed)

    def _close_tab(self, action: Action) -> None:
        """Add a command to close a tab, unless the page closes it itself."""
        tab = int(action.get("tab") or 0)
        if tab in self._closed:
            return
        if action.get("how") != "script":
            place = self._place(tab)
            self.commands.append(
                _command("browser_navigate", f"Close tab {tab + 1}", action="close_tab", tab=place)
            )
        self._closed.add(tab)
        self._acted = self._asked_at = None
        if tab == self._tab:
            self._tab = -1  # unset, so that the next action switches its tab

    def _note_variable(self, action: Action) -> None:
        """Store the field's name of a variable, as a hint for its value."""
        name = action.get("variable")
        if isinstance(name, str) and name not in self.variables:
            known = {"name": name, "secret": bool(action.get("secret"))}
            field = {"field": action["name"]} if action.get("name") else {}
            self.variables[name] = known | field

    def _answer_before(self, action: Action) -> None:
        """Insert the answer to a dialog before the action that opens it. Raises ValueError."""
        if action.get("dialog") == "alert":
            return  # only one answer exists
        if action.get("dialog") == "beforeunload":
            self._leave_before(action)
            return
        _refuse(action.get("cut"), "its text was too long to be kept")
        wanted = _answer(action)
        if self._asked_at is not None:
            same = {**self._answer["args"], **wanted["args"]}
            agree = {**wanted["args"], **self._answer["args"]} == same
            _refuse(not agree, "one action opened dialogs that were answered differently")
            at, wanted = self._asked_at, {**wanted, "args": same}
        else:
            at = self._last
        self._asked_at = at
        if wanted["args"] == self._answer["args"]:
            return
        self._answer = wanted
        self._insert(at, wanted)

    def _leave_before(self, action: Action) -> None:
        """Insert the answer to a beforeunload dialog; the default of a task is to leave."""
        wanted = _leaving(action)
        # A second answer applies to the next recorded action: an address, or a reload.
        at = len(self.commands) if self._left_at == self._last else self._last
        if wanted["args"] != self._leaving["args"]:
            self._leaving = wanted
            self._insert(at, wanted)
        self._left_at = self._last

    def _insert(self, at: int, made: Command) -> None:
        self.commands.insert(at, made)
        self._last += 1
        self._acted = None if self._acted is None else self._acted + 1

    def _mark_before(self, action: Action, made: list[Command]) -> None:
        """Distinguish two similar pages: mark the first, and wait for one without the mark."""
        other_page = action.get("type") == "navigated" and action.get("how") != "in_page"
        if not other_page or made or self._acted is None or action.get("failed"):
            return
        mark = _command("browser_execute", _MARKING, action="evaluate", script=MARK)
        self.commands.insert(self._acted, mark)
        self._last += 1
        made.append(_wait(f"Wait for {action.get('url')}", _UNMARKED))


def _place_of(url: str) -> str:
    found = addresses.parse(url)
    return "" if found is None else found.place


def command_task(head: Mapping[str, Any], actions: Iterable[Action]) -> dict[str, Any] | None:
    """Return the task document for `octask run`; None if no action can be replayed.

    Args:
        head: the fields of the recording's result before its actions; may be empty.
    """
    replay = Replay(actions)
    if not replay.commands:
        return None
    url = str(head.get("url") or "")
    name = str(head.get("label") or "") or f"Replay of {_place_of(url) or 'a recording'}"
    metadata: dict[str, Any] = {"recordingId": head.get("recording_id")}
    variables = variables_in(replay.commands)
    if variables:
        metadata["variables"] = [replay.variables.get(name, {"name": name}) for name in variables]
    uploads = [one["args"]["files"] for one in replay.commands if "files" in one["args"]]
    if uploads:
        names = list(dict.fromkeys(name for names in uploads for name in names))
        metadata["uploads"] = {"files": names, "needs": ALLOW_FILES}
    if replay.left_out:
        metadata["notReplayed"] = replay.left_out
    task = {
        "task_name": name[:200],
        "task_intention": f"Do again what was recorded at {url}"[:MAX_INTENTION],
        "commands": replay.commands,
        "metadata": metadata,
    }
    # With an empty object a missing value is a mistake, instead of typed "{{name}}".
    return task | {"variables": {}} if variables else task


def variables_in(commands: Iterable[Command]) -> list[str]:
    """Return the names of the required variables, in the order of their first use."""

    values = (value for each in commands for value in each["args"].values())
    texts = (text for value in values for text in (value if isinstance(value, list) else [value]))
    found = (placeholders(text) for text in texts if isinstance(text, str))
    return list(dict.fromkeys(name for names in found for name in names))


def template(task: Mapping[str, Any]) -> dict[str, str]:
    """Return a template for `--variables`, with empty values."""
    return dict.fromkeys(variables_in(task["commands"]), "")


def _commands(action: Action) -> Iterable[Command]:
    """Return the commands for one action, usually one. Raises ValueError with the reason."""
    kind = str(action.get("type", ""))
    maker = _MAKERS.get(kind)
    if maker is None:
        raise ValueError(f"no command does it ({kind[:40] or 'it has no type'})")
    return maker(action)


def _navigate(action: Action) -> Iterator[Command]:
    how = action.get("how")
    if how in ("reload", "back", "forward"):
        yield _command("browser_navigate", str(how).capitalize(), action=how)
        return
    _refuse(action.get("failed"), "the address could not be opened")
    url = str(action.get("asked") or action.get("url") or "")
    yield _command("browser_navigate", f"Go to {url}", action="goto", url=url)


def _arrived(action: Action) -> Iterator[Command]:
    """Wait for an element of the page that an action led to."""
    landmark = action.get("landmark")
    if landmark and not action.get("failed"):
        yield _wait(f"Wait for {action.get('url')}", str(landmark))


def _wait(intention: str, selector: str) -> Command:
    return _command(
        "browser_navigate", intention, action="wait_for", selector=selector, timeout=LANDMARK_MS
    )


def _folded(actions: Iterable[Action]) -> Iterator[Action]:
    """Merge the actions that belong together.

    The first click of a double click identifies the element, because the others came after the
    page's reaction. A click that opened the file chooser is part of the upload.
    """
    first: Action | None = None
    for action in actions:
        if first is not None and _follows(first, action):
            first = {**first, "count": action["count"], "alternatives": _names(first, action)[1:]}
            continue
        if first is not None and action.get("opened") and _is_same_place(first, action):
            # That click may create the field, with other selectors in a replay.
            yield {**action, **{key: first.get(key) for key in _NAMED}}
            first = None
            continue
        if first is not None:
            yield first
        first = action if action.get("type") == "click" else None
        if first is None:
            yield action
    if first is not None:
        yield first


def _is_same_place(first: Action, action: Action) -> bool:
    return all(first.get(key) == action.get(key) for key in ("tab", "frame"))


def _follows(first: Action, action: Action) -> bool:
    same = all(first.get(key) == action.get(key) for key in ("type", "tab", "button", "frame"))
    return same and action.get("count", 1) == first.get("count", 1) + 1


def _names(*actions: Action) -> list[str]:
    """Return every selector of the actions, the first one's first."""
    named = ([one.get("selector"), *one.get("alternatives", ())] for one in actions)
    return list(dict.fromkeys(name for names in named for name in names if name))


def _click(action: Action) -> Iterator[Command]:
    count, button = int(action.get("count") or 1), action.get("button")
    made = _interact("click", action, action_words(action, english=True))
    if count > 1:
        made["args"]["count"] = count
    if button:
        made["args"]["button"] = button
    yield made
    if action.get("at_end"):
        yield _press(action, "Control+End")


def _hover(action: Action) -> Iterator[Command]:
    yield _interact("hover", action, action_words(action, english=True))


def _drag(action: Action) -> Iterator[Command]:
    made = _interact("drag", action, action_words(action, english=True))
    if action.get("target"):
        made["args"]["target"] = str(action["target"])
        if others := _strings(action.get("target_alternatives")):
            made["args"]["target_alternatives"] = others
    else:
        made["args"] |= {"x": int(action.get("dx") or 0), "y": int(action.get("dy") or 0)}
    yield made


def _upload(action: Action) -> Iterator[Command]:
    """Upload by file name only; the user of the task supplies the folder."""
    files = [str(one) for one in action.get("files") or ()]
    _refuse(not files, "no file was chosen, or none is named")
    _refuse(len(files) > MAX_FILES or len(files) < int(action.get("count") or 0), "too many files")
    made = _interact("upload", action, f"Upload into {element_words(action)}")
    _refuse(any(redact.MARK in one for one in files), "a file's name looks like a secret")
    made["args"]["files"] = [read_name(one) for one in files]
    yield made


def _window(action: Action) -> Iterator[Command]:
    raise ValueError("it opened a window, and a recording without a window opens no others")


def _drop(action: Action) -> Iterator[Command]:
    raise ValueError("files were dropped onto the page, and no command does that")


def _answer(action: Action) -> Command:
    accepts = action.get("answer") == "accepted"
    intention = "Accept the dialog" if accepts else "Dismiss the dialog"
    answer = "accept" if accepts else "dismiss"
    made = _command("browser_interact", intention, action="dialog", answer=answer)
    if action.get("name"):
        made["intention"] = f"{intention} “{action['name']}”"[:MAX_INTENTION]
    if accepts and action.get("text") is not None:
        made["args"]["text"] = str(action["text"])
        if "variable" not in action:
            made["args"]["keep_text"] = True
    return made


def _leaving(action: Action) -> Command:
    """Answer a beforeunload dialog; a page that stays open is not a failure."""
    if action.get("answer") == "accepted":
        return _command("browser_interact", "Leave the page", action="dialog", answer="leave")
    intention = "Stay on the page when it asks"
    made = _command("browser_interact", intention, action="dialog", answer="stay")
    made["args"]["expected"] = True
    return made


def _check(action: Action) -> Iterator[Command]:
    tool_action = "check" if action.get("on") else "uncheck"
    yield _interact(tool_action, action, action_words(action, english=True))


def _key(action: Action) -> Iterator[Command]:
    yield _press(action, read_key(action.get("key")))


def _press(action: Action, key: str) -> Command:
    """Press a key in its element, or on the page's focus without an element."""
    if not action.get("selector"):
        return _command("browser_interact", f"Press {key}", action="keyboard", key=key)
    made = _interact("press", action, f"Press {key} in {element_words(action)}")
    made["args"]["key"] = key
    return made


def _typing(action: Action) -> Iterator[Command]:
    _refuse(action.get("cut"), "its text was too long to be kept")
    made = _interact("type", action, f"Type into {element_words(action)}")
    made["args"]["text"] = str(action.get("text", ""))
    if action.get("append"):
        made["args"]["append"] = True
    if "variable" not in action:
        made["args"]["keep_text"] = True  # the operator already chose to store it
    yield made


def _choice(action: Action) -> Iterator[Command]:
    values = list(action.get("values") or ())
    _refuse(len(values) != 1, "one value can be selected, not several and not none")
    made = _interact("select", action, f"Select in {element_words(action)}")
    made["args"]["value"] = str(values[0])
    yield made


def _scrolls(action: Action) -> Iterator[Command]:
    for by, less, more in (("dy", "up", "down"), ("dx", "left", "right")):
        pixels = int(action.get(by) or 0)
        if not pixels:
            continue
        amount = min(abs(pixels), MAX_SCROLL_PX)
        direction = more if pixels > 0 else less
        if action.get("selector"):
            yield _scroll_inside(action, by, pixels)
            continue
        intention = f"Scroll {direction} by {amount} pixels"
        yield _command(
            "browser_interact", intention, action="scroll", direction=direction, amount=amount
        )


def _scroll_inside(action: Action, by: str, pixels: int) -> Command:
    """Scroll a box by a script, because the tool scrolls pages only."""

    _refuse(action.get("frame"), "a box inside of a frame cannot be scrolled")
    named = (action.get("selector"), *action.get("alternatives", ()))
    css = [one for one in named if isinstance(one, str) and not _PLAYWRIGHTS_OWN.search(one)]
    _refuse(not css, "the box has no name that a script knows")
    way = f"scrollBy({pixels if by == 'dx' else 0}, {pixels if by == 'dy' else 0})"
    script = f"document.querySelector({json.dumps(css[0])}).{way}"
    return _command(
        "browser_execute", f"Scroll {element_words(action)}", action="evaluate", script=script
    )


_MAKERS: Final[Mapping[str, Callable[[Action], Iterator[Command]]]] = {
    "navigate": _navigate,
    "navigated": _arrived,
    "click": _click,
    "check": _check,
    "drag": _drag,
    "drop": _drop,
    "window": _window,
    "hover": _hover,
    "upload": _upload,
    "type": _typing,
    "select": _choice,
    "key": _key,
    "scroll": _scrolls,
}


def _interact(tool_action: str, action: Action, intention: str) -> Command:
    selector = action.get("selector")
    _refuse(not selector, "its element could not be named")
    made = _command("browser_interact", intention, action=tool_action, selector=str(selector))
    if others := _strings(action.get("alternatives")):
        made["args"]["alternatives"] = others
    frames = [str(one) for one in action.get("frame") or ()]
    if frames:
        made["args"]["frame"] = frames
    return made


def _strings(given: Iterable[object] | None) -> list[str]:
    return [str(one) for one in given or ()][:MAX_ALTERNATIVES]


def _command(tool: str, intention: str, **args: Any) -> Command:
    return {"tool_name": tool, "intention": intention[:MAX_INTENTION], "args": args}


def _refuse(wrong: object, why: str) -> None:
    if wrong:
        raise ValueError(why)
