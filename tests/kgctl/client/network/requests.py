"""Requests of a client under test, and a participant that notes what happens to them."""

from __future__ import annotations

from typing import Any

from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgctl.client.net.errors import KgctlError
from kgctl.client.network.outgoing import Outgoing
from tests.harness.client_script import Script


def heartbeat(answers: list[Any], timeout_ms: int = 30_000) -> Outgoing[HeartbeatResponse]:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return Outgoing(request, HeartbeatResponse, lambda answer, _: answers.append(answer), timeout_ms)


def connected(script: Script, *node_ids: int) -> Script:
    """The script with connections to these nodes that are ready."""
    script.turn()
    for node_id in node_ids:
        script.network.is_ready(node_id, script.now_ms)
    script.turn()
    for node_id in node_ids:
        assert script.network.is_ready(node_id, script.now_ms)
    return script


def send(script: Script, node_id: int = 1, timeout_ms: int = 30_000) -> list[Any]:
    """Send a Heartbeat; the list gets its answer or error."""
    answers: list[Any] = []
    script.network.send(node_id, heartbeat(answers, timeout_ms), script.now_ms)
    script.turn()
    return answers


def send_any(script: Script, timeout_ms: int = 30_000) -> list[Any]:
    """Send a Heartbeat to any node."""
    answers: list[Any] = []
    script.network.send_any(heartbeat(answers, timeout_ms), script.now_ms)
    script.turn()
    return answers


def error_in(answers: list[Any]) -> KgctlError:
    (error,) = answers
    assert isinstance(error, KgctlError)
    return error
