"""What reads text as it comes: the frame that `lines`, `sentences` and `markdown_blocks` share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from rxagent.events import agent as e
from rxagent.events.model import TextDelta
from rxagent.operators.answers import Hear, texts
from rxagent.operators.withdrawn import AGAIN, Withdrawn

T = TypeVar("T")
Prose = e.AnyEvent | str


class Reader(ABC):
    """Reads the text of one subscription."""

    @abstractmethod
    def take(self, text: str) -> None:
        """The next piece."""

    @abstractmethod
    def withdraw(self, remark: Withdrawn) -> None:
        """The last ``remark.characters`` characters are void."""

    @abstractmethod
    def end(self) -> None:
        """An answer is complete, or the stream: what was kept back is due."""


def reading(start: Callable[[abc.ObserverBase[T]], Reader]) -> Callable[[Observable[Prose]], Observable[T]]:
    """An operator over events or over pieces of text, from what makes the reader of one subscription.

    Of events it reads the answers' text, as `text_deltas` gives it, and knows where an answer ends.
    """

    def operator(source: Observable[Prose]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            reader = start(observer)

            def on_text(text: str) -> None:
                if isinstance(text, Withdrawn):
                    reader.withdraw(text)
                else:
                    reader.take(text)

            def ended(_: int) -> None:
                reader.end()

            on_event = texts(TextDelta, AGAIN, Hear(on_text, ends=ended))

            def on_next(item: Prose) -> None:
                if isinstance(item, str):
                    on_text(item)
                else:
                    on_event(item)

            def on_error(error: Exception) -> None:
                reader.end()
                observer.on_error(error)

            def on_completed() -> None:
                reader.end()
                observer.on_completed()

            return source.subscribe(on_next, on_error, on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator
