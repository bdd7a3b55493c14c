"""The help of `start` shows each option once, under the kind that it belongs to."""

import re

import click
from click.testing import CliRunner

from engine.cli.octask import octask
from engine.cli.start import start


def sections(*kind: str) -> dict[str, list[str]]:
    """Title -> the lines under it."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (
        CliRunner().invoke(start, [*kind, "--help"], terminal_width=100).output.splitlines()
    ):
        if line.endswith(":") and not line.startswith(" "):
            lines = found.setdefault(line[:-1], [])
        lines.append(line)
    return found


def test_every_option_of_start_stands_in_one_section() -> None:
    heads = re.compile(r"^  (?:-h, )?(--[a-z-]+)")
    lines = [line for told in sections().values() for line in told]
    told = [found[1] for line in lines if (found := heads.match(line))]
    options = {
        each.opts[-1]
        for each in start.get_params(click.Context(start))
        if isinstance(each, click.Option)
    }
    assert len(told) == len(set(told))
    assert set(told) == options | {"--help"}


def test_options_stand_with_the_kind_that_they_belong_to() -> None:
    found = {title: " ".join(lines) for title, lines in sections().items()}
    assert "--keep-text" in found["Recording"]
    assert "--other-origins" in found["Crawl of a sitemap"]
    assert "--policy" in found["Terms (of any kind)"]
    assert "--max-pages" not in found["Options"]


def test_no_summary_of_a_command_is_cut() -> None:
    said = CliRunner().invoke(octask, ["--help"], terminal_width=80).output
    commands = said.partition("Commands:")[2].partition("Exit codes:")[0]
    assert "..." not in commands
    assert "record what it did." in " ".join(commands.split())


def test_the_help_of_a_kind_shows_only_what_it_takes() -> None:
    found = {title: " ".join(lines) for title, lines in sections("recording").items()}
    assert set(found) == {"Options of recording", "Terms (of any kind)", "Common options"}
    assert "--keep-text" in found["Options of recording"]
    assert "--username" in found["Options of recording"]  # of a crawl, too
    assert "--max-pages" not in " ".join(found.values())


def test_the_help_of_a_kind_has_its_own_defaults() -> None:
    lines = " ".join(" ".join(sections("crawl_sitemap")["Options of crawl_sitemap"]).split())
    assert "--max-pages N Stop after this number of pages (1 to 1,000,000; default: 50)." in lines
