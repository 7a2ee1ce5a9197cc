"""A blocking consumer: partitions by hand or through a group, records out, over sockets; heartbeats go between polls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import Fetcher, Fetching, FetchSettings
from kgctl.client.consumer.group_session import GroupSession
from kgctl.client.consumer.membership import GroupSettings
from kgctl.client.consumer.starting import Reset, committed_offsets, given_offsets, log_ends, partition_counts
from kgctl.client.net.cluster import Node
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, NotFound, TimedOut, Unreachable
from kgctl.client.net.waiting import wait_readable
from kgctl.model.topic_partition import TopicPartition

# Version 13 names topics by id only.
MAX_FETCH_VERSION = 12
CLOSE_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_LEAST_SECONDS = 0.1
_LOOKUP_PAUSE_SECONDS = 0.2
# A broker that restarts is waited for, a topic that is deleted only as long as a new one takes to be known everywhere.
_OUTAGE_SECONDS = 60.0
_MISSING_TOPIC_SECONDS = 5.0
_TOPICS_AGE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """`reset` None: an offset that the log lacks is an error. `until_end`: stop where each log ended at first sight."""

    fetch: FetchSettings = field(default_factory=FetchSettings)
    group: GroupSettings | None = None
    reset: Reset | None = Reset.LATEST
    until_end: bool = False
    commit_interval_seconds: float = 1.0


@dataclass(slots=True)
class _Link:
    """A connection to a node; one Fetch at a time, with its deadline."""

    connection: Connection
    version: int
    fetching: Fetching | None = None
    deadline: float = 0.0


class Consumer:
    """`assign` or `subscribe`, then `poll` again and again; tell `used` what was dealt with; `close` commits that and leaves.

    `notice` is told what a person should know and no caller needs to handle: an offset that was reset, a broker that is gone.
    """

    def __init__(self, connector: Connector, settings: ConsumerSettings, notice: Callable[[str], None]) -> None:
        self._connector, self._settings, self._notice = connector, settings, notice
        self._cluster = connector.cluster
        self._fetcher = Fetcher(settings.fetch)
        self._group = (
            GroupSession(connector, settings.group, settings.commit_interval_seconds, notice)
            if settings.group
            else None
        )
        self._topics: dict[str, int] = {}
        self._topics_at = 0.0
        self._limits: dict[TopicPartition, int] = {}
        self._leaders: dict[TopicPartition, Node] = {}
        self._links: dict[Node, _Link] = {}
        self._lookup_at = 0.0
        self._outage_since: float | None = None
        self._failing_since: dict[TopicPartition, float] = {}

    @property
    def assignment(self) -> list[TopicPartition]:
        return sorted(self._fetcher.positions)

    @property
    def at_end(self) -> bool:
        """With `until_end`: everything that was there has been handed out."""
        waits_for_group = self._group is not None and self._group.must_join
        return self._settings.until_end and not waits_for_group and self._fetcher.all_finished

    def assign(
        self, topics: Sequence[str], timeout: float, numbers: Sequence[int] | None = None, offset: int | None = None
    ) -> None:
        """Read the topics, or only their partitions with these numbers, from `offset` or else from `reset` on; no group."""
        deadline = time.monotonic() + timeout
        counts = self._look_up_topics(topics, timeout)
        partitions = []
        for name, count in counts.items():
            for index in range(count) if numbers is None else sorted(set(numbers)):
                if index >= count:
                    raise NotFound(f"topic {name!r} has no partition {index}: it has {count}, from 0 on")
                partitions.append(TopicPartition(name, index))
        if offset is None:
            self._begin(self._reset(partitions, deadline), deadline)
        else:
            given = dict.fromkeys(partitions, offset)
            self._begin(self._connector.run(given_offsets(self._cluster, given), _left(deadline)), deadline)

    def subscribe(self, topics: Sequence[str], timeout: float) -> None:
        """Read the topics as a member of the group; the first `poll` joins it."""
        self._look_up_topics(topics, timeout)

    def poll(self, timeout: float, *, broken: int | None = None) -> list[Fetched]:
        """What has come for at most `timeout` seconds; TimedOut if the group does not let us in for so long.

        A cluster that hangs is waited for no longer, either.
        BrokenPipeError when nobody reads from the pipe `broken` any more.
        """
        deadline = time.monotonic() + timeout
        if self._group is not None:
            if self._group.must_join:
                self._rejoin(deadline)
                return []
            self._group.tend(deadline)
            if self._group.must_join:
                return []
        self._heal(deadline)
        self._send_fetches(deadline)
        came = self._receive_ready(deadline, broken)
        # The broker gathers the next records while the caller deals with these.
        self._send_fetches(deadline)
        return came

    def used(self, partition: TopicPartition, next_offset: int) -> None:
        """Everything of the partition before that offset has been dealt with and may be committed."""
        if self._group is not None:
            self._group.used(partition, next_offset)

    def stay_alive(self) -> None:
        """To be called when the caller is held up between two polls: beats if it is time."""
        if self._group is not None:
            self._group.tend()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Commit what was used, leave the group, close the connections. The first trouble is raised when all is done."""
        for link in self._links.values():
            link.connection.close()
        self._links.clear()
        if self._group is not None:
            self._group.close(timeout)

    # --- beginning ---

    def _look_up_topics(self, topics: Sequence[str], timeout: float) -> dict[str, int]:
        self._topics = self._connector.run(partition_counts(self._cluster, topics), timeout)
        self._topics_at = time.monotonic()
        return self._topics

    def _rejoin(self, deadline: float) -> None:
        assert self._group is not None
        self._fetcher.assign({})
        partitions = self._group.join(list(self._topics), deadline)
        steps = committed_offsets(self._cluster, self._group.group_id, partitions)
        positions = self._connector.run(steps, _left(deadline))
        fresh = self._reset([partition for partition in partitions if partition not in positions], deadline)
        self._begin(positions | fresh, deadline)
        for partition, offset in fresh.items():
            # Where reading began holds for the next owner too, even before the first record has come.
            self._group.used(partition, offset)

    def _begin(self, positions: Mapping[TopicPartition, int], deadline: float) -> None:
        if self._settings.until_end:
            unseen = [partition for partition in positions if partition not in self._limits]
            self._limits |= self._ends(unseen, Reset.LATEST, deadline)
        self._fetcher.assign(positions, self._limits)
        self._look_up_leaders(deadline)

    def _reset(self, partitions: Sequence[TopicPartition], deadline: float) -> dict[TopicPartition, int]:
        if partitions and self._settings.reset is None:
            raise KgctlError(f"no offset to begin at for {', '.join(map(str, partitions))}")
        return self._ends(partitions, self._settings.reset or Reset.LATEST, deadline)

    def _ends(self, partitions: Sequence[TopicPartition], end: Reset, deadline: float) -> dict[TopicPartition, int]:
        steps = log_ends(self._cluster, partitions, end, committed_only=self._settings.fetch.committed_only)
        return self._connector.run(steps, _left(deadline))

    # --- fetching ---

    def _send_fetches(self, deadline: float) -> None:
        for fetching in self._fetcher.next_fetches(self._leaders):
            try:
                until = time.monotonic() + _left(deadline)
                link = self._link(fetching.node, until)
                link.connection.send(fetching.request, link.version, FetchResponse, until)
            except (Unreachable, TimedOut) as error:
                self._drop(fetching.node)
                self._fetcher.on_failure(fetching)
                self._note_outage(error)
            else:
                link.fetching = fetching
                link.deadline = time.monotonic() + _REQUEST_SECONDS + fetching.request.max_wait_ms / 1000

    def _link(self, node: Node, deadline: float) -> _Link:
        link = self._links.get(node)
        if link is None:
            link = self._links[node] = _Link(*self._connector.link(node, FetchRequest, MAX_FETCH_VERSION, deadline))
        return link

    def _receive_ready(self, deadline: float, broken: int | None) -> list[Fetched]:
        waiting = {link.connection.fileno(): node for node, link in self._links.items() if link.fetching}
        ready = wait_readable(waiting, self._patience(deadline), broken=broken)
        if broken in ready:
            raise BrokenPipeError
        came = []
        for fileno in ready:
            came += self._receive(waiting[fileno], deadline)
        now = time.monotonic()
        for node, link in list(self._links.items()):
            if link.fetching and link.deadline <= now:
                self._lose(node, link.fetching, TimedOut(f"{node.endpoint}: no answer in time"))
        return came

    def _receive(self, node: Node, deadline: float) -> list[Fetched]:
        link = self._links[node]
        fetching = link.fetching
        assert fetching is not None
        try:
            _, response = link.connection.receive(min(link.deadline, time.monotonic() + _left(deadline)))
        except (Unreachable, TimedOut) as error:
            self._lose(node, fetching, error)
            return []
        assert isinstance(response, FetchResponse)
        link.fetching = None
        self._outage_since = None
        return self._fetcher.on_response(fetching, response)

    def _lose(self, node: Node, fetching: Fetching, error: KgctlError) -> None:
        self._drop(node)
        self._fetcher.on_failure(fetching)
        self._note_outage(error)

    def _drop(self, node: Node) -> None:
        link = self._links.pop(node, None)
        if link is not None:
            link.connection.close()

    def _patience(self, deadline: float) -> float:
        now = time.monotonic()
        times = [deadline, *(link.deadline for link in self._links.values() if link.fetching)]
        if self._group is not None:
            times.append(self._group.wake_at())
        if self._fetcher.stale:
            times.append(self._lookup_at)
        return max(0.0, min(times) - now)

    # --- healing ---

    def _heal(self, deadline: float) -> None:
        now = time.monotonic()
        if self._fetcher.out_of_range:
            self._reset_lost_offsets(deadline)
        if self._fetcher.stale and now >= self._lookup_at:
            self._look_up_leaders(deadline)
        if now >= self._topics_at + _TOPICS_AGE_SECONDS:
            self._notice_new_partitions(deadline)

    def _reset_lost_offsets(self, deadline: float) -> None:
        lost = sorted(self._fetcher.out_of_range)
        if self._settings.reset is None:
            offset = self._fetcher.positions[lost[0]]
            raise KgctlError(f"{lost[0]} no longer has offset {offset}: the records were deleted")
        for partition, offset in self._reset(lost, deadline).items():
            old = self._fetcher.positions[partition]
            self._notice(
                f"{partition} has no offset {old}; going on at {offset}, the {self._settings.reset.name.lower()}"
            )
            self._fetcher.seek(partition, offset)

    def _look_up_leaders(self, deadline: float) -> None:
        """A cluster that cannot be reached is asked again a little later, up to a limit."""
        self._lookup_at = time.monotonic() + _LOOKUP_PAUSE_SECONDS
        wanted = list(self._fetcher.positions)
        for partition in self._fetcher.stale:
            self._cluster.forget_leader(partition)
        try:
            found = self._connector.run(self._cluster.leaders(wanted), _left(deadline))
        except (Unreachable, TimedOut) as error:
            self._note_outage(error)
            return
        for partition in wanted:
            node = found[partition]
            if isinstance(node, Node):
                self._leaders[partition] = node
                self._fetcher.healed(partition)
            else:
                self._fetcher.failing[partition] = node
        self._judge_failing()

    def _judge_failing(self) -> None:
        now, failing = time.monotonic(), self._fetcher.failing
        self._failing_since = {partition: self._failing_since.get(partition, now) for partition in failing}
        for partition, since in self._failing_since.items():
            error = failing[partition]
            if now - since > (_OUTAGE_SECONDS if error.retriable else _MISSING_TOPIC_SECONDS):
                raise error

    def _note_outage(self, error: KgctlError) -> None:
        if not error.retriable and not isinstance(error, TimedOut):
            raise error
        now = time.monotonic()
        if self._outage_since is None:
            self._outage_since = now
            self._notice(f"{error}; trying again")
        elif now - self._outage_since > _OUTAGE_SECONDS:
            raise error

    def _notice_new_partitions(self, deadline: float) -> None:
        """A topic may get more partitions: read them from their beginning, or let the group share them out."""
        self._topics_at = time.monotonic()
        known = self._topics
        try:
            counts = self._connector.run(partition_counts(self._cluster, list(known)), _left(deadline))
        except KgctlError:
            return  # what is wrong shows itself where it hurts
        self._topics = counts
        if self._group is not None:
            if counts != known and self._group.is_leader:
                self._group.must_join = True
            return
        for topic, count in counts.items():
            if all(TopicPartition(topic, index) in self._fetcher.positions for index in range(known[topic])):
                for index in range(known[topic], count):
                    self._fetcher.add(TopicPartition(topic, index), 0)


def _left(deadline: float) -> float:
    """How long one step may take: a little even at the very end, so that an answer that is there already is read."""
    return min(_REQUEST_SECONDS, max(_LEAST_SECONDS, deadline - time.monotonic()))
