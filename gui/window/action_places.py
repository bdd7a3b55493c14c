"""Where each action stands: in which menu, on the toolbar, in the menu of a row.

"" is a line between groups. What no part of the window has added is left out, and so are
lines with nothing between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

MENUS: dict[str, tuple[str, ...]] = {
    "file": (
        *("new", "paste", "open_file", "list_mode", ""),
        *("open", "add_root", "folder", ""),
        *("export_tasks", "export_list", "", "settings", "", "quit"),
    ),
    "edit": (
        *("undo", ""),
        *("copy_ids", "copy_rows", "copy_link", "copy_files", ""),
        *("all", "all_matching", "none", ""),
        *("find", "filter_by_value", "save_view", "clear_filter"),
    ),
    "task": (
        *("open_result", "watch_page", ""),
        *("cancel", "stop", "force_stop", "cancel_matching", "force", "resume", ""),
        *("rerun", "rerun_many", "duplicate", "retry_failed", ""),
        *("acknowledge", "next_attention", "last_attention", ""),
        *("task_folder", "delete", "delete_for_good", "", "sample"),
    ),
    "view": (
        *("sidebar", "details", "details_right", "", "MENU sort", "MENU columns", "MENU views"),
        *("MENU theme", "MENU language", "", "rescan", "", "next_region", "last_region"),
    ),
    "tools": ("palette", "", "news", "doctor", "statistics"),
    "help": ("help", "shortcuts", "", "log", "debug_info", "", "about"),
}
TOOL_BAR = ("new", "cancel", "rerun", "force", "", "export_tasks", "folder", "", "palette")
TOOL_BAR_END = ("watch_page", "rescan", "settings", "sidebar", "details")
ROW_MENU = (
    *("open_result", "watch_page", "", "cancel", "stop", "force", "resume", ""),
    *("rerun", "duplicate", "retry_failed", "", "acknowledge", "filter_by_value", ""),
    *("copy_ids", "copy_rows", "copy_link", "copy_files", ""),
    *("export_tasks", "task_folder", "delete"),
)


def present(keys: Sequence[str], known: Callable[[str], bool]) -> Iterator[str]:
    """The keys that are `known`, with one line between two groups and none at the ends."""
    line = began = False
    for key in keys:
        if not key:
            line = began
        elif known(key):
            if line:
                yield ""
            yield key
            line, began = False, True
