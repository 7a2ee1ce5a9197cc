"""Error counts: how often each kind of request was answered with each error. They cost time, so only metrics have them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from broker.protocol.wire_types import ARRAY, StructMeta

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message

# The fields of a struct that lead to errors: the name, and those of the entries; none for an error code itself.
_Plan = tuple[tuple[str, "_Plan | None"], ...]


class ErrorCounts:
    """By api key and error code, since the start. Answers that are encoded in parts count only their last part."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int]] = Counter()
        self._plans: dict[type[Message], _Plan] = {}

    def add(self, key: int, response: Message) -> None:
        plan = self._plans.get(type(response))
        if plan is None:
            plan = self._plans[type(response)] = _plan(type(response))
        self._add(key, response, plan)

    def _add(self, key: int, struct: Any, plan: _Plan) -> None:
        for name, inner in plan:
            value = getattr(struct, name)
            if inner is None:
                if value:
                    self.counts[key, value] += 1
            elif type(value) is list:
                for entry in value:
                    self._add(key, entry, inner)


def _plan(struct: StructMeta) -> _Plan:
    found: list[tuple[str, _Plan | None]] = []
    for field in struct.FIELDS:
        if field.name == "error_code":
            found.append((field.name, None))
        elif isinstance(field.type, ARRAY) and isinstance(field.type.element, StructMeta):
            inner = _plan(field.type.element)
            if inner:
                found.append((field.name, inner))
    return tuple(found)
