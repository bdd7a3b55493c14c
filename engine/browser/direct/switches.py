"""Playwright's switches of a headless browser, for one that is started without Playwright.

`tests/browser/test_direct.py` compares them with the command line that Playwright makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

_FEATURES_ON: Final = "CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies"
_DEFAULTS: Final = (
    "--disable-field-trial-config",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--no-default-browser-check",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-edgeupdater",
    "--disable-extensions",
    f"--enable-features={_FEATURES_ON}",
    "--allow-pre-commit-input",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-renderer-backgrounding",
    "--disable-updater-scheduler",
    "--force-color-profile=srgb",
    "--metrics-recording-only",
    "--no-first-run",
    "--password-store=basic",
    "--use-mock-keychain",
    "--no-service-autorun",
    "--disable-search-engine-choice-screen",
    "--unsafely-disable-devtools-self-xss-warnings",
    "--enable-unsafe-swiftshader",
    "--edge-skip-compat-layer-relaunch",
    "--disable-stack-profiler",
    "--disable-infobars",
    "--disable-sync",
    "--do-not-de-elevate",
    "--headless",
    "--hide-scrollbars",
    "--mute-audio",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,"
    "availablePointerTypes=4",
)


def switches(
    own: Sequence[str], *, without: Iterable[str], proxy: str, bypass: str, sandbox: bool
) -> list[str]:
    """Return all switches of a browser, without those of its profile and its pipe.

    Args:
        own: the product's switches; of two with one name the last counts.
        without: Playwright's switches that are left out.
        proxy: the proxy of requests outside any context, and `bypass` its exceptions.
        sandbox: whether renderers run in Chromium's sandbox.
    """
    left_out = frozenset(without)
    kept = [one for one in _DEFAULTS if one not in left_out]
    exceptions = bypass.replace(",", ";")
    proxied = [f"--proxy-server={proxy}", f"--proxy-bypass-list={exceptions}"]
    return [*kept, *([] if sandbox else ["--no-sandbox"]), *proxied, *own]
