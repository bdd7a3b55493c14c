"""`octask`: a renderer of the verbs; the one part of the engine that reads the environment."""

from __future__ import annotations


def main() -> None:
    """Entry point of `octask`."""
    from engine.cli.app import octask

    octask(prog_name="octask")
