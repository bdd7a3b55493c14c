"""Which ids, classes, elements and data attributes of a page its scripts name."""

from __future__ import annotations

import asyncio

import pytest

from engine.pages.asset_loading import Script, ScriptLoader, named_in, names_in


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("document.getElementById('toc')", "#toc"),
        ('$("#toc .entry > a")', "#toc"),
        ('$("#toc .entry > a")', ".entry"),
        ("$('.highlight-c .highlight, .x')", ".highlight"),
        ("e.classList.contains('open')", ".open"),
        ("document.getElementsByClassName(`fold big`)", ".big"),
        ("if (e.className === 'fold')", ".fold"),
        ("$(e).hasClass('fold')", ".fold"),
        ("querySelectorAll('table.x td')", "td"),
        ("document.querySelector('[data-menu]')", "data-menu"),
        ("// don't\n$('.after')", ".after"),
        ("/* it's */ $('.after')", ".after"),
    ],
)
def test_a_name_is_found_where_scripts_look_for_elements(source: str, name: str) -> None:
    assert name in named_in(source)


@pytest.mark.parametrize(
    "source", ["var data = 'function'", "x.data.push('data')", "// $('.data')\nx", '"a.b c"']
)
def test_words_that_find_nothing_are_no_names(source: str) -> None:
    assert not {".data", "#data", "data", ".function"} & named_in(source)


def test_the_names_of_a_page_are_its_tags_ids_classes_and_data() -> None:
    html = "<P ID=x Class='a b'><img data-menu=1 class=\"c\"></P>"
    assert names_in(html) == {"img", "#x", ".a", ".b", ".c", "data-menu"}


async def test_scripts_that_cannot_be_read_name_everything_but_ids() -> None:
    async def get(url: str, most: int) -> bytes:
        return b"$('.a')" if url.endswith("/known.js") else b""  # as for an error's answer

    async def named(*scripts: Script) -> frozenset[str]:
        deadline = asyncio.get_running_loop().time() + 10
        names = frozenset({".a", ".b", "#c", "td"})
        return await loader.named(names, scripts, "http://site.test/x/", deadline)

    loader = ScriptLoader(get)
    try:
        assert await named(Script("", "known.js")) == {".a"}
        assert await named(Script("$('#c')", "")) == {"#c"}
        assert await named(Script("$('#c')", "", is_module=True)) == {".a", ".b", "td"}
        for gone in ("ftp://gone", "gone.js"):
            assert await named(Script("", gone), Script("", "known.js")) == {".a", ".b", "td"}
    finally:
        await loader.close()
