"""Findings of the diagnosis and their report: text to copy, data for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.model.display import display


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check. `state` is ok, warning or problem; `advice` names the remedy."""

    subject: str
    state: str
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order of importance."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether tasks can run here."""
        return all(finding.state != "problem" for finding in self.findings)

    def text(self) -> str:
        """Format the report as plain text."""
        marks = {"ok": "ok     ", "warning": "WARNING", "problem": "PROBLEM"}
        lines: list[str] = []
        for finding in self.findings:
            lines.append(f"{marks[finding.state]}  {finding.subject}: {display(finding.text)}")
            if finding.advice:
                lines.append(f"{'':9}{display(finding.advice)}")
        return "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "healthy": self.healthy,
            "findings": [
                {"subject": f.subject, "state": f.state, "text": f.text, "advice": f.advice}
                for f in self.findings
            ],
        }
