"""Why a browser tool was refused or could not do what it was asked: words for a host agent.

Each says what to do next, because whoever reads it is about to try again.
"""

from __future__ import annotations

from engine.model.errors import AddressBlocked, EngineError


class StaleReference(EngineError):
    """The element that a reference stood for is no longer in the page that is open."""

    code = "stale_reference"
    title = "The element is gone"
    sentence = "{ref} is not in the page as it is now."
    advice_text = "Read the page again, and use the references that it gives."


class ElementNotReady(EngineError):
    """The element is there but cannot be acted on: hidden, covered, disabled, read-only, moving."""

    code = "element_not_ready"
    title = "The element cannot be used now"
    sentence = "{element} is {reason}."
    advice_text = "Change what stands in the way first, or read the page again."


class WrongElement(EngineError):
    """The action does not fit the element: typing into a button, say."""

    code = "wrong_element"
    title = "That does not fit the element"
    sentence = "{element} {reason}"
    advice_text = "Find the element that is meant, or use another action."


class NoSuchOption(EngineError):
    """A select field has no such option, or cannot offer it."""

    code = "no_such_option"
    title = "There is no such option"
    sentence = "{element}: the option is {reason}; there are: {options}"
    advice_text = "Use the words of one of its options."


class ScriptFailed(EngineError):
    """A script threw, did not end in time, or lost its page."""

    code = "script_failed"
    title = "The script failed"
    sentence = "{reason}"
    advice_text = "Mend the script, or look at the page first."


class ToolTimeout(EngineError):
    """The page did not answer within the call's limit."""

    code = "tool_timeout"
    title = "The page did not answer"
    sentence = "The page did not answer within {limit_s:g} s."
    advice_text = "Try again with a larger timeout_ms, or open the page anew."


class PageUnreadable(EngineError):
    """The tab shows nothing that could be read: a crash, or a page that keeps sending itself on."""

    code = "page_unreadable"
    title = "The page cannot be read"
    sentence = "{reason}"
    advice_text = "Open an address in this tab again."


class NoHistory(EngineError):
    """There is no page to go back or forward to."""

    code = "no_history"
    title = "There is nothing to go to"
    sentence = "There is no page to go {direction} to in {tab_id}."
    advice_text = "Open an address instead."


class PictureTooLarge(EngineError):
    """A picture would be larger than may be handed over."""

    code = "picture_too_large"
    title = "The picture is too large"
    sentence = "The picture would have {size_bytes:,} bytes; {most_bytes:,} are allowed."
    advice_text = "Take the visible part, or one element."


class DomainBlocked(AddressBlocked):
    """The task's allowedDomains do not hold this address; nothing was opened."""

    code = "domain_blocked"
    title = "Not one of the task's domains"

    def __init__(self, url: str) -> None:
        super().__init__(url, "not one of the task's allowed domains")
