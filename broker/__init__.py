"""A local, single-node broker that speaks the Kafka wire protocol.

    broker.server      listeners, connections, routing, flushing; the only package that awaits
    broker.config      options and listener addresses
    broker.storage     everything on disk: segment files and SQLite
    broker.cores       pure state machines; `cores.groups` is the group coordinator
    broker.timers      keyed deadlines on an explicit clock (pure)
    broker.protocol    bytes <-> messages, record batches, error codes (pure)

Imports go down only. Entry points: `broker.__main__` (`python -m broker`), `broker.local` (LocalBroker, a broker in a
child process) and `broker.pytest_plugin`.
"""

from __future__ import annotations

# Without typing, which takes longer to load than all else that `kgctl --help` needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from broker.local import BrokerFailed as BrokerFailed
    from broker.local import LocalBroker as LocalBroker


def __getattr__(name: str) -> Any:
    if name in ("LocalBroker", "BrokerFailed"):
        import broker.local

        return getattr(broker.local, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
