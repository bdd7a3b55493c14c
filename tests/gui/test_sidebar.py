from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from engine.model.status import Facet
from gui.filters.facet_tree import _PAD, SIGN, FacetTree, children, key_of
from gui.filters.filter_bar import FilterBar
from gui.filters.sidebar import Sidebar
from gui.tasks.cell_painting import SIGN_SIZE

CTRL, NONE = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def sidebar(qtbot: QtBot) -> Sidebar:
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    sidebar.resize(190, 600)
    sidebar.show()
    sidebar.show_counts({facet.value: 12_480 for facet in Facet})
    return sidebar


def tree_of(sidebar: Sidebar) -> FacetTree:
    tree = sidebar.findChild(QTreeWidget)
    assert isinstance(tree, FacetTree)
    return tree


def items(sidebar: Sidebar) -> dict[str, QTreeWidgetItem]:
    tree = tree_of(sidebar)
    found = (tree.topLevelItem(at) for at in range(tree.topLevelItemCount()))
    heads = [head for head in found if head is not None]
    return {key_of(item): item for head in heads for item in (head, *children(head))}


def click(sidebar: Sidebar, key: str, modifier: Qt.KeyboardModifier = NONE) -> None:
    tree = tree_of(sidebar)
    at = tree.visualItemRect(items(sidebar)[key]).center()
    QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, modifier, at)


def box_of(bar: FilterBar) -> QWidget:
    box = bar.focusProxy()
    assert box is not None
    return box


def test_a_click_replaces_and_ctrl_adds_and_takes_away(sidebar: Sidebar) -> None:
    said: list[object] = []
    sidebar.facet_changed.connect(said.append)
    click(sidebar, Facet.FAILED)
    click(sidebar, Facet.RUNNING)
    click(sidebar, Facet.FAILED, CTRL)
    click(sidebar, Facet.RUNNING, CTRL)
    # Facets are typed as objects.
    assert [set(keys) for keys in said] == [  # type: ignore[call-overload]
        {"failed"},
        {"running"},
        {"running", "failed"},
        {"failed"},
    ]


def test_all_takes_every_other_facet_away_and_gives_way_to_one(sidebar: Sidebar) -> None:
    said: list[object] = []
    click(sidebar, Facet.FAILED)
    sidebar.facet_changed.connect(said.append)
    click(sidebar, Facet.ALL, CTRL)
    click(sidebar, Facet.PENDING, CTRL)
    assert said == [(), ("pending",)]


def test_what_was_chosen_can_be_kept_and_chosen_again(sidebar: Sidebar) -> None:
    said: list[object] = []
    sidebar.facet_changed.connect(said.append)
    sidebar.select(("failed", "no such facet", "running"))
    assert said == [("failed", "running")]
    assert sidebar.chosen == ("failed", "running")
    sidebar.select(())
    assert said[-1] == ()


def test_the_count_is_read_out_with_its_name(sidebar: Sidebar) -> None:
    spoken = items(sidebar)["all"].data(0, Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "All: 12,480"


def test_rare_facets_are_hidden_while_nobody_has_them(sidebar: Sidebar) -> None:
    sidebar.show_counts({"all": 3})
    hidden = {facet for facet in Facet if items(sidebar)[facet].isHidden()}
    assert hidden == {Facet.CANCELLING, Facet.CANCELLED, Facet.ORPHANED, Facet.UNREADABLE}


def test_escape_clears_and_a_second_one_leaves(qtbot: QtBot) -> None:
    bar = FilterBar()
    said: list[str] = []
    left: list[bool] = []
    qtbot.addWidget(bar)
    bar.text_changed.connect(said.append)
    bar.left.connect(lambda: left.append(True))
    bar.show()
    bar.focus_text()
    box = box_of(bar)
    with qtbot.waitSignal(bar.text_changed, timeout=60_000):
        QTest.keyClicks(box, "example")
    QTest.keyClick(box, Qt.Key.Key_Escape)
    assert (said, left) == (["example", ""], [])
    QTest.keyClick(box, Qt.Key.Key_Escape)
    assert left == [True]


def test_typing_fast_filters_once(qtbot: QtBot) -> None:
    bar = FilterBar()
    said: list[str] = []
    qtbot.addWidget(bar)
    bar.text_changed.connect(said.append)
    QTest.keyClicks(box_of(bar), "abc")
    QTest.keyClick(box_of(bar), Qt.Key.Key_Return)
    assert said == ["abc"]


def test_all_names_begin_at_one_line(sidebar: Sidebar) -> None:
    tree, known = tree_of(sidebar), items(sidebar)
    plain = next(one for key, one in known.items() if key == "age:<1h")
    tree.expandAll()
    signed = known[Facet.FAILED]
    assert (signed.data(0, SIGN), plain.data(0, SIGN)) == (Facet.FAILED, "")

    def first_ink(item: QTreeWidgetItem, begin: int) -> int:
        row = tree.visualItemRect(item)
        shown = tree.viewport().grab(row).toImage()
        ground = shown.pixel(0, 0)
        height = range(shown.height())
        columns = range(begin, shown.width())
        return next(x for x in columns if any(shown.pixel(x, y) != ground for y in height))

    place = _PAD + SIGN_SIZE + 2  # right of an icon
    assert abs(first_ink(plain, 0) - first_ink(signed, place)) <= 2
