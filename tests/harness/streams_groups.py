"""How a broker refuses the groups of Kafka Streams (KIP-1071): what it advertises, and what it does with their requests."""

from __future__ import annotations

import struct

from broker.protocol.messages.api_versions import ApiVersionsRequest
from tests.harness.wire_client import ConnectionClosed, WireClient

HEARTBEAT, DESCRIBE = 88, 89
# What a Kafka 4.1 does, whose feature streams.version is 0: it lists nothing, and closes the connections of both requests.
REFUSED: tuple[list[str], list[str]] = ([], ["closed", "closed"])


def _text(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


# Group, member, epochs, no instance and rack, rebalance timeout, no topology, no tasks, process, and nothing else.
_JOIN = (
    _text("g")
    + _text("m")
    + struct.pack(">iibbi", 0, 0, 0, 0, 60_000)
    + b"\xff"
    + b"\1\1\1"
    + _text("p")
    + b"\xff\0\0\0\0\0"
)
_DESCRIPTION = b"\2" + _text("g") + b"\0\0"


def refusal(address: tuple[str, int]) -> tuple[list[str], list[str]]:
    """What the broker advertises of streams groups, and what follows a heartbeat and a description."""
    with WireClient(address) as client:
        answer = client.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    advertised = [str(row.api_key) for row in answer.api_keys if row.api_key in (HEARTBEAT, DESCRIBE)]
    features = [*answer.supported_features, *answer.finalized_features]
    advertised += [row.name for row in features if row.name == "streams.version"]
    return advertised, [_outcome(address, HEARTBEAT, _JOIN), _outcome(address, DESCRIBE, _DESCRIPTION)]


def _outcome(address: tuple[str, int], key: int, body: bytes) -> str:
    message = struct.pack(">hhi", key, 0, 1) + struct.pack(">h", 1) + b"t" + b"\0" + body
    with WireClient(address) as client:
        client.send_bytes(struct.pack(">i", len(message)) + message)
        try:
            return client.receive_frame().hex()
        except ConnectionClosed:
            return "closed"
