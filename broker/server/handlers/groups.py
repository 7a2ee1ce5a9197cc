"""Requests about groups: the coordinator answers them, at once or later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources


def group_request(request: Message, exchange: Exchange, resources: Resources) -> None:
    resources.runner.submit(request, exchange)
