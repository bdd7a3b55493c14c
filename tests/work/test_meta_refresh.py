"""A refresh with a delay is a link of its page, with every engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.sample.site import Answer, Request
from tests.support.engines import opened
from tests.support.serving import served

WORDS = "a page that sends its readers on after a while " * 5
HEADS = {  # the markup of a page, and where it leads
    "seconds": ("<meta http-equiv=refresh content='5; url=/to?a=1'>", "/to?a=1"),
    "capitals": ("<META HTTP-EQUIV=Refresh CONTENT='3;URL=to'>", "/to"),
    "quotes": ("<meta http-equiv=refresh content=\"1, '/to' x\">", "/to"),
    "base": ("<base href=/below/><meta http-equiv=refresh content='09.5 to'>", "/below/to"),
    "charset": ("<meta http-equiv=refresh content='2;/to?q=\u00e9'>", "/to?q=%E9"),
    "renewed": ("<meta http-equiv=refresh content=5>", None),
    "renewed empty": ("<meta http-equiv=refresh content='5;url= '>", None),
    "renewed with a separator": ("<meta http-equiv=refresh content='5 ; '>", None),
    "renewed with an address": ("<meta http-equiv=refresh content='60;url=/to'>", None),
    "without scripts": (
        "<noscript><meta http-equiv=refresh content='5;url=/to'></noscript>",
        None,
    ),
    "another header": ("<meta http-equiv=x-refresh content='5;url=/to'>", None),
    "no address of the web": ("<meta http-equiv=refresh content='5;url=mailto:a@b'>", ""),
}


async def crawled(home: Path, **args: Any) -> list[dict[str, Any]]:
    async with opened(home) as service:
        given = {"max_pages": 30, "respect_robots": False, "delay_ms": 0, **args}
        record = await service.requests.start("crawl", given)
        await service.tasks.wait(record.task_id, 150_000)
    pages = json.loads((home / "tasks" / record.task_id / "result.json").read_text())["pages"]
    return list(pages)


@pytest.mark.parametrize(
    "by",
    [
        {"engine": "static"},
        {"engine": "browser", "connection": "direct"},
        {"engine": "browser", "connection": "playwright"},
    ],
    ids=["static", "direct", "playwright"],
)
async def test_a_refresh_after_some_seconds_is_a_link(home: Path, by: dict[str, Any]) -> None:
    paths = {f"/{number}": name for number, name in enumerate(HEADS)}
    index = "".join(f"<a href={path}>x</a>" for path in paths)

    def answer(request: Request) -> Answer:
        name = paths.get(request.path, "index")
        head = HEADS[name][0] if name in HEADS else index
        text = f"<title>{name}</title>{head}<p>{WORDS}"
        return Answer(text.encode("windows-1252"), content_type="text/html; charset=windows-1252")

    with served(answer) as url:
        _, *pages = await crawled(home, url=url, max_depth=1, **by)
    found = {page["title"]: page for page in pages}
    assert {name: page["final_url"] for name, page in found.items()} == {
        name: url + path for path, name in paths.items()
    }
    links = {name: [one["href"] for one in page.get("links", ())] for name, page in found.items()}
    wanted = {name: [f"{url}{to}"] if to else [] for name, (_, to) in HEADS.items()}
    assert links == wanted
    assert [name for name in HEADS if found[name].get("links_not_web")] == ["no address of the web"]
    assert not any(page["facts"]["links_internal"] for page in pages)


@pytest.mark.parametrize("engine", ["static", "browser", "auto"])
async def test_a_site_behind_a_page_that_sends_its_readers_on_is_crawled(
    home: Path, engine: str
) -> None:
    first = f"<title>first</title><meta http-equiv=refresh content='4;url=/in'><p>{WORDS}"

    def answer(request: Request) -> Answer:
        return Answer((first if request.path == "/" else f"<title>in</title><p>{WORDS}").encode())

    with served(answer) as url:
        pages = await crawled(home, url=url, engine=engine)
    assert [page["title"] for page in pages] == ["first", "in"]


XHTML = """<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title>
<meta http-equiv="refresh" content="5; url=/to"/></head><body><p>words</p><iframe src="/in"/>
</body></html>"""


async def test_links_of_xhtml_are_those_of_html(home: Path) -> None:
    answer = Answer(XHTML.encode(), content_type="application/xhtml+xml")
    with served(lambda _: answer) as url:
        (page,) = await crawled(home, url=url, engine="browser", max_pages=1)
    assert [link["href"] for link in page["links"]] == [f"{url}/to", f"{url}/in"]
    assert "links_not_web" not in page


# Each would take hours where the time is not linear.
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "content", ["59{ }", "{0}59", "59{.}", "59;{ }url{ }", "{ }59{ };{ }url{ }={ }"]
)
async def test_a_long_refresh_takes_no_time(home: Path, content: str) -> None:
    for part in " 0.":
        content = content.replace(f"{{{part}}}", part * 1_000_000)
    body = f"<title>t</title><meta http-equiv=refresh content='{content}'><p>{WORDS}"
    for engine in ("static", "browser"):
        with served(lambda _: Answer(body.encode())) as url:
            (page,) = await crawled(home, url=url, engine=engine, max_pages=1)
        assert (page["title"], page["settled"]) == ("t", True)
