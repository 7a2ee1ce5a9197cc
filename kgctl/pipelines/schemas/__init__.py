"""The tables: their columns with meanings, and the internal topics that they come from. Does not import Spark."""

from __future__ import annotations

from kgctl.pipelines.schemas.group_facts import (
    ANOMALIES,
    CHURN,
    COMMIT_RATES,
    EXPECTED,
    MEMBER_SKEW,
    PARTITION_SKEW,
    SESSIONS,
)
from kgctl.pipelines.schemas.groups import (
    COMMITS,
    GROUP_EVENTS,
    HEALTH,
    LAG,
    LOG_ENDS,
    MEMBERSHIPS,
    QUARANTINE,
    REBALANCES,
)
from kgctl.pipelines.schemas.topics import (
    COMPACTION,
    COMPACTION_KEYS,
    HOLDS,
    LOG_AGES,
    PRODUCERS,
    RETENTION,
    TRANSACTIONS,
)

TABLES = {
    table.name: table
    for table in (
        *(COMMITS, GROUP_EVENTS, QUARANTINE, LOG_ENDS, LAG, HEALTH, REBALANCES, MEMBERSHIPS),
        *(COMMIT_RATES, SESSIONS, CHURN, MEMBER_SKEW, PARTITION_SKEW, EXPECTED, ANOMALIES),
        *(RETENTION, LOG_AGES, COMPACTION, COMPACTION_KEYS, TRANSACTIONS, PRODUCERS, HOLDS),
    )
}
