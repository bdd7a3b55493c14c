"""Convert every failure of a command to a sentence and an exit code, without traceback."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys

import click

from engine.cli.calls import FAILED, KILLED, OK, print_json, refuse
from engine.logging.logs import log_path
from engine.model.display import display_lines
from engine.model.errors import EngineError
from engine.text.cli_messages import say

log = logging.getLogger(__name__)


def repair_streams() -> None:
    """Make standard streams accept every text, and replace missing ones by the null device."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            flags = os.O_RDONLY if name == "stdin" else os.O_WRONLY
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))
        elif isinstance(stream, io.TextIOWrapper) and name != "stdin":
            stream.reconfigure(errors="backslashreplace")  # a code page may lack the character


def guarded() -> int:
    """Run the command line; return the exit code."""
    try:
        code = _run()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_stdout()  # the reader closed the pipe (`| head`): no error
        return OK
    except OSError as error:
        _discard_stdout()
        return _failed(say("output.failed", reason=error.strerror or str(error)))
    except Exception as error:
        log.exception("octask failed")
        name = type(error).__name__
        return _failed(say("unexpected", name=name), say("unexpected.log", path=log_path()))


def _run() -> int:
    from engine.cli.octask import octask

    stdout = sys.stdout
    try:
        answer = octask.main(prog_name="octask", standalone_mode=False)
    except click.ClickException as error:
        return _misused(error, as_json="--json" in sys.argv)
    except (click.Abort, KeyboardInterrupt):
        return KILLED
    except EngineError as error:
        refuse(error, as_json="--json" in sys.argv)
    except SystemExit as ended:
        if sys.stdout is not stdout:  # click replaces stdout and exits with 1 after a broken pipe
            raise BrokenPipeError from None
        return ended.code if isinstance(ended.code, int) else FAILED
    return answer if isinstance(answer, int) else OK


def _misused(error: click.ClickException, *, as_json: bool) -> int:
    """Print a usage error, sanitised, because it quotes the user's input."""
    if as_json:
        message = error.format_message()
        told = {"code": "bad_usage", "title": say("usage"), "message": message}
        print_json({"error": told}, indent=None)
    else:
        said = io.StringIO()
        error.show(said)
        click.echo(display_lines(said.getvalue()), err=True, nl=False)
    return error.exit_code


def _failed(*sentences: str) -> int:
    with contextlib.suppress(OSError):
        for sentence in sentences:
            click.echo(sentence, err=True)
    return FAILED


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's final flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
