"""`openchrome-monitor`: the program around the window, and the opening of one window.

Importing the parts of a window takes far longer than painting its frame, so a thread imports them
and they are created in steps, while the window can be moved and closed.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMetaMethod, QObject, Signal
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication, QWidget

from engine.logging.logs import log_path, log_to_file, private_folder
from engine.model.config import VERSION, Settings
from engine.model.errors import EngineError
from engine.model.process_limits import keep_owner_access, raise_open_files
from gui.context.preferences import Memory, Preferences, config_file
from gui.desktop.launch_request import (
    SCHEME,
    Instance,
    Wish,
    come_forward,
    here,
    token_in,
    wish_in,
    wish_of,
)
from gui.engine_link.scheduling import TaskSet
from gui.startup.crash_handler import CrashHandler, crash_file, has_crashed, log_qt_messages
from gui.startup.loop import NoScreen, check_screen, platform_for, run, wanted_screens
from gui.style.theme import apply_theme, dress_first
from gui.window.main_window import MainWindow

if TYPE_CHECKING:
    from gui.startup.session import Session


APP_NAME = "openchrome-monitor"
DESKTOP_ID = "io.github.openchrome.monitor"
PAINT_S = 0.5  # A covered window is never painted, and must not be waited for


class Opener(QApplication):
    """Application that receives open and quit requests of the desktop.

    `asked` carries an address to open (macOS). `told_to_quit` reports a log-out or Quit in the
    dock.
    """

    asked = Signal(str)
    told_to_quit = Signal()

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self._keeps_quit = self._has_quit = False

    def keep_quit(self) -> None:
        """From now on, keep a request to quit that comes while there is no window."""
        self._keeps_quit = True

    def take_quit(self) -> bool:
        """Return whether a request to quit was kept, and forget it."""
        had, self._has_quit = self._has_quit, False
        return had

    def event(self, event: QEvent) -> bool:
        # Overridden, because an event filter would be called for every event.
        if isinstance(event, QFileOpenEvent):
            self.asked.emit(event.url().toString())
            return True
        heard = self.isSignalConnected(QMetaMethod.fromSignal(self.told_to_quit))
        if event.type() == QEvent.Type.Quit and (heard or self._keeps_quit):
            # Qt would close every window before its tasks have ended, and macOS would end the
            # process when an accepted event returns.
            event.ignore()
            self._has_quit = not heard
            self.told_to_quit.emit()
            return True
        return super().event(event)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window; returns the exit code: 0, 1 when it could not, 2 for bad usage."""
    keep_owner_access()
    raise_open_files()
    if getattr(sys, "frozen", False):
        _leave_bundle()
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
        app.keep_quit()
        return run(app, _windows(app, settings, wish, options))
    except (asyncio.CancelledError, KeyboardInterrupt):
        if options.self_test or options.shot:
            _say("Ended by a signal before it was done.", wrong=True)
        return 130  # ended by a signal, everything closed


def _leave_bundle() -> None:
    from engine.browser.chromium.locate import leave_bundle  # only packaged programs need it

    leave_bundle(os.environ)


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
    memory, alarm = Memory(), CrashHandler()
    preferences = Preferences(config_file("preferences.json"))
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
    crashed, is_further = has_crashed(memory), options.new_window
    while True:
        door = WindowOpening.on(settings, memory, preferences, alarm)
        if is_further:  # once: a window that is opened again, as for a language, stays in its place
            door.window.step_aside()
            is_further = False
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
    try:
        if app.take_quit():
            return None
        door.show()
        door.when_painted(instance.listen)
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
    return arguments().parse_args(argv)


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line, which the man page also describes."""
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
    return parser


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


class WindowOpening(QObject):
    """Handle requests to a window that is loading; `broken` is set when that fails."""

    def __init__(self, window: MainWindow, settings: Settings, alarm: CrashHandler) -> None:
        super().__init__()
        self.window, self._settings, self._alarm = window, settings, alarm
        self._session: Session | None = None
        self._wish: Wish | None = None
        self._settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._painted = asyncio.Event()
        self._first: list[Callable[[], object]] = []
        self._next: list[Callable[[], object]] = []
        self._work = TaskSet(self._fail)
        window.painted.connect(self._painted.set)
        window.close_wanted.connect(self._settle)
        alarm.window, alarm.quit_wanted = window, self._settle
        self.broken = False

    @classmethod
    def on(
        cls, settings: Settings, memory: Memory, preferences: Preferences, alarm: CrashHandler
    ) -> WindowOpening:
        """Create a window on the ledger of `settings`."""
        return cls(MainWindow(memory, preferences, str(settings.root)), settings, alarm)

    def show(self) -> None:
        """Show the window, unless it is configured to start hidden."""
        if not self.window.preferences.get("desktop.start_hidden", bool):
            self.window.show()

    def when_painted(self, act: Callable[[], object]) -> None:
        """Call `act` after the first paint, before the parts are imported."""
        self._first.append(act)

    def when_imported(self, act: Callable[[], object]) -> None:
        """Call `act` on the event loop before the first part is created, after the imports."""
        self._next.append(act)

    async def ended(self, wish: Wish, *, crashed: bool) -> Path | None:
        """Load the window, handle the launch request, and wait until the user leaves.

        Returns the folder to open next, if any. `crashed` reports a crash of the previous run.
        """
        session = await self._furnished()
        if session is None:
            return None
        if crashed:
            session.tell_of_crash()
        session.open(wish)
        if self._wish is not None:
            session.take(self._wish)
        return await session.ended()

    async def close(self) -> None:
        """Save the window state and close the session."""
        self.window.remember()
        if self._session is not None:
            await self._session.close()
            return
        self._alarm.window = None
        self.window.hide()
        self.window.deleteLater()

    def called(self, message: object = None) -> None:
        """Handle the message of another program start."""
        self._take(wish_in(message))

    def open_address(self, address: str) -> None:
        """Open an address sent by the desktop (macOS)."""
        self._take(wish_of([address], here()))

    def obey(self) -> None:
        """Handle the desktop's request to quit."""
        if self._session is not None:
            self._session.leaving.obey()
        else:
            self._settle()

    def _take(self, wish: Wish) -> None:
        if self._session is not None:
            self._session.take(wish)
        else:
            come_forward(self.window, wish.token)
            self._wish = wish

    async def _furnished(self) -> Session | None:
        """Return the session, or None if the window was closed or failed to load."""
        self._work.spawn(self._furnish(), name="furnish the window")
        try:
            await self._settled
        finally:
            await self._work.close()
        return self._session

    def _fail(self, error: Exception) -> None:
        """Report the error and keep the window open for it."""
        self.broken = True
        self._alarm.ring(error)
        from gui.startup.failure_reports import show_broken

        if not self.window.furnished:
            show_broken(self.window, error, self._settle)

    async def _furnish(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAINT_S if self.window.isVisible() else 0):
                await self._painted.wait()
        for act in self._first:
            act()
        await asyncio.to_thread(import_module, "gui.startup.session")
        from gui.commands.help_actions import as_chosen
        from gui.engine_link.bridge import Bridge
        from gui.startup.failure_reports import BrokenParts
        from gui.startup.session import Session
        from gui.startup.window_builder import furnishing

        window = self.window
        for act in self._next:
            act()
        settings = as_chosen(self._settings, window.preferences)
        parts = BrokenParts(window)
        for _ in furnishing(window, Bridge(settings), parts.note):
            await asyncio.sleep(0)  # Qt processes events
        parts.tell(lambda bar: window.insert_bar(bar, after=window.banner))
        window.close_wanted.disconnect(self._settle)
        self._session = Session(settings, window.memory, self._alarm, window=window)
        self._settle()

    def _settle(self) -> None:
        if not self._settled.done():
            self._settled.set_result(None)


if __name__ == "__main__":
    sys.exit(main())
