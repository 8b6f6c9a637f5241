"""The hub: one order for all observers, and none of them can harm another."""

import asyncio
from concurrent.futures import CancelledError as FutureCancelled

import pytest
from reactivex import Observable
from reactivex import operators as rxops

from rxagent.errors import UsageError
from rxagent.flow import Fault, Hub, Replay
from rxagent.operators import text_deltas


def test_every_observer_sees_values_in_one_order_when_one_sends_reentrantly() -> None:
    hub = Hub[int]()
    seen: list[list[int]] = [[], [], []]

    def answer(value: int) -> None:
        seen[1].append(value)
        if value < 3:
            hub.on_next(value + 1)

    hub.subscribe(seen[0].append)
    hub.subscribe(answer)
    hub.subscribe(seen[2].append)
    hub.on_next(1)
    assert seen == [[1, 2, 3]] * 3


def test_a_reentrant_completion_comes_after_the_value_for_everybody() -> None:
    hub = Hub[int]()
    seen: list[object] = []
    hub.subscribe(lambda _: hub.on_completed())
    hub.subscribe(seen.append, on_completed=lambda: seen.append("end"))
    hub.on_next(1)
    hub.on_next(2)
    assert seen == [1, "end"]


def test_a_raising_observer_is_reported_and_dropped_and_the_others_do_not_notice() -> None:
    faults: list[Fault] = []
    hub = Hub[int](faults.append)
    before: list[int] = []
    after: list[int] = []
    hub.subscribe(before.append)
    hub.subscribe(lambda value: 1 // (value - 1))
    hub.subscribe(after.append)
    for value in range(4):
        hub.on_next(value)
    assert before == after == [0, 1, 2, 3]
    (fault,) = faults
    assert isinstance(fault.error, ZeroDivisionError)
    assert fault.value == 1
    assert "test_hub.py" in fault.subscribed_at
    assert "test_a_raising_observer" in fault.subscribed_at


def test_the_place_of_subscription_is_the_users_also_behind_operators() -> None:
    faults: list[Fault] = []
    hub = Hub[int](faults.append)
    hub.pipe(rxops.map(lambda value: 1 // value), rxops.filter(bool)).subscribe(print)
    hub.on_next(0)
    assert "in test_the_place_of_subscription" in faults[0].subscribed_at


@pytest.mark.parametrize("error", [asyncio.CancelledError(), FutureCancelled()])
def test_a_cancelled_future_read_by_an_observer_does_not_cancel_the_source(
    error: BaseException,
) -> None:
    faults: list[Fault] = []
    hub = Hub[int](faults.append)

    def read(_: int) -> None:
        raise error

    hub.subscribe(read)
    hub.on_next(1)
    assert faults[0].error is error


def test_an_interrupt_goes_through_and_leaves_the_hub_usable() -> None:
    hub = Hub[int]()
    seen: list[int] = []

    def interrupted(value: int) -> None:
        if value == 1:
            hub.on_next(10)
            raise KeyboardInterrupt

    hub.subscribe(interrupted)
    hub.subscribe(seen.append)
    with pytest.raises(KeyboardInterrupt):
        hub.on_next(1)
    hub.on_next(2)
    assert seen == [2]


def test_the_default_report_shows_traceback_value_and_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Event:
        type = "text_delta"
        seq = 41

    hub = Hub[Event]()
    hub.subscribe(lambda event: event.missing)  # type: ignore[attr-defined]
    hub.on_next(Event())
    text = capsys.readouterr().err
    for part in ("AttributeError", "Traceback", "type=text_delta", "seq=41", "test_hub.py"):
        assert part in text


def test_a_reporter_that_raises_silences_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: Fault) -> None:
        raise RuntimeError("reporter down")

    hub = Hub[int](broken)
    seen: list[int] = []
    hub.subscribe(lambda value: 1 // value)
    hub.subscribe(seen.append)
    hub.on_next(0)
    text = capsys.readouterr().err
    assert "ZeroDivisionError" in text
    assert "reporter down" in text
    assert seen == [0]


def test_who_joins_during_a_delivery_gets_the_next_value_and_who_leaves_gets_no_more() -> None:
    hub = Hub[int]()
    late: list[int] = []
    gone: list[int] = []

    def change(value: int) -> None:
        if value == 1:
            hub.subscribe(late.append)
            leaving.dispose()

    hub.subscribe(change)
    leaving = hub.subscribe(gone.append)
    hub.on_next(1)
    hub.on_next(2)
    assert late == [2]
    assert gone == []


def test_after_the_end_a_subscriber_hears_the_end_alone() -> None:
    hub = Hub[int]()
    hub.on_error(ValueError("x"))
    errors: list[Exception] = []
    hub.subscribe(print, errors.append)
    hub.on_completed()
    hub.on_next(1)
    assert [str(error) for error in errors] == ["x"]
    assert not hub.observed


def test_an_error_without_a_handler_is_a_fault_of_that_observer_alone() -> None:
    faults: list[Fault] = []
    hub = Hub[int](faults.append)
    errors: list[Exception] = []
    hub.subscribe(print)
    hub.subscribe(print, errors.append)
    problem = ValueError("x")
    hub.on_error(problem)
    assert faults[0].error is problem
    assert errors == [problem]


@pytest.mark.parametrize("source", [Hub(), Replay(), Hub().pipe(text_deltas())])
def test_a_coroutine_function_is_refused_since_nobody_would_await_it(source: Observable[object]) -> None:
    async def handler(_value: object) -> None: ...

    class Window:
        async def show(self, _value: object) -> None: ...

    for each in (handler, Window().show):
        with pytest.raises(UsageError, match="subscribe_async"):
            source.subscribe(each)
