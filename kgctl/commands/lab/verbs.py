"""The verbs of `kgctl lab`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

LAB = Noun(
    "Simulate how consumer groups rebalance.",
    {
        "designs": Entry("kgctl.commands.lab.designs:designs", "Compare Kafka's designs of rebalancing, old and new."),
    },
)
