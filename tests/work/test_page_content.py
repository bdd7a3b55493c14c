"""Page content is stored as published, without given secrets and strict key shapes."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kinds.crawl.crawl_args import parse_crawl
from engine.kinds.sitemap.sitemap_crawl import parse_sitemap
from engine.model import redact
from engine.sample.site import Answer
from engine.secrets.given_secrets import Hidden, Scrub, of_address, of_credentials
from fixtures.site.site import Site
from tests.results.conftest import page
from tests.support.engines import opened

PASSWORD, TOKEN = "Uv4&h_W*k9<s", "Tk8rBq5xNw3jLd"
TYPED = f"http://ann:{quote(PASSWORD)}@site.test/a?access_token={TOKEN}&page=2"
KEYS = [
    "AKIAZQ7XW4PLM2K9RTVB",
    "ghp_R8vQ2mXk7LpW4tZbN6cJ1hYdF9sGq3eTuA0x",
    "github_pat_11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz",
    "glpat-Qz7Rt_VbNmKp-LsWx12a",
    "xoxb-482910573926-7736251904418-QzRtVbNmKpLsWx",
    "xapp-1-A012BCDEF3G-1234567890123-0123456789abcdef",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "sk-ant-api03-Zk3vQx8mLp2wRt6yBn9cHd4fGj7sKe1uTr5oPq0",
    "sk-Zk3vQx8mLp2wRt6yBn9cHd4fGj7sKe1uTr5oPq0aXw2eRt6y",
    "AIzaSyD3v8Kq2mXw7LpT4zBn6cJ1hYdF9sGq3eT",
    "npm_R8vQ2mXk7LpW4tZbN6cJ1hYdF9sGq3eTuA0x",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4NzQ5MiJ9.Zk3vQx8mLp2wRt6y",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx7Qw9kLmZ2Vb5nRt8y\nPs3d=\n"
    "-----END RSA PRIVATE KEY-----",
    "-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVsUw",
]
# Found on documentation sites; each lost a word to the redactor before.
ORDINARY = [
    "AuthType Basic AuthName",
    "password1 != password2: raise X",
    "secrets: Generate secure random numbers for managing secrets",
    "ssh://[user@]host[:port]/path",
    "Authorization: Bearer mF_9.B5f-4.1JqM, Cookie: session=38afes7a8; theme=dark",
    "https://user:password@example.com/?token=abc&sid=1",
    '{"password": "hunter2", "api_key": "x"}',
    "token = tokens[0]; session: Session = requests.session()",
    "a key begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "npm_config_legacy_peer_deps_and_more_of_it sk-container-id-1 sk-estimator-doc-link-fitted",
    "xoxo-hugs-and-kisses ghs_this_is_a_long_function_name_indeed AKIA ASIA-PACIFIC-REGION",
    "eyJ.eyJ.eyJ and eyJub3Rqc29u.bm90anNvbg.c2ln",
]


@pytest.mark.parametrize("key", KEYS)
def test_a_strict_key_shape_is_taken_out_and_counted_wherever_it_stands(key: str):
    for before, after in (("", ""), ("see ", " there"), ("<b>", "</b>"), ("x%3D", "\nx y")):
        assert redact.content(f"{before}{key}{after}") == (f"{before}[redacted]{after}", 1)
    assert redact.content(f"{key}\n\nand {key}")[1] == 2


@pytest.mark.parametrize("words", ORDINARY)
def test_ordinary_text_of_a_page_is_kept_as_it_is(words: str):
    assert redact.content(words) == (words, 0)
    record = page(1, title=words, content=words)
    assert Scrub(of_address(TYPED)).page(record) == record


@given(st.text(), st.sampled_from(ORDINARY), st.text())
def test_content_without_a_key_shape_is_kept_byte_for_byte(before: str, words: str, after: str):
    text = f"{before} {words} {after}"
    record = {"content": text, "title": before}
    assert Scrub(of_address(TYPED)).page(record) == record
    assert redact.stored(record) == record


@given(st.lists(st.sampled_from([*KEYS, *ORDINARY]), max_size=8))
def test_what_was_taken_out_of_content_is_not_taken_out_twice(parts: list[str]):
    clean, count = redact.content("\n\n".join(parts))
    assert redact.content(clean) == (clean, 0)
    assert count == clean.count("[redacted]")


SPELT: dict[str, Callable[[str], str]] = {
    "raw": lambda text: text,
    "in an address": lambda text: quote(text, safe=""),
    "in a form": quote_plus,
    "in an address, in small letters": lambda text: re.sub(
        "%..", lambda found: found[0].lower(), quote(text, safe="")
    ),
    "in markup": html.escape,
    "in a template": lambda text: html.escape(text).replace("&#x27;", "&#39;"),
    "in JSON": lambda text: json.dumps(text)[1:-1],
    "in JSON of a script": lambda text: text.replace("&", "\\u0026").replace("<", "\\u003c"),
    "in Markdown": lambda text: text.replace("_", "\\_").replace("*", "\\*").replace("<", "\\<"),
    "as a header": lambda text: base64.b64encode(f"ann:{text}".encode()).decode(),
}


@pytest.mark.parametrize("way", SPELT)
def test_a_given_password_that_a_page_repeats_is_taken_out_however_it_is_spelt(way: str):
    scrub = Scrub(of_address(TYPED), key_shapes=False)
    assert scrub.content(f"Hello ann, yours is {SPELT[way](PASSWORD)}.") == (
        "Hello ann, yours is [redacted].",
        1,
    )


def test_only_what_is_a_secret_in_an_address_is_taken_for_one():
    found = {hidden.value for hidden in of_address(f"{TYPED}&session=12#id_token=Fg6yHc1v%2B")}
    both = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    assert found == {PASSWORD, both, both.rstrip("="), TOKEN, "Fg6yHc1v%2B", "Fg6yHc1v+"}
    for key in ("http://ghx8sK2mQ4vT@site.test/", "http://ghx8sK2mQ4vT:x-oauth@site.test/"):
        assert "ghx8sK2mQ4vT" in {hidden.value for hidden in of_address(key)}
    assert of_address("http://site.test/?page=2") == of_address(None) == of_credentials(None) == []
    assert PASSWORD not in repr(of_address(TYPED)) + repr(Scrub(of_address(TYPED)))


def test_every_kind_of_crawl_knows_what_stood_in_its_addresses():
    assert parse_crawl({"url": TYPED}).secrets == tuple(of_address(TYPED))
    assert all(isinstance(one, Hidden) for one in parse_crawl({"url": TYPED}).secrets)
    both = parse_sitemap({"url": "http://site.test/", "sitemap_url": TYPED}).pages
    assert both.secrets == tuple(of_address(TYPED))


def test_links_lose_their_secrets_and_their_texts_do_not():
    link = {"href": "http://u:p@x.test/?sid=abc", "text": "the secret: abc"}
    structured = {"title": "token: x", "links": [link], "headings": [{"level": 1, "text": "T"}]}
    kept = Scrub(()).page({"url": "http://x.test/?token=a", "content": structured})
    assert kept == {
        "url": "http://x.test/?token=[redacted]",
        "content": {**structured, "links": [{**link, "href": "http://x.test/?sid=[redacted]"}]},
    }


def test_links_in_markdown_lead_to_addresses_without_secrets():
    text = '[a](/x?sid=abc&p=1) [b](http://u:p@x.test/(y)?q=1 "sid=abc") sid=abc [c](/d?e=f)'
    clean, count = Scrub(()).markdown(text)
    assert clean == (
        '[a](/x?sid=[redacted]&p=1) [b](http://x.test/(y)?q=1 "sid=abc") sid=abc [c](/d?e=f)'
    )
    assert count == 2


MARKDOWN = st.lists(
    st.sampled_from(
        ["](", "](<", "sid=abc", "/x?", "u:p@", "http://", ")", ">", "(", " ", "]", "a"]
    ),
    max_size=12,
).map("".join)


@given(MARKDOWN)
def test_a_link_that_needs_no_look_at_it_has_no_secret(text: str):
    assert redact.link_targets(text) == redact._strict_addresses(redact._LINK_TO, text)


@pytest.mark.parametrize("switch", [True, False])
async def test_a_crawl_counts_redactions(home: Path, site: Site, switch: bool) -> None:
    words = "AuthType Basic AuthName, password1 != password2: raise X"
    echo = f"{html.escape(PASSWORD)} {TOKEN}"
    body = f"<title>{words}</title><p>{words}</p><p>{KEYS[0]}</p><p>{echo}</p>"
    site.answers["/notes"] = Answer(body.encode())
    front = site.url.replace("http://", f"http://ann:{quote(PASSWORD)}@")
    args = {"engine": "static", "output_format": "text", "respect_robots": False, "max_pages": 1}
    async with opened(home) as engine:
        url = f"{front}/notes?access_token={TOKEN}"
        started = await engine.requests.start(
            "crawl", {"url": url, **args, "redact_content": switch}
        )
        await engine.tasks.wait(started.task_id)
        await engine.tasks.join(started.task_id)
    folder = home / "tasks" / started.task_id
    kept = json.loads((folder / "result.json").read_bytes())
    assert json.loads((folder / "pages.jsonl").read_bytes()) == kept["pages"][0]
    (found,) = kept["pages"]
    assert found["title"] == words
    shown = "[redacted]" if switch else KEYS[0]
    assert [line for line in found["content"].split("\n") if line] == [
        words,
        shown,
        "[redacted] [redacted]",
    ]
    assert found["redacted"] == kept["summary"]["redacted"] == (3 if switch else 2)
    assert found["url"] == f"{site.url}/notes?access_token=[redacted]"


def test_markup_is_kept_but_for_where_its_elements_lead():
    html_text = '<p class="token">sid=abc</p><a href="/x?a=1&amp;sid=abc">password: x</a>'
    told = redact.published({"html": html_text, "url": "http://x.test/?sid=abc"})[0]
    assert told["html"] == html_text.replace("&amp;sid=abc", "&amp;sid=[redacted]")
    assert told["url"] == "http://x.test/?sid=[redacted]"


def test_the_head_of_a_result_keeps_what_a_page_said_in_it():
    field = {"name": "p", "secret": True, "field": "secret: the word"}
    head = {"title": "AuthType Basic AuthName", "variables": [field], "summary": {"redacted": 2}}
    assert redact.head(head) == head
    ours = {"url": "http://u:p@x.test/?sid=a", "label": "password=x"}
    assert redact.head(ours) == {
        "url": "http://x.test/?sid=[redacted]",
        "label": "password=[redacted]",
    }
