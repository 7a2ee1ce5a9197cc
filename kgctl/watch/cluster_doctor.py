"""The doctor of clusters: checks of brokers, partitions, internal topics, clocks and permissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kgctl.model.cluster import BrokerFacts, ClusterFacts, PartitionFacts
from kgctl.model.findings import WORST_FIRST, ClusterFinding, Severity
from kgctl.watch.figures import counted, span

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
LOCAL = ("localhost", "127.", "[::1]", "::1")
# Answers are under way for a moment, and clocks are set in small steps.
SLACK_MS = 2_000
MOST = 5
OK, INFO, WARNING, ERROR, UNKNOWN = Severity.OK, Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.UNKNOWN


def examine(facts: ClusterFacts) -> list[ClusterFinding]:
    """All findings, the worst first."""
    checks = (reachability, bootstrap, views, versions, controller, partitions, internal_topics, clock, permissions)
    found = [one for check in checks for one in check(facts)]
    return sorted(found, key=lambda one: WORST_FIRST.index(one.severity))


def reachability(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    """Each broker is connected at the address that it advertises to clients."""
    is_remote = not all(_is_local(address) for address in facts.bootstrap)
    for broker in facts.brokers:
        name = f"broker {broker.broker_id}"
        if broker.error is not None:
            yield ClusterFinding(
                "reachability",
                name,
                ERROR,
                f"{broker.address}: {broker.error.message}",
                "start the broker, or correct its advertised.listeners",
                broker.error,
            )
        elif is_remote and _is_local(broker.address):
            text = f"advertises {broker.address}, which other machines cannot reach"
            yield ClusterFinding("reachability", name, WARNING, text, "set advertised.listeners of the broker")
        else:
            yield ClusterFinding("reachability", name, OK, f"answers at {broker.address}")


def bootstrap(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    """Each address of the bootstrap list answers: clients try one after the other, and wait for one that hangs."""
    for address, error in facts.silent.items():
        advice = "remove it from the bootstrap list, or start that broker"
        yield ClusterFinding("bootstrap", address, WARNING, error.message.removeprefix(f"{address}: "), advice)


def views(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    """All brokers see the same cluster."""
    present = _present(facts)
    ids = {broker.cluster_id for broker in present}
    if len(ids) > 1:
        text = ", ".join(f"broker {one.broker_id} in {one.cluster_id}" for one in present)
        yield ClusterFinding("membership", "cluster", ERROR, f"brokers of several clusters: {text}")
    everyone = frozenset(broker.broker_id for broker in facts.brokers)
    for broker in present:
        if missing := sorted(everyone - broker.known_brokers):
            names = ", ".join(map(str, missing))
            yield ClusterFinding("membership", f"broker {broker.broker_id}", WARNING, f"does not see broker {names}")


def versions(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    present = _present(facts)
    if not present:
        return
    first = present[0]
    is_mixed = False
    for broker in present[1:]:
        differing = sorted(
            key for key in first.apis.keys() | broker.apis.keys() if first.apis.get(key) != broker.apis.get(key)
        )
        if differing:
            is_mixed = True
            text = f"other API versions than broker {first.broker_id}, for {counted(len(differing), 'API')}"
            advice = "finish the upgrade; until then clients use the versions that both offer"
            yield ClusterFinding("versions", f"broker {broker.broker_id}", WARNING, text, advice)
    if not is_mixed:
        levels = ", ".join(f"{name} {level}" for name, level in sorted(first.features.items()))
        text = f"{counted(len(first.apis), 'API')}, the same versions on {counted(len(present), 'broker')}"
        yield ClusterFinding("versions", "cluster", OK, f"{text}; {levels}" if levels else text)


def controller(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    if facts.controller_id is None:
        text = "there is no controller: topics cannot be created, and leaders not elected"
        yield ClusterFinding("controller", "cluster", ERROR, text, "look at the logs of the controllers")
    else:
        yield ClusterFinding(
            "controller", "cluster", OK, f"requests for the controller go to broker {facts.controller_id}"
        )


def partitions(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    alive = {broker.broker_id for broker in facts.brokers}
    offline = [one for one in facts.partitions if one.leader not in alive]
    thin = [one for one in facts.partitions if one.leader in alive and len(one.isr) < len(one.replicas)]
    yield from _named(offline, ERROR, "has no leader: nothing can be read or written", "start a broker with a replica")
    yield from _named(thin, WARNING, "has replicas that are not in sync", "check the brokers of the missing replicas")
    if not offline and not thin:
        text = f"{counted(len(facts.partitions), 'partition')} of {counted(facts.topics, 'topic')} have all replicas in sync"
        yield ClusterFinding("partitions", "cluster", OK, text)


def internal_topics(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    for topic, purpose in ((OFFSETS, "committed offsets"), (TRANSACTIONS, "transactions")):
        rows = [one for one in facts.partitions if one.partition.topic == topic]
        if not rows:
            yield ClusterFinding(
                "internal-topics", topic, INFO, f"does not exist, or is not visible: no {purpose} so far"
            )
            continue
        least = min(len(one.replicas) for one in rows)
        wanted = min(3, len(facts.brokers))
        text = f"{counted(len(rows), 'partition')} with {counted(least, 'replica')}"
        if least < wanted:
            advice = f"{purpose} are lost with one disk; add replicas with kafka-reassign-partitions"
            yield ClusterFinding("internal-topics", topic, WARNING, text, advice)
        else:
            yield ClusterFinding("internal-topics", topic, OK, text)


def clock(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    """Only a clock that is ahead of ours can be proved: its timestamps are in our future."""
    ahead_ms = None if facts.newest_commit_ms is None else facts.newest_commit_ms - facts.wall_ms
    if ahead_ms is not None and ahead_ms > SLACK_MS:
        text = f"a broker's clock is at least {span(ahead_ms / 1000)} ahead of ours"
        yield ClusterFinding("clocks", "cluster", WARNING, text, "synchronize clocks; ages and lag in time are wrong")
    else:
        yield ClusterFinding(
            "clocks", "cluster", UNKNOWN, "no timestamp is in our future; a clock that is behind shows nothing"
        )


def permissions(facts: ClusterFacts) -> Iterator[ClusterFinding]:
    if facts.operations is None:
        yield ClusterFinding("permissions", "cluster", UNKNOWN, "the brokers do not report authorized operations")
    elif not facts.operations:
        text = "no operation on the cluster is allowed"
        yield ClusterFinding("permissions", "cluster", INFO, text, "Describe and DescribeConfigs show more")
    else:
        yield ClusterFinding("permissions", "cluster", OK, f"allowed: {', '.join(facts.operations)}")
    if not facts.topic_operations:
        return
    allowed = [f"{name} {facts.topic_operations.get(name, 0)}" for name in ("Read", "Write", "Alter", "Delete")]
    text = f"of {counted(facts.topics, 'visible topic')}: {', '.join(allowed)}"
    yield ClusterFinding("permissions", "topics", OK if facts.topic_operations.get("Read") else INFO, text)


def _present(facts: ClusterFacts) -> list[BrokerFacts]:
    return [broker for broker in facts.brokers if broker.error is None]


def _named(some: Sequence[PartitionFacts], severity: Severity, what: str, advice: str) -> Iterable[ClusterFinding]:
    for one in some[:MOST]:
        text = f"{what}; replicas {_numbers(one.replicas)}, in sync {_numbers(one.isr)}"
        yield ClusterFinding("partitions", str(one.partition), severity, text, advice)
    if len(some) > MOST:
        yield ClusterFinding("partitions", f"{len(some) - MOST:,} more", severity, what, advice)


def _numbers(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def _is_local(address: str) -> bool:
    return address.startswith(LOCAL)
