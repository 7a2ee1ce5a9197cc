"""Fetching as steps: leader lookups that every reader shares, and rounds of Fetch requests for admin requests."""

from __future__ import annotations

from broker.protocol.messages.fetch import FetchResponse
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import MAX_FETCH_VERSION, Fetcher, is_missing
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.topic_partition import TopicPartition


def find_leaders(cluster: Cluster, fetcher: Fetcher) -> Steps[dict[TopicPartition, Node]]:
    """Look up the leaders of stale partitions again. One without a leader stays stale, with its error in `failing`."""
    stale = sorted(fetcher.stale)
    for partition in stale:
        cluster.forget_leader(partition)
    found = yield from cluster.leaders(stale)
    leaders = {}
    for partition, node in found.items():
        if isinstance(node, Node):
            leaders[partition] = node
            fetcher.healed(partition)
        else:
            fetcher.failing[partition] = node
    return leaders


def fetch(cluster: Cluster, fetcher: Fetcher) -> Steps[list[Fetched]]:
    """Ask each leader once, in parallel; [] if no partition has records now.

    Retries as `Cluster` does while nothing arrives and a partition fails; then raises its error.
    """
    error: KgctlError | None = None
    for wait in (*cluster.retry_waits, None):
        yield from find_leaders(cluster, fetcher)
        leaders = yield from cluster.leaders(fetcher.positions.keys() - fetcher.stale)
        fetchings = fetcher.next_fetches({key: node for key, node in leaders.items() if isinstance(node, Node)})
        asks = [Ask(one.node.endpoint, one.request, FetchResponse, max_version=MAX_FETCH_VERSION) for one in fetchings]
        answers = yield from cluster.ask_each(asks)
        arrived: list[Fetched] = []
        error = None
        for fetching, answer in zip(fetchings, answers, strict=True):
            if not isinstance(answer, KgctlError):
                arrived += fetcher.on_response(fetching, answer)
            elif answer.retriable:
                fetcher.on_failure(fetching)
                error = answer
            else:
                raise answer
        error = error or next(iter(fetcher.failing.values()), None)
        if arrived or fetcher.out_of_range or error is None:
            return arrived
        if not (error.retriable or is_missing(error)):
            raise error
        if wait is not None:
            yield Pause(wait, str(error))
    assert error is not None
    raise error
