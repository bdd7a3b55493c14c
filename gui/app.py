"""`openchrome-monitor`: the program around the window."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QMetaMethod, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication, QWidget

from engine.logging.logs import keep_owner_access, log_path, log_to_file, private_folder
from engine.model.config import VERSION, Settings
from engine.model.errors import EngineError
from gui.desktop.launch_request import SCHEME, Wish, here, wish_of
from gui.desktop.raise_window import token_in
from gui.startup.crash_handler import CrashHandler, crash_file, has_crashed, log_qt_messages
from gui.startup.loop import NoScreen, check_screen, platform_for, run, wanted_screens
from gui.startup.single_instance import Instance
from gui.startup.window_opening import WindowOpening
from gui.state.preferences import Preferences
from gui.state.preferences import default_file as preference_file
from gui.state.window_state import Memory
from gui.style.theme import apply_theme, dress_first

APP_NAME = "openchrome-monitor"
DESKTOP_ID = "io.github.openchrome.monitor"


class Opener(QApplication):
    """Application that receives open and quit requests of the desktop.

    `asked` carries an address to open (macOS). `told_to_quit` reports a log-out or Quit in the
    dock.
    """

    asked = Signal(str)
    told_to_quit = Signal()

    def event(self, event: QEvent) -> bool:
        # Overridden, because an event filter would be called for every event.
        if isinstance(event, QFileOpenEvent):
            self.asked.emit(event.url().toString())
            return True
        heard = self.isSignalConnected(QMetaMethod.fromSignal(self.told_to_quit))
        if event.type() == QEvent.Type.Quit and heard:
            # Qt would close every window before its tasks have ended, and macOS would end the
            # process when an accepted event returns.
            event.ignore()
            self.told_to_quit.emit()
            return True
        return super().event(event)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window; returns the exit code: 0, 1 when it could not, 2 for bad usage."""
    keep_owner_access()
    gc.disable()  # nearly all that a start makes is kept; the session enables it again
    options = _parse(sys.argv[1:] if argv is None else argv)
    try:
        settings = Settings.chosen(os.environ, home=options.home, root=options.root)
    except EngineError as error:
        return _refuse(error)
    options.screens = wanted_screens(os.environ, sys.platform)
    os.environ.update(platform_for(os.environ, sys.platform))
    log_to_file()
    _write_crashes_down()
    log_qt_messages()
    app = make_application()
    try:
        if options.self_test or options.shot:
            return _report(*_proof(app, settings, options))
        wish = wish_of(options.what, here(), token_in(os.environ), options.beside)
        return run(app, _windows(app, settings, wish, options))
    except (asyncio.CancelledError, KeyboardInterrupt):
        if options.self_test or options.shot:
            _say("Ended by a signal before it was done.", wrong=True)
        return 130  # ended by a signal, everything closed


def _proof(app: Opener, settings: Settings, options: argparse.Namespace) -> tuple[int, str]:
    """What the program shows of itself without anybody at it: its self-test or a picture."""
    from gui.i18n.language import speak
    from gui.startup.screenshot_tour import self_test, shoot

    speak(app, options.language or "en")
    if options.self_test:
        return run(app, self_test(app, settings.browser_path))
    beside = [one.absolute() for one in options.beside]
    return run(app, shoot(app, settings, options.shot, options.scene or "main", beside))


def make_application() -> Opener:
    """The one application object, named so that desktops know whose window this is."""
    _name_for_the_task_bar()
    app = Opener([APP_NAME, "-style", "Fusion"])  # asking for it later takes 17 ms
    app.setApplicationName(APP_NAME)
    app.setApplicationDisplayName("OpenChrome Monitor")
    app.setApplicationVersion(VERSION)
    app.setOrganizationName("OpenChrome")
    app.setDesktopFileName(DESKTOP_ID)
    keep_customs(app, sys.platform)
    return app


def keep_customs(app: QApplication, platform: str) -> None:
    """On a Mac menus have no pictures: every other program's have none."""
    if platform == "darwin":
        from PySide6.QtCore import Qt

        app.setAttribute(Qt.ApplicationAttribute.AA_DontShowIconsInMenus)


def _name_for_the_task_bar() -> None:
    """On Windows a window is Python's unless its process says otherwise."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.shell32.SetCurrentProcessExplicitAppUserModelID(DESKTOP_ID)


async def _windows(app: Opener, settings: Settings, wish: Wish, options: argparse.Namespace) -> int:
    """One window after the other, as the user opens folders; the exit code."""
    memory, alarm, preferences = Memory(), CrashHandler(), Preferences(preference_file())
    alarm.install()
    alarm.watch_loop(asyncio.get_running_loop())
    dress_first(app, memory.theme)
    app.styleHints().colorSchemeChanged.connect(lambda _: apply_theme(app, memory.theme))
    instance = Instance(settings.root)
    if not options.new_window and not instance.claim():
        return _hand_over(instance, settings.root, wish)
    try:
        check_screen(options.screens, app.platformName())
    except NoScreen as error:
        instance.release()
        return _refuse(error)
    crashed = has_crashed(memory)
    while True:
        door = WindowOpening.on(settings, memory, preferences, alarm)
        looks = partial(_settle_looks, app, door.window, memory, preferences, options.language)
        door.when_imported(looks)
        folder = await _one_window(app, door, instance, wish, crashed)
        if folder is None:
            return 1 if door.broken else 0
        settings, wish, crashed = replace(settings, root=folder), Wish(beside=wish.beside), False
        instance = Instance(folder)
        if not options.new_window and not instance.claim():
            return _hand_over(instance, folder, wish)


def _settle_looks(
    app: Opener, window: QWidget, memory: Memory, preferences: Preferences, language: str | None
) -> None:
    """What a window without a word in it could do without: the language, and all of the theme."""
    from gui.i18n.language import chosen, speak

    speak(app, language or chosen(preferences.get("general.language", str)))
    window.unsetLocale()  # it was made before there was one
    apply_theme(app, memory.theme)


async def _one_window(
    app: Opener, door: WindowOpening, instance: Instance, wish: Wish, crashed: bool
) -> Path | None:
    """Show one window until it is left; the folder to open next, if that is why."""
    instance.called.connect(door.called)
    app.asked.connect(door.open_address)
    app.told_to_quit.connect(door.obey)
    door.show()
    door.when_painted(instance.listen)
    try:
        return await door.ended(wish, crashed=crashed)
    finally:
        app.asked.disconnect(door.open_address)
        app.told_to_quit.disconnect(door.obey)
        await door.close()
        instance.release()


def _hand_over(instance: Instance, root: Path, wish: Wish) -> int:
    """Let the window that shows this ledger already come forward and do what was asked."""
    if instance.hand_over(wish.message()):
        return 0
    _say(
        f"Another window already shows {root}, but it does not answer. "
        "End it, or use --new-window.",
        wrong=True,
    )
    return 1


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=APP_NAME,
        description="Watch and run browser tasks in a window.",
        epilog="Without a screen the window is drawn on an invisible one; `octask` needs none.",
    )
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help=f"an address or a file to start from, or a link {SCHEME}://task/ID to show",
    )
    _add_places(parser)
    parser.add_argument("--new-window", action="store_true", help="do not hand over to another")
    parser.add_argument("--shot", type=Path, metavar="FILE.png", help="save a picture and exit")
    parser.add_argument(
        "--scene", type=_scene, metavar="NAME", help="what the picture shows (default: main)"
    )
    parser.add_argument("--language", type=_language, help=argparse.SUPPRESS)
    parser.add_argument(
        "--self-test", action="store_true", help="crawl the bundled site and exit 0 if it works"
    )
    parser.add_argument("--version", action="version", version=f"{APP_NAME} {VERSION}")
    return parser.parse_args(argv)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=_folder, metavar="DIR", help="the folder with the tasks")
    parser.add_argument("--home", type=_folder, metavar="DIR", help="the folder of everything")
    parser.add_argument(
        "--beside",
        type=_folder,
        action="append",
        default=[],
        metavar="DIR",
        help="another folder with tasks, watched in the same window until it closes; repeatable",
    )


def _folder(given: str) -> Path:
    if not given.strip():
        raise argparse.ArgumentTypeError("give the name of a folder; this is empty")
    return Path(given)


def _scene(given: str) -> str:
    from gui.startup.screenshot_tour import STAGES

    if given not in STAGES:
        raise argparse.ArgumentTypeError(f"choose one of {', '.join(STAGES)}")
    return given


def _language(given: str) -> str:
    from gui.i18n.language import NAMES, PSEUDO

    if given not in (*NAMES, PSEUDO):
        raise argparse.ArgumentTypeError(f"choose one of {', '.join((*NAMES, PSEUDO))}")
    return given


def _refuse(error: EngineError) -> int:
    _say(f"{error} {error.advice}".strip(), wrong=True)
    return 1


def _report(code: int, words: str) -> int:
    if words:
        _say(words, wrong=code != 0 and not words.startswith("The self-test"))
    return code


def _say(words: str, *, wrong: bool = False) -> None:
    """A sentence on the terminal; a program without one (Windows) has nobody to tell."""
    stream = sys.stderr if wrong else sys.stdout
    if stream is not None:
        stream.write(f"{words}\n")
        stream.flush()


def _write_crashes_down() -> None:
    """A crash of the interpreter itself leaves its stack beside the log."""
    try:
        private_folder(log_path().parent)
        # kept open for the life of the process: faulthandler writes to its number
        file = os.open(crash_file(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return
    faulthandler.enable(file)


if __name__ == "__main__":
    sys.exit(main())
