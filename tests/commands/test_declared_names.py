"""Commands on pages that declare classes with the names of the document's."""

from __future__ import annotations

from typing import Any

from engine.sample.site import Answer
from tests.commands.conftest import Opening, do, results

NAMES = ("Element", "Node", "Document", "DocumentFragment", "Set", "Reflect")


async def test_texts_and_markup_are_read_whatever_classes_a_page_declares(
    opened: Opening, site: Any
) -> None:
    classes = "".join(f"class {name} {{}}" for name in NAMES)
    shadow = "<div><template shadowrootmode=open><b>words</b></template></div>"
    site.answers["/classes"] = Answer(f"{shadow}<script>{classes}</script>".encode())
    async with opened() as booth:
        _, text, markup, whole = await results(
            booth,
            do("goto", url=f"{site.url}/classes"),
            do("get_text", selector="div"),
            do("get_html", selector="div"),
            do("get_html"),
        )
    assert text["text"] == "words"
    assert "<b>words</b>" in markup["html"]
    assert "<b>words</b>" in whole["html"]
