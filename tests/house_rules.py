"""Rules over syntax trees that imports alone cannot express: each yields (line, sentence).

The tables name the only places where a thing may be done; a new entry needs a reason
beside it. `tests/test_architecture.py` runs every rule over every module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from engine.kinds.traits import ALL_TRAITS

ROOT = Path(__file__).resolve().parents[1]
Found = Iterator[tuple[int, str]]
Rule = Callable[[str, ast.Module], Found]

# A library of the outside world -> the only places that may import it.
SEAMS = {
    "playwright": ("engine/browser/",),
    "watchdog": ("engine/ledger/directory_watcher.py",),
    "filelock": (
        "engine/ledger/lock.py",
        "engine/browser/chromium/browser_download.py",  # one download at a time
    ),
    "qasync": ("gui/startup/loop.py", "gui/app.py"),
    "PySide6": ("gui/",),
    "shiboken6": ("gui/",),
    "click": ("engine/cli/",),
    "warcio": ("engine/archive/",),
    "cronsim": ("engine/schedules/rules.py",),
    "tzlocal": ("engine/schedules/rules.py",),
    "send2trash": ("engine/service/pruning.py",),
    "jinja2": ("engine/export/report.py", "engine/server/api_page.py"),
    "uvicorn": ("engine/server/local_server.py",),
    "starlette": ("engine/server/",),
    "websockets": ("engine/server/local_server.py",),
    "mcp": ("engine/server/",),
    "xlsxwriter": ("engine/export/report.py",),
    "rich": ("engine/cli/",),
    "dbus_fast": ("gui/desktop/bus.py",),
    "dask": ("engine/cluster/dask_worker.py",),
    "distributed": ("engine/cluster/dask_worker.py",),
    "ada_url": ("engine/model/addresses.py",),
    "yarl": ("engine/pages/static_engine.py", "engine/egress/http_session.py"),
}
URL_READERS = frozenset({"urlsplit", "urlparse", "urljoin", "urlunsplit", "urldefrag"})
OTHER_ADDRESSES = {
    "engine/sample/site.py": "the target of a request, whose other end reads it",
    "gui/desktop/launch_request.py": "files that a desktop hands over as addresses",
}
# All that the window may know of the engine: its verbs, its records and its words.
GUI_MAY_IMPORT = frozenset(
    {
        "browser.chromium.browser_download",
        "browser.chromium.consent_rules",
        "browser.chromium.locate",
        "budgets",
        "cluster.cluster_address",
        "contracts.contract_progress",
        "contracts.completing",
        "doctor",
        "doctor.third_party_licenses",
        "export.exporter",
        "export.output",
        "export.table",
        "logging.logs",
        "model.blocked_places",
        "model.build_info",
        "model.cluster_workers",
        "model.config",
        "model.display",
        "model.errors",
        "model.kind_traits",
        "model.ledger_ids",
        "model.status",
        "model.process_limits",
        "model.proxies",
        "model.records",
        "model.redact",
        "model.typed_address",
        "model.addresses",
        "profiles.profile",
        "query",
        "query.attention_reasons",
        "results.site_audit",
        "results.unit_filter",
        "results.units",
        "results.file_reader",
        "results.json_tree",
        "server.hosts.config_change",
        "server.hosts.host_table",
        "server.local_server",
        "server.optional_libraries",
        "service.allowlists",
        "service.profiles",
        "service.pruning",
        "sample.site",
        "schedules.rules",
        "schedules.schedule",
        "schedules.schedule_words",
        "service.forms",
        "service.drafts",
        "service.engine",
        "service.feed",
        "service.requests",
        "service.rerun",
        "service.resuming",
        "service.schedules",
        "service.update_check",
        "service.router.ledger_paths",
        "service.router.isolated_executor",
        "service.router.ledger_router",
        "service.commands",
        "service.stop_plan",
        "text.messages",
        "text.words",
    }
)
WRITERS = {
    "engine/ledger/files.py": "the only writer of ledger files",
    "engine/browser/chromium/browser_download.py": (
        "the folder of downloaded browsers, outside of every ledger"
    ),
    "engine/browser/chromium/driver.py": "removes the temporary profiles of its browsers",
    "engine/browser/direct/process.py": "the temporary profiles of its browsers",
    "engine/browser/remote/browser_server.py": "the temporary folders of its browsers",
    "engine/logging/logs.py": (
        "log, settings and locks: outside of every ledger, must work when the ledger does not"
    ),
    "engine/service/pruning.py": "takes whole folders of ended tasks out of a ledger, when asked",
    "engine/export/output.py": "an export is the user's own file, never one inside a ledger",
    "engine/server/hosts/config_change.py": (
        "the configuration of a host program, never inside a ledger: its folder and its mode"
    ),
    "engine/doctor/third_party_licenses.py": "a file of a package, when its build asks for it",
    "gui/app.py": "the crash file beside the log: the interpreter itself writes it",
    "gui/startup/screenshot_tour.py": "the throw-away ledger of a picture",
}
KIND_NAMES = frozenset(one.name for one in ALL_TRAITS) - {"commands"}  # also an argument's name
OTHER_MEANINGS = {
    "engine/contracts/bulk_progress.py": "a scope of contracts, as other programs write it",
    "engine/contracts/crawl_contract.py": "the same scope",
}
DRAGS = {
    "gui/style/drag_and_drop.py": (
        "a drag is the desktop's own loop, begun by an event, no coroutine"
    )
}
SPAWNERS = {
    "gui/engine_link/scheduling.py": "the window's TaskSet",
    "gui/engine_link/bridge.py": "an engine in the making, a warming: awaited by who starts it",
    "gui/desktop/bus.py": "the wait for a connection's end, ended with it",
    "gui/startup/loop.py": "starts the main coroutine",
    "engine/agents/sessions.py": "the watch over idle agents, ended by close()",
    "engine/server/mcp_resources.py": ("notifications of the older handshake, sent at once"),
    "engine/server/stdio.py": "the end of the process after a signal, which ends with it",
    "engine/server/mcp_server.py": "a verb's call, awaited beside its progress",
    "engine/server/change_feed.py": (
        "the reading of the live list while somebody listens, ended with the last listener"
    ),
    "engine/server/local_server.py": "the server itself, ended by stop()",
    "engine/server/event_streams.py": "work beside what ends it early; all are awaited together",
    "engine/browser/remote/browser_server.py": (
        "a client's work, and the work of its session: ended and awaited with the server and it"
    ),
    "engine/browser/remote/remote_browser.py": "the connections of a session, ended by close()",
    "engine/cluster/background.py": "work beside a block, cancelled and awaited at its end",
    "engine/cluster/page_server.py": "the start of a browser, ended with the fetchers of its task",
    "engine/cluster/dask_worker.py": (
        "a page beside the end of its connection, and work beside a stop; awaited at once"
    ),
    "engine/egress/connecting.py": ("tries at several addresses, cancelled when one is connected"),
    "engine/browser/chromium/browser_instance.py": (
        "a context's closing, given up at its limit, and its opening, closed when nobody waits for "
        "it any more; windows that pages open, closed or adopted and ended by close()"
    ),
    "engine/browser/page/network_capture.py": (
        "reading bodies for an archive, awaited with their page, and closed with its context"
    ),
    "engine/browser/chromium/launch.py": (
        "small work aside, kept by the browser and ended with it"
    ),
    "engine/browser/direct/devtools_connection.py": (
        "what listens to an event of a tab, bounded by itself and kept with its session"
    ),
    "engine/browser/direct/direct_browser.py": (
        "the browser's end, awaited by who closes it, also when that is cancelled"
    ),
    "engine/browser/direct/process.py": (
        "the process's end, awaited by who asks for it first, also when that is cancelled"
    ),
    "engine/browser/chromium/driver.py": (
        "the driver's start, awaited to its end also when cancelled"
    ),
    "engine/browser/chromium/browser_session.py": (
        "the watch over running browsers, ended with the session; instances that close while their "
        "task is settled already"
    ),
    "engine/egress/proxy_listener.py": (
        "connecting for a browser, cancelled with its connection, and the proxy's questions to the "
        "engine's loop, awaited at once"
    ),
    "engine/egress/proxy.py": "work of the proxy's own loop, awaited by who asks for it",
    "engine/service/router/ledger_router.py": "closing a ledger beside, awaited by close()",
    "engine/service/router/merging.py": "following each ledger beside, ended with its reader",
    "engine/service/router/connection.py": "opening a ledger beside, ended by close()",
    "engine/service/maintenance.py": (
        "reaping now and then, ended by close(); asking tasks to stop, at the end of an engine"
    ),
    "engine/execution/executor.py": (
        "one task for each running body, kept until it is settled, and the look at the queue while "
        "a job waits, ended by close()"
    ),
    "engine/execution/runner.py": "the body and its watcher, both awaited before the settle",
    "engine/kinds/context.py": "tells what was refused; awaited at the end of its block",
    "engine/service/engine.py": "warming, and following the hold, ended by close()",
    "engine/service/schedules.py": "starting what is due, ended by close()",
    "engine/service/requests.py": "accepting a task whose caller goes away; ended by close()",
    "engine/ledger/watch.py": "the keeper of the watch, ended by stop()",
    "engine/ledger/wait.py": "the look-out of one wait, ended with it",
    "engine/cli/run.py": "Ctrl-C starts cancels, and the wait for all; gathered at the end",
    "engine/cli/resume_command.py": "as in run.py",
    "engine/cli/start.py": "Ctrl-C starts a cancel; gathered before the command returns",
    "engine/cli/schedules_command.py": "waits for the first of several ends, gathered at once",
    "engine/cli/watch_command.py": "the table that Ctrl-C ends; awaited at once",
    "engine/cli/worker.py": "a signal starts a cancel; gathered before the worker ends",
    "engine/pages/asset_loading.py": "sheets and scripts on their way; ended by close()",
}
ENVIRONMENT = {
    "engine/cli/": "the command line turns variables into settings",
    "engine/browser/direct/process.py": "a browser inherits it, as other child processes do",
    "gui/app.py": "the window turns variables into settings",
    "gui/startup/loop.py": "tells qasync which Qt to take, before it is imported",
    "gui/desktop/bus.py": "where the desktop's bus listens",
    "gui/desktop/launch_request.py": (
        "tells the users of one Windows machine apart, and hands the desktop's leave to come "
        "forward to Qt, which reads it"
    ),
}
PRINTERS = {
    "engine/cli/": "the command line",
}
BROAD_CATCHERS = {
    "engine/cluster/background.py": (
        "a round of following workers and processes that fails is logged; the next one follows"
    ),
    "engine/browser/direct/devtools_connection.py": (
        "a listener's failure is reported, and must not end the browser of all crawls"
    ),
    "engine/service/router/isolated_executor.py": (
        "hands whatever failed on a thread to who awaits it"
    ),
    "engine/profiles/system_keyring.py": "each keyring of a system has errors of its own",
    "engine/execution/runner.py": "settle: any failure of a body becomes FAILED with its reason",
    "gui/engine_link/scheduling.py": "TaskSet: any failure becomes a sentence in the window",
    "engine/service/router/merging.py": (
        "one ledger must not stop the others' list: it is followed anew"
    ),
    "gui/startup/window_builder.py": (
        "a part that cannot be made must not keep the others from the window"
    ),
    "gui/engine_link/bridge.py": "a list that stands still must not look live: it follows anew",
    "engine/server/mcp_server.py": "a host gets a typed answer, and the log the details",
    "engine/server/http_app.py": "a client gets a typed answer, and the log the details",
    "engine/server/websocket_messages.py": "a client gets a typed answer, and the log the details",
    "engine/cli/__main__.py": "the last resort: no traceback reaches a user, it goes to the log",
    "engine/cli/worker.py": "the last resort of a process that nobody looks at",
}
CANCEL_KEEPERS = {
    "engine/execution/runner.py": "kept while the pages are settled, then raised again",
    "gui/app.py": "the program's end: a signal becomes its exit code",
}
NESTING = 3

WRITE_CALLS = frozenset(
    {"os.replace", "os.rename", "os.renames", "os.mkdir", "os.makedirs", "os.unlink", "os.remove"}
    | {"os.rmdir", "os.removedirs", "os.link", "os.symlink", "os.truncate", "os.utime", "os.chmod"}
    | {"shutil.move", "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree"}
    | {"shutil.rmtree", "tempfile.mkdtemp", "tempfile.mkstemp"}
)
WRITE_METHODS = frozenset(
    {"write_text", "write_bytes", "touch", "mkdir", "unlink", "rmdir"}
    | {"symlink_to", "hardlink_to"}
)
WRITE_FLAGS = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"})
RICH_TEXT = frozenset(
    {"setHtml", "insertHtml", "appendHtml", "QTextEdit", "QTextBrowser", "setTextFormat"}
)
BROAD = ("Exception", "BaseException")
UNSAFE = frozenset({"eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads"})


def _within(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place) for place in places)


def _dotted(node: ast.expr) -> str:
    """`os.path.join` as text; an empty text for what is no plain chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := _dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@lru_cache(maxsize=1)
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Return every node of a module; kept for the next rule, which reads the same module."""
    return tuple(ast.walk(tree))


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in _nodes(tree) if isinstance(node, ast.Call))


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                place = ROOT / name.replace(".", "/")
                is_module = place.is_dir() or place.with_suffix(".py").exists()
                yield node.lineno, name if is_module else node.module


def outside_things_have_one_seam(path: str, tree: ast.Module) -> Found:
    for line, name in _imports(tree):
        places = SEAMS.get(name.partition(".")[0])
        if places and not _within(path, places):
            yield line, f"imports {name}; only {', '.join(places)} may"


def the_window_knows_only_the_engines_face(path: str, tree: ast.Module) -> Found:
    for line, name in _imports(tree):
        head, _, rest = name.partition(".")
        if path.startswith("gui/") and head == "engine" and rest not in GUI_MAY_IMPORT:
            yield line, f"imports {name}; the window may import {', '.join(sorted(GUI_MAY_IMPORT))}"


def kinds_are_named_in_their_package_alone(path: str, tree: ast.Module) -> Found:
    """Other modules read what they need of a kind from its `KindSpec` or its `KindTraits`."""
    if _within(path, ("engine/kinds/",)) or path in OTHER_MEANINGS:
        return
    prose = {id(node.value) for node in _nodes(tree) if isinstance(node, ast.Expr)}
    for node in _nodes(tree):
        if isinstance(node, ast.Constant) and id(node) not in prose and node.value in KIND_NAMES:
            yield node.lineno, f"the kind {node.value!r} is named outside engine/kinds"


def files_are_written_in_one_place(path: str, tree: ast.Module) -> Found:
    if path in WRITERS:
        return
    for call in _calls(tree):
        name, last = _dotted(call.func), _last(call.func)
        # A text's replace() takes two; one argument alone is Path.replace().
        one = last == "replace" and len(call.args) == 1 and not call.keywords
        as_path_replace = one and path.startswith("engine/")
        if name in WRITE_CALLS or last in WRITE_METHODS or as_path_replace or _opens_to_write(call):
            yield call.lineno, f"{name or last}(…) writes; call engine.ledger.files instead"


def _opens_to_write(call: ast.Call) -> bool:
    name = _dotted(call.func)
    if name == "os.open":
        nowhere = bool(call.args) and _dotted(call.args[0]) == "os.devnull"
        used = {_last(node) for node in ast.walk(call) if isinstance(node, ast.Attribute)}
        return bool(used & WRITE_FLAGS) and not nowhere
    if _last(call.func) not in ("open", "fdopen"):
        return False
    at = 1 if name in ("open", "io.open", "os.fdopen") else 0
    modes = call.args[at : at + 1] + [word.value for word in call.keywords if word.arg == "mode"]
    texts = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
    return any(set(text) & set("wax+") for text in texts if isinstance(text, str))


def no_dialog_runs_a_loop_of_its_own(path: str, tree: ast.Module) -> Found:
    for call in _calls(tree):
        name = _dotted(call.func)
        nested = _last(call.func) in ("exec", "exec_") and isinstance(call.func, ast.Attribute)
        if path in DRAGS and name == "drag.exec":
            continue
        if path.startswith("gui/") and (nested or "QMessageBox." in name):
            yield call.lineno, f"{name}(…) nests a loop and strands other tasks; use open()"


def background_tasks_have_an_owner(path: str, tree: ast.Module) -> Found:
    if path in SPAWNERS:
        return
    groups = {
        _last(item.optional_vars)
        for node in _nodes(tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if item.optional_vars
        and _last(getattr(item.context_expr, "func", item.context_expr)) == "TaskGroup"
    }
    groups |= {
        node.arg
        for node in _nodes(tree)
        if isinstance(node, ast.arg) and node.annotation and _last(node.annotation) == "TaskGroup"
    }
    for call in _calls(tree):
        spawns = _last(call.func) in ("create_task", "ensure_future", "run_coroutine_threadsafe")
        holder = _last(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if spawns and holder not in groups:
            yield call.lineno, "starts a task outside a TaskGroup and outside its owners"


def text_from_outside_stays_plain(path: str, tree: ast.Module) -> Found:
    if not path.startswith("gui/") or path == "gui/style/theme.py":
        return
    for node in _nodes(tree):
        if isinstance(node, ast.Call) and _last(node.func) in {"QLabel", *RICH_TEXT}:
            yield node.lineno, f"{_last(node.func)} may render markup; use theme.plain_label"
        if isinstance(node, ast.ClassDef) and {_last(b) for b in node.bases} & {
            "QLabel",
            *RICH_TEXT,
        }:
            yield node.lineno, f"class {node.name} may render markup; make it from theme's labels"


def only_the_faces_read_the_environment(path: str, tree: ast.Module) -> Found:
    for node in _nodes(tree):
        if not isinstance(node, ast.Attribute):
            continue
        name = _dotted(node)
        if name in ("os.environ", "os.getenv", "os.environb") and not _within(path, ENVIRONMENT):
            yield (
                node.lineno,
                f"{name}: take it as an argument; only {', '.join(ENVIRONMENT)} read it",
            )


def only_the_command_line_prints(path: str, tree: ast.Module) -> Found:
    for call in _calls(tree):
        if _dotted(call.func) == "print" and not _within(path, PRINTERS):
            yield call.lineno, "prints; standard output belongs to the command line"


def broad_excepts_stand_at_the_edges(path: str, tree: ast.Module) -> Found:
    for node in _nodes(tree):
        if isinstance(node, ast.ExceptHandler) and path not in BROAD_CATCHERS:
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            broad = any(kind is None or _last(kind) in BROAD for kind in kinds)
            passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if broad and not passes_on:
                yield node.lineno, "catches everything; name the errors that are meant"


def cancelling_is_passed_on(path: str, tree: ast.Module) -> Found:
    if path in CANCEL_KEEPERS:
        return
    for node in _nodes(tree):
        if not isinstance(node, ast.ExceptHandler) or node.type is None:
            continue
        names = {_last(kind) for kind in ast.walk(node.type) if isinstance(kind, ast.expr)}
        raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
        if "CancelledError" in names and not raises:
            yield node.lineno, "swallows CancelledError; raise it again"


def nothing_is_run_from_text(path: str, tree: ast.Module) -> Found:
    for call in _calls(tree):
        shell = any(word.arg == "shell" for word in call.keywords)
        if _dotted(call.func) in UNSAFE or shell or _last(call.func) == "create_subprocess_shell":
            yield call.lineno, f"{_dotted(call.func)}(…) runs text"


def functions_stay_flat(path: str, tree: ast.Module) -> Found:
    for node in _nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        deepest = _depth(node.body)
        if deepest > NESTING:
            yield node.lineno, f"{node.name}() nests {deepest} deep; {NESTING} are allowed"


def _depth(body: list[ast.stmt]) -> int:
    return max(map(_depth_of, body), default=0)


def _depth_of(node: ast.stmt) -> int:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return 0  # a function of its own
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _depth(node.body)  # a scope, no turn of the road
    if isinstance(node, ast.Try) and not node.handlers:
        return max(_depth(node.body), _depth(node.finalbody))
    parts = [getattr(node, name, []) for name in ("body", "finalbody")]
    parts += [part.body for part in (*getattr(node, "handlers", []), *getattr(node, "cases", []))]
    other = getattr(node, "orelse", [])
    inner = max(map(_depth, parts), default=0)
    if len(other) == 1 and isinstance(other[0], ast.If):  # elif reads as the same level
        return max(1 + inner, _depth_of(other[0]))
    blocks = any(parts) or bool(other)
    return (1 if blocks else 0) + max(inner, _depth(other))


def modules_say_what_they_are_for(path: str, tree: ast.Module) -> Found:
    if tree.body and not ast.get_docstring(tree):
        yield 1, "has no docstring"


def addresses_have_one_parser(path: str, tree: ast.Module) -> Found:
    if path in OTHER_ADDRESSES:
        return
    for node in _nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "urllib.parse":
            for alias in node.names:
                if alias.name in URL_READERS:
                    yield node.lineno, f"imports {alias.name}; call engine.model.addresses instead"


RULES: tuple[Rule, ...] = (
    outside_things_have_one_seam,
    addresses_have_one_parser,
    the_window_knows_only_the_engines_face,
    kinds_are_named_in_their_package_alone,
    files_are_written_in_one_place,
    no_dialog_runs_a_loop_of_its_own,
    background_tasks_have_an_owner,
    text_from_outside_stays_plain,
    only_the_faces_read_the_environment,
    only_the_command_line_prints,
    broad_excepts_stand_at_the_edges,
    cancelling_is_passed_on,
    nothing_is_run_from_text,
    functions_stay_flat,
    modules_say_what_they_are_for,
)


def break_in(path: str, source: str, rule: Rule) -> list[str]:
    """Every place in `source` (called `path`) that breaks `rule`, one sentence each."""
    return breaks_of(path, parsed(path, source), (rule,))[rule.__name__]


def parsed(path: str, source: str) -> ast.Module:
    """Parse a module as the oldest supported Python reads it."""
    return ast.parse(source, filename=path, feature_version=(3, 11))


def breaks_of(path: str, tree: ast.Module, rules: Iterable[Rule] = RULES) -> dict[str, list[str]]:
    """Rule -> every place in the module `path` that breaks it, one sentence each."""
    return {
        rule.__name__: [f"{path}:{line}: {sentence}" for line, sentence in rule(path, tree)]
        for rule in rules
    }
