"""The arguments of each kind as options, with the help that a person reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import click

CRAWL: Final[Mapping[str, str]] = {
    "urls": "A further address to begin at (again for more).",
    "max_pages": "Stop after so many pages (1 to 1,000,000; 20, of a sitemap 50).",
    "max_depth": "Follow links so deep (0 to 100; 2).",
    "username": "Who logs in, where the site asks with HTTP authentication.",
    "password": "env:NAME, the variable that holds the password; never the password itself.",
    "scope": "Only addresses that match this pattern (the start's origin).",
    "include_patterns": "Only addresses that match one of these patterns (again for more).",
    "exclude_patterns": "No address that matches one of these patterns (again for more).",
    "fragments": "ignore, or routes: addresses with #/ or #! are pages of their own (ignore).",
    "output_format": "markdown, text or structured (markdown).",
    "engine": "browser, static or auto (browser).",
    "concurrency": "So many pages at once (1 to 16; 3).",
    "delay_ms": "Wait between two pages of one host, in ms (1000).",
    "respect_robots": "true or false: obey robots.txt (true).",
    "block_resources": "true or false: leave out images, fonts and media (true).",
    "screenshot": "none, failed or all (none).",
    "settle_ms": "Ready when nothing changed for so many ms (100; 500 if scripts wrote it).",
    "wait_for": "A page is ready when this CSS selector is there.",
    "timeout_ms": "Take a page as it is after so many ms (30000).",
    "keep_links": "true or false: keep a list of each page's links (true).",
    "max_elements": "Take at most so many elements of a page (1,000 to 1,000,000; 250,000).",
    "max_text_kb": "Keep at most so many KiB of a page's content (16 to 4,096; 2,048).",
    "retries": "Try a page that failed for a moment again so often (0 to 10; 2).",
}
SITEMAP: Final[Mapping[str, str]] = {
    "sitemap_url": "Its own address (robots.txt, else /sitemap.xml tell).",
    "filter": "Only addresses that match this pattern.",
    "other_origins": "true or false: also pages of other sites (false).",
}
EVIDENCE: Final[Mapping[str, str]] = {
    "include": "dom, screenshot, phash, network, console (dom,screenshot).",
    "network_window_ms": "Watch requests for so many ms (5000).",
    "full_page": "true or false: a picture of the whole page (true).",
}
SNAPSHOT: Final[Mapping[str, str]] = {
    "current_step": "The step that is being done.",
    "next_actions": "What comes next (again for more).",
    "completed_steps": "What is done (again for more).",
    "notes": "Anything else.",
    "tabs": "The address of a tab (again for more).",
    "visit": "true or false: open these tabs (false).",
    "include_cookies": "true or false: keep their cookies, in a file (false).",
    "include_storage": "true or false: keep their local storage, too (false).",
}
PAGES: Final[Mapping[str, str]] = {
    "redact_content": "true or false: take keys of services out of page content (true).",
}
OPTIONS: Final[Mapping[str, str]] = {**CRAWL, **SITEMAP, **EVIDENCE, **SNAPSHOT, **PAGES}
LISTS: Final = frozenset(
    {
        "urls",
        "include_patterns",
        "exclude_patterns",
        "include",
        "next_actions",
        "completed_steps",
        "tabs",
    }
)

Command = Callable[..., None]


class Grouped(click.Command):
    """A command whose help shows its options by what they are for, and the rest first."""

    sections: Mapping[str, Collection[str]] = {}  # title -> names of parameters

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group of options."""
        grouped = {name for names in self.sections.values() for name in names}
        told = {
            param.name: param.get_help_record(ctx)
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
        }
        rest = [name for name in told if name not in grouped]
        for title, names in {"Options": rest, **self.sections}.items():
            rows = [record for record in map(told.get, names) if record is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=26)


def kind_options(command: Command) -> Command:
    """One option for each argument of a kind.

    Values pass as they were typed: the engine checks them all at once, so that every
    mistake is named and not only the first.
    """
    for name, text in reversed(tuple(OPTIONS.items())):
        option = "--" + name.replace("_", "-")
        command = click.option(option, name, multiple=True, metavar="VALUE", help=text)(command)
    return command


def given_options(options: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """What was typed, as arguments: lists stay lists, of the rest the last one counts."""
    return {
        name: [*values] if name in LISTS else _given(name, values[-1])
        for name, values in options.items()
        if values
    }


def _given(name: str, text: str) -> Any:
    if name == "password":  # everybody can see the words of a command line
        return {"secret": text}
    return text if name == "username" else _value(text)


def _value(text: str) -> Any:
    """`8` is a number and `true` a truth value; whatever else was typed stays a text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text
