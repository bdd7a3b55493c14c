"""Changes that scripts make to every page are learned from one and applied to the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from engine.pages.rendered_text import rendered_text
from engine.pages.script_edits import Edit, Unlike, Where, apply, learned, merged

BUTTON = "<span class=button>&gt;&gt;&gt;</span>"


def page(n: int, *, side: str = "", find: str = "") -> str:
    """A page of a site, number `n`, with what a script made of its parts."""
    find = find or '<div id=find style="display: none"><h3>Find</h3></div>'
    return (
        f"<body><div class=side><ul><li>Part {n}</ul>{find}{side}</div>"
        f"<div class=main><h1>Page {n}</h1><div id=toc>Contents {n}</div><p>Text {n}</p>"
        f"<div class=code><pre>x{n}</pre></div>"
        f"<div class=code><pre><b class=gp>$</b> y{n}</pre></div></div></body>"
    )


def plain(n: int) -> str:
    return page(n)


def shown(html: str) -> LexborHTMLParser:
    """The tree that a browser hands over: what it hides is not in it."""
    tree = LexborHTMLParser(html)
    for hidden in tree.css('[style*="display: none"]'):
        hidden.decompose()
    return tree


def words(tree: LexborHTMLParser) -> list[str]:
    return rendered_text(tree.root.html or "").split() if tree.root else []


def prompts(n: int) -> str:
    return plain(n).replace("<pre><b", f"{BUTTON}<pre><b")


def moved(n: int) -> str:
    toc = f"<div id=toc>Contents {n}</div>"
    return plain(n).replace(toc, "").replace("</body>", f"{toc}</body>")


SCRIPTS: dict[str, Callable[[int], str]] = {
    "append": lambda n: page(n, side="<div class=fold><i>Fold</i></div>"),
    "prepend": lambda n: plain(n).replace("<ul>", "<b class=new>New</b><ul>"),
    "after": lambda n: plain(n).replace("</h1>", "</h1><p class=by>Share</p>"),
    "before": lambda n: plain(n).replace("<h1>", "<p class=by>Share</p><h1>"),
    "show": lambda n: page(n, find='<div id=find style="display: block"><h3>Find</h3></div>'),
    "remove": lambda n: plain(n).replace(f"<p>Text {n}</p>", ""),
    "move": moved,
    "only where something is inside": prompts,
    "several": lambda n: prompts(n).replace("</h1>", "</h1><p class=by>Share</p>"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_was_done_to_two_pages_is_done_to_a_third(name: str) -> None:
    edits: list[Edit] = []
    for n in (1, 2):
        edits = merged(edits, learned(LexborHTMLParser(plain(n)), shown(SCRIPTS[name](n))))
    third = LexborHTMLParser(plain(3))
    assert words(third) != words(shown(SCRIPTS[name](3)))
    assert apply(third, edits) >= 1
    assert words(third) == words(shown(SCRIPTS[name](3)))


def test_pages_that_differ_in_their_own_words_teach_nothing() -> None:
    other = plain(1).replace("Text 1", "Another text")
    with pytest.raises(Unlike):
        learned(LexborHTMLParser(plain(1)), shown(other))


def test_what_differs_by_tags_alone_is_no_edit() -> None:
    other = plain(1).replace("Text 1", "<span>Te</span><span>xt</span> 1")
    assert learned(LexborHTMLParser(plain(1)), shown(other)) == []


def test_measures_of_one_page_are_no_part_of_an_edit() -> None:
    side = '<i style="height: 812px; display: block; top: 3px">Fold</i>'
    [edit] = learned(LexborHTMLParser(plain(1)), shown(page(1, side=side)))
    assert edit.html == '<i style="display: block">Fold</i>'


def test_places_with_nothing_of_their_own_in_common_are_no_edit() -> None:
    one = Edit("append", "div in body", "<i>x</i>", frozenset({"div", "^body"}))
    with pytest.raises(Unlike):
        merged([one], [one._replace(features=frozenset({"p", "^body"}))])


def test_what_is_taken_away_may_stand_in_what_is_taken_away() -> None:
    def edit(where: Where, name: str) -> Edit:
        return Edit(where, "", "", frozenset({f".{name}"}))

    nested = "<div class=a>one<p class='a b'>two<b class=b>three</b></p></div><i>four</i>"
    tree = LexborHTMLParser(nested)
    assert apply(tree, [edit("remove", "a"), edit("move", "b")]) == 2
    assert words(tree) == ["four"]


TREES = st.recursive(
    st.sampled_from(["one", "two", "<br>", "<i hidden>gone</i>", "<img>"]),
    lambda inner: st.builds(
        lambda tag, name, parts: f"<{tag} class={name}>{''.join(parts)}</{tag}>",
        st.sampled_from(["div", "p", "span", "ul", "details"]),
        st.sampled_from(["a", "b", "c"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


@given(one=TREES, other=TREES)
def test_any_two_trees_are_told_apart_or_left_alone(one: str, other: str) -> None:
    try:
        edits = learned(LexborHTMLParser(one), LexborHTMLParser(other))
    except Unlike:
        return
    tree = LexborHTMLParser(one)
    apply(tree, edits)
    assert (tree.body is None) == (LexborHTMLParser(one).body is None)
