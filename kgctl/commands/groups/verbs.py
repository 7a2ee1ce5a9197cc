"""The verbs of `kgctl groups`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

GROUPS = Noun(
    "List, examine and change consumer groups.",
    {
        "list": Entry(
            "kgctl.commands.groups.listing:list_groups",
            "List groups with members, lag and verdict.",
        ),
        "describe": Entry(
            "kgctl.commands.groups.describe:describe", "Show offsets and lag, members, state, or a summary."
        ),
        "lag": Entry("kgctl.commands.groups.lag:lag", "Show lag in records and in time, rates, time to drain."),
        "peek": Entry("kgctl.commands.groups.peek:peek", "Show the records around the committed offsets of a group."),
        "doctor": Entry("kgctl.commands.groups.doctor:doctor", "Find what is wrong with groups."),
        "history": Entry("kgctl.commands.groups.history:history", "Show the rebalances of a group."),
        "wait": Entry("kgctl.commands.groups.wait:wait", "Wait until a condition about a group holds."),
        "assert": Entry("kgctl.commands.groups.assertion:assert_", "Check a condition about groups, without waiting."),
        "snapshot": Entry("kgctl.commands.groups.snapshot:snapshot", "Show or save the committed offsets of groups."),
        "diff": Entry("kgctl.commands.groups.diff:diff", "Compare a snapshot with another one, or with the cluster."),
        "reset-offsets": Entry(
            "kgctl.commands.groups.reset_offsets:reset_offsets",
            "Move committed offsets of groups that have no members.",
        ),
        "restore": Entry("kgctl.commands.groups.restore:restore", "Give groups the offsets of a snapshot."),
        "clone": Entry("kgctl.commands.groups.clone:clone", "Give a group the offsets of another group."),
        "rebalance": Entry("kgctl.commands.groups.rebalance:rebalance", "Trigger a rebalance of groups."),
        "remove-members": Entry(
            "kgctl.commands.groups.remove_members:remove_members",
            "Remove members of groups, which triggers a rebalance.",
        ),
        "delete-offsets": Entry(
            "kgctl.commands.groups.delete_offsets:delete_offsets", "Delete committed offsets of groups."
        ),
        "delete": Entry(
            "kgctl.commands.groups.delete:delete", "Delete groups that have no members, and their offsets."
        ),
    },
)
