"""The browser tools of host agents (seed 004): each agent has a browser, and tabs, of its own.

`Agents.call` is the one way in. With a task's id a call is counted in that task's envelope
and held to its `allowedDomains`; without one it leaves nothing behind.
"""

from engine.agents.calls import Agents
from engine.agents.reply import Image, ToolReply
from engine.agents.table import TOOLS, Arg, Tool

__all__ = ["TOOLS", "Agents", "Arg", "Image", "Tool", "ToolReply"]
