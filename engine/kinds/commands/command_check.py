"""Validation of a command task before it starts; the result is its plan of executable steps.

Each mistake has its JSON path, such as `commands[3].args.selector`. Source: seed 002, "Validation
Rules".
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from engine.browser.chromium.browser_options import PLAIN, BrowserLook
from engine.browser.interact.command_keys import QUOTED, WrongValue
from engine.browser.interact.command_uploads import UploadRefused, Uploads
from engine.egress.egress_policy import place_of
from engine.kinds.arguments import (
    PROXY,
    Argument,
    FormField,
    Table,
    flag,
    optional,
    proxy_from,
    proxy_problems,
)
from engine.kinds.commands import command_table as values
from engine.kinds.commands.command_document import Task, TaskCommand, command_id
from engine.kinds.commands.command_table import (
    BESIDE,
    NEEDS,
    TAB_ACTIONS,
    TIMEOUT,
    TOOLS,
    TYPED,
    USELESS,
    Action,
    Arg,
    default_timeout_ms,
)
from engine.kinds.context import missing_secret
from engine.kinds.look_arguments import LOOK, SHOWN
from engine.kinds.profile_use import PROFILE
from engine.kinds.remote_browser_use import REMOTE_BROWSER
from engine.model import redact
from engine.model.addresses import Credentials, credentials_of
from engine.model.errors import AddressBlocked, InvalidArguments, Problem
from engine.model.proxies import ProxyChoice
from engine.profiles.profile import profile_name
from engine.secrets.given_secrets import Hidden, Scrub, of_address

_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>\\`]+", re.IGNORECASE)


class Step(msgspec.Struct, frozen=True):
    """One command: `args` for the execution, `stored` for the files."""

    tool: str
    action: str
    intention: str
    args: Mapping[str, Any]
    stored: Mapping[str, Any]
    timeout_ms: int

    def __repr__(self) -> str:
        return f"Step({self.tool} {self.action})"  # the arguments may contain a password


class CommandPlan(msgspec.Struct, frozen=True):
    """A validated task; `metadata` is the JSON value unchanged, `hidden` the values to mask."""

    name: str
    intention: str
    steps: tuple[Step, ...]
    stored: Mapping[str, Any]
    hidden: tuple[tuple[str, str], ...] = ()
    instance_id: str | None = None
    metadata: bytes | None = None
    task_id: str = ""  # the seed's own id, assigned on acceptance
    accepted_at: int = 0  # ms since 1970
    stays: bool = False  # stay on pages that ask before they unload
    redact_content: bool = True  # redact strict key shapes in page content
    profile: str | None = None  # the sign-in with which its browser begins
    save_profile: str | None = None  # the profile that its sign-in is stored as at the end
    remote_browser: str | None = None  # the browser server of another machine
    proxy: ProxyChoice | None = None
    look: BrowserLook = PLAIN

    def __repr__(self) -> str:
        return f"CommandPlan({self.task_id or 'new'}, {len(self.steps)} commands)"

    @property
    def secrets(self) -> list[tuple[str, str]]:
        """All values that this task received as secrets, also those inside addresses."""
        return [*self.hidden, *self.of_addresses]

    @property
    def of_addresses(self) -> list[Hidden]:
        """The secrets in the addresses that this task opens."""
        urls = [str(step.args["url"]) for step in self.steps if "url" in step.args]
        return [one for url in urls for one in of_address(url)]

    @property
    def scrub(self) -> Scrub:
        """The masking of this task's secrets in page content."""
        return Scrub(self.secrets, key_shapes=self.redact_content)

    @property
    def credentials(self) -> Credentials | None:
        """User and password of the first address that has them."""
        urls = (step.args["url"] for step in self.steps if "url" in step.args)
        return next(filter(None, map(credentials_of, urls)), None)

    @property
    def uses_tabs(self) -> bool:
        """Whether the windows that pages open become tabs."""
        return any(step.action in TAB_ACTIONS for step in self.steps)

    @property
    def places(self) -> tuple[str, ...]:
        """Every literal `host:port` in the submitted task."""
        return tuple(dict.fromkeys(self._places()))

    def _places(self) -> Iterator[str]:
        for step in self.steps:
            for given in step.args.values():
                for value in given if isinstance(given, tuple) else (given,):
                    found = _ADDRESS.findall(value) if isinstance(value, str) else ()
                    yield from filter(None, map(_place, found))

    def task(self, created_at: int) -> Task:
        """Return the task in its state before the first command."""
        commands = [
            TaskCommand(
                id=command_id(self.task_id, at),
                tool_name=step.tool,
                intention=redact.text(step.intention),
                args=redact.value(step.stored),
                status="pending",
            )
            for at, step in enumerate(self.steps)
        ]
        return Task(
            id=self.task_id,
            instance_id=self.instance_id or "",
            name=redact.text(self.name),
            intention=redact.text(self.intention),
            commands=commands,
            status="queued",
            current_command_index=0,
            created_at=created_at,
            metadata=msgspec.UNSET if self.metadata is None else msgspec.Raw(self.metadata),
        )


def _place(url: str) -> str | None:
    try:
        return str(place_of(url))
    except AddressBlocked:
        return None


MAX_COMMANDS: Final = 1_000
MAX_WORDS: Final = 2_000  # characters of a name or an intention
_PLAIN = re.compile(r"[A-Za-z_$][\w$]{0,63}", re.ASCII)
_PASSWORD: Final = FormField(
    "Proxy password", "proxy", editor="line", hint='Where it is: {"secret": "env:NAME"}'
)
# The browser that a task opens itself: what it is signed in with, its proxy and its look.
OWN_BROWSER: Final[Table] = {
    "profile": PROFILE,
    "save_profile": Argument(
        optional(profile_name),
        FormField(
            "Save the sign-in as profile",
            "identity",
            editor="line",
            hint="Stored when all commands have succeeded.",
        ),
        help="Profile that the sign-in of the commands is stored as.",
    ),
    "remote_browser": REMOTE_BROWSER,
    **PROXY,
    "proxy_password": PROXY["proxy_password"]._replace(form=_PASSWORD),
    **{name: LOOK[name] for name in SHOWN},
}
_TASK_FIELDS = (
    *("task_name", "task_intention", "commands", "instanceId", "metadata", "variables"),
    *("redact_content", "dialogs", *OWN_BROWSER),
)
UNKNOWN_SECRET: Final = "?"  # where a secret is not looked up
LEAVING: Final = ("leave", "stay")
_COMMAND_FIELDS = ("tool_name", "intention", "args")
_ARGUMENT = "an argument of {}"


def check(
    given: object,
    *,
    environ: Mapping[str, str] | None = None,
    living: Callable[[str], bool] | None = None,
    uploads: Uploads | None = None,
) -> CommandPlan:
    """Parse and validate a task document.

    Args:
        given: any JSON value; an invalid shape gives mistakes.
        environ: the source of secrets; without it only their names are checked.
        living: reports whether an instance exists; without it only the id's format is checked.
        uploads: the allowed files; without it only the file names are checked.

    Raises:
        InvalidArguments: with a `Problem` for every mistake.
    """
    if not isinstance(given, Mapping):
        raise InvalidArguments((Problem("", "wrong_type", "a task must be a JSON object"),))
    reader = _Reader(environ=environ, living=living, uploads=uploads)
    plan = reader.task(given)
    if reader.problems or plan is None:
        raise InvalidArguments(reader.told())
    return plan


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A mistake whose quoted value is masked after all secrets of the document are known.

    Only the quoted value is masked, because a one-letter secret would also match the message text.
    """

    path: str
    code: str
    message: str
    quoted: str | None = None

    def told(self, scrub: Scrub) -> Problem:
        if self.quoted is None:
            return Problem(self.path, self.code, self.message)
        shown = _shown(scrub.hide(self.quoted))  # mask before the cut: a part would remain
        return Problem(self.path, self.code, self.message.format(shown))


@dataclass(slots=True)
class _Reader:
    """Parser of one document; collects its mistakes in `problems`."""

    environ: Mapping[str, str] | None
    living: Callable[[str], bool] | None
    uploads: Uploads | None
    problems: list[_Mistake] = field(default_factory=list)
    variables: dict[str, str] | None = None
    hidden: list[tuple[str, str]] = field(default_factory=list)

    def wrong(self, path: str, code: str, message: str, quoted: str | None = None) -> None:
        """Record a mistake; `quoted` replaces QUOTED in the message."""
        self.problems.append(_Mistake(path, code, message, quoted))

    def told(self) -> tuple[Problem, ...]:
        """Return the mistakes, with the secrets in quoted values masked."""
        scrub = Scrub(self._hidden())
        return tuple(each.told(scrub) for each in self.problems)

    def _hidden(self) -> list[tuple[str, str]]:
        known = self.variables or {}
        return [(value, "{{" + name + "}}") for name, value in known.items()] + self.hidden

    def task(self, given: Mapping[str, Any]) -> CommandPlan | None:
        self.unknown(given, _TASK_FIELDS, "", "a field of a task")
        self._read_variables(given)
        name = self.words(given, "task_name", "task_name")
        intention = self.words(given, "task_intention", "task_intention")
        instance_id = self._instance(given)
        metadata = self._metadata(given)
        redact_content = self._flag(given, "redact_content", default=True)
        stays = self._stays(given)
        profile, save_profile, remote_browser = (
            self._of_own_browser(given, name, instance_id)
            for name in ("profile", "save_profile", "remote_browser")
        )
        proxy = self._proxy(given)
        look = self._look(given)
        steps = self._commands(given)
        if self.problems:
            return None
        stored = values.stored_document(given, self.variables or {})
        hidden = tuple(self._hidden())
        return CommandPlan(
            name,
            intention,
            tuple(steps),
            stored,
            hidden,
            instance_id,
            metadata,
            redact_content=redact_content,
            stays=stays,
            proxy=proxy,
            look=look,
            profile=profile,
            save_profile=save_profile,
            remote_browser=remote_browser,
        )

    def _of_own_browser(
        self, given: Mapping[str, Any], name: str, instance_id: str | None
    ) -> str | None:
        """Read a text that only a browser of the task's own can have."""
        if given.get(name) is None:
            return None
        try:
            found: str | None = OWN_BROWSER[name].read(given[name])
        except ValueError as wrong:
            self.wrong(name, "invalid_value", str(wrong))
            return None
        if found is not None and instance_id is not None:
            self.wrong(name, "contradiction", "does not go with instanceId, whose browser is open")
        return found

    def _proxy(self, given: Mapping[str, Any]) -> ProxyChoice | None:
        """Read the proxy of the task's own browser; its password is a reference."""
        fields: dict[str, Any] = {}
        for name, row in PROXY.items():
            value = given.get(name)
            if value is None:
                continue
            if values.is_reference(value):
                value = self._secret(value, name) or UNKNOWN_SECRET
            elif name == "proxy_password":
                self.wrong(
                    name, "invalid_value", "must be a reference: env:NAME under the name secret"
                )
                continue
            try:
                fields[name] = row.read(value)
            except ValueError as wrong:
                self.wrong(name, "invalid_value", str(wrong))
        for problem in proxy_problems(fields):
            self.wrong(problem.path, problem.code, problem.message)
        if fields.get("proxy") and given.get("instanceId") is not None:
            self.wrong("proxy", "not_together", "does not go with instanceId")
        return proxy_from(fields)

    def _look(self, given: Mapping[str, Any]) -> BrowserLook:
        """Read what the task's own instance shows of itself."""
        found: dict[str, Any] = {}
        for name in SHOWN:
            try:
                found[name] = LOOK[name].read(given.get(name))
            except ValueError as wrong:
                self.wrong(name, "invalid_value", str(wrong))
                continue
            if found[name] is not None and given.get("instanceId") is not None:
                self.wrong(name, "not_together", "does not go with instanceId")
        return BrowserLook(**found)

    def _stays(self, given: Mapping[str, Any]) -> bool:
        """Read whether the task stays on pages that ask before they unload."""
        value = given.get("dialogs", "leave")
        if value not in LEAVING:
            self.wrong("dialogs", "invalid_value", f"must be one of {', '.join(LEAVING)}")
        return bool(value == "stay")

    def _flag(self, given: Mapping[str, Any], name: str, *, default: bool) -> bool:
        value = given.get(name, default)
        try:
            return flag(value)
        except ValueError as wrong:
            self.wrong(name, "invalid_value", str(wrong))
            return default

    def _read_variables(self, given: Mapping[str, Any]) -> None:
        if "variables" not in given:
            return
        self.variables = {}
        if not isinstance(given["variables"], Mapping):
            self.wrong("variables", "wrong_type", "must be an object of names and values")
            return
        for name, value in given["variables"].items():
            path = _under("variables", str(name))
            if not values.NAME.fullmatch(str(name)):
                self.wrong(path, "invalid_value", "is not a name (letters, digits, _ . -)")
                continue
            try:
                self.variables[str(name)] = self._variable(value, path)
            except ValueError as wrong:
                self.wrong(path, "invalid_value", str(wrong))
                self.variables[str(name)] = ""

    def _variable(self, value: object, path: str) -> str:
        """Return the value of a variable or of its secret reference. Raises ValueError."""
        if isinstance(value, Mapping) and values.is_reference(value):
            return self._secret(value, path) or ""
        return values.variable_text(value)

    def words(self, given: Mapping[str, Any], name: str, path: str) -> str:
        value = given.get(name)
        if name not in given:
            self.wrong(path, "missing", "is needed: a text that is not empty")
        elif not isinstance(value, str) or not value.strip():
            self.wrong(path, "invalid_value", "must be a text that is not empty")
        elif len(value) > MAX_WORDS:
            self.wrong(path, "invalid_value", f"must not be longer than {MAX_WORDS:,} characters")
        else:
            return value
        return ""

    def _instance(self, given: Mapping[str, Any]) -> str | None:
        value = given.get("instanceId")
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.wrong("instanceId", "invalid_value", "must be the id of a living instance")
            return None
        if self.living is not None and not self.living(value):
            message = f"there is no living instance '{QUOTED}'"
            self.wrong("instanceId", "unknown_instance", message, value)
        return value

    def _metadata(self, given: Mapping[str, Any]) -> bytes | None:
        value = given.get("metadata")
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong("metadata", "wrong_type", "must be an object")
            return None
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            self.wrong("metadata", "not_json", "must be plain JSON values")
            return None
        return text.encode("utf-8", "backslashreplace")

    def _commands(self, given: Mapping[str, Any]) -> list[Step]:
        value = given.get("commands")
        if "commands" not in given:
            self.wrong("commands", "missing", "is needed: a list of commands")
        elif not isinstance(value, list | tuple):
            self.wrong("commands", "wrong_type", "must be a list of commands")
        elif not value:
            self.wrong("commands", "empty", "must hold at least one command")
        elif len(value) > MAX_COMMANDS:
            self.wrong("commands", "too_many", f"must not hold more than {MAX_COMMANDS:,} commands")
        else:
            found = [self._command(each, f"commands[{at}]") for at, each in enumerate(value)]
            return [step for step in found if step is not None]
        return []

    def _command(self, given: object, path: str) -> Step | None:
        if not isinstance(given, Mapping):
            self.wrong(path, "wrong_type", "must be an object")
            return None
        self.unknown(given, _COMMAND_FIELDS, path, "a field of a command")
        intention = self.words(given, "intention", f"{path}.intention")
        tool = self._choice(given, "tool_name", f"{path}.tool_name", TOOLS, "tool")
        args = given.get("args")
        if not isinstance(args, Mapping):
            code = "wrong_type" if "args" in given else "missing"
            self.wrong(f"{path}.args", code, "must be an object of arguments")
            return None
        if not tool:
            return None
        action = self._choice(args, "action", f"{path}.args.action", TOOLS[tool], "action")
        if not action:
            return None
        read = self._args(args, TOOLS[tool][action], f"{path}.args", f"{tool} {action}")
        self._check_uploads(read.get("files", ()), f"{path}.args.files")
        self._needs(args, action, f"{path}.args", f"{tool} {action}")
        timeout_ms = read.pop("timeout", default_timeout_ms(action))
        self._remember_typed(args, read)
        stored = values.stored_args(args, lambda text: len(values.filled(text, self._known)))
        return Step(tool, action, intention, read, stored, timeout_ms)

    @property
    def _known(self) -> Mapping[str, str]:
        return self.variables or {}

    def _choice(
        self, given: Mapping[str, Any], name: str, path: str, known: Collection[str], what: str
    ) -> str:
        value = given.get(name)
        if isinstance(value, str) and value in known:
            return value
        if name not in given:
            self.wrong(path, "missing", f"is needed: one of {', '.join(known)}")
        elif not isinstance(value, str):
            self.wrong(path, "wrong_type", f"must be one of {', '.join(known)}")
        else:
            other = next((tool for tool, table in TOOLS.items() if value in table), "")
            near = f"; it is an action of {other}" if other else _hint(value, known)
            hint = f"{near}; there are {', '.join(known)}"
            self.wrong(path, f"unknown_{what}", f"there is no {what} '{QUOTED}'{hint}", value)
        return ""

    def _args(self, given: Mapping[str, Any], action: Action, path: str, of: str) -> dict[str, Any]:
        rows: dict[str, Arg] = {**action, "timeout": TIMEOUT}
        self.unknown(given, ("action", *rows), path, _ARGUMENT.format(of))
        read: dict[str, Any] = {}
        for name, row in rows.items():
            if given.get(name) is not None:
                value = self._value(given[name], row, f"{path}.{name}")
                if value is not None:
                    read[name] = value
            elif row.required:
                self.wrong(f"{path}.{name}", "missing", f"is needed for {of}")
        return read

    def _check_uploads(self, names: Iterable[str], path: str) -> None:
        """Check that the files to upload are allowed and exist."""
        if self.uploads is None:
            return
        for at, name in enumerate(names):
            try:
                self.uploads.check(name)
            except UploadRefused as refused:
                self.wrong(f"{path}[{at}]", refused.code, str(refused))

    def _needs(self, args: Mapping[str, Any], action: str, path: str, of: str) -> None:
        """Check the constraints between the arguments of an action."""
        for useless in USELESS.get(action, ()):
            value = args.get(useless.beside)
            if useless.name in args and value in useless.values:
                message = f"means nothing with {useless.beside} {value}: leave it out"
                self.wrong(f"{path}.{useless.name}", "contradiction", message)
        for name, other in BESIDE.get(action, {}).items():
            if args.get(name) is not None and args.get(other) is None:
                message = f"means nothing without {other}: leave it out"
                self.wrong(f"{path}.{name}", "contradiction", message)
        needs = NEEDS.get(action)
        if needs is None:
            return
        given = [name for name in needs.any_of if args.get(name) is not None]
        first, *others = needs.any_of
        if not given:
            message = f"is needed for {of}; or {', '.join(others)}"
            self.wrong(f"{path}.{first}", "missing", message)
        for name in given:
            beside = [other for other in given if other != name]
            if name in needs.alone and beside:
                message = f"cannot be given together with {', '.join(beside)}"
                self.wrong(f"{path}.{name}", "contradiction", message)
        of_element = [name for name in given if name in needs.of_element]
        if of_element and args.get("selector") is None:
            message = f"is needed for {', '.join(of_element)}"
            self.wrong(f"{path}.selector", "missing", message)

    def _value(self, given: Any, row: Arg, path: str) -> Any:
        if row.text and values.is_reference(given):
            given = self._secret(given, path)
        elif isinstance(given, list | tuple) and self.variables is not None:
            given = self._all_filled(given, path)
        elif isinstance(given, str) and self.variables is not None:
            given = self._filled(given, path)
        if given is None:
            return None
        try:
            return row.read(given)
        except ValueError as wrong:
            self._refuse(given, path, wrong)
            return None

    def _refuse(self, given: Any, path: str, wrong: ValueError) -> None:
        names = values.placeholders(given) if isinstance(given, str) else []
        if names and self.variables is None:  # the mistake is in the variables, not in this text
            message = f"there is no variable '{QUOTED}'; give it a value in variables"
            self.wrong(path, "unknown_variable", message, names[0])
        elif isinstance(wrong, WrongValue):
            self.wrong(path, "invalid_value", wrong.sentence, wrong.quoted)
        else:
            self.wrong(path, "invalid_value", str(wrong))

    def _secret(self, given: Mapping[str, Any], path: str) -> str | None:
        """Return the value of a secret; None if it is unavailable or not looked up."""
        try:
            name = values.reference_name(given)
        except ValueError as wrong:
            self.wrong(path, "invalid_value", str(wrong))
            return None
        if self.environ is None:
            return None
        secret = self.environ.get(name)
        if not secret:
            self.wrong(path, "missing_secret", missing_secret(self.environ, name))
            return None
        self.hidden.append((secret, redact.MARK))
        return secret

    def _filled(self, given: str, path: str) -> str | None:
        missing = [name for name in values.placeholders(given) if name not in self._known]
        for name in dict.fromkeys(missing):
            hint = _hint(name, self._known)
            message = f"there is no variable '{QUOTED}'{hint}"
            if not hint:
                message = f"there is no variable '{QUOTED}'; give it a value in variables"
            self.wrong(path, "unknown_variable", message, name)
        return None if missing else values.filled(given, self._known)

    def _all_filled(self, given: Sequence[Any], path: str) -> list[Any] | None:
        """Fill in the variables of a list of texts; None if one is unknown."""
        filled = [
            self._filled(each, f"{path}[{at}]") if isinstance(each, str) else each
            for at, each in enumerate(given)
        ]
        lost = any(new is None and old is not None for old, new in zip(given, filled, strict=True))
        return None if lost else filled

    def _remember_typed(self, args: Mapping[str, Any], read: Mapping[str, Any]) -> None:
        name = TYPED.get(str(args.get("action")), "")
        typed = read.get(name)
        if name == "text" and isinstance(typed, str) and args.get("keep_text") is not True:
            self.hidden.append((typed, redact.MARK))

    def unknown(self, given: Mapping[str, Any], known: Iterable[str], path: str, what: str) -> None:
        names = tuple(known)
        for name in given:
            if name not in names:
                message = f"is not {what}{_hint(str(name), names)}"
                self.wrong(_under(path, str(name)), "unknown_argument", message)


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:64], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _shown(text: str) -> str:
    """Shorten and sanitize an untrusted text for use in a message."""
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in text[:64])
    return shown + "…" * (len(text) > 64)


def _under(path: str, name: str) -> str:
    if not _PLAIN.fullmatch(name):
        return f'{path}["{_shown(name)}"]'
    return f"{path}.{name}" if path else name
