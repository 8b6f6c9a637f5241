"""Tools: the seam (`Tool`), the ready way to make one (`@tool`), and what a running call sees (`ToolContext`)."""

from rxagent.signals import Signal
from rxagent.tools.base import BoundCall, InvalidArguments, Tool, ToolOutput, is_resumable
from rxagent.tools.context import Told, ToolContext, ToolHost
from rxagent.tools.function import FunctionTool, as_tools, tool
from rxagent.tools.results import as_result, error_result

__all__ = [
    "BoundCall",
    "FunctionTool",
    "InvalidArguments",
    "Signal",
    "Told",
    "Tool",
    "ToolContext",
    "ToolHost",
    "ToolOutput",
    "as_result",
    "as_tools",
    "error_result",
    "is_resumable",
    "tool",
]
