"""Random programs on a hub: whatever its observers do, each sees a gapless piece of one order."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import abc

from rxagent.flow import Fault, Hub, Replay, publish

Action = tuple[str, int]

actions = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 2)),
    st.tuples(st.just("join"), st.integers(0, 3)),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("raise"), st.just(0)),
    st.tuples(st.just("nothing"), st.just(0)),
)
plans = st.lists(st.dictionaries(st.integers(0, 12), actions, max_size=3), min_size=1, max_size=6)


@dataclass
class Seer:
    """An observer that does on its n-th value what its plan says."""

    world: "World"
    plan: dict[int, Action]
    start: int
    seen: list[int] = field(default_factory=list)
    subscription: abc.DisposableBase | None = None
    gone_at: int | None = None

    def on_next(self, value: int) -> None:
        assert self.gone_at is None, "delivered after dispose"
        self.seen.append(value)
        self.world.act(self, self.plan.get(len(self.seen) - 1, ("nothing", 0)))

    def leave(self) -> None:
        if self.subscription is not None and self.gone_at is None:
            self.gone_at = len(self.seen)
            self.subscription.dispose()


class Boom(Exception):
    pass


class World:
    def __init__(self, hub: Hub[int], plans: list[dict[int, Action]], *, replays: bool) -> None:
        self.hub = hub
        self.plans = plans
        self.replays = replays
        self.order: list[int] = []
        self.seers: list[Seer] = []
        self.sent = 0
        hub.subscribe(self.order.append)
        for index in range(len(plans)):
            self.join(index)

    def send(self) -> None:
        if self.sent < 60:
            self.sent += 1
            self.hub.on_next(self.sent)

    def join(self, index: int) -> None:
        if len(self.seers) < 100:
            seer = Seer(self, self.plans[index % len(self.plans)], 0 if self.replays else len(self.order))
            self.seers.append(seer)
            seer.subscription = self.hub.subscribe(seer.on_next)

    def act(self, seer: Seer, action: Action) -> None:
        match action:
            case ("send", times):
                for _ in range(times):
                    self.send()
            case ("join", index):
                self.join(index)
            case ("leave", index):
                self.seers[index % len(self.seers)].leave()
            case ("raise", _):
                seer.gone_at = len(seer.seen)
                raise Boom


@pytest.mark.parametrize("kind", [Hub, Replay])
@given(plans=plans, sends=st.integers(1, 10))
def test_each_observer_sees_a_gapless_piece_of_one_order(
    kind: type[Hub[int]], plans: list[dict[int, Action]], sends: int
) -> None:
    faults: list[Fault] = []
    hub = kind(on_fault=faults.append)
    world = World(hub, plans, replays=kind is Replay)
    for _ in range(sends):
        assert publish(lambda _: world.send(), None) is None
    assert world.order == list(range(1, world.sent + 1))
    for seer in world.seers:
        end = seer.start + len(seer.seen)
        assert seer.seen == world.order[seer.start : end]
        if seer.gone_at is None:
            assert end == len(world.order)
        else:
            assert len(seer.seen) == seer.gone_at
    assert all(isinstance(fault.error, Boom) for fault in faults)
