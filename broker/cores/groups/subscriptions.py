"""How large the subscription of a member may be, in groups of the newer protocols."""

from __future__ import annotations

from collections.abc import Collection

from broker.cores.groups.refusals import Refused
from broker.protocol.errors import ErrorCode

# Kafka refuses a larger record of `__consumer_offsets`: its max.message.bytes.
MOST_BYTES = 1 << 20
_LENGTH_BYTES = 2


def check_size(topics: Collection[str]) -> None:
    """Raises Refused if the subscription is too large to be stored."""
    if sum(map(len, topics)) + _LENGTH_BYTES * len(topics) > MOST_BYTES:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The subscription is too large to be stored.")
