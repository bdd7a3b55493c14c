"""Errors of commands and tools: the codes of seed 002, each with a message of one line."""

from __future__ import annotations

from typing import Final

from engine.model.errors import EngineError, PageError


class StaleReference(EngineError):
    """The referenced element is no longer in the open page."""

    code = "stale_reference"
    title = "The element is gone"
    sentence = "{ref} is not in the page as it is now."
    advice_text = "Read the page again, and use the references that it gives."


class ElementNotReady(EngineError):
    """The element exists but is hidden, covered, disabled, read-only or moving."""

    code = "element_not_ready"
    title = "The element cannot be used now"
    sentence = "{element} is {reason}."
    advice_text = "Change what stands in the way first, or read the page again."


class WrongElement(EngineError):
    """The action does not fit the element, such as typing into a button."""

    code = "wrong_element"
    title = "That does not fit the element"
    sentence = "{element} {reason}"
    advice_text = "Find the element that is meant, or use another action."


class DownloadSkipped(PageError):
    """The address to open is a file."""

    code = "download_skipped"
    title = "The address is a file"
    advice_text = "Files are not kept here. Open a page instead."


class NoSuchOption(EngineError):
    """A select field has no such option, or the option is disabled."""

    code = "no_such_option"
    title = "There is no such option"
    sentence = "{element}: the option is {reason}; there are: {options}"
    advice_text = "Use the words of one of its options."


class ScriptFailed(EngineError):
    """A script threw, exceeded its limit, or lost its page."""

    code = "script_failed"
    title = "The script failed"
    sentence = "{reason}"
    advice_text = "Mend the script, or look at the page first."


class ToolTimeout(EngineError):
    """The page did not reply within the call's limit."""

    code = "tool_timeout"
    title = "The page did not answer"
    sentence = "The page did not answer within {limit_s:g} s."
    advice_text = "Try again with a larger timeout_ms, or open the page anew."


class PageUnreadable(EngineError):
    """The page crashed or keeps redirecting itself, so the tab shows nothing readable."""

    code = "page_unreadable"
    title = "The page cannot be read"
    sentence = "{reason}"
    advice_text = "Open an address in this tab again."


class NoHistory(EngineError):
    """There is no history entry to go back or forward to."""

    code = "no_history"
    title = "There is nothing to go to"
    sentence = "There is no page to go {direction} to in {tab_id}."
    advice_text = "Open an address instead."


class PictureTooLarge(EngineError):
    """A screenshot exceeds the size limit."""

    code = "picture_too_large"
    title = "The picture is too large"
    sentence = "The picture would have {size_bytes:,} bytes; {most_bytes:,} are allowed."
    advice_text = "Take the visible part, or one element."


CANCELLED: Final = "CANCELLED"  # of a task; a command of that task is skipped


class CommandFailed(EngineError):
    """A command could not do its work."""

    code = "EXECUTION_ERROR"
    title = "The command failed"
    sentence = "{message}"

    def __init__(self, message: str) -> None:
        super().__init__(message=message)


class CommandTimeout(CommandFailed):
    """A command exceeded its `timeout`."""

    code = "COMMAND_TIMEOUT"
    title = "The command took too long"


class InstanceDisconnected(CommandFailed):
    """The browser instance is unavailable: it crashed, was closed, or never existed."""

    code = "INSTANCE_DISCONNECTED"
    title = "The browser is gone"


class BadCommand(CommandFailed):
    """Arguments that only the browser can reject, such as an invalid selector."""

    code = "INVALID_ARGUMENTS"
    title = "The command's arguments are wrong"
