"""The forms of the kinds in the language of the window.

The engine defines them (`engine.service.forms`); here their texts are translated.
"""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject

from engine.service.forms import form_fields, kind_forms
from engine.text.words import count
from gui.start.presets import Kept

Options = tuple[tuple[str, str], ...]


class Line(NamedTuple):
    """A field of a form; see `FormField`."""

    key: str
    name: str
    editor: str
    place: str
    hint: str
    shade: str
    none: str
    options: Options
    suffix: str


class KindWords(NamedTuple):
    """Title, action and icon of a kind."""

    kind: str
    title: str
    doing: str
    sign: str


class FormWords(QObject):
    """The texts of every form in the language of the window."""

    def lacking(self, kept: Kept) -> str:
        """What of a request that was kept has to be given again; nothing for none."""
        lines = []
        if kept.lost:
            lines.append(self.tr("Something in it was secret and was not kept: type it in again."))
        if kept.urls and len(kept.urls) < kept.listed:
            words = self.tr("The list was too long to be kept: these are the first {0} of {1}.")
            lines.append(words.format(count(len(kept.urls)), count(kept.listed)))
        return "\n".join(lines)

    def kinds(self) -> tuple[KindWords, ...]:
        """All that can be started, in the order in which it is offered."""
        return tuple(
            KindWords(kind, self.tr(form.title), self.tr(form.action), form.icon)
            for kind, form in kind_forms().items()
        )

    def doing(self, kind: str) -> str:
        """The action of a kind."""
        return next((each.doing for each in self.kinds() if each.kind == kind), kind)

    def listed(self, kind: str) -> str:
        """The name of a list of addresses for a kind."""
        form = kind_forms().get(kind)
        return (
            self.tr(form.listed)
            if form is not None and form.listed
            else self.tr("{0} addresses, {1}")
        )

    def lines(self, kind: str) -> tuple[Line, ...]:
        """The fields of one kind."""
        return tuple(
            Line(
                key,
                self.tr(field.label),
                field.editor,
                field.place,
                self.tr(field.hint),
                self.tr(field.shade),
                self.tr(field.none),
                tuple((value, self.tr(label)) for value, label in field.options),
                field.suffix,
            )
            for key, field in form_fields(kind).items()
        )
