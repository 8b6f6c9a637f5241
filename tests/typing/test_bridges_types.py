"""What a type checker makes of the bridges, on real windows. Checked by pyright; run, it only makes what needs no screen."""

from typing import assert_type

import pytest
import reactivex as rx
from reactivex import Observable

from rxagent import Agent, AgentState
from rxagent import operators as ops
from rxagent.bridges import (
    AgentHost,
    AsyncioPort,
    Frame,
    FrameLoopPort,
    Port,
    QtPort,
    TextualPort,
    TkPort,
    on_asyncio,
    on_loop,
    on_qt,
    on_textual,
    on_tk,
)
from rxagent.engine import RunResult
from rxagent.events import AnyEvent

source: Observable[AnyEvent] = rx.empty()


def test_frames_of_anything_keep_its_type() -> None:
    port: Port = FrameLoopPort()
    assert_type(source.pipe(on_loop(port)), Observable[Frame[AnyEvent]])
    assert_type(source.pipe(ops.text_deltas(), on_loop(port, period=0.1, capacity=64)), Observable[Frame[str]])
    frame = Frame(("a", "b"))
    assert_type(frame.events, tuple[str, ...])
    assert_type(frame[0], str)
    assert_type(frame[:1], tuple[str, ...])
    assert_type(list(frame), list[str])
    assert_type(frame.state, AgentState | None)


def test_a_host_gives_frames_of_events() -> None:
    with AgentHost(Agent("demo")) as host:
        assert_type(host.events, Observable[AnyEvent])
        assert_type(host.states, Observable[AgentState])
        assert_type(host.frames(FrameLoopPort()), Observable[Frame[AnyEvent]])
        assert_type(host.call(lambda: 1), int)
        assert_type(host.wait(0.1), RunResult | None)


@pytest.mark.parametrize("times", [0])  # windows need a screen: these are for the type checker
def test_windows_of_every_toolkit_are_taken(times: int) -> None:
    pytest.importorskip("PySide6", reason="needs PySide6: pip install 'rxagent[qt]'")
    pytest.importorskip("textual", reason="needs Textual: pip install 'rxagent[textual]'")
    pytest.importorskip("tkinter", reason="needs Tk: apt install python3-tk")
    import tkinter as tk

    from PySide6.QtWidgets import QMainWindow, QWidget
    from textual.app import App
    from textual.widgets import Static

    for _ in range(times):
        assert_type(source.pipe(on_qt(QMainWindow())), Observable[Frame[AnyEvent]])
        assert_type(source.pipe(on_tk(tk.Tk())), Observable[Frame[AnyEvent]])
        assert_type(source.pipe(on_textual(App[None]())), Observable[Frame[AnyEvent]])
        assert_type(source.pipe(on_asyncio()), Observable[Frame[AnyEvent]])
        ports: list[Port] = [QtPort(QWidget()), TkPort(tk.Frame()), TkPort(tk.Toplevel()), TextualPort(Static()), AsyncioPort()]
        assert ports
