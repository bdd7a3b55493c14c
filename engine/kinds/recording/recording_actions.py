"""Conversion of a browser's messages to actions of a recording: merged, named, and masked.

One action is one user operation: the text typed into a field is one, however many keys it took,
and so is a scroll. It is finished, and stored, at the start of the next action. Typed text is
replaced by `{{name}}`, also where a page repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

import msgspec

from engine.browser.recording.recorder_messages import (
    BY_PERSON,
    MAX_TEXT,
    NOT_SLUG,
    Answered,
    Heard,
    How,
    TabClosed,
    Target,
    Told,
    Went,
    WindowRefused,
    is_secret_field,
)
from engine.kinds.commands.command_table import placeholders
from engine.model import redact
from engine.results.action_words import action_words, plain_label
from engine.secrets.given_secrets import MOST_LATER, Hidden, Scrub
from engine.secrets.value_search import Echoes

SHORTEST: Final = 3  # shorter values are matched only as a whole value in an address
# Shorter values that were only passed on the way to a longer one are not matched in an address:
# the first letter of a password would hide the size of a shirt, and tell that letter.
SHORTEST_PASSED: Final = 4
MOST_SEEN: Final = 5_000
_INSIDE_A_WORD: Final = re.compile(r"\w\{\{|\}\}\w")
_PART: Final = re.compile(r"(?<=[=/])[^&#=/?]+")


class Masks:
    """The variables of one recording. `hide` applies to all stored or displayed text.

    Values are kept in memory only, to find their repetitions in pages (a search in the address, a
    greeting on a button). Fields that resemble a password's are always masked, as a matter of
    trust; the others unless the operator enabled `keep_text`.
    """

    def __init__(
        self, *, keep_text: bool, given: Iterable[Hidden] = (), key_shapes: bool = True
    ) -> None:
        self.keep_text = keep_text
        self._key_shapes = key_shapes
        self.variables: dict[str, dict[str, Any]] = {}
        self._values: dict[str, str] = {}  # variable -> its current value
        self._seen: dict[str, str] = {}  # every intermediate value -> its variable
        self._given_up: set[str] = set()  # values that were not typed on, but replaced
        self._given = tuple(given)
        self._later: tuple[Hidden, ...] = ()  # given secrets that came after the start
        self._scrub = Scrub(self._given, key_shapes=key_shapes)

    def conceal(self, hidden: Iterable[Hidden]) -> None:
        """Mask these given values, too, from now on; of very many the newest."""
        self._later = (*self._later, *hidden)[-MOST_LATER:]
        self._rebuild()

    def begin(self, target: Target, *, secret: bool) -> str:
        """Create a variable for the new input of a field."""
        name = self._fresh(_slug(target))
        self.variables[name] = {"name": name, "secret": secret}
        if target.name and self.hide_content(target.name) == target.name:
            self.variables[name]["field"] = target.name
        return name

    def settle(self, name: str) -> str:
        """Return the final name: an older one with the same field and text, if any."""
        value = self._values.get(name)
        for older, known in self._values.items():
            if older != name and known == value and self._base(older) == self._base(name):
                self.drop(name)
                return older
        return name

    def learn(self, name: str, value: str) -> None:
        """Set the current value of `name`."""
        before = self._values.get(name, "")
        if before == value and name in self._values:
            return
        if not value.startswith(before):
            self._given_up.add(before)
        self._values[name] = value
        if value:
            self._seen.setdefault(value, name)
        while len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._rebuild()

    def drop(self, name: str) -> None:
        """Remove an unused variable."""
        self.variables.pop(name, None)
        self._values.pop(name, None)
        self._seen = {value: known for value, known in self._seen.items() if known != name}
        self._rebuild()

    def masked(self, text: str, *, secret: bool) -> bool:
        """Return whether a variable must replace this text."""
        return secret or not self.keep_text or self.hide(text) != text

    def hide(self, text: str) -> str:
        """Mask typed text, credentials of addresses, and everything that resembles a secret."""
        return self._scrub.text(text)

    def named(self, text: str) -> str | None:
        """Replace each typed word that is not secret with `{{name}}`.

        None for a text that must not be stored: it repeats a secret, a part of a word, or another
        spelling of typed text.
        """
        if "{{" in text or "}}" in text:
            return None  # braces in page text would pass for a variable
        named = self._scrub.hide(text)
        if redact.MARK in named or _INSIDE_A_WORD.search(named):
            return None
        if not self.may_be_kept(named):
            return None
        if any(self.variables[name]["secret"] for name in placeholders(named)):
            return None
        left = [part for part in re.split(r"\{\{.*?\}\}", named) if part]
        return None if self.echoes().within(left) else named

    def may_be_kept(self, named: str) -> bool:
        """Return whether a text has neither a secret address nor a strict key shape."""
        has_key = self._key_shapes and redact.content(named)[1]
        return redact.url(named) == named and not has_key

    def hide_content(self, text: str) -> str:
        """Mask typed and given secrets and strict key shapes in page text.

        The key shapes are kept if the operator requested that.
        """
        return self._scrub.content(text)[0]

    def echoes(self, typed: Iterable[str] = ()) -> Echoes:
        """Return the texts to mask in a screenshot; `typed` are those without a variable yet."""
        hidden = {name for name, of in self.variables.items() if of["secret"] or not self.keep_text}
        now = [value for name, value in self._values.items() if name in hidden]
        whole = [value for value, name in self._seen.items() if name in hidden]
        given = [value for value, _ in (*self._given, *self._later)]
        return Echoes([*now, *typed, *given], whole)

    def hide_url(self, url: str) -> str:
        """Mask an address, with its query values and path segments one by one."""
        return self.hide(_PART.sub(self._part, redact.url(url)))

    def _part(self, found: re.Match[str]) -> str:
        for read in (unquote_plus(found[0]), unquote(found[0])):
            value = read.replace("\r\n", "\n")  # line ends as in the form data of a text area
            if value in self._seen and self._is_telling(value):
                return "{{" + self._seen[value] + "}}"
        return found[0]

    def _is_telling(self, value: str) -> bool:
        """Return whether a whole part of an address that equals `value` repeats typed text."""
        whole = value in self._values.values() or value in self._given_up
        return whole or len(value) >= SHORTEST_PASSED

    def _rebuild(self) -> None:
        long = ((value, name) for name, value in self._values.items() if len(value) >= SHORTEST)
        typed = ((value, "{{" + name + "}}") for value, name in long)
        given = (*self._given, *self._later)
        self._scrub = Scrub([*typed, *given], key_shapes=self._key_shapes)

    def _base(self, name: str) -> str:
        return re.sub(r"_\d+$", "", name)

    def _fresh(self, slug: str) -> str:
        name, number = slug, 1
        while name in self.variables:
            number += 1
            name = f"{slug}_{number}"
        return name


def _slug(target: Target) -> str:
    """Derive a variable's name from the field's labels."""
    named: Iterable[str] = (target.name or "", *target.hints)
    for words in named:
        slug = NOT_SLUG.sub("_", words.lower()).strip("_")[:40].strip("_")
        if slug and slug[0].isalpha():
            return slug
    return "text"


MAX_URL: Final = 2_048
MAX_NAME: Final = 120
MAX_SELECTOR: Final = 1_000
_ESCAPED: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,5})\s?|(.))", re.DOTALL)
_QUOTED: Final = re.compile(r'\\.|"((?:\\.|[^"\\])*)"', re.DOTALL)
# Ids, classes and the names of custom elements: page text without quotation marks.
_IDENTIFIER: Final = re.compile(
    r"[#.]((?:\\[0-9a-fA-F]{1,6}\s?|\\.|[\w-]|[^\x00-\x7f])+)|(?<![\w:#.\[-])([a-z]\w*-[\w.-]+)",
    re.DOTALL,
)


class Action(msgspec.Struct, omit_defaults=True):
    """One action of the result; fields that do not apply are omitted.

    `found_by` is the rule that identified the element: testid, role, item (a text of its entry in
    a list or table), css, text or nth. `frame` are the selectors of the frames around it,
    outermost first. `navigated` is the consequence of a previous action, `navigate` a request of
    the operator to the browser. `unread` are hosts whose style sheets no script can read, so that
    their hover effects are unknown.
    """

    n: int
    type: str
    ts: int
    url: str
    tab: int = 0
    how: How | None = None
    asked: str | None = None
    selector: str | None = None
    found_by: str | None = None
    alternatives: list[str] = []
    frame: list[str] = []
    role: str | None = None
    name: str | None = None
    tag: str | None = None
    text: str | None = None
    append: bool = False
    variable: str | None = None
    secret: bool = False
    cut: bool = False
    values: list[str] = []
    files: list[str] = []
    opened: bool = False
    on: bool | None = None
    key: str | None = None
    button: str | None = None
    count: int | None = None
    at_end: bool = False
    dx: int | None = None
    dy: int | None = None
    dialog: str | None = None
    answer: str | None = None
    target: str | None = None
    target_alternatives: list[str] = []
    landmark: str | None = None
    unread: list[str] = []
    failed: bool = False
    screenshot: str | None = None

    def words(self) -> str:
        """Return the action in English words, for the stored progress."""
        return action_words(msgspec.to_builtins(self), english=True)


class Scribe:
    """Builder of one recording's actions; `take` returns the finished ones."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._open: Action | None = None  # typing, scrolling or loading in progress
        self._place = ""  # the field with the current input, or the scrolled element
        self._masked = False
        self._signs: list[str] = []  # of the previous page
        self._script_went_back = False
        self._seen: set[int] = set()  # tabs with any event
        self._unread: list[str] = []  # hosts to store with the next action
        self._hosts: set[str] = set()  # already stored
        self.windows = 0  # windows that pages requested and were refused
        self._closed: list[Action] = []  # tabs, pending because the whole window may be closing
        self.count = 0

    def take(self, happening: Heard | Went | Answered | WindowRefused | TabClosed) -> list[Action]:
        """Return the finished actions; a closed tab is pending until another tab is used."""
        if isinstance(happening, TabClosed):
            closed = Action(0, "close_tab", happening.ts, self._address(happening.url))
            closed.tab, closed.how = (
                happening.tab,
                None if self._is_by_person(happening) else "script",
            )
            self._closed.append(closed)
            return []
        if not self._closed or any(one.tab == happening.tab for one in self._closed):
            return self._taken(happening)
        done, closed_tabs, self._closed = self.close(), self._closed, []
        for one in closed_tabs:
            self.count += 1
            one.n = self.count
        return [*done, *closed_tabs, *self._taken(happening)]

    def _is_by_person(self, closed: TabClosed) -> bool:
        """Return whether the operator closed the tab; an unseen window does not count."""
        return closed.by_person and closed.tab in self._seen

    def _taken(self, happening: Heard | Went | Answered | WindowRefused) -> list[Action]:
        self._seen.add(happening.tab)
        """What is finished by this; the action that it begins may still be open."""
        if isinstance(happening, Went):
            return self._went(happening)
        if isinstance(happening, Answered):
            return self._answered(happening)
        if isinstance(happening, WindowRefused):
            return self._refused(happening)
        told = happening.told
        match told.kind:
            case "ready":
                return self._ready(told, happening.tab)
            case "traverse":
                self._script_went_back = not told.by_person
                return []
            case "unread":
                return self._note_unread(told.values)
            case "type":
                return self._typed(happening)
            case "scroll":
                return self._scrolled(happening)
        done = self.close()
        self._open = self._described(happening)
        self._open.unread, self._unread = self._unread, []
        if told.kind == "select":
            self._choose(self._open, told)
        return [*done, *self.close()]

    def close(self) -> list[Action]:
        """Finish and return the current action, if any."""
        action, self._open = self._open, None
        if action is None or (action.type == "scroll" and not (action.dx or action.dy)):
            return []
        if action.type == "type":
            self._name_text(action)
            if action.append and not action.text:
                return []  # the typed text was deleted again
        self.count += 1
        action.n = self.count
        return [action]

    @property
    def is_loading(self) -> bool:
        """Whether the current action only waits for its page."""
        return self._open is not None and self._open.type in ("navigate", "navigated")

    def _went(self, went: Went) -> list[Action]:
        how = went.how
        if self._script_went_back and how in ("back", "forward"):
            how = "script"
        self._script_went_back = False
        # A script may rewrite its address many times for one click.
        rewritten = self._open is not None and how == "in_page" == self._open.how
        done = [] if rewritten else self.close()
        asked = self._address(went.asked) if went.asked else None
        kind = "navigate" if how in BY_PERSON else "navigated"
        address = self._address(went.url)
        self._open = Action(0, kind, went.ts, address, went.tab, how, asked, failed=went.failed)
        return done

    def _answered(self, told: Answered) -> list[Action]:
        """Record an answered dialog; a page that is still loading continues to load."""
        done = [] if self.is_loading else self.close()
        action = Action(0, "dialog", told.ts, self._address(told.url), told.tab, dialog=told.sort)
        action.answer = "accepted" if told.accepted else "dismissed"
        action.name = self._masks.hide_content(told.message)[:MAX_NAME] or None
        if told.text is not None:
            self._fill_prompt(action, told)
        self.count += 1
        action.n = self.count
        return [*done, action]

    def _refused(self, told: WindowRefused) -> list[Action]:
        done = self.close()
        asked = self._address(told.asked)
        action = Action(0, "window", told.ts, self._address(told.url), told.tab, asked=asked)
        self.windows += 1
        self.count += 1
        action.n = self.count
        return [*done, action]

    def _note_unread(self, hosts: list[str]) -> list[Action]:
        """Queue each new host of a recording for the next action."""
        new = [host[:MAX_NAME] for host in hosts if host not in self._hosts]
        self._unread += new
        self._hosts.update(hosts)
        return []

    def _fill_prompt(self, action: Action, told: Answered) -> None:
        text = told.text or ""
        action.secret = is_secret_field(Target("input", name=told.message))
        action.text, action.cut = text[:MAX_TEXT], len(text) > MAX_TEXT
        if self._masks.masked(text, secret=action.secret):
            # The name is not from the message, which may repeat earlier input.
            name = self._masks.begin(Target("input", hints=["prompt"]), secret=action.secret)
            self._masks.learn(name, text)
            action.variable = self._masks.settle(name)
            action.text = "{{" + action.variable + "}}"

    def _ready(self, told: Told, tab: int) -> list[Action]:
        """Finish the navigation to a loaded document."""
        if not self.is_loading or self._open is None or self._open.tab != tab:
            return []
        before, self._signs = self._signs, self._signs_of(told)
        # An element of the previous page, too, is no evidence of the new one.
        self._open.landmark = next((one for one in self._signs if one not in before), None)
        return self.close()

    def _signs_of(self, told: Told) -> list[str]:
        """Return the selectors that identify the page; the texts of its headings come first."""
        named = (self._selectors(sign)[:1] for sign in told.signs)
        return [selector for found in named for _, selector in found]

    def _typed(self, heard: Heard) -> list[Action]:
        told, target = heard.told, heard.told.target or Target("")
        place = f"{heard.tab} {target.frame} {target.css}"
        done: list[Action] = []
        if self._open is None or self._open.type != "type" or self._place != place:
            done = self.close()
            self._open, self._place, self._masked = self._described(heard), place, False
            secret = told.secret or is_secret_field(target)
            self._open.variable = self._masks.begin(target, secret=secret)
            self._open.secret = secret
        self._write(self._open, told)
        return done

    def _write(self, action: Action, told: Told) -> None:
        action.secret = action.secret or told.secret  # the field's type may change during the input
        action.cut, action.append = told.cut, told.append
        self._masked = self._masked or self._masks.masked(told.text, secret=action.secret)
        if self._masked and action.variable is not None:
            self._masks.learn(action.variable, told.text)
        action.text = told.text[:MAX_TEXT]

    def _name_text(self, action: Action) -> None:
        name = action.variable or ""
        if self._masked:
            action.variable = self._masks.settle(name)
            action.text = "{{" + action.variable + "}}"
            return
        self._masks.drop(name)
        action.variable = None

    def _choose(self, action: Action, told: Told) -> None:
        target = told.target or Target("")
        action.values = [self._masks.hide_content(value) for value in told.values]
        if told.secret or is_secret_field(target):
            action.secret = True
            action.variable = self._masks.begin(target, secret=True)
            self._masks.learn(action.variable, told.values[0] if told.values else "")
            action.values = ["{{" + action.variable + "}}"]

    def _scrolled(self, heard: Heard) -> list[Action]:
        target = heard.told.target
        place = f"{heard.tab} {target.frame} {target.css}" if target else f"{heard.tab}"
        done: list[Action] = []
        if self._open is None or self._open.type != "scroll" or self._place != place:
            done = self.close()
            self._open, self._place = self._described(heard), place
            self._open.dx = self._open.dy = 0
        self._open.dx = (self._open.dx or 0) + heard.told.dx
        self._open.dy = (self._open.dy or 0) + heard.told.dy
        return done

    def _described(self, heard: Heard) -> Action:
        told = heard.told
        action = Action(0, told.kind, heard.ts, self._address(heard.url), heard.tab)
        if told.kind == "click":
            action.button = told.button if told.button != "left" else None
            action.count = told.count if told.count > 1 else None
            action.at_end = told.at_end
        elif told.kind == "check":
            action.on = told.on
        elif told.kind == "key":
            action.key = told.key[:60]
        elif told.kind == "drag":
            action.dx, action.dy = told.dx, told.dy
            onto = self._selectors(told.onto) if told.onto else []
            action.target = onto[0][1] if onto else None
            action.target_alternatives = [selector for _, selector in onto[1:]]
        elif told.kind in ("upload", "drop"):
            action.count, action.opened = told.count, told.opened
            action.files = [self._masks.hide_content(name) for name in told.values]
        if told.target is not None:
            self._point(action, told.target)
        return action

    def _point(self, action: Action, target: Target) -> None:
        action.tag = target.tag[:40]
        action.role = target.role
        if target.name:
            action.name = self._masks.hide_content(plain_label(target.name[:MAX_NAME]))
        found = self._selectors(target) if target.frame is not None else []
        if found:
            action.found_by, action.selector = found[0]
            action.alternatives = [selector for _, selector in found[1:]]
            action.frame = list(target.frame or [])

    def _selectors(self, target: Target) -> list[tuple[str, str]]:
        """Return the selectors of an element, best first, without those that reveal typed text."""
        named = (
            ("testid", target.testid),
            ("role", target.by_role),
            *target.within,
            ("css", target.strong),
            ("text", target.text),
            ("nth", target.number),
            ("css", target.css),
            ("css", target.path),
        )
        found: dict[str, str] = {}
        for how, selector in named:
            safe = self._safe(selector) if selector else None
            if safe and len(safe) <= MAX_SELECTOR:
                found.setdefault(safe, how)
        return [(how, selector) for selector, how in found.items()]

    def _safe(self, selector: str) -> str | None:
        """Replace typed text in `selector` with variables; None if that is impossible.

        Only page text is checked: the words in quotation marks, ids and classes. A variable is
        possible only between quotation marks, and only for a value without escapes.
        """
        unquoted = _QUOTED.sub(_without_words, selector)
        words = (_unescaped(found[1] or found[2]) for found in _IDENTIFIER.finditer(unquoted))
        if any(self._masks.named(word) != word for word in words):
            return None
        parts: list[str] = []
        end = 0
        for found in _QUOTED.finditer(selector):
            quoted = found[1]
            if quoted is None:
                continue
            plain = _unescaped(quoted)
            named = self._masks.named(plain)
            if named is None or (named != plain and plain != quoted):
                return None
            parts += [selector[end : found.start(1)], quoted if named == plain else named]
            end = found.end(1)
        safe = "".join([*parts, selector[end:]])
        return safe if self._masks.may_be_kept(safe) else None

    def _address(self, url: str) -> str:
        return self._masks.hide_url(url)[:MAX_URL]


def _without_words(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else " "


def _unescaped(css: str) -> str:
    return _ESCAPED.sub(lambda found: found[2] or chr(int(found[1], 16)), css)
