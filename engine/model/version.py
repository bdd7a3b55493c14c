"""The program's version.

Repeated from `pyproject.toml`: reading the metadata of the installed package takes longer than
painting a window, and an uninstalled tree has none.
"""

VERSION = "0.1.0"
