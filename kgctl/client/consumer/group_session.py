"""Keeps a membership alive over blocking sockets: sends heartbeats and commits when they are due."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kgctl.client.consumer.membership import GroupSettings, Membership
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable
from kgctl.model.topic_partition import TopicPartition

_COMMIT_SECONDS = 5.0
_LEAST_SECONDS = 0.1


class GroupSession:
    """`mark_used` collects offsets, `run_due` sends heartbeats and commits. `must_join` is true once the group rebalances."""

    def __init__(
        self,
        connector: Connector,
        settings: GroupSettings,
        commit_interval_seconds: float,
        notice: Callable[[str], None],
    ) -> None:
        self._connector, self._settings, self._notice = connector, settings, notice
        self._commit_interval_seconds = commit_interval_seconds
        self._membership = Membership(connector.cluster, settings)
        self._used: dict[TopicPartition, int] = {}
        self._heartbeat_at = 0.0
        self._commit_at = 0.0
        self._heartbeat_fails = False

    @property
    def group_id(self) -> str:
        return self._settings.group_id

    @property
    def is_leader(self) -> bool:
        return self._membership.is_leader

    @property
    def must_join(self) -> bool:
        return self._membership.must_join

    @must_join.setter
    def must_join(self, value: bool) -> None:
        self._membership.must_join = value

    def join(self, topics: Sequence[str], deadline: float) -> list[TopicPartition]:
        """Commit used offsets in the old generation, then join the next one."""
        self._commit(min(_COMMIT_SECONDS, _left(deadline)))
        self._used.clear()
        partitions = self._connector.run(self._membership.join(topics), _left(deadline))
        self._heartbeat_at = self._commit_at = time.monotonic()
        self._heartbeat_at += self._settings.heartbeat_interval_ms / 1000
        return sorted(partitions)

    def mark_used(self, partition: TopicPartition, next_offset: int) -> None:
        self._used[partition] = next_offset

    def run_due(self, deadline: float | None = None) -> None:
        """Send a commit and a heartbeat if they are due. Waits for answers until the deadline or the next heartbeat."""
        now = time.monotonic()
        interval = self._settings.heartbeat_interval_ms / 1000
        wait_seconds = interval if deadline is None else min(interval, _left(deadline))
        if self._used and now >= self._commit_at:
            self._commit_at = now + self._commit_interval_seconds
            self._commit(wait_seconds)
        if now >= self._heartbeat_at and not self.must_join:
            self._heartbeat_at = now + interval
            try:
                self._connector.run(self._membership.heartbeat(), wait_seconds)
            except (Unreachable, TimedOut) as error:
                if not self._heartbeat_fails:
                    self._notice(f"no heartbeat: {error}; trying again")
                self._heartbeat_fails = True
            else:
                self._heartbeat_fails = False

    def wake_at(self) -> float:
        """When `run_due` has something to do, as a reading of time.monotonic()."""
        return min(self._heartbeat_at, self._commit_at) if self._used else self._heartbeat_at

    def close(self, timeout: float) -> None:
        """Commit and leave, over new connections: an interrupted request may be in flight on the old ones."""
        self._connector.close()
        deadline = time.monotonic() + timeout
        try:
            refused = self._commit(timeout)
        finally:
            try:
                self._connector.run(self._membership.leave(), _left(deadline))
            except KgctlError as error:
                self._notice(f"could not leave group {self.group_id!r}: {error}")
        if refused:
            raise refused

    def _commit(self, timeout: float) -> KgctlError | None:
        """Commit used offsets. An unsent commit is retried with the next one; a refused one is noted and dropped."""
        if not self._used:
            return None
        try:
            refused = self._connector.run(self._membership.commit(self._used), timeout)
        except (Unreachable, TimedOut) as error:
            return error
        self._used.clear()
        for reason in dict.fromkeys(map(str, refused.values())):
            self._notice(f"{reason}; the records will be read again")
        return next(iter(refused.values()), None)


def _left(deadline: float) -> float:
    return max(_LEAST_SECONDS, deadline - time.monotonic())
