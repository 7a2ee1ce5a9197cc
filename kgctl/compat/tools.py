"""The tools by name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from kgctl.compat.options import UsageError
from kgctl.compat.tool import USAGE, Ended, Host

TOOLS = {
    "kafka-consumer-groups": "kgctl.compat.consumer_groups.command",
    "kafka-acls": "kgctl.compat.acls.command",
    "kafka-configs": "kgctl.compat.configs.command",
    "kafka-features": "kgctl.compat.features",
    "kafka-topics": "kgctl.compat.topics.command",
    "kafka-transactions": "kgctl.compat.transactions.command",
}


def run(name: str, arguments: Sequence[str], host: Host) -> Ended:
    """Run a tool. Raises a KgctlError where kgctl itself refuses something."""
    module = importlib.import_module(TOOLS[name])
    try:
        ended: Ended = module.run(arguments, host)
    except UsageError as error:
        host.err(f"{error}\n")
        host.err(f"See docs/compat.md for {name} in kgctl, and {name}.sh --help for its options.\n")
        return Ended(USAGE, USAGE)
    return ended
