"""Every text of the program that can be translated, found in its code."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import engine
import gui
from engine.kinds.arguments import FormField
from engine.model.errors import EngineError
from engine.service.forms import form_fields, kind_forms, startable
from engine.text.messages import ENGLISH

ROOT = Path(__file__).resolve().parents[2]


@cache
def window_texts() -> set[str]:
    """What stands in `tr("…")` and `translate("…", "…")` in the window, and in its forms."""
    return _form_texts() | {
        text
        for file in (ROOT / "gui").rglob("*.py")
        for text in _translated(ast.parse(file.read_text("utf-8")))
    }


def _form_texts() -> set[str]:
    fields = (field for kind in startable() for field in form_fields(kind).values())
    forms = (
        text for form in kind_forms().values() for text in (form.action, form.listed, form.nothing)
    )
    return {*filter(None, forms), *(text for field in fields for text in _texts_of(field))}


def _texts_of(field: FormField) -> Iterator[str]:
    labels = (label for _, label in field.options)
    return filter(None, (field.label, field.hint, field.shade, field.none, *labels))


def _translated(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        where = {"tr": 0, "_tr": 0, "translate": 1, "QT_TRANSLATE_NOOP": 1}.get(name)
        if where is not None and len(node.args) > where:
            text = node.args[where]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield text.value


@cache
def error_texts() -> dict[str, dict[str, str]]:
    """Title, sentence and advice of every error, by its code; a bare `{message}` is no text."""
    _import_everything()
    found: dict[str, dict[str, str]] = {}
    for kind in _kinds(EngineError):
        parts = {"title": kind.title, "sentence": kind.sentence, "advice": kind.advice_text}
        parts = {key: text for key, text in parts.items() if text and text != "{message}"}
        found.setdefault(kind.code, {}).update(parts)
    return found


def _kinds(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _import_everything() -> None:
    import importlib
    import pkgutil

    for package in (engine, gui):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)


@cache
def sources() -> dict[str, Any]:
    """All of it, in the shape of a translation whose texts are still English."""
    return {
        "messages": dict(ENGLISH),
        "errors": error_texts(),
        "window": {text: text for text in sorted(window_texts())},
    }


def missing(translation: dict[str, Any]) -> dict[str, Any]:
    """The part of `sources` that `translation` does not have."""
    wanted = sources()
    errors = {
        code: {part: text for part, text in parts.items() if part not in _of(translation, code)}
        for code, parts in wanted["errors"].items()
    }
    return {
        "messages": _without(wanted["messages"], translation.get("messages", {})),
        "errors": {code: parts for code, parts in errors.items() if parts},
        "window": _without(wanted["window"], translation.get("window", {})),
    }


def _of(translation: dict[str, Any], code: str) -> dict[str, str]:
    found: dict[str, str] = translation.get("errors", {}).get(code, {})
    return found


def _without(wanted: dict[str, str], known: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in wanted.items() if key not in known}


if __name__ == "__main__":  # what is still to be translated: python -m tests.words.source_texts de
    code = sys.argv[1] if len(sys.argv) > 1 else "de"
    file = ROOT / "gui" / "translations" / f"{code}.json"
    known = json.loads(file.read_text("utf-8")) if file.exists() else {}
    print(json.dumps(missing(known), indent=1, ensure_ascii=False))
