"""Verbs: the operations that command line, MCP and HTTP offer, which only render them.

A verb's `call` gets an open engine and the values by name, and returns records; `accepts` requires
an engine that accepts tasks. All of them are in `engine.verbs.verb_table`.
"""

from engine.verbs.model import Caller as Caller
from engine.verbs.model import Param as Param
from engine.verbs.model import Shape as Shape
from engine.verbs.model import Verb as Verb
