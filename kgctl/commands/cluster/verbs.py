"""The verbs of `kgctl cluster`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

CLUSTER = Noun(
    "Describe and examine the brokers of a cluster.",
    {
        "describe": Entry(
            "kgctl.commands.cluster.describe:describe", "Show brokers with addresses, racks and log directories."
        ),
        "doctor": Entry(
            "kgctl.commands.cluster.doctor:doctor",
            "Check brokers, partitions, internal topics.",
        ),
    },
)
