"""Adding the server to a host's configuration, and removing it: nothing else changes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.mcp_command import own_program
from engine.server.hosts import config_text
from engine.server.hosts.config_change import (
    ConfigChange,
    HostConfigBroken,
    HostConfigMoved,
    HostConfigNotEditable,
    HostConfigNotWritten,
    HostConfigUnreadable,
    plan_install,
    plan_uninstall,
    write,
)
from engine.server.hosts.host_table import HOSTS, SERVER_NAME, Host, Machine, ServerCommand
from tests.support.octask import run_as_text

COMMAND = ServerCommand("/opt/octask", ("mcp", "--home", "/srv/home"))
OTHER = ServerCommand("/usr/bin/octask", ("mcp",))
JSON_HOSTS = [host for host in HOSTS.values() if host.format == "JSON"]
POSIX_ONLY = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


def read(host: Host, path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    return tomllib.loads(text) if host.format == "TOML" else config_text.parse_json(text)


def install(host: Host, path: Path, command: ServerCommand = COMMAND) -> ConfigChange:
    change = plan_install(host, path, command)
    write(change)
    return change


def uninstall(host: Host, path: Path) -> None:
    write(plan_uninstall(host, path))


def with_file(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


# Where the files are


def paths(platform: str, **environ: str) -> dict[str, str]:
    home = r"C:\Users\ann" if platform == "win32" else "/home/ann"
    machine = Machine(platform, home, environ)
    return {host.name: str(host.user_file(machine)) for host in HOSTS.values()}


@pytest.mark.parametrize(
    ("platform", "host", "path"),
    [
        ("linux", "claude-desktop", "/home/ann/.config/Claude/claude_desktop_config.json"),
        ("linux", "claude-code", "/home/ann/.claude.json"),
        ("linux", "vscode", "/home/ann/.config/Code/User/mcp.json"),
        ("linux", "zed", "/home/ann/.config/zed/settings.json"),
        ("linux", "codex", "/home/ann/.codex/config.toml"),
        ("darwin", "vscode", "/home/ann/Library/Application Support/Code/User/mcp.json"),
        ("darwin", "zed", "/home/ann/.config/zed/settings.json"),
        ("win32", "claude-desktop", r"D:\roaming\Claude\claude_desktop_config.json"),
        ("win32", "vscode", r"D:\roaming\Code\User\mcp.json"),
        ("win32", "zed", r"D:\roaming\Zed\settings.json"),
        ("win32", "cursor", r"C:\Users\ann\.cursor\mcp.json"),
        ("win32", "lm-studio", r"C:\Users\ann\.lmstudio\mcp.json"),
    ],
)
def test_each_platform_has_its_own_places(platform: str, host: str, path: str) -> None:
    assert paths(platform, APPDATA=r"D:\roaming")[host] == path


def test_a_variable_moves_the_file_of_its_host_unless_it_is_relative() -> None:
    moved = paths("linux", XDG_CONFIG_HOME="/xdg", CODEX_HOME="/cx", CLAUDE_CONFIG_DIR="/cl")
    assert moved["zed"] == "/xdg/zed/settings.json"
    assert moved["codex"] == "/cx/config.toml"
    assert moved["claude-code"] == "/cl/.claude.json"
    assert moved["cursor"] == "/home/ann/.cursor/mcp.json"
    assert paths("linux", XDG_CONFIG_HOME="xdg", CODEX_HOME="cx") == paths("linux")


def test_windows_without_a_variable_uses_the_roaming_folder_of_the_home() -> None:
    expected = r"C:\Users\ann\AppData\Roaming\Claude\claude_desktop_config.json"
    assert paths("win32")["claude-desktop"] == expected


def test_a_path_has_the_form_of_its_platform() -> None:
    for platform, kind in (("win32", PureWindowsPath), ("darwin", PurePosixPath)):
        machine = Machine(platform, "/home/ann", {})
        assert {type(host.user_file(machine)) for host in HOSTS.values()} == {kind}


# What is written


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_a_missing_file_is_created_with_the_entry_and_its_folders(
    host: Host, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "folder" / "config"
    install(host, path)
    entry = read(host, path)[host.servers][SERVER_NAME]
    assert entry["command"] == "/opt/octask"
    assert entry["args"] == ["mcp", "--home", "/srv/home"]
    assert entry.get("type") == ("stdio" if host.name in ("claude-code", "vscode") else None)
    assert os.listdir(path.parent) == ["config"]  # no temporary file is left


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_a_second_install_changes_nothing(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "config"
    install(host, path)
    again = plan_install(host, path, COMMAND)
    assert not again.is_needed
    assert not list(again.diff())
    assert plan_install(host, path, OTHER).is_needed


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_a_moved_program_is_corrected_in_its_entry(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "config"
    install(host, path, OTHER)
    install(host, path, COMMAND)
    assert read(host, path)[host.servers][SERVER_NAME]["command"] == "/opt/octask"
    assert len(read(host, path)[host.servers]) == 1


ZED_SETTINGS = """\
// Settings of Ann
{
  "theme": "One Dark", // dark
  /* servers
     of the team */
  "context_servers": {
    // the first one
    "files": {
      "command": "files",
      "args": [],
    }, // trailing commas are allowed
    // the last word
  },
  "url": "https://example.com/*", // not a comment
}
"""


def test_comments_trailing_commas_and_order_are_kept(tmp_path: Path) -> None:
    host = HOSTS["zed"]
    path = with_file(tmp_path / "settings.json", ZED_SETTINGS)
    change = install(host, path)
    lines = path.read_text("utf-8").splitlines()
    added = [line[1:] for line in change.diff() if line[0] == "+" and line[:3] != "+++"]
    assert [line for line in lines if line not in added] == [
        line for line in ZED_SETTINGS.splitlines() if line not in added
    ]
    assert not [line for line in change.diff() if line[0] == "-" and line[:3] != "---"]
    assert list(read(host, path)["context_servers"]) == ["files", SERVER_NAME]
    uninstall(host, path)
    assert path.read_text("utf-8") == ZED_SETTINGS


def test_a_comment_inside_our_entry_is_kept_when_the_program_moved(tmp_path: Path) -> None:
    host = HOSTS["vscode"]
    path = tmp_path / "mcp.json"
    install(host, path, OTHER)
    text = path.read_text("utf-8").replace('"command"', '/* mine */ "env": {"A": "b"}, "command"')
    install(host, with_file(path, text), COMMAND)
    assert "/* mine */" in path.read_text("utf-8")
    entry = read(host, path)["servers"][SERVER_NAME]
    assert entry["env"] == {"A": "b"}
    assert entry["command"] == "/opt/octask"


def test_an_entry_with_an_address_becomes_a_command_and_keeps_the_users_own_keys(
    tmp_path: Path,
) -> None:
    host = HOSTS["claude-code"]
    entry = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"A": "b"}, "timeout": 9}
    path = with_file(tmp_path / "c", json.dumps({"mcpServers": {SERVER_NAME: entry}}))
    install(host, path)
    expected = {"timeout": 9, **host.stdio_entry(COMMAND)}
    assert read(host, path)["mcpServers"][SERVER_NAME] == expected


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"mcpServers":{}}',
        '{"mcpServers": {"a": {"command": "x"}}}',
        '{ "mcpServers": { "a": 1, } }',
        '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n',
        '{\r\n  "mcpServers": {\r\n    "a": {} // last\r\n  }\r\n}\r\n',
        '\ufeff{\n  "a": 1\n}\n',
        '{"a": 1, // one\n "b": {"mcpServers": 2} /* two */}',
        "",
        "// nothing yet\n",
    ],
)
def test_every_style_of_a_file_is_continued(tmp_path: Path, text: str) -> None:
    host = HOSTS["claude-desktop"]
    path = with_file(tmp_path / "c", text)
    install(host, path)
    after = path.read_bytes().decode()
    data = config_text.parse_json(after.removeprefix("\ufeff"))
    before = config_text.parse_json(text.removeprefix("\ufeff")) or {}
    servers = {**before.get("mcpServers", {}), SERVER_NAME: host.stdio_entry(COMMAND)}
    assert data == {**before, "mcpServers": servers}
    assert after.startswith("\ufeff") is text.startswith("\ufeff")
    if "\r\n" in text:
        assert "\n" not in after.replace("\r\n", "")
    for comment in ("// last", "// one", "/* two */", "// nothing yet"):
        assert (comment in after) is (comment in text)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.text(), VALUES, max_size=4)
SERVERS = st.none() | st.dictionaries(st.sampled_from(["a", "b", SERVER_NAME, '"', "ü"]), VALUES)


@given(
    document=DOCUMENTS,
    servers=SERVERS,
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    tight=st.booleans(),
    name=st.sampled_from([host.name for host in JSON_HOSTS]),
)
def test_any_valid_file_keeps_all_other_content(
    tmp_path_factory: pytest.TempPathFactory,
    document: dict[str, Any],
    servers: dict[str, Any] | None,
    indent: Any,
    tight: bool,
    name: str,
) -> None:
    host = HOSTS[name]
    data = dict(document) if servers is None else {**document, host.servers: servers}
    path = tmp_path_factory.getbasetemp() / "any.json"
    marks = (",", ":") if tight else None
    with_file(path, json.dumps(data, indent=indent, separators=marks))
    if not isinstance(data.get(host.servers, {}), dict):
        return
    install(host, path)
    after = read(host, path)
    entry = after[host.servers].pop(SERVER_NAME)
    assert host.stdio_entry(COMMAND).items() <= entry.items()
    others = {key: value for key, value in (servers or {}).items() if key != SERVER_NAME}
    assert after == {**document, host.servers: others}
    uninstall(host, path)
    assert read(host, path) == ({**document, host.servers: others} if others else document)


COMMENTS = st.sampled_from(["", " ", "\n", "// x\n", "/* y */", "/* \n */", '// ", } ] {\n'])


@given(data=st.data())
def test_comments_at_any_place_are_kept(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    host = HOSTS["vscode"]
    parts = ["{", '"a"', ":", "1", ",", '"servers"', ":", "{"]
    others = data.draw(st.integers(0, 2))
    for number in range(others):
        parts += [f'"s{number}"', ":", '{"command": "x"}']
        parts += [","] if number + 1 < others or data.draw(st.booleans()) else []
    parts += ["}", "}"]
    text = "".join(data.draw(COMMENTS) + part for part in parts) + data.draw(COMMENTS)
    path = with_file(tmp_path_factory.getbasetemp() / "comments.json", text)
    before = config_text.parse_json(text)
    install(host, path)
    kept = path.read_text("utf-8")
    for comment in ("// x", "/* y */", "/* \n */", '// ", } ] {'):
        assert kept.count(comment) == text.count(comment)
    assert read(host, path)["servers"][SERVER_NAME] == host.stdio_entry(COMMAND)
    uninstall(host, path)
    left = path.read_text("utf-8")
    for comment in ("// x", "/* y */", "/* \n */", '// ", } ] {'):
        assert left.count(comment) == text.count(comment)
    after = config_text.parse_json(left)
    assert {"servers": {}} | after == before


# TOML

CODEX = """\
# my settings
model = "o3" # the best

[mcp_servers.files]
command = "files"
args = [
  "a", # first
]

# about the profile
[profiles.fast]
model = "mini"
"""


def test_other_tables_and_comments_of_toml_are_kept(tmp_path: Path) -> None:
    host = HOSTS["codex"]
    path = with_file(tmp_path / "config.toml", CODEX)
    install(host, path)
    text = path.read_text("utf-8")
    assert text.startswith(CODEX)
    data = tomllib.loads(text)
    assert data["mcp_servers"].pop(SERVER_NAME) == host.stdio_entry(COMMAND)
    assert data == tomllib.loads(CODEX)
    uninstall(host, path)
    assert path.read_text("utf-8") == CODEX


def test_a_table_between_others_is_corrected_in_its_place(tmp_path: Path) -> None:
    host = HOSTS["codex"]
    ours = (
        f'[mcp_servers."{SERVER_NAME}"] # ours\r\n# note\r\nargs = [\r\n  "old",\r\n]\r\n'
        'command = "/old"\r\nstartup_timeout_sec = 20\r\n'
        f'[mcp_servers.{SERVER_NAME}.env]\r\nA = "b"\r\n\r\n# next\r\n[x]\r\ny = 1\r\n'
    )
    path = with_file(tmp_path / "config.toml", "a = 1\r\n\r\n" + ours)
    install(host, path)
    text = path.read_bytes().decode()
    data = tomllib.loads(text)
    own = {"startup_timeout_sec": 20, "env": {"A": "b"}}
    assert data["mcp_servers"][SERVER_NAME] == {**host.stdio_entry(COMMAND), **own}
    assert "# ours" in text
    assert "# note" in text
    assert text.count("\n") == text.count("\r\n")
    uninstall(host, path)
    assert path.read_bytes().decode() == "a = 1\r\n\r\n# next\r\n[x]\r\ny = 1\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { files = { command = 'x' } }\n",
        f"[mcp_servers]\n{SERVER_NAME} = {{ command = 'x' }}\n",
        f"[mcp_servers]\n{SERVER_NAME}.command = 'x'\n",
        "mcp_servers = 3\n",
    ],
)
def test_toml_that_has_no_table_of_its_own_is_refused_and_left(tmp_path: Path, text: str) -> None:
    path = with_file(tmp_path / "config.toml", text)
    with pytest.raises(HostConfigNotEditable):
        plan_install(HOSTS["codex"], path, COMMAND)
    assert path.read_text("utf-8") == text


def test_a_header_inside_a_long_string_is_never_taken_for_the_table(tmp_path: Path) -> None:
    header = f"[mcp_servers.{SERVER_NAME}]"
    text = f'note = """\n{header}\ncommand = "x"\n"""\n{header}\ncommand = "/old"\n'
    path = with_file(tmp_path / "config.toml", text)
    with pytest.raises(HostConfigNotEditable):
        plan_install(HOSTS["codex"], path, COMMAND)


@given(program=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_path_survives_toml(tmp_path_factory: pytest.TempPathFactory, program: str) -> None:
    host = HOSTS["codex"]
    path = tmp_path_factory.getbasetemp() / "any.toml"
    with_file(path, "")
    install(host, path, ServerCommand(program, ("mcp", program)))
    entry = read(host, path)["mcp_servers"][SERVER_NAME]
    assert entry == {"command": program, "args": ["mcp", program]}


# What is refused


@pytest.mark.parametrize(
    "text",
    ["{", '{"a": 1', '{"a" 1}', "{,}", '{"a": NaN}', "[1]", '{"a": 1} x', "/* open", '{"a": "\n"}'],
)
def test_a_broken_file_is_never_overwritten(tmp_path: Path, text: str) -> None:
    path = with_file(tmp_path / "c", text)
    for plan in (lambda host: plan_install(host, path, COMMAND), lambda h: plan_uninstall(h, path)):
        with pytest.raises(HostConfigBroken) as caught:
            plan(HOSTS["cursor"])
        assert str(path) in str(caught.value)
        assert caught.value.advice
    assert path.read_bytes() == text.encode()


def test_broken_toml_is_never_overwritten(tmp_path: Path) -> None:
    path = with_file(tmp_path / "c", "a = \n")
    with pytest.raises(HostConfigBroken, match="TOML"):
        plan_install(HOSTS["codex"], path, COMMAND)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"mcpServers": []}', "is not an object"),
        ('{"mcpServers": null}', "is not an object"),
        ('{"mcpServers": {}, "mcpServers": {"a": 1}}', "given twice"),
        (f'{{"mcpServers": {{"{SERVER_NAME}": 1, "{SERVER_NAME}": 2}}}}', "given twice"),
    ],
)
def test_an_unclear_place_for_the_entry_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = with_file(tmp_path / "c", text)
    with pytest.raises(HostConfigNotEditable, match=reason):
        plan_install(HOSTS["cursor"], path, COMMAND)


def test_a_file_that_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(HostConfigUnreadable, match="UTF-8"):
        plan_install(HOSTS["cursor"], path, COMMAND)
    with pytest.raises(HostConfigUnreadable):
        plan_install(HOSTS["cursor"], tmp_path, COMMAND)


def test_a_file_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = with_file(tmp_path / "c", '{"a":' * 100_000)
    with pytest.raises(HostConfigBroken):
        plan_install(HOSTS["cursor"], path, COMMAND)


def test_a_change_by_another_program_after_the_preview_is_not_overwritten(tmp_path: Path) -> None:
    path = with_file(tmp_path / "c", "{}")
    change = plan_install(HOSTS["claude-code"], path, COMMAND)
    with_file(path, '{"numStartups": 8}')
    with pytest.raises(HostConfigMoved):
        write(change)
    assert path.read_text("utf-8") == '{"numStartups": 8}'
    assert os.listdir(tmp_path) == ["c"]


def test_a_failed_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_file(tmp_path / "c", "{}")
    change = plan_install(HOSTS["cursor"], path, COMMAND)

    def full(_: int) -> None:
        raise OSError(28, "disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostConfigNotWritten, match="disk full"):
        write(change)
    assert path.read_text("utf-8") == "{}"
    assert os.listdir(tmp_path) == ["c"]


# The file itself


@POSIX_ONLY
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_the_mode_of_the_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = with_file(tmp_path / "c", "{}")
    path.chmod(mode)
    install(HOSTS["cursor"], path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@POSIX_ONLY
def test_a_new_file_is_private(tmp_path: Path) -> None:
    install(HOSTS["cursor"], tmp_path / "c")
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o600


@POSIX_ONLY
@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_to_its_file(tmp_path: Path, there: bool) -> None:
    (tmp_path / "dotfiles").mkdir()
    target, link = tmp_path / "dotfiles" / "mcp.json", tmp_path / "mcp.json"
    if there:
        target.write_text('{"a": 1}')
    link.symlink_to(target)
    install(HOSTS["cursor"], link)
    assert link.is_symlink()
    assert SERVER_NAME in target.read_text("utf-8")


# The command line


def octask(
    home: Path, *words: str, folder: Path | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    names = ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"HOME": str(home), "USERPROFILE": str(home)}
    environment |= {"APPDATA": str(home / "AppData")}
    before = Path.cwd()
    os.chdir(folder or home)
    try:
        ended = run_as_text("mcp", *words, environment=environment)
    finally:
        os.chdir(before)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended


def test_without_a_terminal_and_without_yes_only_the_change_is_shown(tmp_path: Path) -> None:
    said = octask(tmp_path, "--install", "cursor")
    assert f'+    "{SERVER_NAME}": {{' in said.stdout
    assert "--yes" in said.stderr
    assert not (tmp_path / ".cursor").exists()


def test_with_yes_the_change_is_written_and_the_way_back_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "mcp.json"
    said = octask(tmp_path, "--install", "cursor", "--yes", "--root", "/somewhere/tasks")
    entry = json.loads(path.read_text("utf-8"))["mcpServers"][SERVER_NAME]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-3:] == ["mcp", "--root", str(Path("/somewhere/tasks").absolute())]
    assert "octask mcp --uninstall cursor" in said.stderr
    assert (
        "Nothing to change"
        in octask(tmp_path, "--install", "cursor", "--root", "/somewhere/tasks").stderr
    )
    assert f'-    "{SERVER_NAME}": {{' in octask(tmp_path, "--uninstall", "cursor").stdout
    assert SERVER_NAME in path.read_text("utf-8")
    octask(tmp_path, "--uninstall", "cursor", "--yes")
    assert SERVER_NAME not in path.read_text("utf-8")
    assert "no entry" in octask(tmp_path, "--uninstall", "cursor", "--yes").stderr


def test_a_project_has_a_file_of_its_own(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    said = octask(tmp_path, "--install", "vscode", "--project", "--yes", folder=project)
    assert SERVER_NAME in (project / ".vscode" / "mcp.json").read_text("utf-8")
    assert "--uninstall vscode --project" in said.stderr
    said = octask(tmp_path, "--install", "windsurf", "--project", "--yes", folder=project, code=2)
    assert "Windsurf" in said.stderr


@pytest.mark.parametrize("words", [("--list-hosts",), ("--install",), ("--uninstall", "nobody")])
def test_the_hosts_are_listed_with_their_files(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / ".cursor").mkdir()
    path = with_file(tmp_path / ".cursor" / "mcp.json", "{}")
    said = octask(tmp_path, *words, code=0 if words == ("--list-hosts",) else 2)
    listed = (said.stdout + said.stderr).splitlines()
    (cursor,) = [line for line in listed if line.startswith("cursor") and " user " in line]
    assert cursor.endswith(str(path))
    assert "exists" in cursor
    (codex,) = [line for line in listed if line.startswith("codex") and " user " in line]
    assert "missing" in codex


def test_programs_get_the_hosts_and_the_change_as_json(tmp_path: Path) -> None:
    found = json.loads(octask(tmp_path, "--list-hosts", "--json").stdout)["hosts"]
    assert {row["host"] for row in found} == set(HOSTS)
    change = json.loads(octask(tmp_path, "--install", "cursor", "--json").stdout)
    assert (change["needed"], change["written"]) == (True, False)
    change = json.loads(octask(tmp_path, "--install", "cursor", "--json", "--yes").stdout)
    assert (change["needed"], change["written"]) == (True, True)


def test_a_broken_file_ends_with_the_reason_and_the_entry_to_paste(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    path = with_file(tmp_path / ".cursor" / "mcp.json", '{"mcpServers": ')
    said = octask(tmp_path, "--install", "cursor", "--yes", code=1)
    assert "is not valid JSON" in said.stderr
    assert f'"{SERVER_NAME}": {{' in said.stderr
    assert path.read_text("utf-8") == '{"mcpServers": '
    error = json.loads(octask(tmp_path, "--install", "cursor", "--json", code=1).stdout)["error"]
    assert error["code"] == "host_config_broken"
    assert SERVER_NAME in json.loads(error["snippet"])["mcpServers"]


def test_secrets_of_other_servers_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    servers = {"other": {"command": "x", "env": {"API_KEY": "hunter2secret"}}}
    text = json.dumps({"mcpServers": servers}, indent=2)
    with_file(tmp_path / ".cursor" / "mcp.json", text)
    said = octask(tmp_path, "--install", "cursor", "--yes")
    assert "API_KEY" in said.stdout
    assert "hunter2secret" not in said.stdout + said.stderr
    assert "hunter2secret" in (tmp_path / ".cursor" / "mcp.json").read_text("utf-8")


def test_an_entry_in_a_line_too_long_to_show_is_printed_by_itself(tmp_path: Path) -> None:
    with_file(
        tmp_path / ".claude.json", json.dumps({"history": "x" * 9_000, "mcpServers": {"a": 1}})
    )
    said = octask(tmp_path, "--install", "claude-code")
    assert f'"{SERVER_NAME}": {{' not in said.stdout
    assert f'"{SERVER_NAME}": {{' in said.stderr
    assert max(map(len, said.stdout.splitlines())) < 1_000


@POSIX_ONLY
@pytest.mark.parametrize(("answer", "written"), [(b"y\n", True), (b"n\n", False)])
def test_a_terminal_is_asked_first(tmp_path: Path, answer: bytes, written: bool) -> None:
    ours, theirs = os.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-m", "engine.cli", "mcp", "--install", "cursor"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "HOME": str(tmp_path)},
            timeout=150,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0
    assert SERVER_NAME.encode() in done.stdout
    assert (tmp_path / ".cursor" / "mcp.json").exists() is written


def test_two_orders_at_once_are_refused(tmp_path: Path) -> None:
    octask(tmp_path, "--install", "cursor", "--uninstall", "zed", code=2)
    octask(tmp_path, "--yes", code=2)


# The program that hosts start


def made(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@POSIX_ONLY
def test_hosts_start_the_installation_that_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = made(tmp_path / "called" / "octask")
    beside = made(tmp_path / "venv" / "octask")
    on_path = made(tmp_path / "bin" / "octask")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    python = str(tmp_path / "venv" / "python")
    assert own_program(called, python) == [called, "mcp"]
    assert own_program("/src/engine/cli/__main__.py", python) == [beside, "mcp"]
    assert own_program("-m", "/usr/elsewhere/python") == [on_path, "mcp"]
    monkeypatch.chdir(tmp_path)
    assert own_program("called/octask", python) == [called, "mcp"]


def test_a_package_starts_itself_and_a_source_tree_its_interpreter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert own_program("octask", "/opt/app/octask", frozen=True) == ["/opt/app/octask", "mcp"]
    source = own_program("/src/__main__.py", "/no/such/python")
    assert source == ["/no/such/python", "-P", "-m", "engine.cli", "mcp"]
