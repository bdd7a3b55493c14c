"""Exit codes of octask, and their list in `octask --help`."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2
CANCELLED: Final = 3
NOT_FOUND: Final = 4
GUARD_REFUSED: Final = 5
WAIT_TIMEOUT: Final = 124
KILLED: Final = 130

EXIT_CODES: Final = """\b
Exit codes:
    0  the task COMPLETED, or the command did what it was asked
    1  the task FAILED, or the command was refused or failed
    2  the request has mistakes; nothing was started or changed
    3  the task was CANCELLED
    4  there is no such task
    5  a completion was refused: items are missing
  124  `wait` ran out of time; the task goes on
  130  ended by a second Ctrl-C
"""
