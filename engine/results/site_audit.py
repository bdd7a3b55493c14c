"""Reports about the pages of a crawl from what it stored: broken links, redirects, duplicates.

Two passes over the units, in the memory of one number or short text for each page and link target:
the first collects what each page is, the second who links to whom. An audit of a running crawl is
one of the pages so far. Cells come from stored, redacted records and are safe to show as text only.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from engine.ledger.json_stream import Damaged
from engine.ledger.reader import LedgerReader
from engine.model.addresses import address_of
from engine.model.display import display
from engine.model.errors import EngineError, InvalidArguments, Problem, TaskUnreadable
from engine.model.kind_traits import traits_of
from engine.model.records import Status, TaskRecord, Unreadable
from engine.model.tally import LIMITS
from engine.results.findings import Findings
from engine.results.units import float_of, integer_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Hashes: TypeAlias = NDArray[np.uint32]

SLOW_RESPONSE_MS: Final = 1_000  # from the request to the headers
SLOW_LOAD_MS: Final = 3_000  # and until the page is read
LARGE_BYTES: Final = 1024 * 1024  # of the document
SIMILAR: Final = 0.9  # share of common word triples from which pages are near-duplicates
MOST_ROWS: Final = 200_000  # of one report
PROGRESS_S: Final = 0.1  # between two reports of progress
_MOST_TARGETS: Final = 500_000  # link texts whose page is remembered
_MOST_CHARS: Final = 2_048  # of one cell
_MIN_WORDS: Final = 20  # of a near-duplicate; shorter pages are alike by chance
_MOST_WORDS: Final = 10_000  # that are compared
# Failures of a page by which its address is broken for a visitor too. Others are ours (`blocked`)
# or the site's wish (robots.txt), or no failure for a visitor (a download, a picture).
_BROKEN: Final = frozenset(
    {"http", "timeout", "dns", "connection", "network", "protocol", "tls", "certificate"}
    | {"redirects", "robots_unread"}
)
_CUT_COUNTS: Final = ("links_too_deep", "links_over_limit")  # of a summary: links left out

Cell = str | int | float | None


class ReportColumn(NamedTuple):
    """Column of a report; `width` in characters. Its title is the message `audit.column.<name>`."""

    name: str
    width: int
    is_number: bool = False


class ReportKind(NamedTuple):
    """A report: its title is the message `audit.<name>`, its meaning `audit.<name>.about`."""

    name: str
    columns: tuple[ReportColumn, ...]


_PAGE = ReportColumn("page", 50)
_PROBLEM = ReportColumn("problem", 36)
_TITLE = ReportColumn("title", 40)
_LINKED = ReportColumn("linked_from", 9, is_number=True)
REPORTS: Final = (
    ReportKind(
        "broken_links",
        (
            *(ReportColumn("target", 50), _PROBLEM, _PAGE, ReportColumn("text", 30)),
            *(ReportColumn("rel", 10), ReportColumn("by", 8)),
        ),
    ),
    ReportKind(
        "redirects",
        (
            ReportColumn("address", 50),
            ReportColumn("code", 8, is_number=True),
            ReportColumn("final", 50),
            ReportColumn("final_code", 8, is_number=True),
            ReportColumn("hops", 6, is_number=True),
            _LINKED,
        ),
    ),
    ReportKind(
        "duplicates",
        (_PAGE, ReportColumn("same_as", 50), ReportColumn("similarity_percent", 9, True), _TITLE),
    ),
    ReportKind("titles", (_PROBLEM, _TITLE, _PAGE)),
    ReportKind("descriptions", (_PROBLEM, ReportColumn("description", 50), _PAGE)),
    ReportKind(
        "slow",
        (_PAGE, ReportColumn("response_ms", 10, True), ReportColumn("load_ms", 10, True), _TITLE),
    ),
    ReportKind(
        "large",
        (_PAGE, ReportColumn("bytes", 10, True), ReportColumn("transferred_bytes", 10, True)),
    ),
    ReportKind("orphans", (_PAGE, _TITLE)),
    ReportKind(
        "links_in",
        (_PAGE, _LINKED, ReportColumn("links_out", 9, True), ReportColumn("depth", 6, True)),
    ),
)
REPORT_NAMES: Final = tuple(one.name for one in REPORTS)
_OF_LINKS: Final = frozenset({"broken_links", "redirects", "orphans", "links_in"})
REPORT_OF: Final[Mapping[str, ReportKind]] = {one.name: one for one in REPORTS}


class NoPagesToAudit(EngineError):
    """The task is no crawl, or has stored no page."""

    code = "no_pages_to_audit"
    title = "No pages to audit"
    sentence = "Task {task_id} has no pages of a site to report about."
    advice_text = "Reports are for crawls and sitemap crawls that have stored a page."


def searched(cells: Iterable[Cell]) -> str:
    """Return the case-folded text of a row, in which words are searched."""
    return "\n".join(cell for cell in cells if isinstance(cell, str)).casefold()


def matches(record: Mapping[str, Cell], words: Sequence[str]) -> bool:
    """Return whether the texts of a row contain every word; `words` are case-folded."""
    text = searched(record.values())
    return all(word in text for word in words)


class AuditStopped(Exception):
    """The caller stopped the audit."""


class Report(msgspec.Struct, frozen=True):
    """Rows of one report in its order; `beyond` counts those above the limit.

    `applies` is false where this crawl can have none: orphans need a sitemap or a list.
    """

    name: str
    rows: list[tuple[Cell, ...]]
    beyond: int = 0
    applies: bool = True

    @property
    def total(self) -> int:
        return len(self.rows) + self.beyond

    def records(self) -> Iterator[dict[str, Cell]]:
        """Yield each row by the names of its columns."""
        names = [column.name for column in REPORT_OF[self.name].columns]
        for row in self.rows:
            yield dict(zip(names, row, strict=True))


class Audit(msgspec.Struct, frozen=True):
    """All reports of one crawl.

    `pages` were read, of which `without_links` have no stored links and `without_facts` no facts,
    as older crawls: reports on these lack them; `lost` lines could not be read. `has_ended` tells
    that the crawl has ended COMPLETED, `is_limited` that a limit left pages out.
    """

    task_id: str
    status: str
    pages: int
    without_links: int
    without_facts: int
    lost: int
    has_ended: bool
    is_limited: bool
    reports: list[Report]

    def report(self, name: str) -> Report:
        """Return the report of this name, which is one of `REPORT_NAMES`."""
        return next(one for one in self.reports if one.name == name)

    def lacks(self, name: str = "") -> Iterator[tuple[str, int]]:
        """Yield the messages on what this report lacks, or any of them, each with its `count`."""
        if not self.has_ended:
            yield "audit.part", 0
        elif self.is_limited:
            yield "audit.limited", 0
        if self.without_links and (not name or name in _OF_LINKS):
            yield "audit.without_links", self.without_links
        if self.without_facts and name in ("", "descriptions"):
            yield "audit.without_facts", self.without_facts
        if self.lost:
            yield "audit.lost", self.lost


OnProgress = Callable[[int, int], None]  # bytes read of both passes, and bytes in total


def known_report(name: str) -> str:
    """Return the name if there is such a report; `-` may stand for `_`.

    Raises:
        InvalidArguments: it names the reports that there are.
    """
    found = name.replace("-", "_").casefold()
    if found not in REPORT_OF:
        message = f"'{display(name, 40)}' is no report (there are: {', '.join(REPORT_NAMES)})"
        raise InvalidArguments((Problem("report", "unknown_report", message),))
    return found


def audit(
    ledger: LedgerReader,
    task_id: str,
    stop: threading.Event,
    on_progress: OnProgress = lambda *_: None,
) -> Audit:
    """Compute every report of a crawl.

    Raises:
        NotATaskId, TaskNotFound, TaskUnreadable: there is nothing to read.
        NoPagesToAudit: it is no crawl, or has stored no page.
        AuditStopped: `stop` was set.
    """
    record = ledger.read(task_id)
    if isinstance(record, Unreadable):
        raise TaskUnreadable(task_id=record.task_id, reason=record.reason, path=record.path)
    if not traits_of(record.kind).crawls:
        raise NoPagesToAudit(task_id=task_id)
    findings = Findings(ledger, task_id, record.kind)
    site = _Site()
    try:
        for row in _watched(findings, 0, stop, on_progress):
            site.add(row)
        if not site.urls:
            raise NoPagesToAudit(task_id=task_id)
        again = _watched(findings, findings.size, stop, on_progress)
        for number, row in enumerate(again):
            site.add_links(number, row)
    except Damaged as error:
        reason = f"{findings.place}: {error}"
        raise TaskUnreadable(task_id=task_id, reason=reason, path=findings.place) from error
    on_progress(2 * findings.size, 2 * findings.size)
    site.lost = findings.lost
    return _audit(task_id, record, site, findings.head().get("summary"))


def _watched(
    findings: Findings, before: int, stop: threading.Event, on_progress: OnProgress
) -> Iterator[dict[str, Any]]:
    """Yield all units and report progress; `before` bytes were read in the first pass."""
    told_s = 0.0
    for row in findings.rows():
        if stop.is_set():
            raise AuditStopped
        if (now_s := time.monotonic()) - told_s > PROGRESS_S:
            told_s = now_s
            on_progress(before + findings.done, 2 * findings.size)
        yield row


def _audit(task_id: str, record: TaskRecord, site: _Site, summary: object) -> Audit:
    counts = summary if isinstance(summary, dict) else {}
    made = {
        "broken_links": site.broken_links(),
        "redirects": site.redirects(),
        "duplicates": site.duplicates(),
        "titles": site.named_alike(site.titles),
        "descriptions": site.named_alike(site.descriptions, only=site.has_facts),
        "slow": site.slow(),
        "large": site.large(),
        "orphans": site.orphans(),
        "links_in": site.links_in(),
    }
    reports = []
    for name in REPORT_NAMES:
        rows = list(made[name])
        applies = name != "orphans" or site.has_several_starts
        reports.append(Report(name, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS), applies))
    return Audit(
        task_id=task_id,
        status=record.status,
        pages=len(site.urls),
        without_links=site.without_links,
        without_facts=sum(
            html and not facts for html, facts in zip(site.is_page, site.has_facts, strict=True)
        ),
        lost=site.lost,
        has_ended=record.status == Status.COMPLETED,
        is_limited=counts.get("stopped_by") in LIMITS or any(map(counts.get, _CUT_COUNTS)),
        reports=reports,
    )


class _Site:
    """What the pages of a crawl are, one entry for each page by its number."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.finals: list[str] = []
        self.codes: list[int | None] = []
        self.titles: list[str] = []
        self.descriptions: list[str] = []
        self.problems: list[str] = []  # why the address is broken; empty: it is not
        self.is_page = bytearray()  # HTML that was answered, and is no copy by its own word
        self.has_facts = bytearray()
        self.depths: list[int | None] = []
        self.links_out: list[int | None] = []
        self.response_ms: list[float] = []
        self.load_ms: list[float] = []
        self.sizes: list[int] = []
        self.sent: list[int | None] = []
        self.chains: dict[int, tuple[int | None, int]] = {}  # first status, hops
        self.without_links = 0
        self.lost = 0  # lines that could not be read
        self._number_of: dict[str, int] = {}  # by the key of an address
        self._landed: dict[str, int] = {}
        self._linked = Counter[int]()  # pages that link to a page, by whichever address
        self._linked_as_asked = Counter[int]()  # to the address before its redirects
        # target, page that holds it, text, `rel`, and by what it was found
        self._broken: list[tuple[int, int, str, str, str]] = []
        self._targets: dict[str, tuple[int, int, bool] | None] = {}
        self._alike = _Alike()

    def add(self, row: Mapping[str, Any]) -> None:
        """Take one unit in the first pass. One without an address has empty entries."""
        number = len(self.urls)
        url = _text(row.get("url"))
        final = _text(row.get("final_url")) or url
        code, facts = integer_of(row.get("status")), row.get("facts")
        failed = row.get("error") is not None
        has_facts = isinstance(facts, dict)
        facts = facts if isinstance(facts, dict) else {}
        self.urls.append(url)
        self.finals.append(final)
        self.codes.append(code)
        self.titles.append(_text(row.get("title")))
        self.descriptions.append(_text(facts.get("description")))
        self.problems.append(_problem(row) if failed else "")
        self.depths.append(integer_of(row.get("depth")))
        self.links_out.append(None if failed else integer_of(row.get("links_found")))
        response_ms = float_of(row.get("response_ms")) or 0.0
        render_ms = float_of(row.get("render_ms")) or 0.0
        self.response_ms.append(response_ms)
        self.load_ms.append(response_ms + render_ms)
        self.sizes.append(integer_of(row.get("bytes")) or 0)
        self.sent.append(integer_of(row.get("transferred_bytes")))
        hops = row.get("redirects")
        if isinstance(hops, list) and hops:
            first = hops[0].get("status") if isinstance(hops[0], dict) else None
            self.chains[number] = (integer_of(first), len(hops))
        elif _key(final) != _key(url):
            self.chains[number] = (None, 1)
        key, landed = _key(url), _key(final)
        self._number_of.setdefault(key, number)
        is_first = self._landed.setdefault(landed, number) == number
        canonical = _text(facts.get("canonical"))
        own = not canonical or _key(canonical) in (landed, key)
        html = bool(url) and not failed
        self.has_facts.append(has_facts)
        self.is_page.append(html and is_first and own and _is_html(row, has_facts))
        if self.is_page[number]:
            self._alike.add(number, row.get("content"))

    def add_links(self, number: int, row: Mapping[str, Any]) -> None:
        """Take one unit in the second pass, in the same order."""
        if number >= len(self.urls):
            return  # the crawl goes on
        if self.is_page[number]:
            self._alike.check(number, row.get("content"))
        if row.get("error") is not None:
            return
        links = row.get("links")
        if not isinstance(links, list):
            self.without_links += bool(self.links_out[number])
            return
        seen: set[int] = set()
        for link in links:
            href = link.get("href") if isinstance(link, dict) else None
            found = self._target(href) if isinstance(href, str) else None
            if found is None:
                continue
            target, page, is_asked = found
            if self.problems[target]:
                text, rel, by = (_text(link.get(name)) for name in ("text", "rel", "by"))
                self._broken.append((target, number, text, rel, by))
            self._linked_as_asked[target] += is_asked
            if page not in seen and page != number:
                seen.add(page)
                self._linked[page] += 1

    def _target(self, href: str) -> tuple[int, int, bool] | None:
        """Return the address of a link and the page behind its redirects, by their numbers.

        The last is whether it is linked by the address that was asked for.
        """
        if href not in self._targets:
            if len(self._targets) >= _MOST_TARGETS:
                self._targets.clear()
            self._targets[href] = self._found(href)
        return self._targets[href]

    def _found(self, href: str) -> tuple[int, int, bool] | None:
        key = _key(href)
        # Without routes, a crawl takes an address and its routes for one page.
        for one in (key, key.partition("#")[0]):
            if (number := self._number_of.get(one)) is not None:
                return number, self._landed.get(_key(self.finals[number]), number), True
            if (number := self._landed.get(one)) is not None:
                return number, number, False
        return None

    @property
    def has_several_starts(self) -> bool:
        """Whether the crawl began at a sitemap or list, whose pages may have no link."""
        return sum(depth == 0 for depth in self.depths) > 1

    def broken_links(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the links to pages that failed, by target; a page that nobody links to alone."""
        linked = set()
        for target, number, text, rel, by in sorted(self._broken, key=lambda one: one[:2]):
            linked.add(target)
            marks = (rel or None, by or None)
            yield self.urls[target], self.problems[target], self.finals[number], text, *marks
        for number, problem in enumerate(self.problems):
            if problem and number not in linked:
                yield self.urls[number], problem, None, None, None, None

    def redirects(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the addresses that lead to another one, and how many pages link to them."""
        for number, (code, hops) in self.chains.items():
            linked = self._linked_as_asked[number]
            yield self.urls[number], code, self.finals[number], self.codes[number], hops, linked

    def duplicates(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the pages with the content of an earlier one, in groups of the first."""
        for first, number, share in sorted(self._alike.found):
            percent = int(share * 100)
            yield self.finals[number], self.finals[first], percent, self.titles[number] or None

    def named_alike(
        self, names: Sequence[str], only: Sequence[int] | None = None
    ) -> Iterator[tuple[Cell, ...]]:
        """Yield the pages without such a text, then those that share one."""
        pages = [
            number
            for number, is_page in enumerate(self.is_page)
            if is_page and (only is None or only[number])
        ]
        groups: dict[str, list[int]] = {}
        for number in pages:
            groups.setdefault(" ".join(names[number].casefold().split()), []).append(number)
        for number in groups.pop("", ()):
            yield "missing", None, self.finals[number]
        for group in groups.values():
            for number in group if len(group) > 1 else ():
                yield "duplicate", names[number], self.finals[number]

    def slow(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the slow pages, the slowest first."""
        slow = [
            number
            for number, (response_ms, load_ms) in enumerate(
                zip(self.response_ms, self.load_ms, strict=True)
            )
            if response_ms >= SLOW_RESPONSE_MS or load_ms >= SLOW_LOAD_MS
        ]
        for number in sorted(slow, key=lambda one: -self.load_ms[one]):
            times = (round(self.response_ms[number], 1), round(self.load_ms[number], 1))
            yield self.urls[number], *times, self.titles[number] or None

    def large(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the large documents, the largest first."""
        large = [number for number, size in enumerate(self.sizes) if size >= LARGE_BYTES]
        for number in sorted(large, key=lambda one: -self.sizes[one]):
            yield self.finals[number], self.sizes[number], self.sent[number]

    def orphans(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the start addresses that no page links to, if the crawl had several."""
        for number, depth in enumerate(self.depths) if self.has_several_starts else ():
            if depth == 0 and self.is_page[number] and not self._linked[number]:
                yield self.finals[number], self.titles[number] or None

    def links_in(self) -> Iterator[tuple[Cell, ...]]:
        """Yield each page with the number of pages that link to it, the fewest first."""
        pages = [number for number, is_page in enumerate(self.is_page) if is_page]
        for number in sorted(pages, key=self._linked.__getitem__):
            linked = self._linked[number]
            yield self.finals[number], linked, self.links_out[number], self.depths[number]


# Near-duplicates. A page is compared with the first page of each group only, so that a site of
# equal pages costs no more than another one. A fingerprint of 128 bits finds the candidate: one bit
# of the smallest hash in each of 128 classes of word triples (one-permutation MinHash), so that the
# share of equal bits grows with the share of common triples. The second pass compares the triples.

_BITS: Final = 128
_BAND_BITS: Final = 16
_MOST_OTHER_BITS: Final = 14  # pages with 90 % in common differ in 6.4 of 128 bits on average


class _Alike:
    """Groups of pages with equal or similar content."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int, float]] = []  # first page, page, share of common triples
        self._by_hash: dict[bytes, int] = {}
        self._bands: dict[tuple[int, int], list[int]] = {}
        self._prints: dict[int, int] = {}
        self._first_of: dict[int, int] = {}
        self._firsts: set[int] = set()
        self._triples: dict[int, Hashes] = {}

    def add(self, number: int, content: object) -> None:
        """Compare a page with the earlier ones."""
        words = _words(content)
        if not words:
            return
        digest = blake2b(b" ".join(words), digest_size=16).digest()
        first = self._by_hash.setdefault(digest, number)
        if first != number:
            self.found.append((first, number, 1.0))
            return
        if len(words) < _MIN_WORDS:
            return
        found = _print_of(_triples(words))
        near = min(self._candidates(found), default=None)
        if near is not None:
            self._first_of[number] = near[1]
            self._firsts.add(near[1])
            return
        self._prints[number] = found
        for band in _bands(found):
            self._bands.setdefault(band, []).append(number)

    def check(self, number: int, content: object) -> None:
        """Compare the words of a page with those of its candidate, which comes before it."""
        if number in self._firsts:
            self._triples[number] = _triples(_words(content))
        first = self._first_of.get(number)
        if first is None or first not in self._triples:
            return
        these = set(_triples(_words(content)).tolist())
        those = set(self._triples[first].tolist())
        share = len(these & those) / max(1, len(these | those))
        if share >= SIMILAR:
            self.found.append((first, number, share))

    def _candidates(self, found: int) -> Iterator[tuple[int, int]]:
        """Yield the number of other bits, and the page, of the pages with a band in common."""
        near = chain.from_iterable(self._bands.get(band, ()) for band in _bands(found))
        for number in set(near):
            other = (found ^ self._prints[number]).bit_count()
            if other <= _MOST_OTHER_BITS:
                yield other, number


def _words(content: object) -> list[bytes]:
    """Return the words of a page's content; of `structured`, those of its blocks."""
    if isinstance(content, str):
        text = content
    elif isinstance(content, dict):
        text = " ".join(_texts(content.get("blocks")))
    else:
        return []
    return text.encode("utf-8", "replace").split()


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 8 and isinstance(value, list):
        for one in value:
            yield from _texts(one, depth + 1)
    elif depth < 8 and isinstance(value, dict):
        for name, one in value.items():
            if name != "type":
                yield from _texts(one, depth + 1)


def _triples(words: Sequence[bytes]) -> Hashes:
    """Return hashes of three words in a row."""
    import numpy as np  # takes longer than all the rest of `octask`

    words = words[:_MOST_WORDS]
    ones = map(crc32, words)
    twos = map(crc32, words[1:], ones)
    return np.fromiter(map(crc32, words[2:], twos), np.uint32)


def _print_of(triples: Hashes) -> int:
    """Return the fingerprint; an empty class has the bit of the next one that is not."""
    import numpy as np

    least = np.full(_BITS, np.iinfo(np.uint32).max, np.uint32)
    classes = triples % _BITS
    np.minimum.at(least, classes, triples)
    taken = np.unique(classes)
    nearest = taken[np.searchsorted(taken, np.arange(_BITS)) % len(taken)]
    bits = least[nearest] // _BITS & 1
    return int.from_bytes(np.packbits(bits.astype(np.uint8)).tobytes())


def _bands(found: int) -> Iterator[tuple[int, int]]:
    for at in range(0, _BITS, _BAND_BITS):
        yield at, found >> at & (1 << _BAND_BITS) - 1


def _key(url: str) -> str:
    """Return by what two spellings of an address are one; the text itself if it is no address."""
    address = address_of(url)
    return url if address is None else address.own.key


def _problem(row: Mapping[str, Any]) -> str:
    """Return why a failed page is broken for a visitor, such as `HTTP 404`; else ""."""
    error, code = row.get("error"), row.get("error_code")
    if isinstance(error, Mapping):  # another program's
        error = error.get("message")
    said = display(error, 200) if isinstance(error, str) else ""
    if isinstance(code, str):
        return (said or code) if code in _BROKEN else ""
    return said if said.startswith("HTTP ") else ""


def _is_html(row: Mapping[str, Any], has_facts: bool) -> bool:
    """Return whether a page is HTML: older records do not say, but other documents have no link."""
    return has_facts or bool(row.get("links_found")) or bool(row.get("title"))


def _text(value: object) -> str:
    return value[:_MOST_CHARS] if isinstance(value, str) else ""
