"""What every package may know of a kind of task: plain data, registered by the kind itself.

Packages below `engine.kinds` read a kind from here, since they may not import its code.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final

from engine.model.records import ENVELOPE, TASK_RUN

OTHER_RESULT_KEY: Final = "pages"  # of a kind that is not ours


@dataclass(frozen=True, slots=True)
class KindTraits:
    """One kind of task as data.

    Its name for people is the message `kind.<name>`, and `icon` the icon beside it.
    `unit_noun` is the last part of the message ids of its units, `result_key` the name of the
    list of units in result.json, `own_id` the field and prefix of the id of its result.
    `crawls`: its units are pages, and failed ones can be retried alone. `steps`: its units are
    steps in an order, and can be retried from the failed one on.
    `summary`: the result of a killed task has the summary of a crawl.
    `follows_links`: it finds more pages by itself. `address_list`: it can be started once for each
    address of a list. `contract`: a progress contract counts its units.
    `stoppable`: it can end COMPLETED on request. `replayable`: a command task can do again what
    its units say. `in_browser`: it runs in a browser.
    `unit_screenshots`: the screenshots of its units are artifacts of the result.
    `agent_driven`: by a person or an agent: silence is no stall, and it has no rate.
    `opens_window`: it shows a browser window unless it is asked to be headless.
    `watch_page`: the window may show the page of a running task.
    `ended_message` is the first part of the ids of messages on what ended it, and
    `cancelling_message` the id of the message while a task of this process is cancelled.
    The verbs of `octask` for this kind alone form a group with `verbs_help`.
    `query_words` name it in a query beside `name`; the first is the one that is offered.
    """

    name: str
    unit_noun: str = "units"
    icon: str = "list"
    result_key: str = ""
    own_id: tuple[str, str] | None = None
    crawls: bool = False
    steps: bool = False
    summary: bool = True
    follows_links: bool = False
    address_list: bool = False
    contract: bool = False
    agent_driven: bool = False
    stoppable: bool = False
    replayable: bool = False
    in_browser: bool = False
    watch_page: bool = False
    opens_window: bool = False
    unit_screenshots: bool = False
    ended_message: str = "ended.crawl"
    cancelling_message: str = "why.cancelling"
    verbs_help: str = ""
    query_words: tuple[str, ...] = ()


TRAITS: Final[dict[str, KindTraits]] = {
    ENVELOPE: KindTraits(
        ENVELOPE, "calls", "agent", agent_driven=True, contract=True, query_words=("agent",)
    ),
    TASK_RUN: KindTraits(TASK_RUN, "items", "star", agent_driven=True, query_words=("run",)),
}
_OTHER: Final = KindTraits("")


def traits_of(kind: str) -> KindTraits:
    """The traits of a kind; the defaults for a kind that is not known here."""
    return TRAITS.get(kind, _OTHER)


def link_follower() -> str:
    """The first kind that follows the links of its pages."""
    return next(name for name, one in TRAITS.items() if one.follows_links)


def kinds_by_word() -> dict[str, str]:
    """The known kinds by every word that names one in a query, the offered words first."""
    words = {word: one.name for one in TRAITS.values() for word in (*one.query_words, one.name)}
    return {word: words[word] for word in (*offered_kinds(), *words)}


def kind_of_word(word: str) -> str | None:
    """The stored name of the kind that a word means, in any case; None for a likely slip.

    A word that is like no known one is the kind of another program, as it is stored.
    """
    words = kinds_by_word()
    if (known := words.get(word.casefold())) is not None:
        return known
    return None if difflib.get_close_matches(word.casefold(), list(words), 1) else word


def offered_kinds() -> tuple[str, ...]:
    """The word for each known kind that a query offers; those that can be started first."""
    kinds = sorted(TRAITS.values(), key=lambda one: one.name in (ENVELOPE, TASK_RUN))
    return tuple((one.query_words or (one.name,))[0] for one in kinds)
