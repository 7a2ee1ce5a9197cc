"""The verbs of `kgctl cluster`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

CLUSTER = Noun(
    "Describe and examine the brokers of a cluster, and set its features.",
    {
        "describe": Entry(
            "kgctl.commands.cluster.describe:describe", "Show brokers with addresses, racks and log directories."
        ),
        "set-feature": Entry("kgctl.commands.cluster.set_feature:set_feature", "Set the levels of features."),
        "doctor": Entry(
            "kgctl.commands.cluster.doctor:doctor",
            "Check brokers, partitions, internal topics.",
        ),
    },
)
