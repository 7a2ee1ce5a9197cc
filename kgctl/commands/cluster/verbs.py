"""The verbs of `kgctl cluster`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

CLUSTER = Noun(
    "Examine the brokers of a cluster.",
    {
        "doctor": Entry(
            "kgctl.commands.cluster.doctor:doctor",
            "Check brokers, partitions, internal topics, clocks and permissions.",
        ),
    },
)
