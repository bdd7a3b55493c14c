"""The engine: runs tasks in a browser and keeps what they leave."""

import engine.kinds.traits  # noqa: F401  # every package reads the traits of the kinds
