"""Learn the changes that scripts make to a site's pages, from pages loaded by both engines.

The tree of the markup and the tree that the browser showed are compared. Each element that scripts
added, removed, moved or showed becomes an edit: the common features of all elements concerned, and
the operation. Applied to another page, edits give the static engine the browser's result; the
caller checks by comparison whether they do. Features of several places are intersected (the
algorithm Find-S), so an edit becomes more general with each page.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

Where = Literal["append", "prepend", "after", "before", "show", "remove", "move"]

MAX_EDITS: Final = 20  # kept for similar pages
MAX_HTML_CHARS: Final = 4_096  # of what one edit adds: more is content, not the site's layout
MAX_NODES: Final = 60_000  # of a compared page
MAX_DEPTH: Final = 200
MAX_OPERATIONS: Final = 2_000  # of one edit on one page

_LEFT_OUT: Final = frozenset(
    {
        *("script", "style", "template", "noscript", "iframe", "object", "textarea", "video"),
        *("audio", "canvas", "meter", "progress", "datalist", "rp"),
    }
)
_HIDES: Final = re.compile(r"(?:^|;)\s*display\s*:\s*none\b", re.IGNORECASE)
_NAME: Final = re.compile(r"-?[A-Za-z_][\w-]*", re.ASCII)
_KEPT_STYLE: Final = re.compile(
    r"(?:^|;)\s*((?:display|visibility|white-space|float|position|text-transform)\s*:[^;]*)",
    re.IGNORECASE,
)


class Edit(NamedTuple):
    """One operation on each element that has all `features`.

    `html` is added in or next to it; for `show` it is the element's new style. `move` puts the
    element at the end of the body. `name` describes the element on one page: its place for an
    addition. Features: `div`, `#id`, `.class` of the element, the same after `>` for its parent and
    after `^` for its ancestors, and after `/` classes of its descendants.
    """

    where: Where
    name: str
    html: str
    features: frozenset[str]


class Unlike(Exception):
    """The two trees differ by more than edits can express."""


# --- Applying ----------------------------------------------------------------------------------


def apply(tree: LexborHTMLParser, edits: Iterable[Edit]) -> int:
    """Apply the edits to a page's tree; return the number of matching elements."""
    done = 0
    for edit in edits:
        found = [node for node in tree.css(_selector(edit.features)) if _has(node, edit.features)][
            :MAX_OPERATIONS
        ]
        # Inner elements first, because they are freed with the outer one.
        for node in reversed(found):
            _do(tree, edit, node)
        done += len(found)
    return done


def _selector(features: frozenset[str]) -> str:
    own = _own_features(features)
    tags = [feature for feature in own if feature[0] not in "#."]
    return "".join(tags[:1] or ["*"]) + "".join(each for each in own if each[0] in "#.")


def _has(node: LexborNode, features: frozenset[str]) -> bool:
    wanted = {feature for feature in features if feature[0] == ">"}
    parent = node.parent
    if wanted and (parent is None or not wanted <= _prefixed(">", _own(parent))):
        return False
    wanted = {feature for feature in features if feature[0] == "^"}
    while wanted and parent is not None and parent.is_element_node:
        wanted -= _prefixed("^", _own(parent))
        parent = parent.parent
    inside = (feature[1:] for feature in features if feature[0] == "/")
    return not wanted and all(node.css_first(each) is not None for each in inside)


def _do(tree: LexborHTMLParser, edit: Edit, node: LexborNode) -> None:
    if edit.where == "remove":
        node.decompose()
    elif edit.where == "move":
        if tree.body is not None:
            tree.body.insert_child(node)
            node.decompose()
    elif edit.where == "show":
        node.attrs["style"] = edit.html
        if "hidden" in node.attributes:
            del node.attrs["hidden"]
    else:
        _add(edit, node)


def _add(edit: Edit, node: LexborNode) -> None:
    body = _parsed(edit.html).body
    added = [] if body is None else list(body.iter(include_text=True))
    first = node.first_child
    if edit.where == "after":
        for each in reversed(added):
            node.insert_after(each)
    elif edit.where == "before":
        for each in added:
            node.insert_before(each)
    elif edit.where == "prepend" and first is not None:
        for each in added:
            first.insert_before(each)
    else:
        for each in added:
            node.insert_child(each)


# --- Learning ----------------------------------------------------------------------------------


def learned(static: LexborHTMLParser, shown: LexborHTMLParser) -> list[Edit]:
    """Return the edits that turn a page's static tree into the browser's visible tree.

    The static tree has its style sheets applied.

    Raises:
        Unlike: the trees differ by more than edits can express.
    """
    seen = list(_differences(_Tree(static).root, _Tree(shown).root))
    return merged((), _with_moves(seen))


def merged(known: Iterable[Edit], seen: Iterable[Edit]) -> list[Edit]:
    """Merge edits of the same kind, keeping the features that all their places share.

    Raises:
        Unlike: two places share no feature of their own, or there are too many edits.
    """
    edits: dict[tuple[str, str, str], Edit] = {}
    for edit in (*known, *seen):
        key = edit[:3]
        before = edits.get(key)
        features = edit.features if before is None else before.features & edit.features
        if not _own_features(features):
            raise Unlike
        edits[key] = edit._replace(features=features)
    if len(edits) > MAX_EDITS:
        raise Unlike
    return list(edits.values())


def _own_features(features: Iterable[str]) -> list[str]:
    return sorted(feature for feature in features if feature[0] not in ">^/")


class _Seen(NamedTuple):
    edit: Edit
    part: _Part | None = None  # added or removed element


class _Part:
    """An element of one of the two trees, with its visible content."""

    __slots__ = ("blank", "children", "hidden", "name", "node", "words")

    def __init__(self, node: LexborNode) -> None:
        self.node = node
        attributes = node.attributes
        self.name = f"{node.tag}#{attributes.get('id') or ''}.{attributes.get('class') or ''}"
        self.children: list[_Part | str] = []
        self.blank: list[_Part] = []  # shown, but without words
        self.hidden: list[_Part] = []
        self.words = ""  # all words, without white space


class _Tree:
    """The visible elements of a page's body.

    Raises:
        Unlike: it has none, or is too large for a comparison.
    """

    def __init__(self, tree: LexborHTMLParser) -> None:
        if tree.body is None:
            raise Unlike
        self._room = MAX_NODES
        self.root = self._part(tree.body, 0)

    def _part(self, node: LexborNode, depth: int) -> _Part:
        self._room -= 1
        if depth > MAX_DEPTH or self._room < 0:
            raise Unlike
        part = _Part(node)
        texts: list[str] = []
        for child in node.iter(include_text=True):
            if child.is_text_node:
                texts.append(child.text_content or "")
            elif not child.is_element_node or child.tag in _LEFT_OUT:
                continue
            elif _is_hidden(child):
                part.hidden.append(_Part(child))
            else:
                inner = self._part(child, depth + 1)
                if inner.words:
                    _join(part, texts)
                (part.children if inner.words else part.blank).append(inner)
        _join(part, texts)
        part.words = "".join(map(_words, part.children))
        return part


def _join(part: _Part, texts: list[str]) -> None:
    if text := "".join("".join(texts).split()):
        part.children.append(text)
    texts.clear()


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    style = attributes.get("style")
    if style and "display" in style.lower():
        return _HIDES.search(style) is not None
    if "hidden" in attributes or "popover" in attributes:
        return True
    parent = node.parent
    if parent is not None and parent.tag == "details" and "open" not in parent.attributes:
        return node.tag != "summary"
    return node.tag == "dialog" and "open" not in attributes


def _differences(one: _Part, other: _Part) -> Iterator[_Seen]:
    """Yield the edits that turn `one` into `other`."""
    if one.words == other.words:
        return
    blanks = {part.name: part for part in one.blank}
    hidden = {part.name: part for part in one.hidden}
    children: list[_Part | str] = []
    for child in other.children:
        name = "" if isinstance(child, str) else child.name
        if isinstance(child, str) or (name not in blanks and name not in hidden):
            children.append(child)
        elif name in blanks:
            yield from _differences(blanks[name], child)
        else:
            style = _style_of(child.node) or "display:block"
            yield _Seen(Edit("show", name, style, features_of(hidden[name].node)))
    pairs, gone, new = _aligned(one.children, children)
    for left, right in pairs:
        yield from _differences(left, right)
    for part in gone:
        yield _Seen(Edit("remove", part.name, "", features_of(part.node)), part)
    for before, parts, after in new:
        yield _added(one, before, parts, after)


def _added(
    one: _Part, before: _Part | str | None, parts: Sequence[_Part], after: _Part | str | None
) -> _Seen:
    html = "".join(_markup(part.node) for part in parts)
    if len(html) > MAX_HTML_CHARS:
        raise Unlike
    part = parts[0] if len(parts) == 1 else None
    where: Where
    if after is None:
        where, node = "append", one.node
    elif before is None:
        where, node = "prepend", one.node
    elif isinstance(before, _Part):
        where, node = "after", before.node
    elif isinstance(after, _Part):
        where, node = "before", after.node
    else:
        raise Unlike
    return _Seen(Edit(where, _place(node), html, features_of(node)), part)


def _place(node: LexborNode) -> str:
    """Describe a place by first classes: scripts use class names, and one of several suffices."""
    around = node.parent
    return f"{_first(node)} in {'' if around is None else _first(around)}"


def _first(node: LexborNode) -> str:
    classes = (node.attributes.get("class") or "").split()
    return f"{node.tag}.{classes[0]}" if classes else node.tag or ""


_Pairs = list[tuple[_Part, _Part]]
_New = list[tuple["_Part | str | None", list[_Part], "_Part | str | None"]]


def _aligned(
    ones: Sequence[_Part | str], others: Sequence[_Part | str]
) -> tuple[_Pairs, list[_Part], _New]:
    """Return matching pairs of children, removed ones, and added ones."""
    # By words first, or by names: the choice that leaves less difference.
    ways = [dict(_twins(ones, others, sign)) for sign in (_sign, _weak)]
    twins = min(ways, key=lambda way: _unlike(ones, others, way))
    together = ((ones[at], others[other]) for other, at in twins.items())
    pairs = [
        (one, other)
        for one, other in together
        if isinstance(one, _Part) and isinstance(other, _Part)
    ]
    kept = set(twins.values())
    gone = [child for at, child in enumerate(ones) if at not in kept]
    new: _New = []
    run: list[_Part | str] = []
    last: _Part | str | None = None
    for at, child in enumerate(others):
        if at not in twins:
            run.append(child)
            continue
        if run:
            new.append((last, _parts(run), ones[twins[at]]))
            run = []
        last = ones[twins[at]]
    if run:
        new.append((last, _parts(run), None))
    return pairs, _parts(gone), new


def _twins(
    ones: Sequence[_Part | str],
    others: Sequence[_Part | str],
    sign_of: Callable[[_Part | str], tuple[str, str]],
) -> Iterator[tuple[int, int]]:
    """Yield positions in `others` with those in `ones` of equal or equally named children."""
    signs = list(map(sign_of, ones)), list(map(sign_of, others))
    for kind, i, j, k, m in SequenceMatcher(None, *signs, False).get_opcodes():
        if kind == "equal":
            yield from zip(range(k, m), range(i, j), strict=True)
        elif kind == "replace":
            yield from _alike(ones, range(i, j), others, range(k, m))


def _unlike(
    ones: Sequence[_Part | str], others: Sequence[_Part | str], twins: Mapping[int, int]
) -> int:
    """Return the number of differing characters under this assignment."""
    kept = set(twins.values())
    gone = sum(len(_words(child)) for at, child in enumerate(ones) if at not in kept)
    new = sum(len(_words(child)) for at, child in enumerate(others) if at not in twins)
    changed = sum(_changed(_words(ones[at]), _words(others[k])) for k, at in twins.items())
    return gone + new + changed


def _changed(one: str, other: str) -> int:
    """Return the length between the common prefix and suffix, of the longer text."""
    if one == other:
        return 0
    most = min(len(one), len(other))
    start = bisect(range(1, most + 1), False, key=lambda n: one[:n] != other[:n])
    room = range(1, most - start + 1)
    end = bisect(room, False, key=lambda n: one[-n:] != other[-n:])
    return max(len(one), len(other)) - start - end


def _parts(children: Iterable[_Part | str]) -> list[_Part]:
    found = list(children)
    if any(isinstance(child, str) for child in found):
        raise Unlike  # text of the page itself
    return [child for child in found if isinstance(child, _Part)]


def _words(child: _Part | str) -> str:
    return child if isinstance(child, str) else child.words


def _sign(child: _Part | str) -> tuple[str, str]:
    return ("", child) if isinstance(child, str) else (child.node.tag or "", child.words)


def _alike(
    ones: Sequence[_Part | str], left: range, others: Sequence[_Part | str], right: range
) -> Iterator[tuple[int, int]]:
    """Yield elements of the same tag, id and first class, in the same order."""
    names = [_weak(ones[at]) for at in left], [_weak(others[at]) for at in right]
    for one, other, size in SequenceMatcher(None, *names, False).get_matching_blocks():
        for step in range(size):
            if names[0][one + step][0]:
                yield right[other + step], left[one + step]


def _weak(child: _Part | str) -> tuple[str, str]:
    """Return tag, id and first class; of a text, the text."""
    return ("", child) if isinstance(child, str) else (child.name.partition(" ")[0], "")


def _with_moves(seen: Sequence[_Seen]) -> Iterator[Edit]:
    """Turn a removal and an equal addition at the end of the page into a move."""
    gone = {each.part.words for each in seen if each.edit.where == "remove" and each.part}
    moved = {
        part.words
        for edit, part in seen
        if edit.where == "append" and "body" in edit.features and part and part.words in gone
    }
    for edit, part in seen:
        if part is None or part.words not in moved:
            yield edit
        elif edit.where == "remove":
            yield edit._replace(where="move")


# --- Features ----------------------------------------------------------------------------------


def features_of(node: LexborNode) -> frozenset[str]:
    """Return the features of an element for `Edit.features`."""
    found = set(_own(node))
    parent = node.parent
    if parent is not None:
        found |= _prefixed(">", _own(parent))
    while parent is not None and parent.is_element_node:
        found |= _prefixed("^", _own(parent))
        parent = parent.parent
    for inner in node.css("[class]"):
        found |= {f"/{name}" for name in _own(inner) if name[0] == "."}
    return frozenset(found)


def _own(node: LexborNode) -> set[str]:
    found = {node.tag or ""}
    attributes = node.attributes
    name = attributes.get("id") or ""
    if _NAME.fullmatch(name):
        found.add(f"#{name}")
    classes = (attributes.get("class") or "").split()
    found.update(f".{name}" for name in classes if _NAME.fullmatch(name))
    return found


def _prefixed(sign: str, names: Iterable[str]) -> set[str]:
    return {sign + name for name in names}


def _style_of(node: LexborNode) -> str:
    return ";".join(_KEPT_STYLE.findall(node.attributes.get("style") or ""))


def _markup(node: LexborNode) -> str:
    """Return the markup that an edit adds, without measures, which belong to one page."""
    copy = _parsed(node.html or "").body
    if copy is None:
        return ""
    for each in copy.css("[style]"):
        each.attrs["style"] = _style_of(each)
    return copy.inner_html or ""


def _parsed(html: str) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser

    return LexborHTMLParser(html)
