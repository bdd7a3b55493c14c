"""`python -m engine.cli`: octask, also where its script is not on the path."""

from engine.cli import main

main()
