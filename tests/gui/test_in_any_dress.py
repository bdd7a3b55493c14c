"""Dialogs in another theme, in longer words, on the smallest screens: nothing is cut off."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QAbstractButton, QPushButton, QScrollArea
from pytestqt.qtbot import QtBot

from engine.service.forms import startable
from gui.start.field import Fold
from gui.start.kind_form import FormWords
from gui.start.request_form import RequestForm
from gui.style.questions import Question
from gui.style.theme import Theme, apply_theme
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
