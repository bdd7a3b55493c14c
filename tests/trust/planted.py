"""The secrets that the rigs plant, each of another kind, and every way in which one is spelt."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import quote, quote_plus

HEAD: Final = "MIIEpAIBAAKCAQEAx7"
PLANTED: Final[Mapping[str, str]] = {
    "password of the address": "Uv4h&Wk9s<Qz2m",
    "token of the address": "Tk8rBq5xNw3jLd",
    "token of the fragment": "Fg6yHc1vKp7tSe",
    "signature of a link": "Sg3nJx8bVd5kRw",
    "token of a redirect": "Rd9mPz4cGf2hYt",
    "Authorization of a text": "Ah7wEk3qLs9vXn2b",
    "cookie of the server": "Ck5tMj8yDf4gQr1p",
    "typed password": "Pw5&k<T9\"q'é%2b",
    "typed text": "Tx1vFz7nRb4jWm8k",
    "secret of the environment": "En9hYc3tQx6wDs2g",
    "variable of a run": "Va4mLb8rKf1pZv7n",
    "field of a page": "Fi7jWq2gXd5yTs9c",
    "proxy password": "Px6kHn3vBm9wCr1z",
    "reason of a force": "Fo8tGp4bJy7qMv2x",
    "words of a task": "Wo1rZd6hNk9sLc5f",
    "cookie of a profile": "Kp8sWm3xTz6qLn1v",
    "stored token of a profile": "Ls4dRv9kYb2nGh7c",
    "cookie set by a page": "Nw6fJc1tXm8pQz5s",
    "cookie set by a script": "Js9vBq4wFk2rHd7x",
    "password of the upstream proxy": "Up2gHy7rBk4vMd9w",
    "password of the default proxy": "Dp5nCt8zWj3xSf6q",
    "header by reference": "Hd7kPb3mVs9yRg2t",
    "AWS key": "AKIAZQ7XW4PLM2K9RTVB",
    "GitHub token": "ghp_R8vQ2mXk7LpW4tZbN6cJ1hYdF9sGq3eTuA0x",
    "Slack token": "xoxb-482910573926-7736251904418-QzRtVbNmKpLsWx",
    "signed token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4NzQ5MiJ9.Zk3vQx8mLp2wRt6y",
    "private key": f"{HEAD}Qw9kLmZ2Vb5nRt8yPs3dGh6jXc1fKe4u",
}
# What pages publish that looks like a secret and is none: it has to be kept as it stands there.
PUBLISHED: Final[Mapping[str, str]] = {
    "title": "Notes, api_key=Ti6gRp1mHy8cBw4v",
    "header": "Authorization: Bearer Pu2hWk7tZx5qNb9d",
    "cookie": "Cookie: session=Cr2bNv7kWx9hZs6d; theme=dark",
    "console": "password=Co3xKd9tVn5jLq7f",
    "error text": "Error: token=Er8cSh2wGm6zPb4y is wrong",
    "directive": "AuthType Basic AuthName",
    "comparison": "password1 != password2: raise X",
    "form of an address": "ssh://[user@]host",
    "mention of a key": "It begins with -----BEGIN PRIVATE KEY----- and a line end.",
}
NEVER_TOLD: Final = ("events.jsonl", "meta.json", ".log")  # ours: nothing that looks like one
# Those that stand in texts without a word before them that would tell what they are.
BARE: Final = ("AWS key", "GitHub token", "Slack token", "signed token", "private key")


@dataclass(frozen=True)
class Secret:
    """One planted secret under all its spellings."""

    name: str
    value: str

    @cached_property
    def spellings(self) -> frozenset[bytes]:
        raw, escaped = self.value, json.dumps(self.value)[1:-1]
        plain = {raw, raw[::-1], quote(raw, safe=""), quote_plus(raw), html.escape(raw), escaped}
        plain |= {"".join(f"\\u{ord(sign):04x}" for sign in raw), raw.encode().hex()}
        plain |= {"".join(f"&#{ord(sign)};" for sign in raw)}
        plain |= {"".join(f"%{byte:02x}" for byte in raw.encode())}
        found = {one.casefold().encode() for one in plain}
        found |= {raw.casefold().encode("utf-16-le"), raw.casefold().encode("latin-1", "replace")}
        return frozenset(found | {one.lower() for one in self._base64()})

    def _base64(self) -> Iterator[bytes]:
        """What base64 makes of it wherever it stands in a longer text."""
        for before in range(3):
            data = base64.b64encode(bytes(before) + self.value.encode()).rstrip(b"=")
            whole = data[-(-before * 8 // 6) : len(data) - 1]
            yield whole
            yield whole.replace(b"+", b"-").replace(b"/", b"_")


SECRETS: Final = tuple(Secret(name, value) for name, value in PLANTED.items())
_PNG: Final = b"\x89PNG\r\n\x1a\n"


def leaks_in(data: bytes, but: Iterable[str] = ()) -> set[str]:
    """The names of the secrets that stand in `data`, packed or not."""
    spared = frozenset(but)
    found: set[str] = set()
    for part in unpacked(data):
        level = part.lower()
        for secret in SECRETS:
            if secret.name not in spared and any(one in level for one in secret.spellings):
                found.add(secret.name)
    return found


_HARMLESS: Final = frozenset({"mention of a key", "form of an address", "comparison"})


def published_in(data: bytes) -> set[str]:
    """The names of what pages published that stands in `data`, packed or not."""
    parts = list(unpacked(data))
    return {
        name for name, text in PUBLISHED.items() if any(text.encode() in part for part in parts)
    }


def unpacked(data: bytes, depth: int = 3) -> Iterator[bytes]:
    """`data`, and whatever is packed in it: gzip, zip (xlsx, traces), texts of pictures."""
    yield data
    if depth and data[:2] == b"\x1f\x8b":
        yield from unpacked(gzip.decompress(data), depth - 1)
    if depth and data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as box:
            for name in box.namelist():
                yield name.encode()
                yield from unpacked(box.read(name), depth - 1)
    if data.startswith(_PNG):
        for kind in re.finditer(rb"(?:zTXt|iTXt)([^\0]{1,79})\0", data):
            try:
                yield zlib.decompressobj().decompress(data[kind.end() + 1 : kind.end() + 65536])
            except zlib.error:
                continue


@dataclass
class Walk:
    """A walk over every sink: what was found where, and how much was looked at."""

    found: list[str] = field(default_factory=list)
    kept: dict[str, set[str]] = field(default_factory=dict)  # sink -> what of PUBLISHED is in it
    looked: dict[str, int] = field(default_factory=dict)

    def look(self, sink: str, data: bytes, but: Iterable[str] = ()) -> None:
        """Search one text or file."""
        self.looked[sink] = self.looked.get(sink, 0) + 1
        for name in sorted(leaks_in(data, but)):
            self.found.append(f"the {name} stands in {sink}")
        self.kept.setdefault(sink, set()).update(published_in(data))

    def lost(self, sink: str) -> list[str]:
        """What pages published and this sink does not have."""
        names = sorted(PUBLISHED.keys() - self.kept.get(sink, set()))
        return [f"the published {name} was lost in {sink}" for name in names]

    def folder(self, sink: str, folder: Path, spared: Mapping[str, Iterable[str]]) -> None:
        """Search every file below `folder` and every name; `spared` by the end of its path."""
        for path in sorted(folder.rglob("*")):
            here = path.relative_to(folder).as_posix()
            self.look(f"{sink} (names)", here.encode())
            if path.is_file() and not path.is_symlink():
                but = [one for end, names in spared.items() if here.endswith(end) for one in names]
                before = len(self.found)
                data = path.read_bytes()
                self.look(sink, data, but)
                if here.endswith(NEVER_TOLD):
                    told = sorted(published_in(data) - _HARMLESS)
                    self.found += [f"the published {name} stands in {sink}" for name in told]
                self.found[before:] = [f"{one}: {here}" for one in self.found[before:]]
