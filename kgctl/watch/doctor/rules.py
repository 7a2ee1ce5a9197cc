"""All rules, the worst first, and the diagnosis of a group."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.model.findings import Finding, RuleRow, Severity
from kgctl.model.health import Health
from kgctl.watch.doctor import members, offsets
from kgctl.watch.doctor.facts import HEARTBEATS, HISTORY, HOLDS, LOG_STARTS, REBALANCES, RETENTION, SAMPLES, GroupFacts
from kgctl.watch.doctor.rule import Rule

# The most rows of one rule about one group.
MOST_EVIDENCE = 5
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

RULES = (
    Rule(
        "records-lost",
        ERROR,
        "committed offsets below the start of the log",
        "the consumers resume where auto.offset.reset says; raise retention, or reset the offsets on purpose",
        offsets.lost,
        (LOG_STARTS,),
    ),
    Rule(
        "past-end",
        ERROR,
        "committed offsets past the end of the log: a topic that was recreated or truncated",
        "reset the offsets of these partitions, or the consumers resume where auto.offset.reset says",
        offsets.past_end,
    ),
    Rule(
        "retention-loses",
        ERROR,
        "unread records that retention deletes before they are read",
        "raise retention.ms or retention.bytes of the topic now, then add consumers",
        offsets.retention_loses,
        (RETENTION,),
    ),
    Rule(
        "stopped",
        ERROR,
        "records wait, and there are no members and no commits (Burrow: STOP)",
        "start the consumers, or delete the group",
        offsets.stopped,
    ),
    Rule(
        "stalled",
        ERROR,
        "records wait, and the offset of a partition that a member reads does not advance (Burrow: STALL)",
        "look at the log of the owner; kgctl groups remove-members gives its partitions to others, except in share groups",
        offsets.stalled,
    ),
    Rule(
        "rebalance-stuck",
        ERROR,
        "a rebalance that takes longer than a minute, or than the rebalance timeout",
        "restart or remove the members that do not rejoin, or do not give up partitions",
        members.stuck_rebalance,
    ),
    Rule(
        "unassigned-partition",
        ERROR,
        "partitions of subscribed topics without an owner in a Stable group",
        "trigger a rebalance with kgctl groups rebalance",
        offsets.unassigned,
    ),
    Rule(
        "unavailable-partition",
        ERROR,
        "partitions whose leader does not answer",
        "see kgctl cluster doctor",
        offsets.unavailable,
    ),
    Rule(
        "never-committed",
        WARNING,
        "members own partitions with records, and the group has no committed offset at all",
        "make the consumers commit; without commits, a restart begins where auto.offset.reset says",
        offsets.never_committed,
    ),
    Rule(
        "silent-member",
        WARNING,
        "members that are silent: no heartbeat for most of their session timeout, at which they are evicted",
        "check the process; the group rebalances when the session times out",
        members.silent_member,
        (HEARTBEATS,),
    ),
    Rule(
        "ghost-static-member",
        WARNING,
        "static members that are away, and keep their partitions",
        "start the instance, or remove it with kgctl groups remove-members --instance",
        members.ghost,
        (HEARTBEATS,),
    ),
    Rule(
        "rebalance-storm",
        WARNING,
        f"{members.STORM} rebalances or more in ten minutes",
        "use static members, and a cooperative assignor in classic groups; raise the session timeout or max.poll.interval.ms",
        members.storm,
        (REBALANCES,),
    ),
    Rule(
        "commits-rejected",
        WARNING,
        "commits of the last hour that the coordinator refused: members that were too slow, or fenced",
        "raise max.poll.interval.ms, or process fewer records per poll",
        members.rejected_commits,
        (HISTORY,),
    ),
    Rule(
        "rewound",
        WARNING,
        "committed offsets that went back (Burrow: REWIND)",
        "intended after a reset; else two groups of consumers share this group id",
        offsets.rewound,
        (SAMPLES,),
    ),
    Rule(
        "lag-grows",
        WARNING,
        "the group reads more slowly than records arrive (Burrow: WARN)",
        "add members, up to one per partition except in share groups, or make them faster",
        offsets.lagging,
    ),
    Rule(
        "retention-near",
        WARNING,
        "unread records with less than a fifth of their retention time left",
        "add consumers, or raise retention.ms",
        offsets.retention_near,
        (RETENTION,),
    ),
    Rule(
        "held-by-transaction",
        WARNING,
        f"partitions that an open transaction has held for more than {offsets.HOLD_S:.0f} s from read_committed readers",
        "see kgctl transactions find-hanging",
        offsets.held,
        (HOLDS,),
    ),
    Rule(
        "hot-partition",
        WARNING,
        "one partition with most of the lag, or of the new records",
        "check the keys of the producers; more members do not help one partition, except in share groups",
        offsets.hot_partition,
    ),
    Rule(
        "skewed-assignment",
        WARNING,
        "a member that owns twice as many partitions as another",
        "prefer the sticky or round-robin assignor to range; rebalance",
        members.skew,
    ),
    Rule(
        "missing-topic",
        WARNING,
        "committed offsets of topics that do not exist",
        "remove them with kgctl groups delete-offsets",
        offsets.missing_topic,
    ),
    Rule(
        "mixed-protocols",
        INFO,
        "members of different protocol versions or group types, as during an upgrade",
        "finish the upgrade: all members on one version and one assignor",
        members.mixed,
    ),
    Rule(
        "idle-member",
        INFO,
        "members without partitions",
        "stop them, or add partitions; intended as stand-bys. In a share group, check the topics to which they subscribe",
        members.idle_member,
    ),
    Rule(
        "nothing-committed",
        INFO,
        "some assigned partitions with records and no committed offset, while others have one",
        "check that the consumers commit, or that something is to be read",
        offsets.nothing_committed,
    ),
    Rule(
        "left-topic",
        INFO,
        "committed offsets of topics that no member subscribes to any more: their lag grows",
        "remove them with kgctl groups delete-offsets",
        offsets.left_topic,
    ),
    Rule(
        "unused",
        INFO,
        "a group that has had no members and no commits for a day (--unused-after)",
        "delete the group if its offsets are not needed",
        offsets.unused,
    ),
)


def rule_rows() -> list[RuleRow]:
    return [RuleRow(rule.name, rule.severity, rule.looks_at, rule.advice) for rule in RULES]


def _shortened(evidence: list[str]) -> list[str]:
    """A group may have thousands of partitions with the same trouble."""
    if len(evidence) <= MOST_EVIDENCE:
        return evidence
    return [*evidence[: MOST_EVIDENCE - 1], f"and {len(evidence) - MOST_EVIDENCE + 1:,} more likewise"]


def diagnose(facts: GroupFacts, *, verbose: bool = False) -> Iterator[Finding]:
    """The findings about a group, the worst first; one row without a rule if there are none.

    `verbose` adds a row for each rule that found nothing or could not look.
    """
    found: list[tuple[Rule, str]] = []
    others: list[tuple[Rule, Severity, str]] = []
    for rule in RULES:
        why = next((f"no {kind}: {facts.missing[kind]}" for kind in rule.needs if kind in facts.missing), None)
        evidence = [] if why else list(rule.check(facts))
        found += ((rule, sentence) for sentence in _shortened(evidence))
        if not evidence:
            others.append((rule, Severity.UNKNOWN if why else Severity.OK, why or rule.looks_at))
    word = facts.verdict.health
    if word is Health.OK and any(rule.severity is ERROR for rule, _ in found):
        word = None
    verdict = None if word is None else str(word)
    for rule, sentence in found:
        yield Finding(facts.group.group, verdict, rule.severity, rule.name, sentence, rule.advice)
    if not found:
        severity = Severity.OK if word in (Health.OK, Health.REBALANCING) else Severity.UNKNOWN
        yield Finding(facts.group.group, verdict, severity, None, facts.verdict.reason)
    if verbose:
        yield from (Finding(facts.group.group, verdict, severity, rule.name, why) for rule, severity, why in others)
