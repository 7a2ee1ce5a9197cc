"""The verbs of `kgctl clients`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

CLIENTS = Noun(
    "List the clients that are connected to kgctl's broker.",
    {
        "list": Entry(
            "kgctl.commands.clients.listing:list_clients", "List the connections to the broker, oldest first."
        ),
        "describe": Entry("kgctl.commands.clients.describe:describe", "Show the metrics that clients pushed last."),
    },
)
