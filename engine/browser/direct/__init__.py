"""A crawl's own connection to Chromium: the DevTools protocol over a pipe, without Playwright.

`Browser`, `Context` and `Tab` here have the part of Playwright's interface that crawls use, so that
the tab pool, the navigation filter and the extraction are the same over both connections. Errors
are Playwright's, too.
"""

from __future__ import annotations

import sys
from typing import Final

AVAILABLE: Final = sys.platform != "win32"  # a process there inherits no descriptors 3 and 4
