"""Rows of `kgctl lab`."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabDesignRow:
    """What one design made of the same failures, summed over the seeds; times in seconds.

    `messages` are requests, answers and notifications, without heartbeats. `double_owner_s`: for each partition and each owner beyond
    the first, the time in which the commits of both were accepted; `fenced_s`: the time of owners whose commits were
    refused; `unowned_s`: the time of partitions without an owner whose commits were accepted. `stable_s` is the mean
    time from a failure, or its repair, to the last change of an owner, `slowest_s` the longest.
    """

    design: str
    seeds: int
    members: int
    partitions: int
    failures: int
    messages: int
    heartbeats: int
    notifications: int
    attempts: int
    failed_attempts: int
    double_owner_s: float
    fenced_s: float
    unowned_s: float
    stable_s: float
    slowest_s: float
    unstable: int
