"""A local, single-node broker that speaks the Kafka wire protocol.

    broker.server        the only room that awaits: sockets, wiring, handlers for topics and records
    broker.api           group requests over a view of the topics and the coordinator      pure
    broker.storage           segments and SQLite   |   broker.cores.groups   consumer groups    (the latter pure)
    broker.timers        keyed deadlines on an explicit clock                              pure
    broker.protocol      bytes <-> messages, record batches, errors                        pure

Imports go down only. Beside the house: `broker.config.config` (options), `broker.__main__` (`python -m broker`),
`broker.local` (LocalBroker, which starts one in a child process) and `broker.pytest_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.local import BrokerFailed as BrokerFailed
    from broker.local import LocalBroker as LocalBroker


def __getattr__(name: str) -> Any:
    if name in ("LocalBroker", "BrokerFailed"):
        import broker.local

        return getattr(broker.local, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
