"""The description of the API: complete, valid, and a page without any further request."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.server.api_page import api_page, page_template
from engine.server.http_answers import BEFORE_VERBS, STATUS
from engine.server.http_routes import ROUTES
from engine.server.openapi import document
from tests.server.http.conftest import Serving

METHODS = {"get", "post", "delete"}


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _nodes(inner)


def _operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_reference_leads_somewhere() -> None:
    for node in _nodes(document()):
        if "$ref" in node:
            found: Any = document()
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            assert found


def test_every_schema_is_a_valid_json_schema() -> None:
    schemas = [*document()["components"]["schemas"].values()]
    schemas += [
        node["schema"] for node in _nodes(document()) if isinstance(node.get("schema"), dict)
    ]
    assert len(schemas) > 50
    for schema in schemas:
        Draft202012Validator.check_schema(schema)


def test_the_document_has_what_openapi_requires() -> None:
    doc = document()
    assert doc["openapi"] == "3.1.0"
    assert set(doc["info"]) >= {"title", "version"}
    ids = [operation["operationId"] for _, _, operation in _operations()]
    assert len(set(ids)) == len(ids)
    named = {tag["name"] for tag in doc["tags"]}
    for method, path, operation in _operations():
        assert method in METHODS
        assert set(operation["tags"]) <= named
        assert operation["summary"]
        given = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert given == set(re.findall(r"{(\w+)}", path))
        assert any(status.startswith("2") for status in operation["responses"])
        for response in operation["responses"].values():
            assert "$ref" in response or response["description"]


def test_every_route_is_described_with_its_errors() -> None:
    described = {(method, path) for method, path, _ in _operations()}
    assert described == {(one.method.lower(), one.path) for one in ROUTES} | {
        ("get", path)
        for path in (
            *("/tasks/{id}/events", "/tasks/{id}/result", "/tasks/{id}/files/{name}"),
            *("/events", "/openapi.json", "/"),
        )
    }
    for method, path, operation in _operations():
        wanted = {"400", "401", "403", "421", "500", "503"}
        wanted |= {"404"} if "{id}" in path else set()
        wanted |= {"409", "413", "415"} if method != "get" else set()
        assert set(operation["responses"]) >= wanted, (method, path)


def test_every_code_of_an_error_is_in_the_document() -> None:
    said = " ".join(one["description"] for one in document()["components"]["responses"].values())
    for refusal in BEFORE_VERBS:
        assert refusal.code in said
    for kinds in STATUS.values():
        assert all(kind.code in said for kind in kinds)


async def test_answers_match_their_schemas(serving: Serving) -> None:
    async with serving() as client:
        doc = await client.get("/openapi.json")
        assert doc == document()
        task_id = await client.envelope()
        for path, found in (
            ("/tasks", await client.get("/tasks")),
            ("/tasks/{id}", await client.get(f"/tasks/{task_id}")),
            (
                "/tasks/{id}/events",
                await client.get(
                    f"/tasks/{task_id}/events", headers={"Accept": "application/json"}
                ),
            ),
        ):
            content = doc["paths"][path]["get"]["responses"]["200"]["content"]
            schema = {**content["application/json"]["schema"], "components": doc["components"]}
            Draft202012Validator(schema).validate(found)
        _, error = await client.call("GET", "/tasks/x")
        schema = {**doc["components"]["schemas"]["Error"], "components": doc["components"]}
        Draft202012Validator(schema).validate(error)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    html, policy = api_page(Path("/home/a b/<access>.json"))
    assert "<access>" not in html
    page = _Page()
    page.feed(html)
    assert not {"script", "link", "img", "iframe", "form", "object"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "href", "style")]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for method, path, _ in _operations():
        assert f">{path}</code>" in html, (method, path)


def test_what_a_verb_says_is_no_markup_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = document()
    path = next(iter(doc["paths"]))
    operation = {**doc["paths"][path]["get"], "summary": "<script>alert(1)</script>"}
    changed = {**doc, "paths": {**doc["paths"], path: {"get": operation}}}
    monkeypatch.setattr("engine.server.api_page.document", lambda: changed)
    html, _ = page_template.__wrapped__()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.own_browser
async def test_a_browser_shows_the_page_under_its_policy(serving: Serving) -> None:
    """The hash of the policy is that of the style: without it the page would have none."""
    from playwright.async_api import async_playwright

    from engine.browser.chromium.locate import locate

    async with serving() as client, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=locate(os.environ.get("OC_BROWSER")).path, chromium_sandbox=False
        )
        page = await browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(client.url + "/")
        family = await page.evaluate("getComputedStyle(document.body).fontFamily")
        await browser.close()
    assert "system-ui" in family
    assert asked == [client.url + "/"]
    assert not said
