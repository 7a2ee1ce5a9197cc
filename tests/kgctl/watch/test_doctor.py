"""The doctor of groups: each rule fires and stays silent, and says when it cannot look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.failure import RowError
from kgctl.model.findings import WORST_FIRST, Severity
from kgctl.model.groups import GroupDescription, PartitionLag, TopicPartitions
from kgctl.model.health import Health
from kgctl.model.history import GroupEventRow
from kgctl.model.lag import LagFacts, Retention
from kgctl.model.reconciliation import reconciled
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import GroupHold, Hold
from kgctl.watch.doctor.facts import GroupFacts, facts_of
from kgctl.watch.doctor.rules import RULES, diagnose, rule_rows
from kgctl.watch.lag import Sample
from tests.kgctl.watch.snapshots import event, group, member, partition

NOW = 1_700_000_000_000
KEYS = [TopicPartition("orders", number) for number in range(4)]
HOUR, DAY = 3_600_000, 86_400_000


def facts(
    *course: GroupDescription,
    committed_s: Mapping[int, float] | None = None,
    unread_s: Mapping[int, float] | None = None,
    starts: Sequence[int] = (0, 0, 0, 0),
    retention_ms: int = DAY,
    events: Iterable[GroupEventRow] | None = (),
    holds: Iterable[GroupHold] = (),
    missing: Mapping[str, str] | None = None,
    seconds: float = 40,
) -> GroupFacts:
    """Facts from samples `seconds` apart; times are seconds ago, by partition."""
    times = {KEYS[n]: int(NOW - ago * 1000) for n, ago in (committed_s or {}).items()}
    samples = [
        Sample(at * seconds, NOW, {"g": replace(one, committed_at=times, clock_ms=NOW)})
        for at, one in enumerate(course)
    ]
    written = {
        ("orders", n, max(row.current_offset or 0, starts[n])): int(NOW - ago * 1000)
        for n, ago in (unread_s or {}).items()
        for row in course[-1].partitions
        if row.partition == n
    }
    lag = LagFacts(
        NOW,
        log_starts=dict(zip(KEYS, starts, strict=True)),
        record_times=written,
        retention={"orders": Retention(retention_ms)},
    )
    absent = dict.fromkeys(("history", "rebalances"), "none here") if events is None else {}
    (found,) = facts_of(
        samples, lag, list(holds), None if events is None else list(events), absent | dict(missing or {})
    )
    return found


def rules_of(found: GroupFacts) -> set[str]:
    return {row.rule for row in diagnose(found) if row.rule}


def lags(*numbers: int | None, **fields: Any) -> GroupDescription:
    rows = [partition(n, None if lag is None else 100, 100 + (lag or 0)) for n, lag in enumerate(numbers)]
    return group(partitions=rows, **{"members": [member("c-1", range(len(numbers)))], **fields})


def owning(*counts: int, **fields: Any) -> GroupDescription:
    members, first = [], 0
    for number, count in enumerate(counts):
        members.append(member(f"c-{number}", range(first, first + count)))
        first += count
    return group(members=members, **fields)


def reads(commits: int) -> list[GroupDescription]:
    """4,000 records arrive between two samples, and this many are committed."""
    return [group(partitions=[partition(0, commits * n, 4_000 * n + 1)]) for n in range(1, 5)]


def subscribed_apart(found: GroupDescription) -> GroupDescription:
    members = tuple(replace(one, subscribed=(one.consumer_id or "",)) for one in found.members)
    return replace(found, members=members)


def share(epoch: int) -> GroupDescription:
    """A share group in which no member reads a partition; the member has epoch 3."""
    rows = [partition(0, 1, 2, None), partition(1, 1, 1, None)]
    reader = member("c-1", [1], current_epoch=3)
    return group(members=[reader], partitions=rows, subscribed=BY, type="Share", group_epoch=epoch)


def static(age_ms: int | None, **fields: Any) -> Any:
    row = member("i-1-x", [0], session_timeout_ms=30_000, heartbeat_age_ms=age_ms, **fields)
    return replace(row, group_instance_id="i-1")


def failing(name: str) -> PartitionLag:
    return partition(0, 5, None, error=RowError(name, f"orders-0: {name}"))


def starts_of(count: int, ago_ms: int = 60_000, cause: str = "member joined") -> list[GroupEventRow]:
    return [event("rebalance_started", NOW - ago_ms - n, n, cause=cause) for n in range(count)]


def ends_of(count: int) -> list[GroupEventRow]:
    """As derived where the cluster keeps no history: without starts and causes."""
    return [event("stable", NOW - 60_000 - n, n) for n in range(count)]


HELD = Hold(KEYS[0], 101, 107, 7, "tx", age_ms=60_000)
YOUNG = Hold(KEYS[0], 101, 107, 7, "tx", age_ms=900)
EMPTY: dict[str, Any] = {"state": "Empty", "members": ()}
LEFT = partition(0, 5, 9, owner=None, topic="old")
BY = frozenset({"orders"})
COOPERATIVE = group(
    members=[member("c-1", [1])],
    partitions=[partition(0, 1, 2, None)],
    subscribed=BY,
    assignment_strategy="cooperative-sticky",
)
# A consumer group in which c-1 has not given up what c-2 waits for.
UNRELEASED = reconciled(
    group(
        "Reconciling",
        [
            member(
                "c-1", [0, 1], current_epoch=4, target_epoch=5, target_assignment=(TopicPartitions("orders", (0,)),)
            ),
            member("c-2", current_epoch=5, target_epoch=5, target_assignment=(TopicPartitions("orders", (1,)),)),
        ],
        type="Consumer",
    )
)

# rule, facts where it fires, similar facts where it does not
CASES: list[tuple[str, GroupFacts, GroupFacts]] = [
    ("records-lost", facts(lags(7), starts=(101, 0, 0, 0)), facts(lags(7), starts=(100, 0, 0, 0))),
    ("past-end", facts(lags(-1)), facts(lags(0))),
    (
        "retention-loses",
        facts(lags(7), unread_s={0: 2 * DAY / 1000}),
        facts(lags(7), unread_s={0: 1}),
    ),
    (
        "retention-loses",
        facts(lags(7), committed_s={0: 9_000}, unread_s={0: DAY / 1000 - 60}),
        facts(lags(7), committed_s={0: 1}, unread_s={0: DAY / 1000 - 60}),
    ),
    (
        "retention-loses",
        facts(lags(90_000), group(partitions=[partition(0, 140, 90_140)]), unread_s={0: DAY / 1000 - 7_200}),
        facts(lags(90_000), group(partitions=[partition(0, 4_100, 5_000)]), unread_s={0: DAY / 1000 - 7_200}),
    ),
    ("stopped", facts(lags(7, **EMPTY), committed_s={0: 100}), facts(lags(0, **EMPTY), committed_s={0: 100})),
    (
        "stalled",
        facts(lags(7), committed_s={0: 100}, unread_s={0: 100}),
        facts(lags(7), committed_s={0: 100}, unread_s={0: 5}),
    ),
    ("stalled", facts(lags(7), lags(9), lags(9), seconds=60), facts(lags(7), lags(9), lags(9), seconds=40)),
    (
        "rebalance-stuck",
        facts(group("PreparingRebalance", state_since_ms=NOW - 61_000)),
        facts(group("PreparingRebalance", state_since_ms=NOW - 5_000)),
    ),
    ("rebalance-stuck", facts(UNRELEASED, UNRELEASED), facts(UNRELEASED, UNRELEASED, seconds=5)),
    (
        "rebalance-stuck",
        facts(group("PreparingRebalance"), group("CompletingRebalance")),
        facts(group("PreparingRebalance"), group("PreparingRebalance"), seconds=5),
    ),
    (
        "unassigned-partition",
        facts(group(members=[member("c-1", [1])], partitions=[partition(0, 1, 2, None)], subscribed=BY)),
        facts(group(members=[member("c-1", [0])], partitions=[partition(0, 1, 2)], subscribed=BY)),
    ),
    (
        "unassigned-partition",
        facts(replace(COOPERATIVE, state_since_ms=NOW - 11_000)),
        facts(replace(COOPERATIVE, state_since_ms=NOW - 2_000)),
    ),
    ("unassigned-partition", facts(COOPERATIVE, COOPERATIVE), facts(COOPERATIVE)),
    ("unassigned-partition", facts(share(epoch=3)), facts(share(epoch=4))),
    (
        "unavailable-partition",
        facts(group(partitions=[failing("LEADER_NOT_AVAILABLE")])),
        facts(group(partitions=[failing("UNKNOWN_TOPIC_OR_PARTITION")])),
    ),
    (
        "silent-member",
        facts(group(members=[member("c", session_timeout_ms=30_000, heartbeat_age_ms=20_000)])),
        facts(group(members=[member("c", session_timeout_ms=30_000, heartbeat_age_ms=3_000)])),
    ),
    ("ghost-static-member", facts(group(members=[static(20_000)])), facts(group(members=[static(3_000)]))),
    (
        "ghost-static-member",
        facts(group(members=[static(9)]), events=[event("stable", NOW, 3, absent=("i-1-x",))]),
        facts(
            group(members=[static(9)]),
            events=[event("stable", NOW, 3, absent=("i-1-x",)), event("stable", NOW, 4)],
        ),
    ),
    ("rebalance-storm", facts(group(), events=starts_of(5)), facts(group(), events=starts_of(4))),
    ("rebalance-storm", facts(group(), events=starts_of(5)), facts(group(), events=starts_of(5, 700_000))),
    (
        "rebalance-storm",
        facts(group(), events=starts_of(5)),
        facts(group(), events=starts_of(4) + starts_of(3, cause="requested by an admin")),
    ),
    ("rebalance-storm", facts(group(), events=ends_of(5)), facts(group(), events=ends_of(4))),
    (
        "commits-rejected",
        facts(group(), events=[event("stable", NOW - 5, 1, commits_rejected=2)]),
        facts(group(), events=[event("stable", NOW - 2 * HOUR, 1, commits_rejected=2)]),
    ),
    (
        "rewound",
        facts(group(partitions=[partition(0, 50, 90)]), group(partitions=[partition(0, 40, 90)])),
        facts(
            group(partitions=[partition(0, 50, 90)]),
            group(partitions=[partition(0, 40, 90)]),
            group(partitions=[partition(0, 50, 90)]),
        ),
    ),
    ("lag-grows", facts(*reads(2_000)), facts(*reads(4_000))),
    (
        "retention-near",
        facts(lags(7), committed_s={0: 1}, unread_s={0: 0.9 * DAY / 1000}),
        facts(lags(7), committed_s={0: 1}, unread_s={0: 0.7 * DAY / 1000}),
    ),
    (
        "held-by-transaction",
        facts(lags(7), holds=[GroupHold("g", 7, HELD)]),
        facts(lags(7), holds=[GroupHold("g", 7, YOUNG)]),
    ),
    (
        "held-by-transaction",
        facts(lags(7), holds=[GroupHold("g", 7, HELD)]),
        facts(lags(7), holds=[GroupHold("h", 7, HELD)]),
    ),
    ("hot-partition", facts(lags(5_000, 10, 10, 10)), facts(lags(5_000, 4_000, 10, 10))),
    ("hot-partition", facts(lags(5_000, 10, 10, 10)), facts(lags(500, 1, 1, 1))),
    ("hot-partition", facts(lags(5_000, 10, 10, 10)), facts(lags(5_000, 10))),
    ("hot-partition", facts(lags(0, 0, 0), lags(900, 0, 0)), facts(lags(0, 0, 0), lags(900, 800, 900))),
    ("skewed-assignment", facts(owning(4, 2)), facts(owning(2, 1))),
    ("skewed-assignment", facts(owning(4, 2)), facts(owning(4, 2, state="PreparingRebalance"))),
    ("skewed-assignment", facts(owning(4, 2)), facts(owning(4, 0))),
    ("skewed-assignment", facts(owning(4, 2)), facts(subscribed_apart(owning(4, 2)))),
    ("skewed-assignment", facts(owning(4, 2)), facts(owning(4, 2, type="Share"))),
    ("mixed-protocols", facts(group(member_protocols=("v 1", "v 3"))), facts(group(member_protocols=("v 3",)))),
    (
        "missing-topic",
        facts(group(partitions=[failing("UNKNOWN_TOPIC_OR_PARTITION")])),
        facts(group(partitions=[failing("LEADER_NOT_AVAILABLE")])),
    ),
    ("idle-member", facts(owning(1, 0)), facts(owning(1, 1))),
    ("idle-member", facts(owning(1, 0)), facts(owning(0, 0, state="CompletingRebalance"))),
    ("nothing-committed", facts(lags(None, 0)), facts(lags(None, 0), starts=(100, 0, 0, 0))),
    ("nothing-committed", facts(lags(None, 0)), facts(lags(None, 0, state_since_ms=NOW - 5_000))),
    ("never-committed", facts(lags(None), lags(None), seconds=91), facts(lags(None, 0), lags(None, 0), seconds=91)),
    ("never-committed", facts(lags(None), lags(None), seconds=91), facts(lags(None), lags(None), seconds=60)),
    ("left-topic", facts(group(partitions=[LEFT], subscribed=BY)), facts(group(partitions=[LEFT], subscribed=None))),
    (
        "unused",
        facts(lags(0, **EMPTY, state_since_ms=NOW - 2 * DAY), committed_s={0: 2 * DAY / 1000}),
        facts(lags(0, **EMPTY, state_since_ms=NOW - 2 * DAY), committed_s={0: 60}),
    ),
    (
        "unused",
        facts(lags(0, **EMPTY), committed_s={0: 2 * DAY / 1000}),
        facts(lags(0, **EMPTY), committed_s={0: 3_600}),
    ),
]


@pytest.mark.parametrize(("rule", "sick", "healthy"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_a_rule_fires_and_stays_silent(rule: str, sick: GroupFacts, healthy: GroupFacts) -> None:
    assert rule in rules_of(sick)
    assert rule not in rules_of(healthy)


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == {rule.name for rule in RULES} == {row.rule for row in rule_rows()}


def test_rules_are_ordered_by_severity_and_so_are_findings() -> None:
    ranks = [WORST_FIRST.index(rule.severity) for rule in RULES]
    assert ranks == sorted(ranks)


def test_a_healthy_group_is_one_row_with_its_verdict() -> None:
    (row,) = diagnose(facts(lags(0)))
    assert (row.group, row.verdict, row.severity, row.rule, row.evidence) == ("g", "OK", Severity.OK, None, "no lag")


def test_without_proof_there_is_no_verdict_and_no_alarm() -> None:
    (row,) = diagnose(facts(lags(1_000_000)))
    assert (row.verdict, row.severity) == (None, Severity.UNKNOWN)
    assert row.evidence == "lag 1,000,000, whether it grows is not known yet"


def test_a_sample_with_progress_gives_a_verdict() -> None:
    progress = lags(9), group(members=[member("c-1", [0])], partitions=[partition(0, 105, 109)])
    (row,) = diagnose(facts(*progress, seconds=30))
    assert (row.verdict, row.severity) == ("OK", Severity.OK)
    (row,) = diagnose(facts(*progress, seconds=5))
    assert (row.verdict, row.evidence) == (
        None,
        "judging 5/30 s: lag 4, last commit 0.0 s ago; whether it grows is not known yet",
    )


def test_a_commit_without_members_may_be_a_reset_and_proves_nothing() -> None:
    simple = lags(7, **EMPTY)
    for course in ([simple], [simple, simple]):
        (row,) = diagnose(facts(*course, committed_s={0: 3}, seconds=2))
        assert (row.verdict, row.severity) == (None, Severity.UNKNOWN)
        assert (row.evidence or "").endswith("lag 7, last commit 3.0 s ago")


def test_ok_does_not_stand_beside_an_error() -> None:
    found = facts(lags(7), unread_s={0: 1}, starts=(101, 0, 0, 0))
    assert found.verdict.health is Health.OK
    assert {(row.rule, row.verdict) for row in diagnose(found)} == {("records-lost", None)}


def test_rules_that_cannot_look_say_so() -> None:
    found = facts(lags(0), events=None, missing={"retention settings": "not allowed"})
    rows = {row.rule: row for row in diagnose(found, verbose=True)}
    assert rows["rebalance-storm"].severity is Severity.UNKNOWN
    assert rows["rebalance-storm"].evidence == "no rebalances: none here"
    assert rows["retention-near"].evidence == "no retention settings: not allowed"
    assert rows["rewound"].evidence == "no samples: one snapshot only; --sample takes more"
    assert rows["past-end"].severity is Severity.OK


def test_many_partitions_with_one_trouble_are_a_few_rows() -> None:
    described = group(partitions=[partition(n, 5, 4) for n in range(1_000)])
    rows = [row for row in diagnose(facts(described)) if row.rule == "past-end"]
    assert (len(rows), rows[-1].evidence) == (5, "and 996 more likewise")


def test_two_groups_on_one_partition_are_not_mixed_up() -> None:
    one = lags(7, committed_at={KEYS[0]: NOW - 200_000})
    two = replace(one, group="h", committed_at={KEYS[0]: NOW - 1_000}, clock_ms=NOW)
    lost = LagFacts(NOW, log_starts={KEYS[0]: 100}, record_times={("orders", 0, 100): NOW - 500_000})
    found = list(facts_of([Sample(0, NOW, {"g": one, "h": two})], lost, [], [], {}))
    assert [(each.group.group, str(each.verdict.health)) for each in found] == [("g", "STALLED"), ("h", "None")]


@given(
    st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=4),
    st.sampled_from(["Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Reconciling"]),
    st.dictionaries(st.integers(0, 3), st.floats(-1e6, 1e9)),
    st.dictionaries(st.integers(0, 3), st.floats(-1e6, 1e9)),
    st.integers(1, 3),
)
def test_any_facts_give_findings_with_evidence(
    numbers: list[int | None],
    state: str,
    committed_s: dict[int, float],
    unread_s: dict[int, float],
    samples: int,
) -> None:
    described = lags(*numbers, state=state, **({"members": ()} if state == "Empty" else {}))
    rows = list(diagnose(facts(*[described] * samples, committed_s=committed_s, unread_s=unread_s), verbose=True))
    assert all(row.evidence for row in rows)
    if all(number == 0 for number in numbers) and state in ("Stable", "Empty"):
        assert not any(row.severity in (Severity.ERROR, Severity.WARNING) for row in rows)
