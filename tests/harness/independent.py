"""kafka-python's partitioner and assignors, imported without the deprecation warnings of newer Pythons."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.partitioner.default import murmur2

__all__ = ["RangePartitionAssignor", "RoundRobinPartitionAssignor", "murmur2"]
