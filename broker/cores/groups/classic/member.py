"""A member of a classic group, and what it offers when it joins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from broker.cores.core import BrokenInvariant, Parked
from broker.cores.groups.records import MemberMetadata
from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple

Protocols: TypeAlias = "tuple[tuple[str, bytes], ...]"  # (name, metadata) in the member's order of preference


class Offer(NamedTuple):
    """What a member offers in its JoinGroup."""

    protocol_type: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int


@dataclass(slots=True)
class Member:
    """A member that has joined. `is_new` holds until its first join phase has completed."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    parked_join: Parked | None = None
    parked_sync: Parked | None = None
    is_new: bool = False
    session_renewed_ms: int = -1  # -1 if the session was not renewed since the broker started

    @classmethod
    def from_metadata(cls, stored: MemberMetadata, protocol: str | None) -> Member:
        """The member that a group's state record holds."""
        # Coordinators that knew no rebalance timeouts stored -1; the session timeout stands in.
        has_timeout = stored.rebalance_timeout_ms != -1
        return cls(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            stored.rebalance_timeout_ms if has_timeout else stored.session_timeout_ms,
            stored.session_timeout_ms,
            ((protocol or "", stored.subscription),),
            stored.assignment,
        )

    def to_metadata(self, protocol: str | None) -> MemberMetadata:
        return MemberMetadata(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            self.assignment,
        )

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise BrokenInvariant(f"member {self.member_id} does not support the protocol {protocol} of its group")

    def is_parked(self) -> bool:
        return self.parked_join is not None or self.parked_sync is not None

    def size(self) -> int:
        """The member's share of the group's state record without its assignment: bytes, and for names characters."""
        names = len(self.member_id) + len(self.group_instance_id or "") + len(self.client_id)
        return names + longest_metadata(self.protocols)


def longest_metadata(protocols: Protocols) -> int:
    """The most that the protocols can add to the state record; which of them is stored is open until the join phase ends."""
    return max((len(metadata) for _, metadata in protocols), default=0)


def distinct_protocols(offered: Iterable[tuple[str, bytes]]) -> Protocols:
    """The offered protocols, each name once: a name offered twice would count as the support of two members."""
    first: dict[str, bytes] = {}
    for name, metadata in offered:
        first.setdefault(name, metadata)
    return tuple(first.items())
