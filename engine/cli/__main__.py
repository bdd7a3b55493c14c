"""`python -m engine.cli`: octask without its script on the path."""

from engine.cli import main

main()
