"""JUnit report of command tasks: one suite per task, one case per command.

Screenshots are attached by path.
"""

from __future__ import annotations

import os
import re
import secrets
import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from engine.ledger.files import Folder, Unusable
from engine.model.display import display_lines
from engine.model.errors import EngineError

# In addition to the characters that `display_lines` replaces.
_NOT_XML: Final = re.compile("[\ufffe\uffff]")


class ReportNotWritten(EngineError):
    """The tasks have run, but their report cannot be written."""

    code = "report_not_written"
    title = "The report was not written"
    sentence = "The report cannot be written to {path}: {reason}"
    advice_text = "Choose another place for it; the tasks themselves are kept."


def report(tasks: Iterable[tuple[Mapping[str, Any], Path]]) -> bytes:
    """Build the report from tasks in the form of seed 002, with their folders."""
    root = Xml.Element("testsuites", name="octask")
    for task, folder in tasks:
        root.append(_suite(task, folder))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")
    Xml.indent(root)
    body: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def write_report(path: Path, data: bytes) -> None:
    """Write the report atomically.

    Raises:
        ReportNotWritten: it cannot be written there.
    """
    try:
        with Folder.at(str(path.absolute().parent)) as place:
            # Its own name, as `path.name` may be too long.
            temp = f".report-{secrets.token_hex(8)}.tmp"
            place.replace(path.name, [data], temp=temp, durable=False)
    except Unusable as error:
        raise ReportNotWritten(path=str(path), reason=str(error)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReportNotWritten(path=str(path), reason=reason) from error


def _suite(task: Mapping[str, Any], folder: Path) -> Xml.Element:
    commands = task["commands"]
    suite = Xml.Element("testsuite", name=_clean(task["name"]), hostname="localhost")
    properties = Xml.SubElement(suite, "properties")
    for name in ("id", "status", "instanceId", "intention"):
        Xml.SubElement(properties, "property", name=name, value=_clean(task.get(name)))
    Xml.SubElement(properties, "property", name="folder", value=_clean(folder))
    cases = [
        _case(task, number, command, folder) for number, command in enumerate(commands, start=1)
    ]
    told = any(case.find("failure") is not None for case in cases)
    if task["status"] == "failed" and not told:  # its process died, or a budget was exceeded
        cases.append(_task_error(task))
    suite.extend(cases)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    began = task.get("startedAt", task["createdAt"])
    suite.set("time", _seconds(began, task.get("completedAt")))
    suite.set("timestamp", datetime.fromtimestamp(began / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return suite


def _case(
    task: Mapping[str, Any], number: int, command: Mapping[str, Any], folder: Path
) -> Xml.Element:
    case = Xml.Element(
        "testcase",
        name=_clean(f"{number:03d} {command['intention']}"),
        classname=_clean(task["name"]),
        time=_seconds(command.get("startedAt"), command.get("completedAt")),
    )
    picture = _picture(command, folder)
    properties = Xml.SubElement(case, "properties")
    Xml.SubElement(properties, "property", name="id", value=_clean(command["id"]))
    Xml.SubElement(properties, "property", name="tool", value=_clean(command["tool_name"]))
    if picture:
        Xml.SubElement(properties, "property", name="attachment", value=_clean(picture))
    if command.get("warning"):
        Xml.SubElement(properties, "property", name="warning", value=_clean(command["warning"]))
    error = command.get("error")
    if command["status"] == "error":
        said = error if isinstance(error, Mapping) else {}
        _because(case, "failure", said.get("code"), said.get("message"))
    elif command["status"] != "success":
        why = "cancelled" if task["status"] == "cancelled" else "an earlier command failed"
        Xml.SubElement(case, "skipped", message=why)
    output = [f"warning: {command['warning']}"] if command.get("warning") else []
    output += [f"[[ATTACHMENT|{picture}]]"] if picture else []
    if output:
        Xml.SubElement(case, "system-out").text = _clean("\n".join(output))
    return case


def _task_error(task: Mapping[str, Any]) -> Xml.Element:
    case = Xml.Element("testcase", name="the task", classname=_clean(task["name"]), time="0.000")
    said = task.get("error", {})
    _because(case, "error", said.get("code"), said.get("message"))
    return case


def _because(case: Xml.Element, tag: str, code: object, message: object) -> None:
    said = Xml.SubElement(case, tag, type=_clean(code), message=_clean(message))
    said.text = _clean(f"{code}: {message}")


def _picture(command: Mapping[str, Any], folder: Path) -> str:
    result = command.get("result")
    path = result.get("path") if isinstance(result, Mapping) else None
    if command["tool_name"] != "browser_content" or not isinstance(path, str):
        return ""
    return os.path.join(folder, *path.split("/"))


def _seconds(began: Any, ended: Any) -> str:
    return "0.000" if began is None or ended is None else f"{max(0, ended - began) / 1000:.3f}"


def _clean(value: object) -> str:
    """Replace characters that XML forbids or a terminal would execute."""
    return _NOT_XML.sub("\ufffd", "" if value is None else display_lines(str(value)))
