"""Reader of one sitemap file: XML, index, RSS, Atom or plain text, optionally gzipped.

The file is untrusted: a document type, and so any entity, is rejected, and bytes, elements and
entries are limited. The readable part of a damaged file counts; the damage is reported.
"""

from __future__ import annotations

import codecs
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, Protocol
from xml.parsers import expat

from engine.model.addresses import MAX_URL_CHARS, address_of
from engine.model.display import display
from engine.pages.documents import charset_named

# Recovery of XML beyond a parser's error: a bare `&`, unclosed tags, a missing end.
#
# Only elements with their attributes, and text, are read. Entities are limited to the five of XML
# itself and to numbers, so nothing expands; the text is read once, and the buffer is limited to
# the length of one tag.

MAX_TAG: Final = 1024 * 1024  # an open tag is scanned again with every piece
LONGEST: Final = len("&#x10FFFF;")  # of a reference; its end may be in the next piece
_NAME: Final = r"[^\W\d][\w:.-]*+"
_GIVEN: Final = r"(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+"
_TAG: Final = re.compile(rf"<(?P<close>/?)(?P<name>{_NAME})(?P<given>{_GIVEN})>")
# An incomplete tag, maybe cut inside a value.
_OPEN: Final = re.compile(rf"</?(?:{_NAME}{_GIVEN}(?:\"[^\"<]*+|'[^'<]*+)?)?\Z")
_ATTRIBUTE: Final = re.compile(rf"({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_REFERENCE: Final = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# Skipped constructs: the start maps to the end.
_APART: Final = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">"}
_DOCTYPE: Final = "<!doctype"


class Hears(Protocol):
    """Handler of elements; it ends the reading by raising an exception."""

    def on_start(self, name: str, attributes: dict[str, str]) -> None: ...

    def on_text(self, text: str) -> None: ...

    def on_end(self, name: str) -> None: ...

    def on_doctype(self) -> None: ...


class NoEnd(Exception):
    """A tag, a comment or the like exceeds the maximum length."""


def recover(pieces: Iterable[str], hears: Hears) -> None:
    """Report every element to the handler, also end tags without a start tag.

    Raises:
        NoEnd: the rest cannot be parsed.
    """
    left = ""
    for piece in pieces:
        text = left + piece
        left = text[_told(text, hears) :]
        if len(left) > MAX_TAG:
            raise NoEnd


def _told(text: str, hears: Hears) -> int:
    """Report the complete elements in `text`; return the start of the rest."""
    at = 0
    while (found := text.find("<", at)) >= 0:
        if found > at:
            hears.on_text(plain(text[at:found]))
        at = found
        if tag := _TAG.match(text, at):
            _tell(tag, hears)
            at = tag.end()
        elif text.startswith(("<!", "<?"), at):
            end = _passed(text, at, hears)
            if end is None:
                return at
            at = end
        elif _OPEN.match(text, at):
            return at
        else:
            hears.on_text("<")  # not a tag
            at += 1
    begun = text.rfind("&", max(at, len(text) - LONGEST))
    end = len(text) if begun < 0 else begun
    if end > at:
        hears.on_text(plain(text[at:end]))
    return end


def _tell(tag: re.Match[str], hears: Hears) -> None:
    name = tag["name"]
    if tag["close"]:
        hears.on_end(name)
        return
    given = tag["given"]
    pairs = _ATTRIBUTE.findall(given) if "=" in given else ()
    hears.on_start(name, {key: plain(one or other) for key, one, other in pairs})
    if given.endswith("/"):
        hears.on_end(name)


def _passed(text: str, at: int, hears: Hears) -> int | None:
    """Return the end of the skipped construct at `at`; None if incomplete."""
    if len(text) - at < len(_DOCTYPE):
        return None
    if text[at : at + len(_DOCTYPE)].lower() == _DOCTYPE:
        hears.on_doctype()
    begin = next(one for one in _APART if text.startswith(one, at))
    end = text.find(_APART[begin], at + len(begin))
    if end < 0:
        return None
    if begin == "<![CDATA[":
        hears.on_text(text[at + len(begin) : end])
    return end + len(_APART[begin])


def plain(text: str) -> str:
    """Resolve the references in `text`; a bare `&` is kept."""
    return _REFERENCE.sub(_meant, text) if "&" in text else text


def _meant(found: re.Match[str]) -> str:
    if found[1]:
        return _NAMED[found[1]]
    code = int(found[2]) if found[2] else int(found[3], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


MAX_BYTES = 50 * 1024 * 1024  # of one file, unpacked, as the sitemap protocol says
MAX_ENTRIES = 50_000  # of one file, likewise
MAX_ELEMENTS = 1_000_000  # of one file: 20 for each entry, extensions included
MAX_MEMBERS = 1_000  # of a gzip file: each costs time, and a file of empty ones is endless
MAX_NESTED = 32
_PIECE = 64 * 1024
_GZIP = b"\x1f\x8b"
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?:T[\d:.]{4,18}(?:Z|[+-]\d\d:?\d\d)?)?)?)?")

WITHOUT_END = "it has a tag without end"
NO_ADDRESS = "it has a line that is no address"
NOT_FIRST = "something else stands before it"
_NO_END = {
    expat.errors.codes[name]
    for name in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
_FAR_DOWN = 4_096  # characters; a page that displays a sitemap's markup has more before it
_ROOT = re.compile(r"<(?:[\w.-]{1,40}:)?(?:urlset|sitemapindex)[\s>]")

Kind = Literal["pages", "index"]


class Entry(NamedTuple):
    """One entry of a sitemap: the address as written, and its change date."""

    loc: str
    lastmod: str = ""


class Listing(NamedTuple):
    """Entries of a file: pages, or nested sitemaps. `problem` explains an incomplete list."""

    kind: Kind
    entries: list[Entry]
    problem: str = ""


class NotASitemap(ValueError):
    """The file is another type or too damaged; the message describes the cause."""


class _Damaged(Exception):
    """The file ends here: cut off, too large, or of another format."""


class _Shape(NamedTuple):
    """Location of the addresses in a format: path of an entry, and its fields."""

    kind: Kind
    entry: tuple[str, ...]
    loc: str
    lastmod: str


_SHAPES = {
    "urlset": _Shape("pages", ("url",), "loc", "lastmod"),
    "sitemapindex": _Shape("index", ("sitemap",), "loc", "lastmod"),
    "rss": _Shape("pages", ("channel", "item"), "link", ""),
    "feed": _Shape("pages", ("entry",), "link", "updated"),
}


def read_sitemap(body: bytes) -> Listing:
    """Read one file; call it on a worker thread, as it takes seconds of CPU.

    Raises:
        NotASitemap: the file is not a sitemap.
    """
    pieces = _texts(_unpacked(body))
    try:
        first = _beginning(pieces)
    except _Damaged as damaged:
        raise NotASitemap(str(damaged)) from damaged
    if first[:14].lower().startswith(("<!doctype html", "<html")):
        raise NotASitemap("it is a web page")
    whole = itertools.chain((first,), pieces)
    if first.startswith("<"):
        return _read_xml(whole, body)
    return _recovered(body, NOT_FIRST) if _hidden(body) else _read_lines(whole)


def _beginning(pieces: Iterator[str]) -> str:
    for piece in pieces:
        if begun := piece.lstrip("\ufeff \t\r\n"):
            return begun
    raise _Damaged("it is empty")


def _unpacked(body: bytes) -> Iterator[bytes]:
    """Unpack the file in pieces, up to the size limit of a sitemap."""
    total = 0
    packed = body.startswith(_GZIP)
    for piece in _gunzipped(body) if packed else _cut(body):
        total += len(piece)
        if total > MAX_BYTES:
            raise _Damaged("it is larger than 50 MiB")
        yield piece


def _cut(body: bytes) -> Iterator[bytes]:
    return (body[at : at + _PIECE] for at in range(0, len(body), _PIECE))


def _gunzipped(body: bytes) -> Iterator[bytes]:
    """Unpack piece by piece, so that a gzip bomb is never in memory."""
    members, unpacker = 1, zlib.decompressobj(wbits=31)
    for part in _cut(body):
        packed = part
        while packed:
            if unpacker.eof:
                members, unpacker = members + 1, zlib.decompressobj(wbits=31)
            if members > MAX_MEMBERS:
                raise _Damaged("its gzip data is cut into too many parts")
            try:
                yield unpacker.decompress(packed, _PIECE)
            except zlib.error as broken:
                raise _Damaged("its gzip data is damaged") from broken
            packed = unpacker.unconsumed_tail or unpacker.unused_data.lstrip(b"\0")
    yield unpacker.flush()
    if not unpacker.eof:
        raise _Damaged("its gzip data ends too early")


def _texts(pieces: Iterator[bytes]) -> Iterator[str]:
    """Decode the pieces by mark or declaration, else as UTF-8; bad bytes become U+FFFD."""
    first = next(pieces, b"")
    decoder = codecs.getincrementaldecoder(_charset(first))("replace")
    yield decoder.decode(first)
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", True)


def _charset(first: bytes) -> str:
    for mark, name in _MARKS:
        if first.startswith(mark):
            return name
    declared = _DECLARED.match(first)
    label = declared[1].decode("ascii", "replace") if declared else ""
    # A declaration that is readable byte by byte rules out UTF-16, whatever its value.
    return "utf-8" if label.lower().startswith("utf-16") else charset_named(label) or "utf-8"


def _read_xml(pieces: Iterable[str], body: bytes) -> Listing:
    """Parse the XML; a damaged file is read again by the recovery parser."""
    reader, problem = _Reader(), ""
    try:
        _parse(pieces, reader)
    except _Damaged as damaged:
        problem = str(damaged)
        if reader.shape is None and _hidden(body):
            return _recovered(body, NOT_FIRST)
    except expat.ExpatError as broken:
        problem = f"it is damaged at line {broken.lineno}: {expat.ErrorString(broken.code)}"
        if broken.code in _NO_END:
            problem = "it ends too early"
        return _recovered(body, problem, len(reader.entries))
    if reader.shape is None:
        raise NotASitemap(problem or "it is no sitemap")
    return Listing(reader.shape.kind, reader.entries, problem)


def _parse(pieces: Iterable[str], reader: _Reader) -> None:
    """Report every element to `reader`. Raises ExpatError, _Damaged."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.on_start
    parser.EndElementHandler = reader.on_end
    parser.CharacterDataHandler = reader.on_text
    parser.StartDoctypeDeclHandler = reader.on_doctype
    parser.EntityDeclHandler = reader.on_doctype
    fed = 0
    for piece in pieces:
        data = piece.encode()
        parser.Parse(data, False)
        fed += len(data)
        if fed - parser.CurrentByteIndex > MAX_TAG:
            raise _Damaged(WITHOUT_END)
    parser.Parse(b"", True)


def _recovered(body: bytes, problem: str, before: int = 0) -> Listing:
    """Read a file after `problem` ended the parser, which had found `before` entries."""
    reader = _Reader()
    nested = _Nested(reader)
    try:
        recover(_texts(_unpacked(body)), nested)
        nested.close()
    except _Damaged as damaged:
        problem = f"{problem}; {damaged}"
    except NoEnd:
        problem = f"{problem}; {WITHOUT_END}"
    if reader.shape is None:
        raise NotASitemap(problem)
    if more := len(reader.entries) - before:
        problem = f"{problem}; entries that were read all the same: {more:,}"
    return Listing(reader.shape.kind, reader.entries, problem)


def _hidden(body: bytes) -> bool:
    """Return whether other text precedes a sitemap, such as a warning of its generator."""
    return _ROOT.search(next(_texts(_unpacked(body)))[:_FAR_DOWN]) is not None


class _Reader:
    """Reader of four formats by their elements; rejects expansion and external references."""

    def __init__(self) -> None:
        self.shape: _Shape | None = None
        self.entries: list[Entry] = []
        self._prefix = ""
        self._path: list[str] = []
        self._loc: list[str] = []
        self._lastmod: list[str] = []
        self._into: list[str] | None = None
        self._elements = 0

    def plain(self, name: str) -> str:
        """Remove the prefix of the sitemap's own elements from a name."""
        return name.removeprefix(self._prefix)

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS or len(self._path) >= MAX_NESTED:
            raise _Damaged("it has more elements than a sitemap may have")
        if self.shape is None:
            self._prefix, name = _root(name)
            self.shape = _SHAPES[name]
        name = self.plain(name)
        self._path.append(name)
        self._into = self._place(name)
        if self._into is self._loc and attributes.get("rel", "alternate") == "alternate":
            self._loc.append(attributes.get("href", ""))  # Atom's; other formats have none

    def _place(self, name: str) -> list[str] | None:
        """Return the buffer for the text of the current element."""
        shape = self.shape
        if shape is None or tuple(self._path[1:-1]) != shape.entry:
            return None
        if name == shape.loc:
            return self._loc
        return self._lastmod if name == shape.lastmod else None

    def on_text(self, text: str) -> None:
        if self._into is not None and len(self._into) < 64:
            self._into.append(text[: MAX_URL_CHARS + 1])

    def on_end(self, name: str) -> None:
        del name
        self._into = None
        self._path.pop()
        if self.shape is None or len(self._path) != len(self.shape.entry):
            return
        loc, lastmod = "".join(self._loc).strip(), "".join(self._lastmod).strip()
        self._loc.clear()
        self._lastmod.clear()
        if not loc:
            return
        if len(self.entries) >= MAX_ENTRIES:
            raise _Damaged(f"it has more than {MAX_ENTRIES:,} entries")
        self.entries.append(Entry(loc, lastmod if _DATE.fullmatch(lastmod) else ""))

    def on_doctype(self, *_: object) -> None:
        raise _Damaged("it declares a document type, which is not accepted")

    def cut(self) -> None:
        """Discard the current address, which may be incomplete without its end tag."""
        if self._into is not None:
            self._into.clear()


class _Nested:
    """Adapter for elements without end tags.

    An open element ends at the next one of the same name, and an end tag without a start tag is
    ignored. Text before the root is skipped.
    """

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._open: list[str] = []

    def on_start(self, name: str, attributes: dict[str, str]) -> None:
        shape, plain = self._reader.shape, self._reader.plain(name)
        if shape is None:
            plain = name.rpartition(":")[2]
            if plain not in (*_SHAPES, "html"):
                return
        elif plain == shape.entry[-1] and plain in self._open:
            self._close(plain)
        elif self._open and self._open[-1] in (shape.loc, shape.lastmod):
            self._close(self._open[-1])  # these contain text only
        self._reader.on_start(name, attributes)
        self._open.append(plain)

    def on_text(self, text: str) -> None:
        self._reader.on_text(text)

    def on_end(self, name: str) -> None:
        if (plain := self._reader.plain(name)) in self._open:
            self._close(plain)

    def on_doctype(self) -> None:
        self._reader.on_doctype()

    def close(self) -> None:
        """Close all open elements at the end of the file."""
        self._reader.cut()
        while self._open:
            self._close(self._open[-1])

    def _close(self, plain: str) -> None:
        closed = ""
        while closed != plain:
            closed = self._open.pop()
            self._reader.on_end(closed)


def _root(name: str) -> tuple[str, str]:
    """Return the root's prefix with its colon, and its plain name."""
    prefix, colon, plain = name.rpartition(":")
    if plain in _SHAPES:
        return prefix + colon, plain
    if plain == "html":
        raise _Damaged("it is a web page")
    raise _Damaged(f"it is XML, but of another kind (<{display(name, 40)}>)")


def _read_lines(pieces: Iterable[str]) -> Listing:
    """Read a plain list with one address on each line; other lines are reported."""
    entries: list[Entry] = []
    problem, left = "", ""
    try:
        for piece in pieces:
            *lines, left = (left + piece).splitlines(keepends=True) or [""]
            for line in lines:
                problem = _take_line(line, entries) or problem
            if len(left) > MAX_URL_CHARS:
                _take_line(left[:MAX_URL_CHARS], entries)
                raise _Damaged(NO_ADDRESS)
        problem = _take_line(left, entries) or problem
    except _Damaged as damaged:
        problem = str(damaged)
    return Listing("pages", entries, problem)


def _take_line(line: str, entries: list[Entry]) -> str:
    """Store the address in the line; return the problem of another line."""
    line = line.strip()
    if not line:
        return ""
    if address_of(line) is None:
        if not entries:
            raise NotASitemap("it is neither XML nor a list of addresses")
        return NO_ADDRESS
    if len(entries) >= MAX_ENTRIES:
        raise _Damaged(f"it has more than {MAX_ENTRIES:,} entries")
    entries.append(Entry(line))
    return ""
