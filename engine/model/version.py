"""The program's version, in the one place that both faces read.

Written down here as well as in `pyproject.toml`: asking the installed package for it takes
longer than painting a window, and a tree that was never installed has nobody to ask.
"""

VERSION = "0.1.0"
