"""The next step of a member to its target, from each state; the cases are those of Kafka's CurrentAssignmentBuilderTest."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from broker.cores.groups.consumer.group import NO_OWNER
from broker.cores.groups.consumer.member import ConsumerMember, MemberState, new_member
from broker.cores.groups.consumer.reconciliation import reconciled
from broker.cores.groups.records.consumer import Current
from broker.cores.groups.refusals import Refused
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

A, B = b"a" * 16, b"b" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
Parts = tuple[str, str]  # the partitions of A and of B, one digit each
NONE: Parts = ("", "")


class Case(NamedTuple):
    before: tuple[int, int, Parts, Parts]  # state, epoch, assigned, to be revoked
    reported: Parts | None
    target: tuple[int, Parts]
    after: (
        tuple[int, int, int, Parts, Parts] | None
    )  # state, epoch, previous epoch, assigned, to be revoked; None: unchanged
    taken: Parts = NONE  # owned by other members


CASES = {
    "stable to stable": Case(
        (STABLE, 10, ("123", "456"), NONE), None, (11, ("123", "456")), (STABLE, 11, 10, ("123", "456"), NONE)
    ),
    "stable to stable with new partitions": Case(
        (STABLE, 10, ("123", "456"), NONE), None, (11, ("1234", "4567")), (STABLE, 11, 10, ("1234", "4567"), NONE)
    ),
    "stable to unrevoked": Case(
        (STABLE, 10, ("123", "456"), NONE), None, (11, ("234", "567")), (UNREVOKED, 10, 10, ("23", "56"), ("1", "4"))
    ),
    "stable to unreleased": Case(
        (STABLE, 10, ("123", "456"), NONE),
        None,
        (11, ("1234", "4567")),
        (UNRELEASED, 11, 10, ("123", "456"), NONE),
        ("4", "7"),
    ),
    "stable to unreleased, as it does not own what it would give up": Case(
        (STABLE, 10, ("123", "456"), NONE),
        NONE,
        (11, ("123", "457")),
        (UNRELEASED, 11, 10, ("123", "45"), NONE),
        ("", "7"),
    ),
    "unrevoked to stable": Case(
        (UNREVOKED, 10, ("23", "56"), ("1", "4")),
        ("23", "56"),
        (11, ("23", "56")),
        (STABLE, 11, 10, ("23", "56"), NONE),
    ),
    "unrevoked without a report": Case((UNREVOKED, 10, ("23", "56"), ("1", "4")), None, (12, ("3", "6")), None),
    "unrevoked, owns one of A": Case((UNREVOKED, 10, ("23", "56"), ("1", "4")), ("123", "56"), (12, ("3", "6")), None),
    "unrevoked, owns one of B": Case((UNREVOKED, 10, ("23", "56"), ("1", "4")), ("23", "456"), (12, ("3", "6")), None),
    "unrevoked to unrevoked": Case(
        (UNREVOKED, 10, ("23", "56"), ("1", "4")),
        ("23", "56"),
        (12, ("3", "6")),
        (UNREVOKED, 11, 10, ("3", "6"), ("2", "5")),
    ),
    "unrevoked to unreleased": Case(
        (UNREVOKED, 10, ("23", "56"), ("1", "4")),
        ("23", "56"),
        (11, ("234", "567")),
        (UNRELEASED, 11, 10, ("23", "56"), NONE),
        ("4", "7"),
    ),
    "unreleased to stable": Case(
        (UNRELEASED, 11, ("23", "56"), NONE), None, (12, ("23", "56")), (STABLE, 12, 11, ("23", "56"), NONE)
    ),
    "unreleased to stable with new partitions": Case(
        (UNRELEASED, 11, ("23", "56"), NONE), None, (11, ("234", "567")), (STABLE, 11, 11, ("234", "567"), NONE)
    ),
    "unreleased to unreleased": Case(
        (UNRELEASED, 11, ("23", "56"), NONE), None, (11, ("234", "567")), None, ("4", "7")
    ),
    "unreleased to unrevoked": Case(
        (UNRELEASED, 11, ("23", "56"), NONE),
        ("23", "56"),
        (12, ("3", "6")),
        (UNREVOKED, 11, 11, ("3", "6"), ("2", "5")),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_state_leads_to_the_next(name: str) -> None:
    case = CASES[name]
    state, epoch, assigned, pending = case.before
    member = _member(Current(epoch, epoch, state, _owned(assigned), _owned(pending)))
    found = _step(member, case)
    if case.after is None:
        assert found is member
    else:
        after, epoch, previous, assigned, pending = case.after
        assert found.current == Current(epoch, previous, after, _owned(assigned), _owned(pending))


def test_a_member_in_an_unknown_state_begins_again_without_partitions() -> None:
    case = Case((MemberState.UNKNOWN, 11, ("3", "6"), ("2", "5")), None, (12, ("3", "6")), None)
    member = _member(Current(11, 10, MemberState.UNKNOWN, _owned(("3", "6")), _owned(("2", "5"))))
    with pytest.raises(Refused) as refused:
        _step(member, case)
    assert refused.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    assert _step(member, case._replace(reported=NONE)).current == Current(12, 11, STABLE, _owned(("3", "6")), {})


def _step(member: ConsumerMember, case: Case) -> ConsumerMember:
    taken, owned = _owned(case.taken), member.current
    epoch, target = case.target

    def owner_epoch(topic_id: bytes, partition: int) -> int:
        mine = any(partition in part.get(topic_id, ()) for part in (owned.assigned, owned.pending_revocation))
        return owned.member_epoch if mine else 10 if partition in taken.get(topic_id, ()) else NO_OWNER

    reported = (
        None
        if case.reported is None
        else [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in _owned(case.reported).items()
        ]
    )
    wanted = {topic_id: tuple(sorted(partitions)) for topic_id, partitions in _owned(target).items()}
    return reconciled(member, wanted, epoch, owner_epoch, reported)


def _member(current: Current) -> ConsumerMember:
    return new_member("member")._replace(current=current)


def _owned(parts: Parts) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(map(int, part)) for topic_id, part in zip((A, B), parts, strict=True) if part}
