"""Telemetry of clients: connects the core with the configs of client metrics, connections and clocks."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.cores.patterns import InvalidPattern, Pattern
from broker.cores.telemetry import DEFAULT_INTERVAL_MS, Client, Subscription, Telemetry
from broker.protocol import uuids
from broker.server.own_config_kinds import CLIENT_METRICS
from broker.server.own_configs import listed

if TYPE_CHECKING:
    from broker.server.exchange import Origin
    from broker.server.own_configs import OwnConfigs

logger = logging.getLogger("broker.server")


class SubscribedTelemetry:
    """The core, with the subscriptions that are configured now."""

    def __init__(self, max_bytes: int, configs: OwnConfigs) -> None:
        self._configs = configs
        self._core = Telemetry(max_bytes, lambda: uuids.chosen(os.urandom))
        self._changes = -1

    @property
    def core(self) -> Telemetry:
        """Ask for it in each turn: the subscriptions may have changed."""
        if self._changes != self._configs.changes:
            self._changes = self._configs.changes
            self._core.subscribe(
                subscription
                for name in self._configs.names(CLIENT_METRICS)
                if (subscription := _subscription(name, self._configs.of(CLIENT_METRICS, name))) is not None
            )
        return self._core


def client_of(connection: Origin) -> Client:
    session = connection.session
    client = session.client
    return Client(
        client.number,
        client.client_id or "",
        client.software_name,
        client.software_version,
        session.host,
        client.port,
    )


def _subscription(name: str, configs: Mapping[str, str]) -> Subscription | None:
    match: dict[str, Pattern] = {}
    try:
        for part in listed(configs.get("match", "")):
            key, _, expression = part.partition("=")
            match[key.strip()] = Pattern(expression.strip())
    except InvalidPattern as error:
        # An earlier version accepted it.
        logger.warning("the subscription %s to client metrics has no effect: %s", name, error)
        return None
    return Subscription(listed(configs.get("metrics", "")), int(configs.get("interval.ms", DEFAULT_INTERVAL_MS)), match)
