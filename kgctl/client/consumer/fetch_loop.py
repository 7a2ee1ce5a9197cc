"""The fetch loop: one Fetch in flight per leader, sent before the caller uses the previous answer.

Looks up leaders that moved, and waits for brokers that are down, within bounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from broker.light_dataclasses import dataclass
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.consumer.fetch_steps import find_leaders
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import MAX_FETCH_VERSION, Fetcher, Fetching, FetchSettings, is_missing
from kgctl.client.net.cluster import Node
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable
from kgctl.client.net.waiting import wait_for_answers
from kgctl.model.topic_partition import TopicPartition

_REQUEST_SECONDS = 30.0
_LEAST_SECONDS = 0.1
# A connection that takes several round trips, for TLS and SASL, must not fail again and again because the caller polls often.
_LEAST_SEND_SECONDS = 2.0
_LOOKUP_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds until an outage is an error, and until a missing topic is: a new one may not be known everywhere yet."""

    outage: float = 60.0
    missing_topic: float = 5.0


@dataclass(slots=True)
class _FetchLink:
    """A connection to a node; one Fetch at a time, with its deadline."""

    connection: Connection
    version: int
    fetching: Fetching | None = None
    deadline: float = 0.0


class FetchLoop:
    """`assign` partitions, then call `poll` repeatedly; `fetcher` has the positions and the offsets that are out of range.

    Deadlines are readings of time.monotonic(). `notice` receives a sentence when an outage begins.
    """

    def __init__(
        self,
        connector: Connector,
        settings: FetchSettings,
        patience: Patience = Patience(),
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.fetcher = Fetcher(settings)
        self._connector, self._patience, self._notice = connector, patience, notice
        self._leaders: dict[TopicPartition, Node] = {}
        self._links: dict[Node, _FetchLink] = {}
        self._lookup_at = 0.0
        self._outage_since: float | None = None
        self._failing_since: dict[TopicPartition, float] = {}

    @property
    def is_failing(self) -> bool:
        """Whether a broker or a partition currently answers with an error, or not at all."""
        return self._outage_since is not None or bool(self.fetcher.failing)

    def assign(self, positions: Mapping[TopicPartition, int], limits: Mapping[TopicPartition, int]) -> None:
        """Fetch these partitions and no others; `limits` are offsets to stop before."""
        self.fetcher.assign(positions, limits)
        self.fetcher.stale |= positions.keys() - self._leaders.keys()
        self._lookup_at = 0.0

    def poll(self, deadline: float, *, wake_at: float = math.inf, hangup: int | None = None) -> list[Fetched]:
        """What arrives until the deadline or `wake_at`, whichever is earlier; [] if nothing does.

        Also returns when the reader of the pipe `hangup`, a descriptor of the caller, closes it. Raises the error of a
        broker or partition that fails for too long, or for good.
        """
        if self.fetcher.stale and time.monotonic() >= self._lookup_at:
            self._look_up_leaders(deadline)
        self._send(deadline)
        arrived = self._receive_ready(deadline, wake_at, hangup)
        # The brokers prepare the next records while the caller processes these.
        self._send(deadline)
        return arrived

    def suspect(self, partition: TopicPartition, error: KgctlError) -> None:
        """Let the loop look up the leader again: the caller's own request about the partition failed."""
        self.fetcher.out_of_range.discard(partition)
        self.fetcher.stale.add(partition)
        self.fetcher.failing[partition] = error
        self._check_failing()

    def close(self) -> None:
        """Close the connections; answers to requests in flight are lost."""
        for link in self._links.values():
            link.connection.close()
        self._links.clear()

    # --- requests ---

    def _send(self, deadline: float) -> None:
        for fetching in self.fetcher.next_fetches(self._leaders):
            try:
                until = time.monotonic() + max(_LEAST_SEND_SECONDS, time_left(deadline))
                link = self._link(fetching.node, until)
                link.connection.send(fetching.request, link.version, FetchResponse, until)
            except (Unreachable, TimedOut) as error:
                self._lose(fetching, error)
            else:
                link.fetching = fetching
                link.deadline = time.monotonic() + _REQUEST_SECONDS + fetching.request.max_wait_ms / 1000

    def _link(self, node: Node, deadline: float) -> _FetchLink:
        link = self._links.get(node)
        if link is None:
            link = self._links[node] = _FetchLink(
                *self._connector.link(node, FetchRequest, MAX_FETCH_VERSION, deadline)
            )
        return link

    def _receive_ready(self, deadline: float, wake_at: float, hangup: int | None) -> list[Fetched]:
        waiting = {link.connection: link for link in self._links.values() if link.fetching}
        ready, _ = wait_for_answers(waiting, self._wait_seconds(min(deadline, wake_at)), hangup=hangup)
        arrived = []
        for connection in ready:
            arrived += self._receive(waiting[connection], deadline)
        now = time.monotonic()
        for node, link in list(self._links.items()):
            if link.fetching and link.deadline <= now:
                self._lose(link.fetching, TimedOut(f"{node.endpoint}: no answer in time"))
        return arrived

    def _receive(self, link: _FetchLink, deadline: float) -> list[Fetched]:
        fetching = link.fetching
        assert fetching is not None
        try:
            _, response = link.connection.receive(min(link.deadline, time.monotonic() + time_left(deadline)))
        except (Unreachable, TimedOut) as error:
            self._lose(fetching, error)
            return []
        assert isinstance(response, FetchResponse)
        link.fetching = None
        self._outage_since = None
        arrived = self.fetcher.on_response(fetching, response)
        if self._failing_since:
            self._failing_since = {key: at for key, at in self._failing_since.items() if key in self.fetcher.failing}
        return arrived

    def _wait_seconds(self, until: float) -> float:
        times = [until, *(link.deadline for link in self._links.values() if link.fetching)]
        if self.fetcher.stale:
            times.append(self._lookup_at)
        return max(0.0, min(times) - time.monotonic())

    # --- failures ---

    def _lose(self, fetching: Fetching, error: KgctlError) -> None:
        link = self._links.pop(fetching.node, None)
        if link is not None:
            link.connection.close()
        self.fetcher.on_failure(fetching)
        self._note_outage(error)

    def _look_up_leaders(self, deadline: float) -> None:
        self._lookup_at = time.monotonic() + _LOOKUP_PAUSE_SECONDS
        try:
            steps = find_leaders(self._connector.cluster, self.fetcher)
            self._leaders |= self._connector.run(steps, time_left(deadline))
        except (Unreachable, TimedOut) as error:
            self._note_outage(error)
            return
        self._check_failing()

    def _check_failing(self) -> None:
        """Raise the error of a partition that fails for good, or for too long."""
        now, failing = time.monotonic(), self.fetcher.failing
        self._failing_since = {partition: self._failing_since.get(partition, now) for partition in failing}
        for partition, since in self._failing_since.items():
            error = failing[partition]
            if not (is_missing(error) or _may_pass(error)):
                raise error
            if now - since > (self._patience.missing_topic if is_missing(error) else self._patience.outage):
                raise error

    def _note_outage(self, error: KgctlError) -> None:
        """Remember that a broker does not answer. Raises the error if waiting cannot help, or has lasted too long."""
        if not _may_pass(error):
            raise error
        now = time.monotonic()
        if self._outage_since is None:
            self._outage_since = now
            self._notice(f"{error}; trying again")
        elif now - self._outage_since > self._patience.outage:
            raise error


def _may_pass(error: KgctlError) -> bool:
    return error.retriable or isinstance(error, TimedOut)


def time_left(deadline: float) -> float:
    """Seconds that one step may take: a little even at the deadline, so that an answer that has arrived is still read."""
    return min(_REQUEST_SECONDS, max(_LEAST_SECONDS, deadline - time.monotonic()))
