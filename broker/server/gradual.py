"""Long answers, which are made and encoded in several turns of the event loop."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from typing import TYPE_CHECKING

from broker.protocol.codec import Encoded, encode_structs
from broker.protocol.wire_types import ARRAY, Gradual, Struct, StructMeta

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable

# How long one answer may take in one turn. The last slice may end later, so slices should be small.
TURN_S = 0.005


class Turns:
    """Runs a request whose handler is a generator, and answers it with what the generator returns."""

    def __init__(self, exchange: Answerable, steps: Generator[None, None, Message]) -> None:
        self._exchange = exchange
        self._steps = steps
        self._abandoned = False
        exchange.abandon = self._abandon

    def resume(self) -> None:
        connection = self._exchange.connection
        give_way_at = connection.now_s + TURN_S
        while not self._abandoned:
            try:
                next(self._steps)
            except StopIteration as end:
                self._exchange.answer(end.value)
                return
            if connection.now_s > give_way_at:
                connection.soon(self.resume)
                return

    def _abandon(self) -> None:
        self._abandoned = True


def encoded(response: Message, version: int) -> Generator[None, None, Message]:
    """Encode each `Gradual` of a response, in slices; return the response."""
    yield from _encoding(type(response), response, version)
    return response


def _encoding(message: type[Message], struct: Struct, version: int) -> Iterator[None]:
    """Replace each `Gradual` in a struct of this message by its encoded entries, in slices."""
    for name, nested in _arrays(type(struct)):
        value = getattr(struct, name)
        if type(value) is Gradual:
            parts = Encoded()
            for chunk in value.chunks():
                for entry in chunk if nested else ():
                    yield from _encoding(message, entry, version)
                parts.add(encode_structs(message, chunk, version), len(chunk))
                yield
            setattr(struct, name, parts)
        elif nested:
            for entry in value or ():
                yield from _encoding(message, entry, version)


@cache
def _arrays(cls: StructMeta) -> tuple[tuple[str, bool], ...]:
    """The fields that are arrays of structs, and whether these have such arrays themselves."""
    elements = {field.name: field.type.element for field in cls.FIELDS if isinstance(field.type, ARRAY)}
    return tuple(
        (name, bool(_arrays(element))) for name, element in elements.items() if isinstance(element, StructMeta)
    )
