"""The verbs of `kgctl journal`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

JOURNAL = Noun(
    "Show the changes that were made from this machine.",
    {
        "list": Entry("kgctl.commands.journal.listing:list_changes", "List changes, the newest last."),
        "show": Entry("kgctl.commands.journal.show:show", "Show what one change did, and what was there before."),
    },
    default="list",
)
