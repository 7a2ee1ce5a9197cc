"""The states of a classic group: what each means, what the coordinator does in it, and which states may follow."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """A state of a classic group, spelled as Kafka spells it to users.

    Empty: the group has no members. It may have offsets, and ids given out to clients that have not joined with them yet.
        actions:     accept commits without a generation; refuse syncs and heartbeats (UNKNOWN_MEMBER_ID)
        transitions: a first member joins -> PreparingRebalance
                     the group is deleted, or has no offsets left -> Dead

    PreparingRebalance: the join phase. The coordinator waits until every member has joined again.
        actions:     park joins; answer syncs and heartbeats with REBALANCE_IN_PROGRESS; accept commits of the generation
                     that ends
        transitions: all members have joined, or the rebalance timeout (before the first generation: the initial delay) has
                     expired -> CompletingRebalance, as the next generation, without the dynamic members that have not joined;
                     no member is left -> Empty
                     only static members are left, and none of them has joined: the group keeps waiting

    CompletingRebalance: the sync phase. The generation has started, and its leader computes the assignment.
        actions:     park syncs of followers; refuse commits with REBALANCE_IN_PROGRESS; accept heartbeats; answer a member
                     that joins again with the same protocols with this generation
        transitions: the leader syncs -> Stable
                     a member joins, leaves, changes its protocols, times out, or does not sync within the rebalance timeout,
                     or an admin triggers a rebalance -> PreparingRebalance

    Stable: every member has its assignment or can fetch it with a sync.
        actions:     answer syncs with the assignment; accept commits and heartbeats; answer a follower that joins again with
                     the same protocols with this generation
        transitions: a member joins, leaves, changes its protocols, times out, or does not sync within the rebalance timeout,
                     the leader joins again, or an admin triggers a rebalance -> PreparingRebalance

    Dead: the group does not exist. Only responses name this state.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# The states from which a group may enter each state.
PREVIOUS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
}
