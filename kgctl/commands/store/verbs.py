"""The verbs of `kgctl store`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

STORE = Noun(
    "Read a broker's data directory offline, whether the broker runs or not.",
    {
        "info": Entry("kgctl.commands.store.overview:info", "Show what a data directory holds."),
        "groups": Entry("kgctl.commands.store.groups:groups", "Show groups of all types, or their members."),
        "offsets": Entry("kgctl.commands.store.groups:offsets", "Show committed offsets with lag."),
        "query": Entry("kgctl.commands.store.query:query", "Run SQL over tables of a data directory."),
        "verify": Entry("kgctl.commands.store.verify:verify", "Check every checksum and the hash chain."),
        "export": Entry("kgctl.commands.store.export:export", "Write records and tables to a file."),
    },
)
