"""Browser tools of host agents (seed 004): each agent has its own browser and tabs.

`Agents.call` is the only entry point. With a task id, a call is counted in that task's envelope and
restricted to its `allowedDomains`; without one nothing is recorded.
"""

from engine.agents.reply import Image, ToolReply
from engine.agents.tool_calls import TOOLS, Agents, Arg, Tool

__all__ = ["TOOLS", "Agents", "Arg", "Image", "Tool", "ToolReply"]
