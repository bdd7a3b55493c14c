"""Dialogs in another theme, in longer words, on the smallest screens: nothing is cut off."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QIcon, QPalette
from PySide6.QtWidgets import QAbstractButton, QPushButton, QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from engine.service.forms import startable
from gui.details.facts import Fact
from gui.details.overview import FactGrid
from gui.start.field import Fold
from gui.start.kind_form import FormWords
from gui.start.request_form import RequestForm
from gui.style.banners import Banner
from gui.style.questions import Question
from gui.style.theme import Theme, apply_theme, tone
from gui.style.widgets import ElidedLink, arrange
from tests.gui.windows import app


def form_of(qtbot: QtBot) -> RequestForm:
    form = RequestForm(FormWords())
    qtbot.addWidget(form)
    form.resize(560, 500)
    form.show()
    return form


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize("kind", startable())
def test_no_form_has_to_be_scrolled_sideways_in_german(qtbot: QtBot, kind: str) -> None:
    form = form_of(qtbot)
    form.choose(kind)
    for fold in form.findChildren(Fold):
        fold.unfold()
    (area,) = (one for one in form.findChildren(QScrollArea) if one.parent() is form)
    inner = area.widget()
    assert inner is not None
    assert inner.minimumSizeHint().width() <= area.viewport().width()


def _ink(button: QAbstractButton) -> bytes:
    icon: QIcon = button.icon()
    image = icon.pixmap(20, 20).toImage()
    return bytes(image.constBits())


def test_the_signs_of_an_open_dialog_are_drawn_anew_with_the_theme(qtbot: QtBot) -> None:
    apply_theme(app(), Theme.LIGHT)
    form = form_of(qtbot)
    form.choose("commands")
    signed = [one for one in form.findChildren(QAbstractButton) if not one.icon().isNull()]
    assert len(signed) > 8
    light = [_ink(one) for one in signed]
    apply_theme(app(), Theme.DARK)
    app().processEvents()  # the news of it is on its way
    dark = [_ink(one) for one in signed]
    apply_theme(app(), Theme.LIGHT)
    pairs = zip(signed, light, dark, strict=True)
    assert [one.text() for one, before, after in pairs if before == after] == []


def _colours(widget: QWidget) -> set[str]:
    image = widget.grab().toImage()
    places = ((x, y) for x in range(min(80, image.width())) for y in range(image.height()))
    return {image.pixelColor(x, y).name() for x, y in places}


def test_links_and_facts_take_the_colours_of_another_theme(qtbot: QtBot) -> None:
    apply_theme(app(), Theme.LIGHT)
    sheet = QWidget()
    qtbot.addWidget(sheet)
    link, facts = ElidedLink(), FactGrid()
    link.show_text("http://site.test/")
    facts.show_facts([Fact("ended_by", "its page limit", "warning"), Fact("kind", "Crawl")])
    arrange(QVBoxLayout(sheet), link, facts)
    sheet.show()
    parts = (link, *(facts._lines[field][1] for field in ("ended_by", "kind")))
    found: list[tuple[set[str], set[str]]] = []
    for theme in (Theme.LIGHT, Theme.DARK):
        apply_theme(app(), theme)
        app().processEvents()
        palette = app().palette()
        text, of_link = (
            palette.color(role).name()
            for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Link)
        )
        inks = {of_link, tone("warning", palette).name(), text}
        found.append((inks, set().union(*map(_colours, parts))))
    apply_theme(app(), Theme.LIGHT)
    (light_inks, light), (dark_inks, dark) = found
    assert len(light_inks & light) >= 2  # a thin letter may have no pixel of the whole ink
    assert len(dark_inks & dark) >= 2
    assert not light_inks & dark


def test_a_banner_that_was_open_is_drawn_in_another_theme(qtbot: QtBot) -> None:
    apply_theme(app(), Theme.LIGHT)
    banner = Banner()
    qtbot.addWidget(banner)
    banner.tell("Language", "Restart the program.")
    apply_theme(app(), Theme.DARK)
    app().processEvents()
    wanted = tone("warning", app().palette()).name()
    image = banner._picture.pixmap().toImage()
    apply_theme(app(), Theme.LIGHT)
    places = ((x, y) for x in range(image.width()) for y in range(image.height()))
    assert wanted in {image.pixelColor(x, y).name() for x, y in places}


@pytest.mark.parametrize("number", [2, 9])
def test_buttons_are_stacked_in_narrow_windows(qtbot: QtBot, number: int) -> None:
    question = Question()
    qtbot.addWidget(question)
    question.ask("Quit", "3 tasks of this window are still running.")
    for at in range(number):
        question.add_button(f"{at}", "Keep running in background", default=at == 0)
    question.show()
    buttons = question.findChildren(QPushButton)
    places = [one.geometry() for one in buttons]
    overlaps = [a.intersects(b) for at, a in enumerate(places) for b in places[at + 1 :]]
    assert not any(overlaps)
    assert question.width() <= question.screen().availableGeometry().width()
    assert len({one.top() for one in places}) == (1 if number == 2 else number)
