"""Reads: questions to a cluster as values, so that their answers can be recorded and replayed."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, ClassVar, Generic, TypeVar, get_args

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError
from kgctl.tui.feed.values import to_json

T = TypeVar("T")


class Read(Generic[T]):
    """A question to a cluster: a frozen dataclass, whose class statement names the type of its answer.

        @dataclass(frozen=True, slots=True)
        class Topics(Read[TopicsNow]):
            internal: bool = False

            def run(self, admin: Admin) -> TopicsNow: ...

    Fields are texts, numbers, booleans, None, or tuples of these. Fields with `compare=False` are no part of the question: a
    recording finds the answer without them. The answer is a frozen dataclass that `feed.values` can write and read.

    `is_long`: it may take seconds on a large cluster, so it must not delay the reads of screens. `lane` names another thread
    that runs it, for what does not ask this cluster.
    """

    __slots__ = ()
    is_long: ClassVar[bool] = False

    @property
    def lane(self) -> str:
        return "long reads" if self.is_long else "reads"

    def run(self, admin: Admin) -> T:
        """Ask. It runs in a thread of the feed, which the Admin belongs to. Raises a KgctlError."""
        raise NotImplementedError


class NotRecorded(KgctlError):
    """A recording has no answer to this read, or none before the moment that is shown."""

    name = "NOT_RECORDED"


def answer_type(read: type[Read[Any]]) -> type:
    """The type of the answers to reads of this class."""
    for base in read.__dict__.get("__orig_bases__", ()):
        if getattr(base, "__origin__", None) is Read:
            found: type = get_args(base)[0]
            return found
    raise TypeError(f"the bases of {read.__name__} do not name the type of its answer: write Read[Answer]")


def parts(read: Read[Any]) -> tuple[str, dict[str, Any]]:
    """The question as a text, the same for equal reads, and the values of the fields that are no part of it."""
    kind: Any = read.__class__
    fields = dataclasses.fields(kind)
    asked = {field.name: to_json(getattr(read, field.name)) for field in fields if field.compare}
    others = {
        field.name: to_json(getattr(read, field.name))
        for field in fields
        if not field.compare and getattr(read, field.name) != field.default
    }
    return json.dumps([kind.__name__, asked], separators=(",", ":")), others
