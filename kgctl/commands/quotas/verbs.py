"""The verbs of `kgctl quotas`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

QUOTAS = Noun(
    "List, set and remove client quotas.",
    {
        "list": Entry(
            "kgctl.commands.quotas.listing:list_quotas", "List quotas of users, client ids and IP addresses."
        ),
        "set": Entry("kgctl.commands.quotas.set:set_quotas", "Set quotas of a user, a client id or an IP address."),
        "remove": Entry(
            "kgctl.commands.quotas.remove:remove", "Remove quotas of a user, a client id or an IP address."
        ),
    },
)
