"""The program's version, in the one place that both faces read."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("openchrome-monitor")
except PackageNotFoundError:  # run from a tree that was never installed
    VERSION = "0.1.0"
