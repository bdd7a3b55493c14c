"""Commands of octask, each with its help and the module that it is loaded from on use.

Only the command that runs is imported: every kind, the browser's session and the servers cost
several times as much CPU as click, and `--help`, `--version` and completion need none of them.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Final

import click

from engine.cli.command_groups import LazyGroup
from engine.cli.exit_codes import EXIT_CODES
from engine.cli.options import place_options
from engine.kinds.traits import RECORDING_TRAITS
from engine.model.build_info import build_info


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.version_option(str(build_info()), message="octask %(version)s")
@place_options
def octask(**_: Any) -> None:
    """Start, watch and stop browser tasks of the ledger under ~/.openchrome/tasks."""


@octask.command("_read-ahead", hidden=True)
@click.argument("root_fd", type=int)
def read_ahead(root_fd: int) -> None:
    """Send the records of a large ledger to the process that lists it."""
    from engine.ledger.files import Folder
    from engine.ledger.read_ahead import send

    send(Folder("", root_fd), sys.stdout.fileno())


# Name -> where the command is, and its help.
COMMANDS: Final = {
    "_cluster": (
        "cluster_process:cluster_process",
        "Take orders from standard input, and end when it is closed.",
    ),
    "_worker": ("worker:worker", "Take one task from standard input and run it to its end."),
    "browser-server": (
        "browser_server_command:browser_server",
        "Lend the browser of this machine to tasks of other machines, until Ctrl-C.",
    ),
    "consent-rules": (
        "consent_rules_command:consent_rules_group",
        "Show and install the rules by which consent banners are dismissed.",
    ),
    "doctor": (
        "doctor_command:doctor",
        "Look at browser, ledger, locks, limits and versions; a report to copy.",
    ),
    "import": (
        "import_command:import_tasks",
        "Bring tasks that were exported as zip files into this ledger.",
    ),
    "install-browser": (
        "install_browser_command:install_browser",
        "Download Chromium for this program.",
    ),
    "mcp": ("mcp_command:mcp", "Serve the tools to an MCP host on standard input and output."),
    "rerun": ("rerun_commands:rerun", "Start a task's request once more, as a new task."),
    "resume": (
        "resume_command:resume",
        "Start a new crawl that keeps the pages of a stopped one and goes on from there.",
    ),
    "retry": ("rerun_commands:retry", "Start a new task over what failed in an ended one."),
    "run": ("run:run", "Run command tasks from JSON files; `-` reads standard input."),
    "serve": (
        "serve_command:serve",
        "Serve HTTP, WebSocket and MCP to programs of this machine, until Ctrl-C.",
    ),
    "start": ("start:start", "Start a task; URL is where it begins."),
    "watch": (
        "watch_command:watch",
        "Show all tasks and keep the list up to date, until Ctrl-C.",
    ),
    "worker": (
        "worker_command:worker",
        "Load pages for the tasks that use the Dask scheduler at ADDRESS, until Ctrl-C.",
    ),
}
# Name of a verb, or of a group of verbs -> the modules of its verbs and of their output, and help.
VERBS: Final = {
    "audit": (
        "result_verbs",
        "audit",
        "Report about the pages of a crawl: broken links, redirects, duplicates, titles and more.",
    ),
    "cancel": ("task_verbs", "cancel", "Ask tasks to stop; what they have finished is kept."),
    "complete": (
        "contract_verbs",
        "goals",
        "Call a task run, an envelope or a running crawl complete, if its contract allows.",
    ),
    "contract": (
        "contract_verbs",
        "goals",
        "Say what a repetitive task has to do, and record what it did.",
    ),
    "diff": ("result_verbs", "diff", "Show what differs between two tasks of the same target."),
    "export": (
        "result_verbs",
        "export",
        "Write what a task found as a table or report: pages, actions, commands.",
    ),
    "finish": ("contract_verbs", "runs", "End an envelope permanently."),
    "get": ("task_verbs", "task_commands", "Show one task."),
    "hold": (
        "hold_verbs",
        "hold_commands",
        "Hold new starts: waiting tasks stay in the queue, running ones go on.",
    ),
    "list": ("task_verbs", "task_commands", "List tasks, newest first."),
    "profile": (
        "profile_verbs",
        "profile_command",
        "Manage profiles: named sign-ins for tasks; without a command, list them.",
    ),
    "prune": (
        "result_verbs",
        "prune",
        "Remove ended tasks: shows what would go; with --yes it goes to the trash.",
    ),
    "reap": ("task_verbs", "task_commands", "End what dead processes left behind."),
    RECORDING_TRAITS.name: ("result_verbs", "export", RECORDING_TRAITS.verbs_help),
    "release": (
        "hold_verbs",
        "hold_commands",
        "Start waiting tasks again after a hold; with ids, only these, and the hold stays.",
    ),
    "runs": ("run_verbs", "runs", "Lifecycle records of runs; alone it lists them."),
    "schedules": (
        "schedule_verbs",
        "schedules_command",
        "Repeat tasks by a rule; alone it lists the schedules.",
    ),
    "stop": (
        "result_verbs",
        "export",
        "Stop a recording: it ends COMPLETED, with everything that was recorded.",
    ),
    "task-run": ("contract_verbs", "goals", "Keep goals that one or many tasks work for."),
    "update": (
        "contract_verbs",
        "runs",
        "Say in which phase an envelope is, or leave a note; nothing is executed.",
    ),
    "wait": ("task_verbs", "task_commands", "Wait until a task has ended."),
}
# Group of verbs -> its commands that are no verbs of the command line.
MORE: Final = {
    "profile": (
        "profile_command:new",
        "profile_command:renew",
        "profile_command:import_profile",
    ),
    "schedules": ("schedules_command:add",),
}


def _command(place: str) -> click.Command:
    found: click.Command = resolve_name(f"engine.cli.{place}")
    return found


def _verb_command(name: str, verbs: str, output: str, help_: str) -> click.Command:
    found: click.Command = resolve_name("engine.cli.verb_commands:verb_command")(
        name, import_module(f"engine.verbs.{verbs}"), f"engine.cli.{output}", help_
    )
    for place in MORE.get(name, ()):
        assert isinstance(found, click.Group)
        found.add_command(_command(place))
    return found


for _name, (_place, _help) in COMMANDS.items():
    octask.add_later(_name, _help, partial(_command, _place))
for _name, (_verbs, _output, _help) in VERBS.items():
    octask.add_later(_name, _help, partial(_verb_command, _name, _verbs, _output, _help))
