"""Short names of the members of a group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from kgctl.model.groups import MemberRow
from kgctl.model.history import MemberClient
from kgctl.tui import cells

_UUID = re.compile(r"-?([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)


def short_id(member_id: str) -> str:
    """A member id without most of the UUID at its end, which brokers and clients append."""
    return cells.name(_UUID.sub(lambda found: f"-{found[1]}", member_id).lstrip("-"))


def names(members: Sequence[MemberRow]) -> dict[str, str]:
    """A name per member id: the instance id or client id if it is unique in the group, else the shortened member id."""
    found = [member.group_instance_id or member.client_id or "" for member in members]
    times = Counter(found)
    return {
        member.consumer_id or "": cells.name(name) if name and times[name] == 1 else short_id(member.consumer_id or "")
        for member, name in zip(members, found, strict=True)
    }


def former_names(clients: Mapping[str, MemberClient]) -> dict[str, str]:
    """Names of members that joined or left: client ids, as ids of the newer protocols say nothing."""
    return {member_id: cells.name(client.client_id) for member_id, client in clients.items() if client.client_id}


def name_of(member_id: str, known: Mapping[str, str]) -> str:
    """The name of a current member, or of a former one, which is no longer described: its client id."""
    return known.get(member_id) or cells.name(_UUID.sub("", member_id) or short_id(member_id))


def listed(found: Sequence[str], most: int = 3) -> str:
    more = len(found) - most
    return ", ".join(found[:most]) + (f" and {more:,} more" if more > 0 else "")
