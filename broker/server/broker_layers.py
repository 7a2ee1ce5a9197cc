"""The dynamic options of the broker in Kafka's two layers: those of all brokers, and above them those of this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.server.resources import Resources

BROKER = 4


class BrokerLayers:
    """The log has the effective values. Those of this broker, and those of all brokers that they hide, are kept beside it."""

    def __init__(self, resources: Resources) -> None:
        self._log = resources.log
        self._own_configs = resources.own_configs()
        self._name = str(resources.node_id)

    @property
    def of_this(self) -> Mapping[str, str]:
        return self._own_configs.of(BROKER, self._name)

    @property
    def of_all(self) -> Mapping[str, str]:
        own = self.of_this
        visible = {name: value for name, value in self._log.broker_configs.items() if name not in own}
        return {**visible, **self._own_configs.of(BROKER, "")}

    def of(self, name: str) -> Mapping[str, str]:
        """The layer of a resource: "" means all brokers."""
        return self.of_this if name else self.of_all

    def alter(self, name: str, changes: Mapping[str, str | None]) -> None:
        """None removes an option from the layer."""
        own, of_all = dict(self.of_this), dict(self.of_all)
        layer = own if name else of_all
        for option, value in changes.items():
            layer.pop(option, None)
            if value is not None:
                layer[option] = value
        hidden = {option: value for option, value in of_all.items() if option in own}
        before, after = self._log.broker_configs, {**of_all, **own}
        self._log.alter_broker_configs({option: after.get(option) for option in (*before, *after)})
        self._own_configs.replace(BROKER, self._name, own)
        self._own_configs.replace(BROKER, "", hidden)
