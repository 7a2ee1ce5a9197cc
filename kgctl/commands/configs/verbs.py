"""The verbs of `kgctl configs`."""

from __future__ import annotations

from kgctl.commands.shared.loading import Entry, Noun

CONFIGS = Noun(
    "Show, set and unset configs of topics, brokers, groups.",
    {
        "describe": Entry("kgctl.commands.configs.describe:describe", "Show configs, and where each value comes from."),
        "set": Entry("kgctl.commands.configs.set:set_configs", "Set configs of a resource."),
        "unset": Entry("kgctl.commands.configs.unset:unset", "Unset configs of a resource: use their defaults."),
    },
)
