"""The argument `dismiss_consent` of kinds that load pages, and the rules of a task that has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from engine.browser.chromium import consent_rules
from engine.browser.chromium.consent_rules import ConsentRules
from engine.kinds.arguments import Argument, FormField, flag
from engine.model.errors import ConsentRulesMissing, Problem

DISMISS_CONSENT: Final = Argument(
    flag,
    FormField(
        "Dismiss consent banners",
        "loading",
        hint="Rejects consent where a known banner asks for it. Tools → Consent rules… installs"
        " the rules.",
    ),
    help="Reject consent in known banners; needs octask consent-rules install.",
)


async def consent_rules_for(*, dismiss: bool) -> ConsentRules | None:
    """Return the installed rules for a task that dismisses consent banners.

    Raises:
        ConsentRulesMissing, ConsentRulesUnusable: there are none, or they are damaged.
    """
    return await asyncio.to_thread(consent_rules.load) if dismiss else None


def consent_problems(args: Mapping[str, Any]) -> list[Problem]:
    """Return the problem of a request that needs the rules while they are not installed."""
    try:
        wanted = flag(args.get("dismiss_consent", False))
    except ValueError:
        return []  # the parser reports it
    if not wanted or consent_rules.is_installed():
        return []
    return [Problem("dismiss_consent", ConsentRulesMissing.code, str(ConsentRulesMissing()))]
