"""Random passwords, pages on which Chromium itself spells them, and where one can still be read.

What is looked for here is found without any code of the product.
"""

from __future__ import annotations

import html
import json
import random
import re
import string
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from engine.sample.site import HTML, Answer, Request, Server
from tests.browser.test_spellings import MAKE, passwords
from tests.trust.planted import unpacked

BATCH: Final = 60  # passwords that one task is given
PICTURED: Final = 15  # that a task is given whose pictures are compared: all of them are in view
IN_VIEW: Final = 90  # lines of a page
AT_ONCE: Final = 4  # ways in which a page writes each that is not, which take turns
ROUNDS: Final = 3  # that a text is decoded in
_TURNED: Final = str.maketrans(
    string.ascii_letters + string.digits,
    string.ascii_lowercase[13:]
    + string.ascii_lowercase[:13]
    + string.ascii_uppercase[13:]
    + string.ascii_uppercase[:13]
    + "5678901234",
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^ux]))")
_SIGNS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def values(seed: int, count: int) -> list[str]:
    """Passwords of 6 to 40 characters; every second one has letters in it that stay together."""
    draw = random.Random(seed)
    found = []
    for number, value in enumerate(passwords(count, seed)):
        part = "".join(draw.choices(string.ascii_letters + string.digits, k=8))
        at = draw.randint(0, len(value))
        found.append((value[:at] + part + value[at:])[:40] if number % 2 else value)
    return [one.strip().ljust(6, "x") for one in found]


def turned(value: str) -> str:
    """Another password that is spelt as long in every way."""
    return value.translate(_TURNED)


def draw_of(batch: Sequence[str]) -> int:
    """A number for what differs between batches, the same for a batch and its turned one."""
    return sum(map(len, batch))


class Reader:
    """Finds values in bytes: as they are, decoded, packed, in base64 and in hex."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._wanted = list(dict.fromkeys(wanted))
        self._carried = [list(_carried(value)) for value in self._wanted]

    def found(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Each value that can be read, and what stands around it."""
        for part in unpacked(data):
            texts = list(dict.fromkeys(_decoded(part.decode("utf-8", "replace"))))
            lowered = texts[0].lower()
            for value, carried in zip(self._wanted, self._carried, strict=True):
                yield from _around(texts, value)
                yield from _around([texts[0]], *carried[:-1])
                yield from _around([lowered], carried[-1])


def _around(texts: Sequence[str], *wanted: str) -> Iterator[tuple[str, str]]:
    for text in texts:
        for one in wanted:
            if (at := text.find(one)) >= 0:
                yield one, text[max(0, at - 40) : at + len(one) + 20]
                return


def _carried(value: str) -> Iterator[str]:
    """In base64 at each place of a group, and in hex."""
    data = value.encode()
    for lead in range(3):
        letters = b64encode(bytes(lead) + data).decode()
        yield letters[lead + 1 if lead else 0 : 8 * (lead + len(data)) // 6]
    yield data.hex()


def _decoded(text: str) -> Iterator[str]:
    """The text, and what it says once ways of writing are undone, by one of them or by several."""
    yield text
    one = ((html.unescape,), (_unescaped,), (unquote,), (unquote_plus,))
    several = (
        (_unescaped, html.unescape),
        (_unescaped, html.unescape, unquote),
        (_unescaped, unquote_plus),
    )
    for ways in (*one, *several):
        read = text
        for way in ways * ROUNDS:
            changed = way(read)
            if changed != read:
                yield changed
            read = changed


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code, short, sign = found.groups()
        return _SIGNS.get(sign, sign) if sign else chr(int(code or short, 16))

    plain = _ESCAPE.sub(one, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def by_hand(value: str) -> list[str]:
    """Spellings that no script is needed for, and those of a page that hides what it says."""
    data = value.encode()
    ways = [value, quote(value), quote_plus(value), quote(quote(value)), json.dumps(value)]
    ways += [html.escape(value), json.dumps(json.dumps(value)), b64encode(data).decode()]
    ways += [b64encode(b"ann:" + data).decode(), data.hex(), data.hex().upper()]
    ways.append("".join(f"&#{ord(sign):06d};" for sign in value))
    ways.append("".join(f"&#x{ord(sign):x};" for sign in value))
    ways.append("".join(f"%{byte:02x}" for byte in data))
    if all(sign <= "\uffff" for sign in value):
        ways.append("".join(f"\\u{ord(sign):04x}" for sign in value))
    return ways


class Echoing:
    """A server whose pages say the values of a batch in all ways, in all places."""

    def __init__(self, batches: Sequence[Sequence[str]]) -> None:
        self.batches = batches
        self.server = Server(self._answer, "127.0.0.1", 0)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def _answer(self, request: Request) -> Answer:
        if request.path == "/private":
            return Answer(b"no", 401, headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        _, place, number, *_ = [*request.path.split("/"), "", ""]
        if not number.removesuffix(".xml").isdigit():
            return Answer(b"", 404)
        batch = self.batches[int(number.removesuffix(".xml"))]
        if place == "map":
            page = f"http://{self.host}/echo/{number.removesuffix('.xml')}"
            sites = f"<url><loc>{page}?p={quote(batch[0])}</loc></url><url><loc>{page}</loc></url>"
            return Answer(f"<urlset>{sites}</urlset>".encode(), content_type="text/xml")
        if place == "moved":
            return Answer(b"", 302, headers=(("Location", f"/echo/{number}?{quote(batch[0])}"),))
        heads = [way for value in batch[:8] for way in (quote(value), b64encode(value.encode()))]
        told = [one.decode() if isinstance(one, bytes) else one for one in heads]
        headers = tuple((f"X-Echo-{at}", one) for at, one in enumerate(told))
        status = 500 if place == "broken" else 200
        return Answer(_page(batch, int(number)).encode(), status, HTML, headers)


def _in_turn(ways: list[str], at: int, count: int) -> list[str]:
    return [ways[(at * count + one) % len(ways)] for one in range(min(count, len(ways)))]


def _page(batch: Sequence[str], number: int) -> str:
    values = json.dumps(batch).replace("<", "\\u003c")
    seen = batch[:PICTURED]
    pictured = "".join(
        f"<p>{html.escape(way)}</p>"
        for at, value in enumerate(seen)
        for way in _in_turn(by_hand(value), draw_of(batch) + at, IN_VIEW // len(seen))
    )
    rest = "".join(
        f'<li title="{html.escape(way)}">{html.escape(way)}</li>'
        for at, value in enumerate(batch[PICTURED:])
        for way in _in_turn(by_hand(value), at, AT_ONCE)
    )
    return f"""<!doctype html><meta charset=utf-8><title>It is {html.escape(batch[0])}</title>
<meta name=description content="{html.escape(batch[1])}">
<style>*{{font:7px/8px monospace;margin:0}}
p{{height:8px;white-space:nowrap;overflow:hidden}}</style>
<h1>It stays</h1>{pictured}<input id=typed><b id=echo></b><a href="/moved/{number}">moved</a>
<a href="/echo/{number}?q={quote(batch[2])}#{quote(batch[3])}">
{html.escape(batch[2])}</a>
<a href="/broken/{number}">broken</a><ul>{rest}</ul><pre id=made></pre><script>
const values = {values}, make = {MAKE};
const some = (one, at) => one.filter((_, way) => (way + at) % 20 == 0).join("\\n");
const made = make(values).map(some);
document.querySelector("#made").textContent = made.join("\\n");
for (const [at, value] of values.entries()) {{
  console.log(value, encodeURI(value)); localStorage["k" + at] = value;
  fetch("/x?p=" + encodeURIComponent(value), {{headers: {{"X-It": btoa(escape(value))}}}})
    .catch(() => 0);
}}
typed.oninput = () => {{ echo.textContent = typed.value; console.log(typed.value); }};
history.replaceState(null, "", "#" + values[4]);
</script>"""
