"""The verbs of `kgctl bench`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

BENCH = Noun(
    "Measure a cluster with records and members of a group.",
    {
        "produce": Entry("kgctl.commands.bench.produce:produce", "Measure how fast a cluster takes records."),
        "consume": Entry("kgctl.commands.bench.consume:consume", "Measure how fast records of a cluster arrive."),
        "members": Entry("kgctl.commands.bench.members:members", "Measure how a group with many members rebalances."),
    },
)
