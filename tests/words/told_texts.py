"""Every reason that the engine words itself, found in its code: no id, no class, an English text.

What is a reason is told by elimination: a text with words in it that is neither a docstring nor
a name, a log line, a pattern to look for, a help text of the command line or an agent's reply.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "engine"
# The command line, what agents are answered, and what is shown by id: nobody reads it here.
ELSEWHERE = (
    *("cli/", "server/", "verbs/", "agents/", "sample/", "export/report.py"),
    *("text/messages.py", "text/cli_messages.py"),
    *("browser/interact/agent_tab.py", "browser/interact/element_actions.py"),
    "browser/direct/",  # errors in the words of Playwright, and names of fonts
    *("browser/page/isolated_world.py", "browser/page/screenshot.py"),
    *("browser/recording/recorder.py", "browser/recording/recorder_messages.py"),
    *("pages/rendered_text.py", "pages/style_sheets.py", "pages/markdown_markup.py"),
)
# Texts of the rest that name a step of a program, a field in a file, or what others say.
NAMES = frozenset(
    {
        *("command task", "task run", "task {0}", "error page", "open files", "a new tab"),
        *("a new window", "a window that a page opened, or a dead one", "its cookies"),
        *(
            "cookies and storage",
            "huge pages",
            "{0} is closed",
            "another user",
            "command {0}",
            "the file",
        ),
        *(
            "Chromium headless shell",
            "Google Chrome for Testing",
            "HTTP {0}",
            "HTTP ",
        ),
        *("lost ownership", "the {0}", "openchrome-monitor {0}", "Basic ", "open the browser"),
        *("look at the instance", "{0} budget_{1}={2}", "{0} lumas instead of {1}"),
        *("{0}owner {1}, disk {2}", "{0} min", "{0} min {1} s", ", EXCLUDE {0}", "<!doctype html"),
        *("context was destroyed", "context with specified id", "is not a valid selector"),
        *("interrupted by another navigation", "Unterminated string", "Browser has been closed"),
        *("Target page, context or browser has been closed", "Target crashed", "Page crashed"),
        *("Unknown engine", "Unexpected token", "Malformed selector", "while parsing selector"),
        *("while parsing css selector", "SyntaxError: Failed to execute", "key {0}"),
        *("Element is not attached", " subtree", "waiting for element to be visible"),
        "performing click action",
        *("Linux armv81", "Linux x86_64"),  # values of navigator.platform
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; compatible; "
        "OpenChromeMonitor/0.1) Chrome/140.0.0.0 Safari/537.36",
        *("Open a tab", "Go to tab {0}", "{0} {1} with the {2} button"),
        *("scroll by {0}, {1}", "type {0} into {1}", "Click {0}", "Press {0}", "Replay of {0}"),
        *("Do again what was recorded at {0}", "Mark this page, to know the next one from it"),
        *("Scroll {0}", "Select in {0}", "Type into {0}", "Wait for {0}"),
        *("Upload into {0}", "Drag {0}", "Close tab {0}"),
        "octask run --allow-files DIR, the folder that holds these files",
        *("octask start {0}", "octask {0}{1}{2}", "octask run FILE"),
        # names in the list of licenses, and the help of the command that writes it
        *("Playwright driver", "Playwright driver: libraries", "Python package", " AND "),
        "Write the licenses of all components to a file.",
        *("Move the mouse over {0}", "Accept the dialog", "Dismiss the dialog"),
        *("Leave the page", "Stay on the page when it asks"),
        # commands that install a browser
        *("sudo apt install chromium", "sudo snap install chromium", "sudo dnf install chromium"),
        *("sudo pacman -S chromium", "sudo zypper install chromium", "sudo apk add chromium"),
        *("winget install Google.Chrome", "brew install --cask google-chrome"),
    }
)
# What is put together before it is told: `WHOLE` has it as it is read.
PARTS = frozenset(
    {
        *("; did you mean {0}?", "'{0}' is not the name of a key{1}", "is not {0}{1}"),
        *("there is no variable '{0}'{1}", "there is no {0} '{1}'{2}", "a field of a task"),
        *("a field of a command", "an argument of {}", "must be {0}", "an object", "true or false"),
        "{0}; there are {1}",
        "; it is an action of {0}",
        "Otherwise install a browser (`{command}`), set OC_BROWSER to a program's path, "
        "or copy the folder {folder} from another machine of the same kind.",
        *(
            "{0} elements",
            "the first selector met {0}; used {1}",
            "the first target met {0}; used {1}",
            "; and ",
        ),
        *("not done within {0} s{1}{2}", "it is {0}", "no regular file", "{0} twice"),
        *(
            "Complete at least {0} more {1} item(s), {2}",
            "Retry or skip the failed {0} item(s), {1}",
        ),
        *("or use force with a reason if the task must end early.", ", or any other in quotes"),
    }
)
WHOLE = (
    *("'Foo' is not the name of a key; did you mean F?", "is not a field of a task"),
    *("is not a field of a command; did you mean args?", "is not an argument of goto"),
    *("there is no variable 'x'; did you mean y?", "there is no tool 'x'", "must be an object"),
    *("must be true or false", "not done within 5 s: #buy (it is hidden)", "not done within 5 s"),
    *(
        "it is a folder",
        "a, b, or any other in quotes",
        "it is no regular file",
        "the page crashed twice",
    ),
    "2 elements match the selector; the first was used; and 3 frames match; the first was used",
    "Complete at least 3 more page item(s), or use force with a reason if the task must end early.",
    "Retry or skip the failed page item(s), or use force with a reason if the task must end early.",
)
WORDS = re.compile(r"[a-z]{2,} [a-z]|[A-Za-z]{3,} $|^ [a-z]{3,}")
LOGS = ("log.", "_log.", "re.", "logger.", "_names")  # the last one: names of HTML elements
_NAMING = {"name", "group", "help", "verbs_help", "step_verb"}
_FORMS = ("FormField", "KindForm")  # their texts are translated as texts of the window


@cache
def told_texts() -> frozenset[str]:
    """The reasons, with `{0}` and so on where facts stand."""
    files = sorted(ROOT.rglob("*.py"))
    kept = (one for one in files if not one.relative_to(ROOT).as_posix().startswith(ELSEWHERE))
    found = {text for file in kept for text in _texts(ast.parse(file.read_text("utf-8")))}
    return frozenset(found - NAMES - PARTS)


def _texts(node: ast.AST) -> Iterator[str]:
    text = _template(node)
    if text is not None:
        if "=>" not in text and WORDS.search(re.sub(r"\{\d+\}", "", text)):
            yield text
        return
    for below in _below(node):
        yield from _texts(below)


def _template(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    gaps = iter(range(len(node.values)))
    parts = (
        one.value if isinstance(one, ast.Constant) else f"{{{next(gaps)}}}" for one in node.values
    )
    return "".join(map(str, parts))


def _below(node: ast.AST) -> Iterator[ast.AST]:
    """What of this node may be said to somebody."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(LOGS):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _FORMS:
        return
    if isinstance(node, ast.Assign | ast.AnnAssign) and _is_hint(node):
        return
    if isinstance(node, ast.Compare | ast.Assert | ast.Expr) and not _does(node):
        return
    if isinstance(node, ast.Dict):  # a table of what to look for, with what is said
        yield from node.values
        return
    for below in ast.iter_child_nodes(node):
        named = isinstance(below, ast.keyword) and below.arg in _NAMING
        fixed = isinstance(node, ast.ClassDef) and isinstance(below, ast.Assign | ast.AnnAssign)
        if not (named or fixed):
            yield below


def _is_hint(node: ast.Assign | ast.AnnAssign) -> bool:
    """Is it a hint that several forms share?"""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return isinstance(target, ast.Name) and target.id.endswith("_HINT")


def _does(node: ast.AST) -> bool:
    """Is it more than a docstring, a comparison or a proof?"""
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
