"""One window of each toolkit, headless: open, run its loop until something is true, close."""

import asyncio
import os
import time
from contextlib import contextmanager

LIMIT = 30.0
STEP_MS = 5


class Stuck(Exception):
    """What was waited for did not come."""


class Rig:
    """A window and its event loop. ``run`` runs the loop until ``done()``; ``nested`` is None where loops can't nest."""

    nested = None
    lets_go = True  # of calls that a closed window will not make any more

    def limit(self):
        until = time.monotonic() + LIMIT
        return lambda: time.monotonic() > until

    def settle(self, seconds=0.1):
        """Runs the loop for a while, for what should not come."""
        until = time.monotonic() + seconds
        self.run(lambda: time.monotonic() > until)

    def each(self, take):
        """The obvious way: one call into the loop per event."""
        port = self.port()
        return lambda event: port.post(lambda: take(event))


class QtRig(Rig):
    def __init__(self, widgets="PySide6"):
        import importlib

        self.core = importlib.import_module(f"{widgets}.QtCore")
        self.cursor = importlib.import_module(f"{widgets}.QtGui").QTextCursor
        self.widgets = importlib.import_module(f"{widgets}.QtWidgets")
        self.app = self.widgets.QApplication.instance() or self.widgets.QApplication([])
        self.window = self.widgets.QMainWindow()
        self.text = self.widgets.QPlainTextEdit(self.window)
        self.window.setCentralWidget(self.text)
        self.window.show()

    def show(self, text):
        self.text.moveCursor(self.cursor.MoveOperation.End)
        self.text.insertPlainText(text)

    def each(self, take):
        class Source(self.core.QObject):
            fired = getattr(self.core, "Signal", getattr(self.core, "pyqtSignal", None))(object)

        self.source = Source()
        self.source.fired.connect(take, self.core.Qt.ConnectionType.QueuedConnection)
        return self.source.fired.emit

    def stock(self):
        from reactivex.scheduler.mainloop import QtScheduler

        return QtScheduler(self.core)

    def port(self):
        from rxagent.bridges import QtPort

        return QtPort(self.window)

    def run(self, done):
        loop, over = self.core.QEventLoop(), self.limit()
        timer = self.core.QTimer()

        def check():
            if done() or over():
                loop.exit()

        timer.timeout.connect(check)
        timer.start(STEP_MS)
        loop.exec()
        timer.stop()
        if not done():
            raise Stuck

    def nested(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.app.processEvents()

    def heartbeat(self, milliseconds, beat):
        self._beat = self.core.QTimer()
        self._beat.timeout.connect(beat)
        self._beat.start(milliseconds)

    def close(self):
        self.window.close()
        self.window.deleteLater()
        self.app.sendPostedEvents(None, self.core.QEvent.Type.DeferredDelete.value)


class PyQtRig(QtRig):
    def __init__(self):
        super().__init__("PyQt6")


class TkRig(Rig):
    def __init__(self):
        import tkinter as tk

        self.window = tk.Tk()
        self.text = tk.Text(self.window)
        self.text.pack()
        self.closed = False

    def show(self, text):
        self.text.insert("end", text)
        self.text.see("end")

    def stock(self):
        from reactivex.scheduler.mainloop import TkinterScheduler

        return TkinterScheduler(self.window)

    def port(self):
        from rxagent.bridges import TkPort

        return TkPort(self.window)

    def run(self, done):
        over = self.limit()
        if self.closed:  # a main loop needs a root
            while not done() and not over():
                time.sleep(STEP_MS / 1000)
        else:
            self._run(done, over)
        if not done():
            raise Stuck

    def _run(self, done, over):
        root = self.window

        def check():
            if done() or over():
                root.quit()
            else:
                root.after(STEP_MS, check)

        root.after(STEP_MS, check)
        root.mainloop()

    def nested(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.window.update()

    def heartbeat(self, milliseconds, beat):
        def again():
            self.window.after(milliseconds, again)
            beat()

        self.window.after(milliseconds, again)

    def close(self):
        self.closed = True
        self.window.destroy()


class TkPollRig(TkRig):
    """Tk where Tcl can't watch files, as on Windows."""

    def port(self):
        from rxagent.bridges import tk as module

        module.hasattr = lambda thing, name: name != "createfilehandler" and hasattr(thing, name)
        port = super().port()
        assert port._files is None
        return port


class GtkRig(Rig):
    def __init__(self):
        import gi

        gi.require_version("Gtk", "3.0")
        from gi.repository import GLib, Gtk

        self.glib, self.gtk = GLib, Gtk
        self.window = Gtk.Window()
        self.text = Gtk.TextView(wrap_mode=Gtk.WrapMode.WORD)
        self.window.add(self.text)
        self.window.show_all()

    def show(self, text):
        buffer = self.text.get_buffer()
        buffer.insert(buffer.get_end_iter(), text)

    def stock(self):
        from reactivex.scheduler.mainloop import GtkScheduler

        return GtkScheduler(self.glib)

    def port(self):
        from rxagent.bridges import GtkPort

        return GtkPort(self.window)

    def run(self, done):
        over = self.limit()

        def check():
            if done() or over():
                self.gtk.main_quit()
                return False
            return True

        self.glib.timeout_add(STEP_MS, check)
        self.gtk.main()
        if not done():
            raise Stuck

    def nested(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.gtk.main_iteration_do(False)

    def heartbeat(self, milliseconds, beat):
        self.glib.timeout_add(milliseconds, lambda: beat() or True)

    def close(self):
        self.window.destroy()


class WxRig(Rig):
    def __init__(self):
        import wx

        self.wx = wx
        self.app = wx.GetApp() or WxRig.new_app()
        self.keep = wx.Frame(None)  # a main loop needs a window
        self.window = wx.Frame(None, title="rig")
        self.text = wx.TextCtrl(self.window, style=wx.TE_MULTILINE)
        self.window.Show()

    def show(self, text):
        self.text.AppendText(text)

    def stock(self):
        from reactivex.scheduler.mainloop import WxScheduler

        return WxScheduler(self.wx)

    @staticmethod
    def new_app():
        import wx

        WxRig.only = wx.App()
        WxRig.only.SetExitOnFrameDelete(False)
        return WxRig.only

    def port(self):
        from rxagent.bridges import WxPort

        return WxPort(self.window)

    def run(self, done):
        over = self.limit()

        def check(_event):
            if done() or over():
                timer.Stop()
                self.app.ExitMainLoop()

        timer = self.wx.Timer(self.keep)
        self.keep.Bind(self.wx.EVT_TIMER, check, timer)
        timer.Start(STEP_MS)
        self.app.MainLoop()
        if not done():
            raise Stuck

    def nested(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.wx.SafeYield()

    def heartbeat(self, milliseconds, beat):
        self._beat = self.wx.Timer(self.window)
        self.window.Bind(self.wx.EVT_TIMER, lambda _event: beat(), self._beat)
        self._beat.Start(milliseconds)

    def close(self):
        self.window.Destroy()
        self.settle(0.05)


class PygameRig(Rig):
    def __init__(self):
        import pygame

        from rxagent.bridges import FrameLoopPort

        self.pygame = pygame
        pygame.init()
        self.window = pygame.display.set_mode((320, 240))
        self.clock = pygame.time.Clock()
        self.ports = []
        self.make = FrameLoopPort
        self.beats = []
        self.font = pygame.font.Font(None, 20)
        self.scheduler = None

    def show(self, text):
        self.window.blit(self.font.render(text[-60:], True, "white", "black"), (4, 4))

    def stock(self):
        from reactivex.scheduler.mainloop import PyGameScheduler

        self.scheduler = PyGameScheduler(self.pygame)
        return self.scheduler

    def port(self):
        self.ports.append(self.make())
        return self.ports[-1]

    def run(self, done):
        over = self.limit()
        while not done() and not over():
            self.step()
            self.pygame.display.flip()
            self.clock.tick(120)
        if not done():
            raise Stuck

    def step(self):
        self.pygame.event.get()
        for port in self.ports:
            port.pump()
        if self.scheduler is not None:
            self.scheduler.run()
        now = time.monotonic()
        for entry in self.beats:
            if now >= entry[0]:
                entry[0] = now + entry[1]
                entry[2]()

    def nested(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.step()

    def heartbeat(self, milliseconds, beat):
        self.beats.append([0.0, milliseconds / 1000, beat])

    def close(self):
        for port in self.ports:
            port.close()
        self.ports.clear()


class AsyncioRig(Rig):
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.closed = False

    def show(self, text):
        self.text = text

    def stock(self):
        from reactivex.scheduler.eventloop import AsyncIOThreadSafeScheduler

        return AsyncIOThreadSafeScheduler(self.loop)

    def port(self):
        from rxagent.bridges import AsyncioPort

        return AsyncioPort(self.loop)

    def run(self, done):
        over = self.limit()
        if self.closed:
            while not done() and not over():
                time.sleep(STEP_MS / 1000)
        else:
            self.loop.run_until_complete(self._poll(done, over))
        if not done():
            raise Stuck

    async def _poll(self, done, over):
        while not done() and not over():
            await asyncio.sleep(STEP_MS / 1000)

    def heartbeat(self, milliseconds, beat):
        def again():
            self.loop.call_later(milliseconds / 1000, again)
            beat()

        self.loop.call_soon(again)

    def close(self):
        self.closed = True
        self.loop.close()


class QasyncRig(AsyncioRig):
    """Qt's event loop as asyncio's."""

    app = None
    loops = ()  # kept: one that is collected on another thread takes the process down
    lets_go = False

    def __init__(self):
        os.environ["QT_API"] = "pyside6"  # or it takes the first binding it finds
        import qasync
        from PySide6.QtWidgets import QApplication

        QasyncRig.app = QApplication.instance() or QApplication([])
        self.loop = qasync.QEventLoop(self.app)
        QasyncRig.loops += (self.loop,)
        self.closed = False


class TextualRig(AsyncioRig):
    def __init__(self):
        super().__init__()
        from textual.app import App
        from textual.widgets import RichLog

        rig = self

        class Window(App):
            def compose(self):
                yield RichLog(id="text", max_lines=1000)

            def on_mount(self):
                rig.made = rig._port()

        self.app = Window()
        self.made = None
        self.stop = asyncio.Event()
        self.main = self.loop.create_task(self._main())
        self.run(lambda: self.made is not None or self.main.done())

    async def _main(self):
        async with self.app.run_test(size=(80, 24)):
            await self.stop.wait()

    def _port(self):
        from rxagent.bridges import TextualPort

        return TextualPort(self.app)

    def port(self):
        return self.made

    def show(self, text):
        self.app.query_one("#text").write(text)

    def each(self, take):
        from textual.events import Callback

        return lambda event: self.app.post_message(Callback(lambda: take(event)))

    def close(self):
        self.app.exit()
        self.stop.set()
        self.run(self.main.done)


RIGS = {
    "qt": QtRig,
    "pyqt": PyQtRig,
    "tk": TkRig,
    "tk-poll": TkPollRig,
    "textual": TextualRig,
    "asyncio": AsyncioRig,
    "qasync": QasyncRig,
    "gtk": GtkRig,
    "wx": WxRig,
    "pygame": PygameRig,
}


@contextmanager
def opened(name):
    rig = RIGS[name]()
    try:
        yield rig
    finally:
        if not getattr(rig, "was_closed", False):
            rig.close()
