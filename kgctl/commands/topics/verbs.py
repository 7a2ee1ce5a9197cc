"""The verbs of `kgctl topics`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

TOPICS = Noun(
    "List, describe, create, alter and delete topics.",
    {
        "list": Entry(
            "kgctl.commands.topics.listing:list_topics", "List topics with their partition and replica counts."
        ),
        "describe": Entry(
            "kgctl.commands.topics.describe:describe", "Show partitions of topics: leader, replicas, offsets."
        ),
        "create": Entry("kgctl.commands.topics.create:create", "Create topics."),
        "alter": Entry("kgctl.commands.topics.alter:alter", "Add partitions to topics, set and unset their configs."),
        "delete": Entry("kgctl.commands.topics.delete:delete", "Delete topics with all their records."),
        "delete-records": Entry(
            "kgctl.commands.topics.delete_records:delete_records", "Delete the oldest records of partitions."
        ),
    },
)
