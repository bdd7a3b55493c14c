"""The kind `commands`: a command task of seed 002, run on one instance.

`commands.json` in the task's folder has the current state of every command; `pages.jsonl` has each
ended command with its result. The first error ends the task, and the remaining commands are
skipped.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.browser.chromium.browser_options import InstanceOptions
from engine.browser.chromium.browser_session import TooManyInstances
from engine.browser.interact.command_errors import CANCELLED, CommandFailed, InstanceDisconnected
from engine.browser.interact.command_uploads import Uploads
from engine.browser.recording.live_view import MaskedContent
from engine.egress.egress_policy import Policy
from engine.kinds.commands.command_check import CommandPlan, Step, check
from engine.kinds.commands.command_document import (
    CommandError,
    Document,
    Task,
    TaskError,
    finished,
    new_task_id,
)
from engine.kinds.context import (
    FROM_OUTSIDE,
    Clock,
    Context,
    UnitStopped,
    domains_of,
    telling,
    upstream_proxy,
    with_way_out,
)
from engine.kinds.profile_use import secrets_of, using_profile
from engine.kinds.remote_browser_use import remote_place
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Placing, Tools
from engine.kinds.traits import COMMANDS_TRAITS
from engine.model import redact
from engine.model.addresses import address_of
from engine.model.errors import EngineError, TaskFailed, UnitTimeout
from engine.model.records import COMMANDS_NAME, Units
from engine.model.tally import StoppedBy
from engine.profiles.profile import Profile, ProfileRequest, SignInSeen, profile_of
from engine.profiles.profile_store import ProfileStore
from engine.profiles.sign_in import SignIn
from engine.secrets.given_secrets import MOST_LATER, Hidden, Scrub

if TYPE_CHECKING:
    from engine.browser.interact.command_target import Stage
    from engine.browser.interact.sign_in_watch import SignInWatch

SLACK_S: Final = 5.0  # a command ends at its own limit; this one is for a browser that hangs
OPEN_S: Final = 100.0
PROFILE_S: Final = 60.0
CLOSE_S: Final = 0.8  # a stopped task must be settled within 2 s
META_METADATA: Final = 64 * 1024  # bytes; commands.json alone has larger metadata
_EXACT: Final = 2**53


def parse(given: Mapping[str, Any]) -> CommandPlan:
    """Validate a task document without an engine. Raises InvalidArguments."""
    return _accepted(check(given))


def parse_here(given: Mapping[str, Any], tools: Tools) -> CommandPlan:
    """Validate with this process' secrets and instances. Raises InvalidArguments."""
    settings, living = tools.settings, tools.instances.lives
    uploads = Uploads(settings.allow_files)
    return _accepted(check(given, environ=settings.environ, living=living, uploads=uploads))


def _accepted(plan: CommandPlan) -> CommandPlan:
    now_ms = Clock().now_ms()
    return msgspec.structs.replace(plan, task_id=new_task_id(now_ms), accepted_at=now_ms)


def place(plan: CommandPlan, _: Mapping[str, Any]) -> Placing:
    """Return the stored form of an accepted task, without typed text."""
    metadata = _small(plan.metadata)
    return Placing(
        # Variables and typed text leave placeholders; oversized metadata is omitted without one.
        withheld=(metadata is None) != (plan.metadata is None),
        args=plan.stored,
        name=plan.name[:200],
        command_task_id=plan.task_id,
        metadata=metadata,
        documents={COMMANDS_NAME: Document(plan.task(plan.accepted_at)).encoded()},
    )


async def body(plan: CommandPlan, context: Context, tools: Tools) -> Head:
    """Run the commands, and raise TaskFailed with the head of a failed task."""
    async with using_profile(plan.profile, context, tools) as sign_in:
        return await _CommandRun(plan, context, tools, sign_in).run()


def partial(
    plan: CommandPlan, units: Iterable[Mapping[str, Any]], stopped_by: StoppedBy, _: int
) -> Head:
    """Return the head of an interrupted task."""
    task = plan.task(plan.accepted_at)
    task.status = "cancelled" if stopped_by == "cancelled" else "failed"
    task.current_command_index = max(0, sum(1 for _ in units) - 1)
    return _head(task)


class _CommandRun:
    """State of one run of a command task."""

    def __init__(
        self, plan: CommandPlan, context: Context, tools: Tools, sign_in: SignIn | None
    ) -> None:
        self._plan = plan
        self._sign_in = sign_in
        self._watch: SignInWatch | None = None  # of a sign-in that becomes a profile
        self._context = context
        self._tools = tools
        self._scrub = plan.scrub
        self._task = plan.task(plan.accepted_at)
        self._document = Document(self._task)
        self._own = ""  # id of the instance that this task opened itself

    async def run(self) -> Head:
        task, context = self._task, self._context
        task.move("running", context.now_ms())
        try:
            # The import includes Playwright and takes 0.3 s, which would block the loop.
            await asyncio.to_thread(
                importlib.import_module, "engine.browser.interact.command_tools"
            )
            stage = self._stage()
            async with context.unit("look at the instance", SLACK_S):
                await stage.drop_hung_page()
            # A reused instance keeps the restrictions from its opening.
            policy = stage.instance.options.policy if stage.instance else stage.policy
            async with telling(context, policy):
                for number, step in enumerate(self._plan.steps):
                    await self._one(number, step, stage)
                if self._watch is not None and self._plan.save_profile:
                    await self._save_profile(self._watch, self._plan.save_profile)
            task.move("completed", context.now_ms())
            await self._tell()
            return _head(task)
        except UnitStopped:
            return await self._stopped()
        except CommandFailed as failed:
            raise await self._failed(failed) from failed
        finally:
            await self._tools.instances.retire(self._own, CLOSE_S)

    def _stage(self) -> Stage:
        from engine.browser.interact.command_target import Stage

        settings, typed = self._tools.settings, self._plan.places
        outside = settings.route in FROM_OUTSIDE
        proxy = upstream_proxy(settings, self._plan.proxy)
        policy = Policy(None, settings.allow_private if outside else typed, proxy=proxy)
        hidden = [value for value, _ in self._plan.secrets]
        stage = Stage(
            self._tools.instances,
            policy,
            self._context.artifact,
            uploads=Uploads(settings.allow_files),
            hidden=hidden,
            remote=remote_place(self._plan.remote_browser, settings),
            domains=domains_of(self._context),
        )
        if self._plan.instance_id:
            self._use(stage, self._plan.instance_id)
        return stage

    def _use(self, stage: Stage, instance_id: str) -> None:
        stage.use(self._tools.instances.get(instance_id))
        stage.masked = self._tools.instances.masked_selectors(instance_id)
        known = self._tools.instances.hidden(instance_id)  # earlier tasks may have typed there
        mine = self._plan.secrets  # first: its own names are more specific than a general mask
        shapes = self._plan.redact_content
        self._scrub = Scrub([*mine, *known.items()], key_shapes=shapes)
        known.update((value, redact.MARK) for value, _ in mine)
        stage.hidden = known.keys()
        stage.scrub = self._scrub

        learned: dict[str, None] = {}  # tokens of the site, the newest last

        def rebuild() -> None:
            self._scrub = stage.scrub = Scrub([*mine, *known.items()], key_shapes=shapes)

        def conceal(value: str) -> None:
            known.setdefault(value, redact.MARK)
            learned.pop(value, None)
            rebuild()

        def learn(hidden: Iterable[Hidden]) -> None:
            learned.update((value, None) for value, _ in hidden if value not in known)
            known.update(dict.fromkeys(learned, redact.MARK))
            while len(learned) > MOST_LATER:
                oldest = next(iter(learned))
                del learned[oldest]
                known.pop(oldest, None)
            rebuild()

        stage.conceal = conceal
        if self._sign_in is not None:
            self._sign_in.on_secrets.append(learn)
        if stage.instance is not None:
            stage.instance.forget_dialogs(stay=self._plan.stays)
            masked = MaskedContent(stage.hidden, stage.masked)
            self._tools.browser.live_views.show(self._context.task_id, stage.instance, masked)
        self._task.instance_id = instance_id

    async def _one(self, number: int, step: Step, stage: Stage) -> None:
        """Run a command and store its outcome.

        Raises:
            CommandFailed: it failed; the failure is stored.
            UnitStopped: a stop was requested; the command is not stored yet.
        """
        task, command = self._task, self._task.commands[number]
        task.current_command_index = number
        command.move("running", self._context.now_ms())
        await self._tell(number)
        try:
            command.result = self._scrub.published(await self._done(step, stage, number))
            command.warning = command.result.get("warning", msgspec.UNSET)
            if "used_selector" in command.result or "used_target" in command.result:
                await self._context.log("command", f"Command {number + 1}: {command.warning}")
        except CommandFailed as raised:
            failed = await self._lost(stage) or raised
            reason = with_way_out(self._scrub.text(str(failed)), self._tools.settings)
            command.error = CommandError(failed.code, reason)
            command.move("error", self._context.now_ms())
            if failure := await self._failure(stage, number):
                command.failure = failure
            await self._keep(number)
            if failed is raised:
                raise
            raise failed from raised
        command.move("success", self._context.now_ms())
        await self._keep(number)

    async def _lost(self, stage: Stage) -> InstanceDisconnected | None:
        """Return the failure of a task whose remote browser is gone with its connection."""
        instance = stage.instance
        if instance is None or instance.alive or instance.options.remote is None:
            return None
        try:
            async with self._context.unit("look at the instance", SLACK_S):
                lost = await instance.chromium.was_lost()
        except (UnitStopped, UnitTimeout):
            return None
        address = instance.options.remote.address
        reason = f"the connection to the browser server {address} is lost"
        return InstanceDisconnected(reason) if lost else None

    async def _failure(self, stage: Stage, number: int) -> dict[str, str]:
        """Return what the page shows now; {} when a stop is requested meanwhile."""
        from engine.browser.interact.command_reading import EVIDENCE_S, SLOW, failure_evidence

        found: dict[str, str] = {}
        try:
            async with self._context.unit("keep what the page shows", EVIDENCE_S):
                await failure_evidence(stage, number, found)
        except UnitStopped:
            return {}
        except UnitTimeout:
            if "screenshot" not in found:
                found["missing"] = SLOW
        return found

    async def _done(self, step: Step, stage: Stage, number: int) -> Any:
        from engine.browser.interact.command_failures import too_slow
        from engine.browser.interact.command_tools import needs_page, run_command, subject_of

        if needs_page(step):
            await self._ready(stage)
        began = self._context.monotonic()
        try:
            async with self._context.unit(step.intention, step.timeout_ms / 1000 + SLACK_S):
                return await run_command(step, stage, number)
        except UnitTimeout as slow:
            # The shutdown of a browser takes longer than the limit: the actual duration is
            # reported.
            waited_ms = round((self._context.monotonic() - began) * 1_000, -2)
            raise too_slow(waited_ms, subject_of(step.args)) from slow

    async def _ready(self, stage: Stage) -> None:
        """Open the task's own instance before the first command that needs it."""
        if stage.instance is not None or self._plan.instance_id:
            return
        plan = self._plan
        options = InstanceOptions(
            stage.own_policy(),
            windows=plan.uses_tabs,
            credentials=plan.credentials,
            secrets=secrets_of(self._sign_in, stage.policy),
            sign_in=self._sign_in,
            look=plan.look,
            remote=stage.remote,
        )
        try:
            async with self._context.unit("open the browser", OPEN_S):
                opened = await self._tools.instances.launch(options)
        except TooManyInstances:
            raise InstanceDisconnected("too many browser instances are open") from None
        except EngineError as failed:
            raise InstanceDisconnected(f"{failed} {failed.advice}".strip()) from failed
        self._own = opened.id
        known = self._tools.instances.hidden(opened.id)
        known.update((value, redact.MARK) for value, _ in secrets_of(self._sign_in, stage.policy))
        if plan.save_profile:
            from engine.browser.interact.sign_in_watch import SignInWatch

            self._watch = SignInWatch(opened)
            await self._watch.start()
        self._use(stage, opened.id)

    async def _save_profile(self, watch: SignInWatch, name: str) -> None:
        """Store the sign-in that the commands made; replaces the profile of this name."""
        store, now_ms = ProfileStore(self._tools.settings.home), self._context.now_ms()
        urls = (str(step.args["url"]) for step in self._plan.steps if "url" in step.args)
        address = address_of(next(urls, ""))

        def save(seen: SignInSeen) -> Profile:
            before = store.read(name) if store.has(name) else None
            url = before.url if before else address.url if address else seen.last_url
            asked = ProfileRequest(name=name, url=url, before=before)
            return store.save(*profile_of(seen, asked, now_ms))

        try:
            async with self._context.unit("keep the sign-in", PROFILE_S):
                saved = await asyncio.to_thread(save, await watch.read())
        except EngineError as error:
            raise await self._not_saved(error) from error
        sites = ", ".join(saved.sites)
        await self._context.log("profile", f"The sign-in is stored as profile {name}: {sites}")

    async def _keep(self, number: int) -> None:
        command, commands = self._task.commands[number], self._task.commands
        errors = sum(each.status == "error" for each in commands)
        said = f"{number + 1}. {redact.quoted(command.intention)} ({command.status})"
        units = Units(finished(commands), len(commands), said, errors)
        await self._context.page(msgspec.to_builtins(command), units)
        if command.status == "success" and self._context.stopping:
            raise UnitStopped
        if number + 1 == len(commands) or command.status == "error":
            return  # the outcome of the task includes it
        await self._tell(number)

    async def _stopped(self) -> Head:
        """Skip the remaining commands; an exceeded time budget is a failure."""
        task, now_ms = self._task, self._context.now_ms()
        budget = self._context.stop_reason == "budget"
        if budget:
            task.error = TaskError("BUDGET_EXCEEDED", "the task's budget is used up")
        else:
            at = task.commands[task.current_command_index].id
            task.error = TaskError(CANCELLED, "the task was cancelled", at)
        await self._skip_rest(now_ms)
        task.move("failed" if budget else "cancelled", now_ms)
        await self._tell()
        return _head(task)

    async def _failed(self, failed: CommandFailed) -> TaskFailed:
        task, now_ms = self._task, self._context.now_ms()
        number = task.current_command_index
        command = task.commands[number]
        reason = command.error.message if isinstance(command.error, CommandError) else str(failed)
        intention = redact.quoted(command.intention)
        about = f"command {number + 1} of {len(task.commands)} ({intention}): {reason}"
        task.error = TaskError(failed.code, redact.text(about), command.id)
        await self._skip_rest(now_ms)
        task.move("failed", now_ms)
        await self._tell()
        return TaskFailed(failed.code, task.error.message, _head(task))

    async def _not_saved(self, error: EngineError) -> TaskFailed:
        """Return the failure of a task whose commands succeeded, without the profile."""
        message = redact.text(f"{error} {error.advice}".strip())
        self._task.error = TaskError(error.code, message)
        self._task.move("failed", self._context.now_ms())
        await self._tell()
        return TaskFailed(error.code, message, _head(self._task))

    async def _skip_rest(self, now_ms: int) -> None:
        skipped = self._task.skip_rest(now_ms)
        await self._context.rest([msgspec.to_builtins(command) for command in skipped])

    async def _tell(self, number: int | None = None) -> None:
        """Write `commands.json`; `number` is the only changed command."""
        await self._context.document(COMMANDS_NAME, self._document.encoded(number))


def _head(task: Task) -> Head:
    """Return the task in the seed's format, without its commands, which are streamed from disk.

    Metadata passes as raw JSON, because decoding would redact or round it.
    """
    metadata = task.metadata
    task.metadata = msgspec.UNSET
    head: Head = msgspec.to_builtins(task)
    task.metadata = metadata
    del head["commands"]
    if metadata is not msgspec.UNSET:
        head["metadata"] = metadata
    return head


def _small(metadata: bytes | None) -> Any:
    """Return the metadata for meta.json, or None if it is unsuitable.

    Unsuitable is metadata that is too large for lists of tasks, which decode every meta.json, or
    has numbers that other programs would round.
    """
    if metadata is None or len(metadata) > META_METADATA:
        return None
    value = json.loads(metadata)
    return value if _is_exact(value, 0) else None


def _is_exact(value: Any, depth: int) -> bool:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return depth < 40 and all(_is_exact(item, depth + 1) for item in items)
    return not isinstance(value, int) or abs(value) <= _EXACT


COMMANDS: Final = KindSpec(
    COMMANDS_TRAITS.name,
    parse,
    body,
    partial,
    queue=lambda plan: plan.instance_id,
    parse_here=parse_here,
    place=place,
    secrets=lambda plan: plan.of_addresses,
    traits=COMMANDS_TRAITS,
    form=KindForm(
        "Run commands in order",
        summary="a scripted task, better started with `octask run FILE`",
    ),
    columns=(
        *(
            Column("id", 30),
            Column("tool_name", 20, brief=True),
            Column("intention", 40, brief=True),
            Column("status", 10, brief=True),
        ),
        *(Column("args", 40), Column("startedAt", 16), Column("completedAt", 16)),
        *(
            Column("error.code", 24),
            Column("error.message", 50, brief=True),
            Column("result", 60, bulky=True),
        ),
    ),
)
