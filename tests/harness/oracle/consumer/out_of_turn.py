"""Requests that no well-behaved client would send then: stale, wrong, of strangers and of administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.harness.oracle.consumer.members import LEAVE, LEAVE_STATIC, Member, rows
from tests.harness.oracle.consumer.names import GHOST
from tests.harness.oracle.consumer.producers import Commit

if TYPE_CHECKING:
    from tests.harness.oracle.consumer.generate import Walk

Fields = dict[str, Any]
Request = tuple[str, str, int, Fields]  # client, name, version, fields
ADMIN = "admin"
HEARTBEAT = "ConsumerGroupHeartbeat"
NO_GROUP = "$G0"
INVALID_REGEXES = ("%[", "%a{2,1}", "%\\1", "*", "%(", "")
STATES = ("Empty", "Stable", "Assigning", "Reconciling", "Dead", "stable", "PreparingRebalance")


class OutOfTurn:
    """Makes the requests of a walk."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.rng = walk, walk.rng
        kinds: list[tuple[float, Callable[[], Request | None]]] = [
            (10, self._other_epoch),
            (4, self._other_partitions),
            (4, self._stranger),
            (5, self._invalid),
            (4, self._join_again),
            (4, self._other_instance),
            (3, self._leaves),
            (9, self._commit),
            (7, self._fetch),
            (2, self._delete_offsets),
            (3, self._describe),
            (2, self._list),
            (1.5, self._delete_groups),
            (2, self._classic_heartbeat),
            (1, self._classic_sync),
            (1.5, self._classic_leave),
            (1.5 * walk.joins_classic, self._classic_join),
            (20 * walk.own_topics, self._change_topics),
        ]
        self._weights, self._kinds = zip(*kinds, strict=True)

    def next(self) -> Request | None:
        found: Request | None = self.rng.choices(self._kinds, self._weights)[0]()
        return found

    # ---- heartbeats

    def _beat(self, member: Member, fields: Fields, client: str | None = None) -> Request:
        return client or member.name, HEARTBEAT, member.version, fields

    def _present(self) -> Member | None:
        """A client that believes that it is a member."""
        found = [one for one in self.walk.members if one.epoch > 0]
        return self.rng.choice(found) if found else None

    def _other_epoch(self) -> Request | None:
        member = self._present()
        if member is None:
            return None
        epoch = self.rng.choice((member.epoch - 1, member.epoch - 1, member.epoch + 1, 1, 999))
        fields = member.beat(epoch)
        if self.rng.random() < 0.6:
            fields["topic_partitions"] = rows(self.rng.choice((member.owned, {}, member.target or {})))
        return self._beat(member, fields)

    def _other_partitions(self) -> Request | None:
        member = self._present()
        if member is None:
            return None
        topics = ["$A", "$B", "$C", "bad", "none"]
        owned = {topic: [0, 1][: self.rng.randint(1, 2)] for topic in self.rng.sample(topics, self.rng.randint(1, 2))}
        fields = member.beat() | {"topic_partitions": rows(owned)}
        return self._beat(member, fields)

    def _stranger(self) -> Request:
        member = self.rng.choice(self.walk.members)
        fields = member.beat(self.rng.choice((1, 2, LEAVE, LEAVE_STATIC)))
        fields["member_id"] = GHOST if self.rng.random() < 0.7 else self.rng.choice(self.walk.members).member_id
        if self.rng.random() < 0.3:
            fields["group_id"] = self.rng.choice((NO_GROUP, *self.walk.groups))
        return self._beat(member, fields)

    def _invalid(self) -> Request:
        member = self.rng.choice(self.walk.members)
        fields = self.rng.choice((member.joining, member.beat))()
        changes: list[Fields] = [
            {"group_id": ""},
            {"member_id": ""},
            {"member_epoch": -3},
            {"member_epoch": LEAVE_STATIC, "instance_id": None},
            {"member_epoch": 0, "rebalance_timeout_ms": -1},
            {"member_epoch": 0, "topic_partitions": None},
            {"member_epoch": 0, "topic_partitions": rows({"$A": [0]})},
            {"member_epoch": 0, "subscribed_topic_names": None, "subscribed_topic_regex": None},
            {"instance_id": ""},
            {"rack_id": ""},
            {"server_assignor": "sticky"},
            {"server_assignor": ""},
        ]
        if self.rng.random() < 0.7:
            return member.name, HEARTBEAT, self.rng.choice((0, 1, 1)), fields | self.rng.choice(changes)
        return member.name, HEARTBEAT, 1, fields | {"subscribed_topic_regex": self.rng.choice(INVALID_REGEXES)}

    def _join_again(self) -> Request | None:
        """A client that has forgotten its epoch, and may have another subscription."""
        member = self._present()
        if member is None:
            return None
        owned, target = member.owned, member.target
        fields = member.joining()
        member.owned, member.target = owned, target
        if self.rng.random() < 0.3:
            fields["subscribed_topic_names"] = self.rng.choice(([], ["$A"], ["$B", "$C"], ["$none"]))
        return self._beat(member, fields)

    def _other_instance(self) -> Request:
        member = self.rng.choice(self.walk.members)
        fields = member.beat() if member.epoch > 0 else member.joining()
        return self._beat(member, fields | {"instance_id": self.rng.choice(("i1", "i2", "i3", None))})

    def _leaves(self) -> Request | None:
        member = self._present()
        if member is None:
            return None
        fields = member.leaving(self.rng.choice((LEAVE, LEAVE, LEAVE_STATIC)))
        if self.rng.random() < 0.4:
            fields |= {"instance_id": self.rng.choice(("i1", "i2", None))}
        return self._beat(member, fields)

    # ---- offsets

    def _sender(self) -> tuple[str, int, str | None, str]:
        """Member id, epoch or generation, instance and group of a commit or fetch, mostly those of a member."""
        member = self._present()
        if member is None or self.rng.random() < 0.2:
            group = self.rng.choice((*self.walk.groups, NO_GROUP))
            member_id, epoch = self.rng.choice((("", -1), (GHOST, 1), ("", 3), (GHOST, -1)))
            return member_id, epoch, None, group
        epoch = (
            member.epoch if self.rng.random() < 0.6 else self.rng.choice((member.epoch - 1, member.epoch + 1, -1, 0))
        )
        return member.member_id, epoch, member.instance, member.group

    def _places(self) -> dict[str, list[int]]:
        topics = self.rng.sample(("$A", "$B", "$C"), self.rng.randint(1, 2))
        return {one: sorted(self.rng.sample(range(4), self.rng.randint(1, 2))) for one in sorted(topics)}

    def _commit(self) -> Request:
        member_id, epoch, instance, group = self._sender()
        topics = self._offsets()
        fields = {
            "group_id": group,
            "generation_id_or_member_epoch": epoch,
            "member_id": member_id,
            "group_instance_id": instance if self.rng.random() < 0.5 else None,
            "topics": topics,
        }
        return self._client_of(member_id), "OffsetCommit", self.rng.choice((7, 8, 9, 9, 9)), fields

    def committed(self) -> Commit:
        """What a producer commits in a transaction, mostly for a member."""
        classic = [one for one in self.walk.classic_members if one.is_synced]
        if classic and self.rng.random() < 0.4:
            one = self.rng.choice(classic)
            generation = one.generation - (self.rng.random() < 0.2)
            return Commit(one.group, one.member_id, generation, one.instance, self._offsets())
        member_id, epoch, instance, group = self._sender()
        return Commit(group, member_id, epoch, instance, self._offsets())

    def _offsets(self) -> list[Fields]:
        offset = self.rng.randint(1, 9)
        return [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": one,
                        "committed_offset": offset,
                        "committed_leader_epoch": -1,
                        "committed_metadata": self.rng.choice(("", "", "x", None)),
                    }
                    for one in partitions
                ],
            }
            for topic, partitions in self._places().items()
        ]

    def _fetch(self) -> Request:
        member_id, epoch, _, group = self._sender()
        version = self.rng.choice((5, 7, 8, 9, 9, 9, 9))
        # An epoch without an id is an error of Kafka itself.
        epoch = epoch if member_id else -1
        topics = [{"name": topic, "partition_indexes": found} for topic, found in self._places().items()]
        asked = None if self.rng.random() < 0.3 else topics
        is_stable = self.rng.random() < 0.3
        one = {"group_id": group, "member_id": member_id or None, "member_epoch": epoch, "topics": asked}
        fields = {"require_stable": is_stable} | ({"groups": [one]} if version >= 8 else one)
        return self._client_of(member_id), "OffsetFetch", version, fields

    def _delete_offsets(self) -> Request:
        topics = [
            {"name": topic, "partitions": [{"partition_index": one} for one in found]}
            for topic, found in self._places().items()
        ]
        return ADMIN, "OffsetDelete", 0, {"group_id": self.rng.choice((*self.walk.groups, NO_GROUP)), "topics": topics}

    def _client_of(self, member_id: str) -> str:
        return next((one.name for one in self.walk.members if one.member_id == member_id), ADMIN)

    # ---- groups

    def _some_groups(self) -> list[str]:
        return self.rng.sample((*self.walk.groups, NO_GROUP), self.rng.randint(1, 2))

    def _describe(self) -> Request:
        groups = self._some_groups()
        if self.rng.random() < 0.3:
            return ADMIN, "DescribeGroups", self.rng.choice((5, 6)), {"groups": groups}
        fields = {"group_ids": groups, "include_authorized_operations": self.rng.random() < 0.3}
        return ADMIN, "ConsumerGroupDescribe", self.rng.choice((0, 1)), fields

    def _list(self) -> Request:
        states = self.rng.sample(STATES, self.rng.choice((0, 0, 1, 2)))
        types = self.rng.sample(("consumer", "classic", "Consumer", "share", "nothing"), self.rng.choice((0, 0, 1)))
        return ADMIN, "ListGroups", self.rng.choice((3, 4, 5, 5)), {"states_filter": states, "types_filter": types}

    def _delete_groups(self) -> Request:
        return ADMIN, "DeleteGroups", 2, {"groups_names": self._some_groups()}

    # ---- the classic protocol

    def _classic_identity(self) -> tuple[str, str, int, str | None]:
        """Client, id, generation and group of a member of either protocol."""
        member = self._present()
        if member is None or self.rng.random() < 0.3:
            return ADMIN, GHOST, 1, self.rng.choice(self.walk.groups)
        return member.name, member.member_id, member.epoch, member.group

    def _classic_heartbeat(self) -> Request:
        client, member_id, epoch, group = self._classic_identity()
        fields = {"group_id": group, "generation_id": epoch, "member_id": member_id, "group_instance_id": None}
        return client, "Heartbeat", self.rng.choice((3, 4)), fields

    def _classic_sync(self) -> Request:
        client, member_id, epoch, group = self._classic_identity()
        fields: Fields = {
            "group_id": group,
            "generation_id": epoch,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [],
        }
        return client, "SyncGroup", self.rng.choice((3, 4, 5)), fields

    def _classic_leave(self) -> Request:
        _, member_id, _, group = self._classic_identity()
        one: Fields = {"member_id": member_id, "group_instance_id": None}
        if self.rng.random() < 0.3:
            one = {"member_id": "", "group_instance_id": self.rng.choice(("i1", "i2", "i9"))}
        return ADMIN, "LeaveGroup", self.rng.choice((3, 5)), {"group_id": group, "members": [one]}

    def _classic_join(self) -> Request | None:
        found = self.walk.classic_members
        if not found:
            return None
        one = self.rng.choice(found)
        if one.is_waiting:
            return None
        api, version, fields = one.joining(self.rng)
        fields |= self.rng.choice(({"protocols": []}, {"protocol_type": "connect"}, {"member_id": GHOST}))
        return one.name, api, version, fields

    # ---- topics

    def _change_topics(self) -> Request | None:
        walk = self.walk
        missing = [topic for topic, count in walk.counts.items() if not count]
        present = [topic for topic, count in walk.counts.items() if count]
        kind = self.rng.random()
        if missing and kind < 0.5:
            row: Fields = {
                "name": self.rng.choice(missing),
                "num_partitions": self.rng.randint(1, 3),
                "replication_factor": 1,
                "assignments": [],
                "configs": [],
            }
            return ADMIN, "CreateTopics", 5, {"topics": [row], "timeout_ms": 10_000, "validate_only": False}
        if present and kind < 0.85:
            topic = self.rng.choice(present)
            row = {"name": topic, "count": walk.counts[topic] + self.rng.randint(1, 2), "assignments": None}
            return ADMIN, "CreatePartitions", 1, {"topics": [row], "timeout_ms": 10_000, "validate_only": False}
        if present:
            return ADMIN, "DeleteTopics", 5, {"topic_names": [self.rng.choice(present)], "timeout_ms": 10_000}
        return None
