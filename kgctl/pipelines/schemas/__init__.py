"""The tables: their columns with meanings, and the internal topics that they come from. Does not import Spark."""

from __future__ import annotations

from kgctl.pipelines.schemas.groups import COMMITS, GROUP_EVENTS, HEALTH, LAG, LOG_ENDS, QUARANTINE, REBALANCES
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
        *(COMMITS, GROUP_EVENTS, QUARANTINE, LOG_ENDS, LAG, HEALTH, REBALANCES),
        *(RETENTION, LOG_AGES, COMPACTION, COMPACTION_KEYS, TRANSACTIONS, PRODUCERS, HOLDS),
    )
}
