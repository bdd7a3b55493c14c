"""Tools of MCP: the verb that each one calls, the names of its arguments, and when to use it.

Descriptions are for the model that chooses a tool: its effect, the better tool for other cases,
and the result. Names of tools and arguments are OpenChrome's, so that a host can
change between the two programs (seeds 000 to 004).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal

from engine.agents.tool_calls import TOOLS as BROWSER_TOOLS
from engine.agents.tool_calls import camel
from engine.model.errors import InvalidArguments, Problem
from engine.verbs import Param, Verb
from engine.verbs.schemas import object_schema
from engine.verbs.unknown_arguments import missing_arguments, unknown_argument
from engine.verbs.verb_table import VERBS

Group = Literal["tasks", "schedules", "goals", "runs", "browser"]
GROUPS: Final[Mapping[Group, str]] = {
    "tasks": "start, watch and stop tasks",
    "schedules": "repeat tasks by a rule",
    "goals": "task runs, and contracts of what has to be done",
    "runs": "lifecycle records of runs",
    "browser": "open pages, read them and act on them",
}


@dataclass(frozen=True)
class Tool:
    """One tool of MCP.

    `names` maps names of arguments to parameters of the verb; `also` are further spellings, which
    are accepted and not shown, as is `taskId` for `task_id`. `hidden` parameters are not offered;
    `extra` ones are converted by `adapt`. `starts` marks a tool whose work goes on after its
    answer.
    """

    name: str
    title: str
    verb: Verb
    group: Group
    description: str
    names: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    hidden: Collection[str] = ()
    extra: tuple[Param, ...] = ()
    adapt: Callable[[dict[str, Any]], dict[str, Any]] = dict
    reads: bool = False
    starts: bool = False
    destroys: bool = False
    opens_web: bool = False

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments."""
        shown = {param: name for name, param in self.names.items()}
        params = (
            replace(param, name=shown.get(param.name, param.name))
            for param in self.verb.public
            if param.name not in self.hidden
        )
        return object_schema((*self.extra, *params))

    def given(self, arguments: object) -> dict[str, Any]:
        """Return the arguments by the names of the verb's parameters; the verb checks the values.

        Raises:
            InvalidArguments: it is no object, names a parameter that is not offered, or names one
                twice with different values.
        """
        if not isinstance(arguments, Mapping | None):
            wrong = Problem("", "wrong_type", "the arguments must be an object")
            raise InvalidArguments((wrong,))
        found: dict[str, Any] = {}
        problems: list[Problem] = []
        offered = self.input_schema["properties"]
        for name, value in (arguments or {}).items():
            target = self._targets.get(name)
            if target is None:
                problems.append(unknown_argument(name, self.name, offered, before=len(problems)))
            elif found.setdefault(target, value) != value:
                problems.append(Problem(name, "given_twice", f"contradicts {target}"))
        if problems:
            raise InvalidArguments((*problems, *self._missing(found)))
        return self.adapt(found)

    def _missing(self, found: Mapping[str, Any]) -> list[Problem]:
        required = self.input_schema.get("required", ())
        return missing_arguments(
            required, (name for name in required if self._targets[name] in found)
        )

    @cached_property
    def _targets(self) -> dict[str, str]:
        offered = [param.name for param in self.verb.public if param.name not in self.hidden]
        own = {name: name for name in (*offered, *(param.name for param in self.extra))}
        return {**{camel(name): name for name in own}, **own, **self.names, **self.also}


def _ids_of(given: dict[str, Any]) -> dict[str, Any]:
    """Convert `task_id` of a cancel to `task_ids`."""
    one = given.pop("task_id", None)
    if one is not None and not given.get("task_ids"):
        given["task_ids"] = [one]
    return given


_TASK_ID = Param("task_id", "the task's id: 16 hex digits")
_INCLUDE: Final = {
    "include_result": "result",
    "include_events": "events",
    "include_files": "files",
}
_WHOLE: Final = ("contract", "update")


def _tool(name: str, title: str, verb: str, group: Group, description: str, **more: Any) -> Tool:
    return Tool(name, title, VERBS[verb], group, description, **more)


_ALL: Final = (
    _tool(
        "oc_task_start",
        "Start a task",
        "start",
        "tasks",
        "Start long work in the background and get its record with task_id at once: a crawl of a "
        "site (crawl), of its sitemap (crawl_sitemap), a recording, an evidence bundle of one page "
        "(oc_evidence_bundle), a session snapshot (oc_session_snapshot), or a scripted sequence of "
        "browser commands (commands; task_submit is simpler for those). With objective and without "
        "kind it opens a browser_task: an envelope that counts your own calls of the browser tools "
        "against its policy, when you pass its id as taskId; answers say when to stop. To look at "
        "one page now, use navigate and read_page instead. Follow the task with oc_task_wait or "
        "oc_task_get; it goes on when this connection ends.",
        starts=True,
        opens_web=True,
    ),
    _tool(
        "oc_task_list",
        "List tasks",
        "list",
        "tasks",
        "List tasks of the ledger, newest first: yours, the operator's, and those of other "
        "programs. Use it to find a task again after a restart. Filter by status and kind, or with "
        "query, such as 'status:failed host:example.com age:<1h'. Returns {tasks, count, more}; "
        "each task in short: state, address, progress, error.",
        reads=True,
    ),
    _tool(
        "oc_task_get",
        "Show a task",
        "read",
        "tasks",
        "Show one task: state, progress, error, budgets (envelope: counters, budget_status, "
        "recommended_next) and contract. include_result adds a part of its result (pages of a "
        "crawl, actions of a recording, …); when result_page has next_cursor, call again with it "
        "as cursor. include_events adds events. include_files lists screenshots and other files: "
        "read one as the resource octask://tasks/ID/files/NAME. Does not wait: use oc_task_wait "
        "for the end.",
        names=_INCLUDE,
        reads=True,
    ),
    _tool(
        "oc_task_wait",
        "Wait for a task",
        "wait",
        "tasks",
        "Wait until a task has ended and return its record; progress is reported meanwhile. Other "
        "tools can be called while it waits. After timeout_ms it answers with an error of code "
        "ETIMEDOUT and the task goes on: wait again, or do something else.",
        reads=True,
    ),
    _tool(
        "oc_task_cancel",
        "Cancel tasks",
        "cancel",
        "tasks",
        "Ask one task (task_id), several (task_ids) or all that match a query (all_matching, with "
        "yes after dry_run) to stop. What they have finished is kept. A queued task ends at once, "
        "a running one within two seconds. Returns {tasks, refused} after it. To end a recording "
        "with its result COMPLETED, use oc_task_stop.",
        extra=(_TASK_ID,),
        adapt=_ids_of,
        destroys=True,
    ),
    _tool(
        "oc_task_stop",
        "Stop a recording",
        "stop",
        "tasks",
        "Stop a recording: it becomes COMPLETED with everything that was recorded. "
        "Other kinds are refused: use oc_task_cancel for them.",
    ),
    _tool(
        "oc_task_update",
        "Update an envelope",
        "update",
        "tasks",
        "Say in which phase your browser_task is (explore, act, verify, recover, done) or leave a "
        "note in it. Nothing is executed.",
    ),
    _tool(
        "oc_task_finish",
        "Finish an envelope",
        "finish",
        "tasks",
        "End your browser_task permanently: completed, failed or cancelled, with a last note. "
        "Tasks that run here end by themselves.",
    ),
    _tool(
        "oc_task_rerun",
        "Run a task again",
        "rerun",
        "tasks",
        "Start the request of an earlier task once more as a new task. Refused where its request "
        "was not stored whole (secrets are never stored): start it with oc_task_start then.",
        starts=True,
        opens_web=True,
    ),
    _tool(
        "oc_task_retry",
        "Retry failed parts",
        "retry",
        "tasks",
        "Start a new task over what failed in an ended one: the failed and missing pages of a "
        "crawl, or the rest of a command task. Cheaper than oc_task_rerun after a partial failure.",
        starts=True,
        opens_web=True,
    ),
    _tool(
        "oc_task_resume",
        "Resume a crawl",
        "resume",
        "tasks",
        "Start a new crawl that keeps the pages of a cancelled, failed or orphaned one and goes on "
        "where it stopped; with max_pages also one that ended at its limit of pages.",
        starts=True,
        opens_web=True,
    ),
    _tool(
        "oc_task_hold",
        "Hold new starts",
        "hold",
        "tasks",
        "Keep all waiting (PENDING) tasks of the ledger in the queue, in every program that works "
        "on it, until oc_task_release; running tasks go on. Use it only when the operator asks for "
        "a pause. Returns {held, hold} with since and by; a hold that is there already stays.",
    ),
    _tool(
        "oc_task_release",
        "Release held starts",
        "release",
        "tasks",
        "Let waiting tasks start again after a hold. With task_ids only these start and the hold "
        "stays for the others. Do not end a hold that the operator made without being asked.",
    ),
    _tool(
        "oc_task_reap",
        "End orphaned tasks",
        "reap",
        "tasks",
        "End what dead processes left behind as FAILED with code orphaned; what they had finished "
        "is kept. This happens by itself every 30 seconds: call it only to have it done now.",
    ),
    _tool(
        "task_submit",
        "Submit a command task",
        "submit",
        "tasks",
        "Run a fixed sequence of browser commands (go to, click, type, wait for, get text, "
        "screenshot, evaluate) in the background, in a browser of its own. Use it when the steps "
        "are known in advance, such as a login with a check; use navigate, read_page and act when "
        "you must look before each step. All mistakes are reported before anything runs. Returns "
        "{task} in queued state; read it with task_status. A secret is given as "
        '{"secret": "env:NAME"} and must be allowed by the operator.',
        starts=True,
        opens_web=True,
    ),
    _tool(
        "task_status",
        "Show a command task",
        "status",
        "tasks",
        "Show a command task with state, error and result of each command. Takes either id.",
        reads=True,
    ),
    _tool(
        "oc_schedule_add",
        "Repeat a task",
        "schedules add",
        "schedules",
        "Repeat a task by a rule: every (30m, 6h, 2d), daily (07:30) or cron, with a zone. Give a "
        "request (kind and args as for oc_task_start), or the task_id of a task. Each run "
        "is compared with the completed run before it. The operator's window starts runs, or a "
        "timer that calls `octask schedules run`: not this server. They may reach what your own "
        "starts may. A password or typed text is refused: give a "
        '{"secret": "env:NAME"}. Returns the schedule with schedule_id and next_at.',
    ),
    _tool(
        "oc_schedule_list",
        "List schedules",
        "schedules list",
        "schedules",
        "List schedules, oldest first: yours and the operator's, each with its rule, next_at, the "
        "last run and why a run could not start (refusal).",
        reads=True,
    ),
    _tool(
        "oc_schedule_get",
        "Show a schedule",
        "schedules show",
        "schedules",
        "Show one schedule: request, rule, options, next_at, last run with its changes, skips.",
        reads=True,
    ),
    _tool(
        "oc_schedule_change",
        "Change a schedule",
        "schedules change",
        "schedules",
        "Change a schedule that a program added; its runs stay, and a new rule counts from now. "
        "The operator's are refused (schedule_of_operator).",
    ),
    _tool(
        "oc_schedule_pause",
        "Pause a schedule",
        "schedules pause",
        "schedules",
        "Start no run of a schedule until oc_schedule_resume; one that runs goes on. Pause a "
        "schedule of the operator only when the operator asks for it.",
    ),
    _tool(
        "oc_schedule_resume",
        "Resume a schedule",
        "schedules resume",
        "schedules",
        "Go on with the next run of a paused schedule; the runs of the pause are not made up for. "
        "Do not resume what the operator has paused without being asked.",
    ),
    _tool(
        "oc_schedule_remove",
        "Remove a schedule",
        "schedules remove",
        "schedules",
        "Delete a schedule that a program added; its tasks stay. The operator's are refused "
        "(schedule_of_operator).",
        destroys=True,
    ),
    _tool(
        "oc_schedule_run",
        "Run a schedule now",
        "schedules run-now",
        "schedules",
        "Start a run of a schedule that was added by a program at once and get its task; its next "
        "run stays due. Repeat a task of the operator's schedules with oc_task_rerun instead.",
        starts=True,
        opens_web=True,
    ),
    _tool(
        "oc_task_run_start",
        "Start a task run",
        "task-run start",
        "goals",
        "Begin a goal that takes many steps, with a contract where it is repetitive ('collect the "
        "titles of these 3 pages'): it can then not be called complete before every item is "
        "accounted for. Nothing is executed. Returns {task_run} with run_id.",
        also={"bulk_contract": "contract", "bulk_progress_contract": "contract"},
    ),
    _tool(
        "oc_task_run_get",
        "Show a task run",
        "task-run get",
        "goals",
        "Show a task run with its counts and what its contract still misses; include_items names "
        "the items.",
        names={"include_events": "events"},
        reads=True,
    ),
    _tool(
        "oc_task_run_list",
        "List task runs",
        "task-run list",
        "goals",
        "List task runs, newest first, to find one again after a restart.",
        reads=True,
    ),
    _tool(
        "oc_task_run_update",
        "Record progress of a task run",
        "task-run update",
        "goals",
        "Record items of a task run as completed, failed or skipped (with a reason), and where to "
        "go on. Do it after each item: what is recorded survives a restart. After needs_help, "
        "status RUNNING with a resume_reason lets it go on.",
        hidden=("update",),
    ),
    _tool(
        "oc_task_run_checkpoint",
        "Put down a checkpoint",
        "task-run checkpoint",
        "goals",
        "Put down in words where a task run stands, so that it can be taken up again from there.",
        hidden=("update",),
    ),
    _tool(
        "oc_task_run_needs_help",
        "Ask a person for help",
        "task-run needs-help",
        "goals",
        "Say that a person must act before a task run can go on (a captcha, a decision, a "
        "password). The operator sees it in the window.",
        hidden=("update",),
    ),
    _tool(
        "oc_task_run_complete",
        "Complete a task run",
        "complete",
        "goals",
        "End a task run, an envelope or a running crawl. completed is refused with code "
        "bulk_completion_guard_failed, missing_count and suggested_next_action while its contract "
        "misses items: do these first. force overrules that and is recorded for ever with the "
        "reason and your name.",
        also={"force_reason": "reason"},
        hidden=("by",),
    ),
    _tool(
        "oc_bulk_progress_start",
        "Start a contract",
        "contract start",
        "goals",
        "Create a contract: what a repetitive task must do before it is complete: items, or "
        "expected_total, or a stop_condition. Returns the contract with contract_id and what its "
        "guard says.",
        hidden=_WHOLE,
    ),
    _tool(
        "oc_bulk_progress_update",
        "Update a contract",
        "contract update",
        "goals",
        "Record items of a contract as completed, failed or skipped, and where to go on.",
        hidden=_WHOLE,
    ),
    _tool(
        "oc_bulk_progress_check",
        "Check a contract",
        "contract check",
        "goals",
        "Check whether the work of a contract is complete: completion_guard.allowed, and "
        "if not, missing_count and suggested_next_action.",
        reads=True,
    ),
    _tool(
        "oc_bulk_progress_get",
        "Show a contract",
        "contract show",
        "goals",
        "Show a contract with its exact counts; include_items names the items.",
        reads=True,
    ),
    _tool(
        "oc_bulk_progress_list",
        "List contracts",
        "contract list",
        "goals",
        "List contracts, newest first, with what each still misses.",
        reads=True,
    ),
    _tool(
        "oc_run_list",
        "List runs",
        "runs list",
        "runs",
        "List the lifecycle records of runs: who asked (route, agentId), state and times.",
        reads=True,
    ),
    _tool(
        "oc_run_get",
        "Show a run",
        "runs show",
        "runs",
        "Show the record of one run: who asked, its state, times and reason.",
        reads=True,
    ),
    _tool(
        "oc_run_start",
        "Register a run",
        "runs start",
        "runs",
        "Register work of your own as a run. Tasks that are started here have theirs already.",
    ),
    _tool(
        "oc_run_update",
        "Add to a run",
        "runs update",
        "runs",
        "Add facts to a run that is running.",
    ),
    _tool(
        "oc_run_complete",
        "Complete a run",
        "runs complete",
        "runs",
        "End a run of your own as completed.",
    ),
    _tool("oc_run_abort", "Abort a run", "runs abort", "runs", "End a run of your own on purpose."),
    _tool(
        "oc_run_fail",
        "Fail a run",
        "runs fail",
        "runs",
        "End a run of your own with what went wrong.",
    ),
)

# When to choose which browser tool.
_CHOOSE: Final[Mapping[str, str]] = {
    "navigate": "Use it first: the other browser tools act on the open tab. Returns the address, "
    "the title and tab_id. For many pages use oc_task_start with kind crawl.",
    "read_page": "Use it after navigate and after each step that changes the page. Returns text "
    "with references such as [ref_1_7]; when it was cut, call again with the offset it names.",
    "find": "Cheaper than read_page when you know what you look for. Returns references.",
    "interact": "Use it with a reference from read_page or find; act takes words instead.",
    "act": "Use it when the step can be said in words; what is unclear is refused with candidates "
    "and nothing is done.",
    "javascript_tool": "Use it only for what the other tools cannot do.",
    "page_screenshot": "Use read_page for text; a picture costs more.",
    "tabs_context": "Use it to find your tabs again. Tabs of other agents are not yours.",
}
_READING: Final = frozenset({"read_page", "find", "page_screenshot", "tabs_context"})


def _browser_tools() -> Mapping[str, Tool]:
    return {
        name: Tool(
            name,
            name.replace("_", " ").capitalize(),
            VERBS[name],
            "browser",
            f"{tool.help.rstrip('.')}. {_CHOOSE[name]} With taskId the call is counted in that "
            "browser_task, and its budgets come back.",
            names={"taskId": "task_id", "agentId": "agent_id"},
            also={camel(arg.name): arg.name for arg in tool.args if camel(arg.name) != arg.name},
            reads=name in _READING,
            opens_web=True,
        )
        for name, tool in BROWSER_TOOLS.items()
    }


TOOLS: Final[Mapping[str, Tool]] = {**{tool.name: tool for tool in _ALL}, **_browser_tools()}


TOOL_NAMES: Final[Mapping[str, str]] = {tool.verb.name: tool.name for tool in _ALL}


def tools_of(groups: Collection[str]) -> Mapping[str, Tool]:
    """Return the tools of these groups; without groups all tools."""
    return {name: tool for name, tool in TOOLS.items() if not groups or tool.group in groups}
