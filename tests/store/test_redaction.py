"""No secret reaches a file: by its key, by its place in an address, in any text, at any depth."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.ledger.ledger import Ledger
from engine.model import redact
from engine.model.addresses import Credentials, credentials_of
from engine.model.records import ErrorInfo, Status
from engine.secrets.given_secrets import Scrub, of_credentials

SECRET = "Zq7hunter2Xk"
KEYS = st.sampled_from(
    [
        *("password", "Passwd", "client_secret", "API-Key", "apiKey", "Authorization"),
        *("set-cookie", "cookies", "sessionId", "credentials", "access_token", "db.password"),
    ]
)


def test_secret_keys_are_hidden_however_deep_and_however_spelled():
    args = {
        "url": "http://x.test/",
        "login": {"user": "me", "Pass_Word": SECRET},
        "l": [{"TOKEN": 5}],
    }
    assert redact.value(args) == {
        "url": "http://x.test/",
        "login": {"user": "me", "Pass_Word": "[redacted]"},
        "l": [{"TOKEN": "[redacted]"}],
    }


@pytest.mark.parametrize(
    "selector",
    [
        'role=textbox[name="Password:"]',
        'role=textbox[name="Your token: "] >> nth=1',
        "css=[aria-label='API key:'] >> input[name=\"Password:\"]",
        '(role=textbox[name="Password:"])',
    ],
)
def test_a_label_that_ends_with_a_colon_keeps_its_selector_whole(selector):
    assert redact.text(selector) == selector


@pytest.mark.parametrize(
    "given",
    [
        f'{{"password":"] {SECRET}"}}',
        f'input[name="Password:"] password: "{SECRET}"',
        f'input[name="Password: {SECRET}"]',
        f'name="Password:"{SECRET}',
        f'password:"]{SECRET}',
    ],
)
def test_what_follows_the_colon_of_such_a_label_is_hidden(given):
    assert SECRET not in redact.text(given)


@pytest.mark.parametrize("nest", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_values_nested_too_deep_are_hidden(nest):
    value = SECRET
    for _ in range(64):
        value = nest(value)
    assert redact.value(value) == value
    assert SECRET not in json.dumps(redact.value(nest(nest(value))))


def test_secrets_in_names_are_hidden():
    assert redact.value({f"http://u:{SECRET}@x.test/": 1}) == {"http://x.test/": 1}


def test_credentials_in_url_safe_base64_are_hidden():
    given_ones = Credentials("http://x.test", "ann", "??>>??>>")
    plain = urlsafe_b64encode(b"ann:??>>??>>").decode()
    assert {"-", "_"} & set(plain)
    assert Scrub(of_credentials(given_ones)).hide(f"<{plain}>") == "<[redacted]>"


@pytest.mark.parametrize(
    ("given_url", "clean"),
    [
        ("http://u:p@x.test/a", "http://x.test/a"),
        ("https://u:p@p@x.test/a?b=1", "https://x.test/a?b=1"),
        ("https:u:p@x.test/", "https:x.test/"),
        ("http:\\\\u:p@x.test/", "http:\\\\x.test/"),
        ("//u:p@x.test/", "//x.test/"),
        ("ws://u@x.test/", "ws://x.test/"),
        ("http://u:my pass@x.test/a b", "http://x.test/a b"),
        ("http://u:p\ta@x.test/", "http://x.test/"),
        (" ht\ntp:\n//u:p@x.test/\nfailed", "http://x.test/\nfailed"),
        ("http://x.test/\tu:p@y", "http://x.test/\tu:p@y"),
        ("http://x.test/?a=1&token=t&b=2", "http://x.test/?a=1&token=[redacted]&b=2"),
        ("http://x.test/?ACCESS%5FTOKEN=t", "http://x.test/?ACCESS%5FTOKEN=[redacted]"),
        ("http://x.test/#id_token=t&x=1", "http://x.test/#id_token=[redacted]&x=1"),
        ("http://x.test/;jsessionid=t?a=b", "http://x.test/;jsessionid=[redacted]"),
        ("http://x.test/?code=US&key=blue", "http://x.test/?code=US&key=blue"),
        ("http://x.test/?key=AIzaSyA1234567890abcdef", "http://x.test/?key=[redacted]"),
        ("http://x.test/a@b?q=c@d", "http://x.test/a@b?q=c@d"),
        ("http://x.test/?page=2", "http://x.test/?page=2"),
        ("http://x.test/?otp=123456&a=b", "http://x.test/?otp=[redacted]&a=b"),
        (
            "http://x.test/?passcode=p#pass-phrase=q",
            "http://x.test/?passcode=[redacted]#pass-phrase=[redacted]",
        ),
    ],
)
def test_an_address_loses_its_secrets_and_nothing_else(given_url: str, clean: str):
    assert redact.url(given_url) == clean


@pytest.mark.parametrize(
    "line",
    [
        f"GET http://me:{SECRET}@x.test/ failed",
        f"see https://x.test/?token={SECRET}, then go on",
        f"Authorization: Bearer {SECRET}",
        f"authorization=Basic {SECRET}",
        f"Cookie: a=b; sid={SECRET}",
        f"sent with bearer {SECRET}99",
        f"{{'password': '{SECRET} and more'}}",
        f'{{"api_key": "{SECRET}"}}',
        f"PASSWORD={SECRET} ./run",
        f"client-secret: {SECRET}",
        f"jwt eyJhbGciOiJI.{SECRET}.c2ln",
        f"http://x.test/token:{SECRET}",
        f"http://x.test/authorization: Bearer {SECRET}",
        f"http://x.test/token:\n{SECRET}",
        f"http://x.test/a password: {SECRET}",
        f"http://x.test/a?token: {SECRET}",
        f"http://x.test/reset-password: HTTP 404, token: {SECRET}",
        f"db/password: {SECRET}",
        f"see https://h.test/login,user=joe,password: {SECRET}",
        f"{{base:https://h.test/v1,api_key: {SECRET}}}",
        f"failed at (https://h.test/login;password: {SECRET})",
        f"(https://h.test/)password: {SECRET}",
        f"https://h.test/app.js:10:api_key: {SECRET}",
        f"https://h.test/x|Cookie: sid={SECRET}",
        f"https://h.test/path\\npassword: {SECRET}",
        f"https://h.test/oauth/token: client_secret={SECRET}",
        f"https://h.test/reset-password: password: {SECRET}",
        f"https://h.test/reset-password: token={SECRET}",
        f"https://h.test/cookie: Cookie: sid={SECRET}",
        f"https://h.test/a|b/password: {SECRET}",
    ],
)
def test_a_text_loses_what_looks_like_a_secret(line: str):
    clean = redact.text(line)
    assert SECRET not in clean
    assert redact.text(clean) == clean


@pytest.mark.parametrize(
    "line",
    [
        "Basic usage of the tool",
        "page 3 of 20: http://x.test/a?b=c",
        "input[name=password]",
        "Enter your password and go on",
        "3 tokens left",
        "http://x.test/account/reset-password: HTTP 404",
        "2 tries: https://x.test/auth/token: No answer",
        "http://x.test/api-keys: blocked by robots.txt",
        "http://x.test/cookie: HTTP 500",
        "http://x.test/authorization: HTTP 404",
        'give it as {"secret": "env:SITE_PASSWORD"}, and nothing beside it',
        "{'token': 'env:T_1'}",
    ],
)
def test_a_text_without_secrets_stays_as_it_is(line: str):
    assert redact.text(line) == line


def test_a_secret_by_reference_holds_nothing_and_is_kept():
    args = {"url": "http://x.test/", "password": {"secret": "env:SITE_PASSWORD"}}
    summary = redact.summarise(args)
    assert summary.stored == args
    assert not summary.was_redacted
    assert redact.summarise({"password": {"secret": SECRET}}).was_redacted


def test_a_summary_holds_2048_bytes_and_not_one_more():
    def of(size: int) -> dict:
        return {"url": "x" * (size - len('{"url":""}'))}

    assert redact.summarise(of(2_048)).stored == of(2_048)
    assert redact.summarise(of(2_049)).stored == {"_truncated": True, "_bytes": 2_049}


@given(KEYS, st.lists(st.sampled_from(["a", 0, "list"]), max_size=4), st.text(max_size=20))
def test_no_path_and_no_neighbour_lets_a_secret_through(key, path, other):
    tree: object = {key: SECRET, "note": other}
    for step in path:
        tree = [other, tree] if step == "list" else {str(step): tree, "x": other}
    clean = redact.value(tree)
    assert SECRET not in json.dumps(clean)
    assert redact.value(clean) == clean


SAFE = st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=12)


@given(SAFE, SAFE, st.sampled_from(["token", "password", "api_key", "sessionid", "x-secret"]), SAFE)
@pytest.mark.case("R82")
def test_no_address_lets_a_secret_through(user, path, name, other):
    address = f"https://{user}:{SECRET}@x.test/{path}?a={other}&{name}={SECRET}#{name}={SECRET}"
    for text in (address, f"before {address} after {other}", f'{{"to": "{address}"}}'):
        clean = redact.text(text)
        assert SECRET not in clean
        assert redact.text(clean) == clean


BLANKS = st.text(" \t\n\r\x0b\x1f\xa0", max_size=2)


@given(
    st.tuples(*[BLANKS] * 8), st.sampled_from(["", "/", "//", "///"]), st.text(":@%é", max_size=3)
)
def test_no_password_that_a_browser_would_read_is_kept(blanks, slashes, odd):
    parts = ("h", f"ttp:{slashes}", "us", "er:", f"{odd}{SECRET}", "@", "x.te", "st/a@b")
    typed = "".join(blank + part for blank, part in zip(blanks, parts, strict=True))
    found = credentials_of(typed)
    if found is not None:
        assert SECRET in found.username + found.password
    for kept in (redact.text(typed), redact.value({"url": typed}), redact.summarise({"x": typed})):
        assert found is None or SECRET not in str(kept)


@given(st.text())
def test_redacting_twice_changes_nothing(text):
    once = redact.text(text)
    assert redact.text(once) == once


WORDS = ["Password", "the secret", "token", "Set-Cookie", "Name", ":", "=", '"', "'", " ", "a1"]


@given(st.lists(st.sampled_from(WORDS), max_size=6).map("".join), st.booleans())
def test_what_stands_behind_a_quoted_part_is_never_taken_for_a_secret(part, in_marks):
    quoted = redact.quoted(part)
    said = f'"{quoted}" of #form, found "Name"' if in_marks else f"{quoted} (it is hidden)"
    end = said.removeprefix(f'"{quoted}' if in_marks else quoted)
    assert redact.text(said).endswith(end)
    assert redact.quoted(quoted) == quoted


PIECES = st.sampled_from(
    [
        *("http://x.test/", "//u:p@h/", "a", "?page=2", "&token=abc", "#sid=1", "@scope", "]("),
        *("ghp_" + "a1" * 20, "AKIA" + "A1" * 8, "-----BEGIN PRIVATE KEY-----", "A1" * 20, " "),
        *("-----END PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln", "Bearer a1b2c3d4"),
        *("password: ", "authorization", ":", "=", "\n", "href", "text", "hunter2", "%3D", '"'),
    ]
)
LINE = st.lists(PIECES, max_size=5).map("".join)


@given(
    st.lists(st.tuples(LINE, LINE), min_size=1, max_size=5),
    st.sampled_from(["", "hunter2", "text", "a\nhttp://x.test/", "abc"]),
    st.booleans(),
)
@example([("http://x.test/", ""), ("//u:p@x.test/", "")], "", False)
@example([("http://x.test/", "-----BEGIN PRIVATE KEY-----"), ("a", "A1" * 20)], "", False)
def test_links_looked_through_at_once_lose_what_each_alone_loses(pairs, secret, markdown):
    scrub = Scrub([(secret, "[redacted]")] if secret else [])
    links = [{"href": href, "text": words} for href, words in pairs]
    others = [*links, {}]  # among entries of another form each is walked alone
    kept = scrub.page({"links": links}, markdown=markdown)
    walked = scrub.page({"links": others}, markdown=markdown)
    assert {**kept, "links": [*kept["links"], {}]} == walked
    stored, apart = (redact.stored({"links": some})["links"] for some in (links, others))
    assert [*stored, {}] == apart


@pytest.mark.case("R81")
def test_a_planted_secret_is_in_no_file_of_the_ledger(ledger: Ledger, root: Path):
    address = f"http://me:{SECRET}@x.test/?token={SECRET}"
    args = {"url": address, "headers": {"Authorization": SECRET}, "cookies": [SECRET]}
    task_id = ledger.create("crawl", args).task_id
    ledger.claim(task_id)
    ledger.append_page(task_id, {"url": address, "final_url": address, "error": f"at {address}"})
    ledger.append_event(task_id, "progress", {"unitsDone": 1, "message": address})
    ledger.append_event(task_id, "log", {"password": SECRET, "note": f"password={SECRET}"})
    ledger.request_cancel(task_id, f"wrong password: {SECRET}")
    ledger.finish(task_id, Status.FAILED, error=ErrorInfo(message=f"{address} did not answer"))
    for path in root.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
