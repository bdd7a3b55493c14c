"""Entry point of `octask`, also as `python -m engine.cli`.

Converts every failure of a command to a sentence and an exit code, without traceback.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys

import click

from engine.cli.exit_codes import FAILED, KILLED, OK
from engine.cli.streams import discard_stdout, lost_output, repair_streams
from engine.model.display import display_lines
from engine.model.errors import EngineError
from engine.model.process_limits import keep_owner_access, raise_open_files
from engine.text.cli_messages import say

log = logging.getLogger(__name__)


def main() -> None:
    """Run the command line and exit with its code."""
    keep_owner_access()
    raise_open_files()
    repair_streams()
    if getattr(sys, "frozen", False):
        from engine.browser.chromium.locate import leave_bundle  # imports what finds a browser

        leave_bundle(os.environ)
    sys.exit(guarded())


def guarded() -> int:
    """Run the command line; return the exit code."""
    try:
        code = _run()
        sys.stdout.flush()
        lost = lost_output()
        return code if lost is None else _output_failed(lost)
    except BrokenPipeError:
        discard_stdout()  # the reader closed the pipe (`| head`): no error
        return OK
    except OSError as error:
        discard_stdout()
        return _output_failed(error)
    except Exception as error:
        from engine.logging.logs import log_path

        log.exception("octask failed")
        name = type(error).__name__
        return _failed(say("unexpected", name=name), say("unexpected.log", path=log_path()))


def _run() -> int:
    from engine.cli.octask import octask

    try:
        answer = octask.main(prog_name="octask", standalone_mode=False)
    except click.ClickException as error:
        return _misused(error, as_json="--json" in sys.argv)
    except (click.Abort, KeyboardInterrupt):
        return KILLED
    except EngineError as error:
        from engine.cli.calls import refuse  # as below, for errors alone

        refuse(error, as_json="--json" in sys.argv)
    except SystemExit as ended:
        if not isinstance(sys.stdout, io.TextIOWrapper):  # click's own, after a broken pipe
            raise BrokenPipeError from None
        return ended.code if isinstance(ended.code, int) else FAILED
    return answer if isinstance(answer, int) else OK


def _misused(error: click.ClickException, *, as_json: bool) -> int:
    """Print a usage error, sanitised, because it quotes the user's input."""
    if as_json:
        from engine.cli.calls import print_json  # it imports the ledger

        message = error.format_message()
        told = {"code": "bad_usage", "title": say("usage"), "message": message}
        print_json({"error": told}, indent=None)
    else:
        said = io.StringIO()
        error.show(said)
        click.echo(display_lines(said.getvalue()), err=True, nl=False)
    return error.exit_code


def _output_failed(error: OSError) -> int:
    return _failed(say("output.failed", reason=error.strerror or str(error)))


def _failed(*sentences: str) -> int:
    with contextlib.suppress(OSError):
        for sentence in sentences:
            click.echo(sentence, err=True)
    return FAILED


if __name__ == "__main__":
    main()
