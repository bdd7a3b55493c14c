"""A kind that is registered appears in every face: no other module has to know it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from PySide6.QtWidgets import QApplication

from engine.cli.octask import octask
from engine.export.exporter import columns_for
from engine.kinds.arguments import Argument, FormField, Table, flag, read_all, whole
from engine.kinds.context import Context
from engine.kinds.registry import KINDS, register, unregister
from engine.kinds.spec import Column, Head, KindForm, KindSpec, Tools, defaults_of
from engine.model.config import Settings
from engine.model.errors import InvalidArguments
from engine.model.kind_traits import KindTraits
from engine.model.records import Status, Units
from engine.service.engine import Engine
from engine.text.words import unit_word
from gui.start.kind_form import FormWords
from gui.start.request_form import RequestForm
from tests.support.kinds import least
from tests.trust.crossing import requests
from tests.trust.given_values import BATCH


class CountArgs(msgspec.Struct, frozen=True):
    """Arguments of the kind that is added here."""

    up_to: int = 3
    doubled: bool = False


ARGUMENTS: Table = {
    "up_to": Argument(whole(1, 9), FormField("Count to", "first"), "Count to this number."),
    "doubled": Argument(flag, FormField("Doubled"), "Double each number."),
}


def _parse(given: Mapping[str, Any]) -> CountArgs:
    fields, problems = read_all(given, ARGUMENTS, "a count")
    if problems:
        raise InvalidArguments(tuple(problems))
    return CountArgs(**fields)


async def _count(args: CountArgs, context: Context, tools: Tools) -> Head:
    for number in range(1, args.up_to + 1):
        await context.page({"number": number * (2 if args.doubled else 1)}, Units(done=number))
    return {"last": args.up_to}


COUNT = KindSpec(
    "count",
    _parse,
    _count,
    lambda args, units, stopped_by, lasted_ms: {},
    traits=KindTraits("count", "items", "steps", "numbers", summary=False),
    form=KindForm("Count numbers", "numbers in order", "Counting"),
    arguments=ARGUMENTS,
    defaults=defaults_of(CountArgs),
    columns=(Column("number", 8),),
)


@pytest.fixture(autouse=True)
def count() -> Iterator[None]:
    register(COUNT)
    yield
    unregister("count")
    assert "count" not in KINDS


def test_the_help_of_start_lists_the_kind_and_its_options() -> None:
    said = CliRunner().invoke(octask, ["start", "--help"]).output
    assert "numbers in order" in said
    section = said.split("Counting:\n")[1]
    assert "--up-to N" in section
    assert "Count to this number (1 to 9; default: 3)." in " ".join(section.split())


def test_the_start_dialog_has_a_form_for_the_kind(qapp: QApplication, qtbot: Any) -> None:
    form = RequestForm(FormWords())
    qtbot.addWidget(form)
    form.choose("count")
    assert form["up_to"].label == "Count to"
    assert form["up_to"].value == 3
    form["up_to"].value = 7
    assert form.asked.args == {"up_to": 7, "doubled": False}


def test_the_command_line_starts_and_exports_the_kind(tmp_path: Path) -> None:
    home, out = ["--home", str(tmp_path)], tmp_path / "numbers.csv"
    ran = CliRunner().invoke(octask, ["start", "count", "--up-to", "2", "--json", *home])
    assert ran.exit_code == 0, ran.output
    (meta,) = (tmp_path / "tasks").glob("*/meta.json")
    record = json.loads(meta.read_bytes())
    assert (record["kind"], record["status"]) == ("count", Status.COMPLETED)
    result = json.loads((meta.parent / "result.json").read_bytes())
    assert [one["number"] for one in result["numbers"]] == [1, 2]
    done = CliRunner().invoke(
        octask, ["export", meta.parent.name, "--format", "csv", "-o", str(out), *home]
    )
    assert done.exit_code == 0, done.output
    assert out.read_text("utf-8-sig").splitlines()[0].startswith("number,")


async def test_the_list_finds_the_kind_and_counts_its_units(tmp_path: Path) -> None:
    engine = Engine(Settings(root=tmp_path / "tasks"), accepts=True)
    await engine.open()
    try:
        task_id = (await engine.requests.start("count", {"up_to": 4})).task_id
        assert (await engine.tasks.wait(task_id)).status == Status.COMPLETED
        (view,) = await engine.tasks.list(query="kind:count")
        assert view.task_id == task_id
    finally:
        await engine.close()
    assert unit_word("count", 2) == "items"
    assert [column.name for column in columns_for("count", ())] == ["number"]


def test_the_search_for_leaked_secrets_includes_the_kind() -> None:
    asked = requests("site.test", 0, ["x"] * BATCH, str)
    assert asked["count"] == ("count", least("count"))


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="count"):
        register(COUNT)
