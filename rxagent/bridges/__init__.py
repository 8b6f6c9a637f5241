"""Ways out of the agent's loop: into a GUI's event loop, by one core and a small port for each toolkit.

- Every event exactly once and in order, on the GUI thread only, in frames at a steady pace.
- The run is held when the GUI can't keep up, and let go when its window closes.
- No toolkit is imported before its bridge is made.
"""

from rxagent.bridges.aio import AsyncioPort, on_asyncio
from rxagent.bridges.frame import Frame
from rxagent.bridges.gtk import GtkPort, on_gtk
from rxagent.bridges.host import AgentHost
from rxagent.bridges.loop import on_loop
from rxagent.bridges.port import Closing, ClosingPort, Port
from rxagent.bridges.pygame import FrameLoopPort
from rxagent.bridges.qt import QtPort, on_qt
from rxagent.bridges.textual import TextualPort, on_textual
from rxagent.bridges.tk import TkPort, on_tk
from rxagent.bridges.wx import WxPort, on_wx

__all__ = [
    "AgentHost",
    "Frame",
    "Port",
    "ClosingPort",
    "Closing",
    "on_loop",
    "on_qt",
    "on_tk",
    "on_textual",
    "on_asyncio",
    "on_gtk",
    "on_wx",
    "QtPort",
    "TkPort",
    "TextualPort",
    "AsyncioPort",
    "GtkPort",
    "WxPort",
    "FrameLoopPort",
]
