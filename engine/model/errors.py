"""Errors that users meet: each with a stable code, title, sentence and advice.

User interfaces print `title`, `str(error)` and `advice`; they translate by `code` and fill in
`fields`. Exceptions of libraries are converted in the module that imports the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

OUT_OF_FILES_ADVICE: Final = (
    "Raise the limit of open files (`ulimit -n 4096`), or run fewer tasks and pages at once; "
    "`octask doctor` shows the limit."
)
MOST_QUOTED: Final = 4_000  # characters of one quoted value, since input may be a megabyte


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a request: its path, a stable code and the advice.

    Redacted on creation like every error, since a mistake often quotes its input, which may be a
    password in the wrong field.
    """

    path: str
    code: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", _clean(self.path))
        object.__setattr__(self, "message", _clean(self.message))

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class EngineError(Exception):
    """Root of the errors; only its subclasses are raised.

    Where sentence or advice recommend an operation, they have `{step}` in its place: `step_verb` is
    the operation, `step` its usual name, and `name_step` the name that a user interface gives it.
    """

    code: ClassVar[str] = "engine_error"
    title: ClassVar[str] = "Something went wrong"
    sentence: ClassVar[str] = "{message}"
    advice_text: ClassVar[str] = ""
    step_verb: str = ""
    step: str = ""

    def __init__(self, **fields: object) -> None:
        self.fields: dict[str, object] = {name: _clean(value) for name, value in fields.items()}
        if self.step_verb:
            self.fields["step"] = self.step
        super().__init__(_redacted(self.sentence.format(**self.fields)))

    def name_step(self, names: Mapping[str, str]) -> None:
        """Name the recommended operation as `names` does, which has names by verb."""
        if name := names.get(self.step_verb):
            self.fields["step"] = name
            self.args = (_redacted(self.sentence.format(**self.fields)),)

    @property
    def advice(self) -> str:
        """The advice for the user; empty where there is none."""
        return self.advice_text.format(**self.fields)


def _redacted(text: str) -> str:
    from engine.model import (
        redact,  # its patterns are compiled when first needed, not at each start
    )

    return redact.text(text)


def _clean(value: object) -> object:
    """Redact a text, cut it to the limit of a message and replace lone surrogates."""
    if not isinstance(value, str):
        return value
    text = _redacted(value).encode(errors="replace").decode()
    return text[:MOST_QUOTED] + "…" * (len(text) > MOST_QUOTED)


class InvalidArguments(EngineError):
    """The request breaks rules; `problems` has every mistake, and nothing was started."""

    code = "invalid_arguments"
    title = "The request has mistakes"
    sentence = "{message}"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        # Each problem is redacted already. Redacted again, "password: needs username" would look
        # like a password.
        message = "; ".join(map(str, problems))
        self.fields = {"message": message[:MOST_QUOTED] + "…" * (len(message) > MOST_QUOTED)}
        Exception.__init__(self, self.fields["message"])


class NotATaskId(EngineError):
    """The text has not the shape of a task id; no file was accessed."""

    code = "not_a_task_id"
    title = "Not a task id"
    sentence = "'{given}' is not a task id (16 lower-case hex digits)"
    advice_text = "Copy the id from the list."


class IdTooShort(NotATaskId):
    """The first digits of an id, but so few that a slip is more likely; nothing was read."""

    code = "id_too_short"
    title = "Too few digits of an id"
    sentence = "'{given}' is too short for the first digits of an id; four are the fewest"
    advice_text = "Give more of the id."


class AmbiguousId(EngineError):
    """Several ids begin with the given text; nothing was read or changed."""

    code = "ambiguous_id"
    title = "Several ids begin like this"
    sentence = "{number} ids begin with {given}: {candidates}"
    advice_text = "Give more of the id."


class TaskNotFound(EngineError):
    """No task in this ledger has this id."""

    code = "task_not_found"
    title = "No such task"
    sentence = "There is no task {task_id} in {root}."
    advice_text = "Look at the list, or point --root at another ledger."


class LedgerMissing(TaskNotFound):
    """The ledger's folder does not exist: never created, or unmounted."""

    code = "ledger_missing"
    title = "The ledger folder is not there"
    sentence = "There is no task {task_id} in {root}: that folder is not there."
    advice_text = "Bring the folder back (a drive, a network folder), or give another with --root."


class LedgerAway(TaskNotFound):
    """The ledger's folder disappeared, so its tasks can be neither read nor changed."""

    code = "ledger_away"
    title = "The ledger folder is away"
    sentence = "Task {task_id}: the ledger folder was away for more than {limit_s} s ({root})."
    advice_text = "What was finished is in the folder. Bring it back, then run the rest again."


class TaskExists(EngineError):
    """A task with this id exists already: another program started the same run first."""

    code = "task_exists"
    title = "The task is there already"
    sentence = "Task {task_id} exists already; nothing was started."


class UnitsMissing(EngineError):
    """An older copy of a running task's folder replaced it."""

    code = "units_missing"
    title = "Finished work is missing"
    sentence = (
        "Task {task_id}: {number} finished units are missing: "
        "an older copy of its folder came back while it ran."
    )
    advice_text = "Start the task again."


class TaskRemoved(EngineError):
    """The task's folder was removed during a wait."""

    code = "task_removed"
    title = "The task was removed"
    sentence = "Task {task_id} was removed."
    advice_text = "Its folder is gone from the ledger; start the task again if you need it."


class TaskUnreadable(EngineError):
    """The task's meta.json is unusable, so the task cannot be changed or awaited."""

    code = "task_unreadable"
    title = "The task cannot be read"
    sentence = "Task {task_id} is unreadable: {reason}"
    advice_text = "Repair or move away {path}."


class ResultMissing(EngineError):
    """The task has no result.json yet."""

    code = "result_missing"
    title = "There is no result"
    sentence = "Task {task_id} has no result yet."
    advice_text = "Wait until it has ended; its finished pages are in pages.jsonl."


class TransitionError(EngineError):
    """The state machine forbids this transition; nothing was written."""

    code = "illegal_transition"
    title = "That step is not allowed now"
    sentence = "{subject}: {source} -> {target} is not an allowed step"
    advice_text = "Look at the task's state first."


class LockTimeout(EngineError):
    """The task's lock was held by another program for the whole wait (15 s)."""

    code = "lock_timeout"
    title = "The task is locked"
    sentence = "Task {task_id} stayed locked for {waited_s:.0f} s."
    advice_text = "Another program is holding it; try again, or run `octask doctor`."


class TaskBusy(LockTimeout):
    """An orphaned task cannot be ended yet: another program holds its lock, or seems to."""

    code = "task_busy"
    title = "The task is busy"
    sentence = "Task {task_id} is busy: another program holds its lock."
    advice_text = (
        "It is tried again until the lock is free; one that has not moved for 8 s is taken."
    )


class WaitTimeout(EngineError):
    """The task did not end within the timeout; it continues."""

    code = "ETIMEDOUT"
    title = "Still running"
    sentence = "Task {task_id} did not end within {timeout_ms} ms."
    advice_text = "It goes on. Wait again with a longer limit, or cancel it."


class LedgerUnusable(EngineError):
    """The ledger's folder cannot be opened, read or created."""

    code = "ledger_unusable"
    title = "The task ledger cannot be opened"
    sentence = "{path}: {reason}"
    advice_text = "Choose another folder with --root, or mend this one."


class LedgerOutOfFiles(LedgerUnusable):
    """The ledger cannot be read, because the process may open no more files."""

    code = "ledger_out_of_files"
    title = "Too many files are open"
    sentence = "The task ledger cannot be read: {reason}"
    advice_text = OUT_OF_FILES_ADVICE


class LedgerNotThere(LedgerUnusable):
    """The folder of a known ledger is missing, or empty like a mount point."""

    code = "ledger_not_there"
    title = "The ledger folder is not there"
    sentence = "The ledger folder is away, or was removed: {path}"
    advice_text = "Bring the folder back (a drive, a network folder), or give another with --root."


class LedgerReadOnly(EngineError):
    """The ledger can be read but not written; new tasks are refused."""

    code = "ledger_read_only"
    title = "The ledger is read-only"
    sentence = "The ledger is read-only: {path}"
    advice_text = "Make the folder writable, or choose another with --root."


class LedgerWriteFailed(EngineError):
    """A write failed; the old file is unchanged."""

    code = "ledger_write_failed"
    title = "Cannot write the task ledger"
    sentence = "Cannot write the task ledger: {reason}"
    advice_text = "Free some space or mend the folder ({path}), then try again."


class WriteOutOfFiles(LedgerWriteFailed):
    """A write failed, because the process may open no more files."""

    code = "write_out_of_files"
    title = "Too many files are open"
    advice_text = OUT_OF_FILES_ADVICE


class LedgerFileTooLarge(LedgerWriteFailed):
    """A limit of the system allows no file of this size, so that no retry can succeed."""

    code = "ledger_file_too_large"
    title = "The system allows no file of this size"
    sentence = "Cannot write the task ledger, by a limit of file sizes (`ulimit -f`): {reason}"
    advice_text = "Raise the limit (`ulimit -f`), or move the ledger ({path}) to another disk."


class LedgerBlocked(LedgerWriteFailed):
    """A file occupies the path of a folder that the program creates."""

    code = "ledger_blocked"
    sentence = "Cannot write the task ledger: {path} is not a folder."
    advice_text = "Rename what is there, then try again: the program makes the folder itself."


class OwnershipLost(EngineError):
    """Another process ended the runner's task; the runner stops and keeps its pages."""

    code = "ownership_lost"
    title = "The task was ended by another process"
    sentence = "Task {task_id} was ended as {status} by another process while it ran."
    advice_text = "The finished pages are kept in pages.jsonl."


class BrowserMissing(EngineError):
    """No Chromium was found."""

    code = "browser_missing"
    title = "No browser was found"
    sentence = "Chromium could not be started: {reason}."
    advice_text = (
        "Download Chromium with `octask install-browser`; or install chromium-headless-shell, "
        "Chromium, Chrome or Edge; or set OC_BROWSER to the program's path."
    )


class ConsentRulesMissing(EngineError):
    """A task is to dismiss consent banners, and their rules are not installed."""

    code = "consent_rules_missing"
    title = "The consent rules are not installed"
    # The message has the way out, because it is all that is stored of an error that ends a task.
    sentence = (
        "The rules for consent banners are not installed. Install them in the window with "
        "Tools → Consent rules…, or with `octask consent-rules install`; or start without "
        "dismiss_consent."
    )


class ConsentRulesUnusable(EngineError):
    """A package of consent rules, or its installed copy, cannot be read."""

    code = "consent_rules_unusable"
    title = "The consent rules cannot be used"
    sentence = "The consent rules cannot be used: {reason} ({path})"
    advice_text = (
        "Get the package again with `npm pack @duckduckgo/autoconsent`, and install that file."
    )


class ConsentDownloadFailed(EngineError):
    """The consent rules were not downloaded; nothing was changed."""

    code = "consent_download_failed"
    title = "The consent rules were not downloaded"
    sentence = "The consent rules could not be downloaded from {host}: {reason}"
    advice_text = (
        "Behind a proxy, set HTTPS_PROXY. Or get the package on another machine with "
        "`npm pack @duckduckgo/autoconsent`, and install that file."
    )


class BrowserFailed(EngineError):
    """Chromium was found but does not start or stay running."""

    code = "browser_failed"
    title = "The browser does not start"
    sentence = "Chromium could not be started: {reason}"
    advice_text = "Run `octask doctor` to see which browser was tried."


class BrowserOutOfFiles(BrowserFailed):
    """Chromium does not start or stay running, because a process may open no more files."""

    code = "browser_out_of_files"
    title = "Too many files are open"
    advice_text = OUT_OF_FILES_ADVICE


class BrowserDownloadFailed(EngineError):
    """Chromium was not downloaded; nothing was installed."""

    code = "browser_download_failed"
    title = "Chromium was not downloaded"
    sentence = "Chromium could not be downloaded: {reason}"
    advice_text = "Install Chrome, Edge or Chromium, or set OC_BROWSER to a program's path."


# Ends of the advice for a machine that reaches no server.
_OTHER_WAYS: Final = (
    "Otherwise install a browser (`{command}`), set OC_BROWSER to a program's path, "
    "or copy the folder {folder} from another machine of the same kind."
)


class BrowserServerUnreachable(BrowserDownloadFailed):
    """The download server does not answer: offline, a wrong name, an untrusted certificate."""

    code = "browser_download_unreachable"
    title = "The download server does not answer"
    sentence = "Chromium could not be downloaded: {host} does not answer ({reason})."
    advice_text = (
        "Check the connection. Behind a proxy, set HTTPS_PROXY; if it uses its own certificate, "
        "set NODE_EXTRA_CA_CERTS to its file. " + _OTHER_WAYS
    )


class BrowserProxyRefused(BrowserDownloadFailed):
    """The proxy for the download does not answer, or demands a password."""

    code = "browser_download_proxy"
    title = "The proxy refused the download"
    sentence = "Chromium could not be downloaded through the proxy {proxy} ({reason})."
    advice_text = "Check HTTPS_PROXY with its user and password. " + _OTHER_WAYS


class BrowserDownloadRefused(BrowserDownloadFailed):
    """The download server, or a filter before it, answered with an error status."""

    code = "browser_download_refused"
    title = "The server refused the download"
    sentence = "Chromium could not be downloaded: {host} answered with HTTP {status}."
    advice_text = (
        "A filter of the network may block it, or a mirror (PLAYWRIGHT_DOWNLOAD_HOST) may lack "
        "this version. " + _OTHER_WAYS
    )


class BrowserDownloadInterrupted(BrowserDownloadFailed):
    """The connection ended, or the file was damaged, in each of several attempts."""

    code = "browser_download_interrupted"
    title = "The download was interrupted"
    sentence = "Chromium could not be downloaded: the file from {host} arrived incomplete."
    advice_text = "Try again. Nothing incomplete was kept."


class BrowserDownloadCancelled(BrowserDownloadFailed):
    """The download was cancelled by the user."""

    code = "browser_download_cancelled"
    title = "The download was cancelled"
    sentence = "The download of Chromium was cancelled; nothing was installed."
    advice_text = ""


class BrowserDiskFull(BrowserDownloadFailed):
    """The disk of the downloaded browsers is full."""

    code = "browser_download_disk_full"
    title = "The disk is full"
    sentence = "Chromium could not be downloaded: the disk of {folder} is full."
    advice_text = "Free 700 MB, then try again. Nothing incomplete was kept."


class BrowserFolderUnusable(BrowserDownloadFailed):
    """The folder of the downloaded browsers cannot be created or written."""

    code = "browser_download_folder"
    title = "The folder of browsers cannot be written"
    sentence = "Chromium could not be downloaded: {folder} cannot be written ({reason})."
    advice_text = "Make the folder writable for your user, then try again."


class BrowserNotOffered(BrowserDownloadFailed):
    """There is no download for this system or processor."""

    code = "browser_download_not_offered"
    title = "There is no download for this system"
    sentence = "Chromium could not be downloaded: there is no build for {system}."
    advice_text = "Install a browser (`{command}`), or set OC_BROWSER to a program's path."


class BrowserLibrariesMissing(BrowserFailed):
    """The browser needs libraries that this system lacks."""

    code = "browser_libraries_missing"
    title = "System libraries are missing"
    sentence = "Chromium does not start without these libraries: {libraries}."
    advice_text = (
        "Install these libraries with the package manager, then try again: the download is kept. "
        "A Chromium of the distribution brings them with it."
    )


class BrowserGone(EngineError):
    """The browser died while a page was loading; the page may be retried once."""

    code = "browser_gone"
    title = "The browser stopped"
    sentence = "The browser stopped while {url} was loading."
    advice_text = "It is started again by itself; the page is tried once more."


class PageError(EngineError):
    """One page failed; the crawl continues. `kind` is the reason.

    `status` is the HTTP status where the site answered with an error status only, `retry_after_s`
    its Retry-After. `unproved`: another page may have caused the failure, so the page is retried
    alone first. `proved`: the page failed alone and would fail again.
    """

    unproved = False
    proved = False
    retry_after_s: float | None = None
    code = "page_error"
    title = "The page could not be taken"
    sentence = "{message}"

    def __init__(self, kind: str, message: str, status: int = 0) -> None:
        self.kind = kind
        self.status = status
        super().__init__(kind=kind, message=message)


class PageOutOfFiles(PageError):
    """The page failed, because the process may open no more files; the page is not to blame."""

    unproved = True
    code = "page_out_of_files"
    title = "Too many files are open"
    advice_text = OUT_OF_FILES_ADVICE

    def __init__(self) -> None:
        super().__init__("open_files", "the limit of open files (`ulimit -n`) was reached")


class AddressBlocked(PageError):
    """The task's egress policy blocked this address before a connection was made."""

    code = "address_blocked"
    title = "Address refused"

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__("blocked", f"blocked: {reason}")


class ProxyFailed(PageError):
    """The task's proxy failed for one page; `kind` is `proxy`, or `proxy_refused` for good.

    `reply` is the number by which a SOCKS proxy refused, if it did.
    """

    code = "proxy_failed"
    title = "The proxy failed"

    def __init__(self, message: str, *, final: bool = False, reply: int = 0) -> None:
        self.reply = reply
        super().__init__("proxy_refused" if final else "proxy", message)


class ProxyCut(ProxyFailed):
    """No connection to the proxy could be made, or it does not speak the protocol."""

    code = "proxy_cut"
    title = "The proxy cannot be reached"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the proxy cannot be reached: {reason}")


class ProxyDenied(ProxyFailed):
    """The proxy refused the user or the password, or demands them."""

    code = "proxy_denied"
    title = "The proxy refused the user or the password"

    def __init__(self) -> None:
        super().__init__("the proxy refused the user or the password", final=True)


class ProxyUnusable(EngineError):
    """The proxy of a task or of the settings is not usable as it is written."""

    code = "proxy_unusable"
    title = "The proxy cannot be used"
    sentence = (
        "The proxy cannot be used ({reason}). Correct it (--proxy, or OC_PROXY), or connect "
        "directly with --proxy none."
    )


class ProxyNotAllowed(EngineError):
    """A request over MCP or HTTP asks for another proxy than the operator's."""

    code = "proxy_not_allowed"
    title = "The proxy is the operator's choice"
    sentence = (
        "This task may not choose its proxy: the operator does, with --proxy, OC_PROXY or the "
        "settings of the window."
    )


class ProxyUnreachable(EngineError):
    """The proxy of a task could not be reached when the task began."""

    code = "proxy_unreachable"
    title = "The proxy cannot be reached"
    sentence = (
        "The proxy {proxy} cannot be reached: {reason}. Check its scheme, host and port, or "
        "connect directly with --proxy none."
    )


class ProxyRefusedUser(EngineError):
    """The proxy of a task refused the user or the password when the task began."""

    code = "proxy_refused_user"
    title = "The proxy refused the user or the password"
    sentence = (
        "The proxy {proxy} refused the user or the password. Give both with "
        "--proxy-username NAME and --proxy-password env:NAME."
    )


class NothingTaken(EngineError):
    """Every page of a crawl failed, so the crawl must not end as COMPLETED."""

    code = "nothing_taken"
    title = "No page could be taken"
    sentence = "No page could be taken: {reason}"
    advice_text = "Check the address; what each page said is in the result."


class OnlyErrorAnswers(EngineError):
    """The site answered every page of a crawl with an error status."""

    code = "only_error_answers"
    title = "Every page answered with an error"
    sentence = "Every page answered with an error: {reason}"
    advice_text = "Check the address; what each page answered is in the result."


class HostUnavailable(EngineError):
    """A host answered with errors only, also after the pauses of the crawl; pages are missing."""

    code = "host_unavailable"
    title = "A host failed page after page"
    # The message has the advice, because it is all that is stored of an error that ends a task.
    sentence = (
        "{host} failed page after page ({reason}) and was given up after several pauses. "
        "The loaded pages are kept; resume the task to load the others."
    )


class InjectedFault(EngineError):
    """Fault for tests: `failOnPage` named this page."""

    code = "injected_fault"
    title = "A planned fault"
    sentence = "failOnPage: page {page} was told to fail"


class ShuttingDown(EngineError):
    """The engine is closing and accepts no new tasks."""

    code = "shutting_down"
    title = "The program is closing"
    sentence = "The program is closing and takes no new work."
    advice_text = "Start the task again after the next start."


class WorkerFailed(EngineError):
    """A background worker could not start the task."""

    code = "worker_failed"
    title = "The background worker did not start the task"
    sentence = "The background worker did not start the task: {reason}"
    advice_text = "Start it without --detach to see more."


class TaskFailed(EngineError):
    """Failure of a task body: the task ends FAILED with this code, and `head` in its result."""

    code = "task_failed"
    title = "The task failed"
    sentence = "{message}"

    def __init__(self, code: str, message: str, head: dict[str, Any] | None = None) -> None:
        self.failure = code
        self.head = head
        super().__init__(message=message)


class LicensesUnreadable(EngineError):
    """The list of licenses in a packaged program is missing or damaged."""

    code = "licenses_unreadable"
    title = "The list of licenses cannot be read"
    sentence = "The list of licenses cannot be read: {reason} ({path})"
    advice_text = "Install the program again."


class UpdateCheckFailed(EngineError):
    """The check for a newer version got no usable answer."""

    code = "update_check_failed"
    title = "The check for a new version failed"
    sentence = "The check for a new version failed: {reason}"
    advice_text = "Try again later, or look at the program's page."


class OwnershipError(EngineError):
    """An agent requested an action on another agent's tab (seed 003)."""

    code = "not_the_owner"
    title = "The tab is another agent's"
    sentence = "Agent {agentId} may not {action} in {tabId}: it is {ownerAgentId}'s."
    advice_text = "tabs_context lists the tabs of one's own; open one with navigate."


class UnitTimeout(EngineError):
    """A unit exceeded its time limit."""

    code = "unit_timeout"
    title = "It took too long"
    sentence = "{label}: took longer than {limit_s:.0f} s"

    def __init__(self, label: str, limit_s: float) -> None:
        super().__init__(label=label, limit_s=limit_s)
        self.label, self.limit_s = label, limit_s


class QueryError(EngineError):
    """A query is invalid; nothing was filtered, and nothing was done.

    `position` counts characters from 0: the start of the mistake. `also` has the other mistakes of
    the same query.
    """

    code = "query_error"
    title = "The filter has a mistake"

    def __init__(self, position: int, **fields: object) -> None:
        self.position = position
        self.also: tuple[QueryError, ...] = ()
        super().__init__(position=position, **fields)

    @property
    def all(self) -> tuple[QueryError, ...]:
        """This error and the others, in the order of their positions."""
        return tuple(sorted((self, *self.also), key=lambda one: one.position))
