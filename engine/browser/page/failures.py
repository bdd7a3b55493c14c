"""Errors of pages and browsers, worded for readers of the task list."""

from __future__ import annotations

import re

from engine.model import process_limits
from engine.model.errors import BrowserFailed, BrowserOutOfFiles, PageError, PageOutOfFiles


class NoScreen(BrowserFailed):
    """A browser window was requested without a screen."""

    code = "no_screen"
    title = "There is no screen"
    sentence = "A browser with a window needs a screen, and there is none here."
    advice_text = "Leave the window out (headless), or start it where there is a screen."


class PageTooHeavy(PageError):
    """The renderer was ended because the page exceeded its memory limit."""

    unproved = True  # the previous page may have left the memory behind
    code = "page_memory"
    title = "The page used too much memory"

    def __init__(self) -> None:
        super().__init__("memory", TOO_HEAVY)


class PageFloods(PageError):
    """A page flooded its browser with messages and blocked all other pages."""

    unproved = True
    code = "page_flood"
    title = "The page flooded the browser"

    def __init__(self) -> None:
        super().__init__("flood", "the page flooded the browser")


class PageTooLarge(PageError):
    """What was taken of a page is above the limit of one message of the direct connection."""

    code = "page_too_large"
    title = "The page is too large"
    advice_text = "Keep less text a page, or choose Playwright as the browser connection."

    def __init__(self) -> None:
        super().__init__("size", "the page is larger than a direct connection can carry")


class LeftByOthers(PageError):
    """Cookies or stored data of other pages may have changed the page."""

    unproved = True
    code = "page_left_by_others"
    title = "Other pages left too much behind"

    def __init__(self) -> None:
        super().__init__("storage", "other pages had filled the site's cookies or storage")


class Withheld(PageError):
    """The page waited for connections that other pages held."""

    unproved = True
    code = "page_withheld"
    title = "Other pages held the connections"

    def __init__(self) -> None:
        super().__init__("connection", "other pages held the connections to the site")


TOO_HEAVY = "page used too much memory"
_CODE = re.compile(r"net::(ERR_[A-Z0-9_]+)")
# Chromium's net error -> (kind, sentence).
_SENTENCES = {
    "ERR_TOO_MANY_REDIRECTS": ("redirects", "too many redirects"),
    "ERR_NAME_NOT_RESOLVED": ("dns", "name not found"),
    "ERR_NAME_RESOLUTION_FAILED": ("dns", "name not found"),
    "ERR_CONNECTION_REFUSED": ("connection", "connection refused"),
    "ERR_CONNECTION_RESET": ("connection", "the connection was cut"),
    "ERR_CONNECTION_CLOSED": ("connection", "the connection was cut"),
    "ERR_CONNECTION_ABORTED": ("connection", "the connection was cut"),
    "ERR_EMPTY_RESPONSE": ("connection", "the server sent nothing"),
    "ERR_SOCKET_NOT_CONNECTED": ("connection", "the connection was cut"),
    "ERR_CONNECTION_TIMED_OUT": ("timeout", "the server did not answer"),
    "ERR_TIMED_OUT": ("timeout", "the server did not answer"),
    "ERR_ADDRESS_UNREACHABLE": ("connection", "the server cannot be reached"),
    "ERR_NETWORK_CHANGED": ("connection", "the network changed"),
    "ERR_INTERNET_DISCONNECTED": ("connection", "there is no network connection"),
    "ERR_PROXY_CONNECTION_FAILED": ("connection", "the proxy cannot be reached"),
    "ERR_TUNNEL_CONNECTION_FAILED": ("connection", "the proxy refused the connection"),
    "ERR_UNSAFE_PORT": ("blocked", "the browser does not open this port"),
    "ERR_BLOCKED_BY_CLIENT": ("blocked", "blocked"),
    "ERR_BLOCKED_BY_RESPONSE": ("blocked", "the page forbids being opened like this"),
    "ERR_INVALID_RESPONSE": ("protocol", "the server's answer cannot be understood"),
    "ERR_INVALID_HTTP_RESPONSE": ("protocol", "the server's answer cannot be understood"),
    "ERR_CONTENT_DECODING_FAILED": ("protocol", "the page's compression is broken"),
    "ERR_CONTENT_LENGTH_MISMATCH": ("protocol", "the page ended too early"),
    "ERR_INCOMPLETE_CHUNKED_ENCODING": ("protocol", "the page ended too early"),
    "ERR_INVALID_REDIRECT": ("redirects", "the redirect leads nowhere"),
    "ERR_UNSAFE_REDIRECT": ("blocked", "blocked: only http and https addresses can be opened"),
    "ERR_UNKNOWN_URL_SCHEME": ("blocked", "blocked: only http and https addresses can be opened"),
    "ERR_INVALID_AUTH_CREDENTIALS": ("auth", "the server refused the user and password"),
    "ERR_HTTP_RESPONSE_CODE_FAILURE": ("http", "the server answered with an error and no page"),
    "ERR_ABORTED": ("no_content", "the server answered without a page"),
}


def net_failure(message: str) -> PageError | None:
    """Map Chromium's `net::ERR_…` in `message` to a page error; None without one."""
    match = _CODE.search(message)
    if match is None:
        return None
    code = match.group(1)
    if code == "ERR_INSUFFICIENT_RESOURCES":  # no descriptor, in the browser or on the machine
        return PageOutOfFiles()
    known = _SENTENCES.get(code)
    if known is not None:
        failed = PageError(*known)
        failed.unproved = code == "ERR_PROXY_CONNECTION_FAILED"
        return failed
    if code.startswith(("ERR_CERT_", "ERR_SSL_", "ERR_BAD_SSL_")):
        detail = code.removeprefix("ERR_").replace("_", " ").lower()
        return PageError("certificate", f"the secure connection cannot be trusted ({detail})")
    detail = code.removeprefix("ERR_").replace("_", " ").lower()
    return PageError("network", f"the page could not be loaded ({detail})")


def no_answer(timeout_ms: int) -> PageError:
    """Return the error for a page that did not load or react within its limit."""
    return PageError("timeout", f"the page did not answer within {timeout_ms / 1000:g} s")


def browser_failure(reason: str, cause: BaseException | None = None) -> BrowserFailed:
    """Return the error of a browser that did not start; low limits of this process are named.

    A browser without descriptors reports whatever it failed at, so a low limit is told as a fact.
    """
    if process_limits.is_shortage(cause) or process_limits.is_short() or "EMFILE" in reason:
        return BrowserOutOfFiles(reason=f"{reason} (too many files are open)")
    files, size = process_limits.most_open_files(), process_limits.most_file_bytes()
    if files is not None and process_limits.has_few_files():
        reason = f"{reason} (only {files} files may be open here: `ulimit -n`)"
        return BrowserOutOfFiles(reason=reason)
    if size is not None and size < process_limits.FEW_BYTES:
        reason = f"{reason} (a file may have only {size} bytes here: `ulimit -f`)"
    return BrowserFailed(reason=reason)


def check_limits() -> None:
    """Refuse a browser that cannot work: its network service would fail, and every page with it.

    Raises:
        BrowserOutOfFiles: too few files may be open.
    """
    files, needed = process_limits.most_open_files(), process_limits.BROWSER_FILES
    if files is not None and files < needed:
        reason = f"only {files} files may be open here (`ulimit -n`), and a browser needs {needed}"
        raise BrowserOutOfFiles(reason=reason)
