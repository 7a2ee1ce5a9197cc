"""Terms of the judge: broken promises, lives of groups, plans and the shares in them."""

from __future__ import annotations

from typing import NamedTuple


class Violation(AssertionError):
    """A broken promise."""


def ensure(holds: bool, message: str) -> None:
    if not holds:
        raise Violation(message)


class Life(NamedTuple):
    """A group from its creation to its deletion."""

    group_id: str
    number: int


class Plan(NamedTuple):
    """An assignment as a leader computed it."""

    life: Life
    generation: int
    leader: str
    shares: dict[str, bytes]


def share(plan_id: str, member_id: str, partitions: range) -> bytes:
    return f"{plan_id}|{member_id}|{','.join(map(str, partitions))}".encode()


def parse_share(assignment: bytes) -> tuple[str, str, tuple[int, ...]]:
    ensure(bool(assignment), "a member of a generation received an empty assignment")
    plan_id, member_id, partitions = assignment.decode().split("|")
    return plan_id, member_id, tuple(map(int, partitions.split(","))) if partitions else ()
