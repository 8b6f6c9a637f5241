"""What the operator tests share: play events through an operator, and write small sessions by hand."""

from dataclasses import replace

import reactivex as rx
from reactivex import Observable

from rxagent import events as e
from rxagent.flow import Hub
from rxagent.messages import AssistantMessage, TextPart, ToolCall, UserMessage

MAIN = e.Origin("s", "r", "main", ("main",))
CHILD = e.Origin("s", "r2", "expert", ("main", "expert"), "c1")
END = "|"


def play(events, operator):
    """Everything an operator gives: items, then END or the error."""
    got = []
    rx.from_iterable(events).pipe(operator).subscribe(got.append, got.append, lambda: got.append(END))
    return got


def play_nested(events, operator):
    """The inner streams of an operator of Observables, each as `play` gives it; END or the error of the outer last."""
    got = []

    def inner(stream: Observable):
        items = []
        got.append(items)
        stream.subscribe(items.append, items.append, lambda: items.append(END))

    rx.from_iterable(events).pipe(operator).subscribe(inner, got.append, lambda: got.append(END))
    return got


def numbered(events, origin=MAIN, start=0):
    """The events with seq, and with an origin where they have none."""
    return [replace(event, seq=start + i, origin=event.origin if event.origin.path else origin) for i, event in enumerate(events)]


def user(text="hi", uid="u1"):
    message = UserMessage(text, id=uid, timestamp=1.0)
    return [e.MessageStart(message), e.MessageEnd(message)]


def answer(*deltas, aid="a1", stop="stop", unstreamed=False, origin=MAIN, usage=None):
    """An answer's events; strings are text deltas."""
    draft = e.Draft(aid, 1.0, "m")
    events = [e.MessageStart(draft.message(), origin=origin)]
    for delta in deltas:
        piece = e.TextDelta(delta) if isinstance(delta, str) else delta
        message = draft.add(piece)
        if not unstreamed:
            events.append(e.MessageUpdate(piece, message=message, origin=origin))
    return [*events, e.MessageEnd(draft.finish(stop, usage=usage), origin=origin)]


def attempt(*deltas, aid="a1", origin=MAIN, number=1):
    """A withdrawn attempt's events."""
    return [*answer(*deltas, aid=aid, origin=origin)[:-1], e.ModelRetry(number, 0.5, e.ErrorInfo("busy"), origin=origin)]


def call_message(*calls, aid="a1"):
    return AssistantMessage(
        (TextPart("let me see"), *(ToolCall(c, "add", {"a": 1}) for c in calls)), stop_reason="tool_use", id=aid, timestamp=1.0
    )


def hub():
    return Hub[e.AnyEvent]()
