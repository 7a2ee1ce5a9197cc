"""What assignors get about the members of a group, kept from one target assignment to the next: mostly, only one member has changed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TypeAlias

from broker.cores.groups.assignors.interface import MemberSpec
from broker.cores.groups.assignors.java_order import MembersOrder, set_order
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.records.consumer import ResolvedRegex, Subscription, Target
from broker.cores.groups.topics import TopicCatalog

# The names and the regular expression of a subscription, and its topics: their ids, and how many do not exist.
_Terms: TypeAlias = "tuple[frozenset[str], str]"
_Subscribed: TypeAlias = "tuple[list[bytes], int]"
# Former subscriptions are kept until they are this many more than members.
_FORMER = 64


class Roster:
    """The specs of the members in the order of assignors. A group reports here what changes."""

    __slots__ = ("_order", "_specs", "_subscribed", "_version")

    def __init__(self) -> None:
        self._order = MembersOrder()
        self._specs: dict[str, MemberSpec] = {}
        self._subscribed: dict[_Terms, _Subscribed] = {}  # members with the same subscription share its topics
        self._version = -1  # of the topics

    def add(self, member_id: str) -> None:
        self._order.add(member_id)

    def remove(self, member_id: str) -> None:
        self._order.remove(member_id)
        self._specs.pop(member_id, None)

    def forget(self, member_id: str) -> None:
        """The subscription of a member or its target has changed."""
        self._specs.pop(member_id, None)

    def forget_topics(self) -> None:
        """Regular expressions match other topics."""
        self._specs.clear()
        self._subscribed.clear()

    def specs(
        self,
        members: Mapping[str, ConsumerMember],
        targets: Mapping[str, Target],
        regexes: Mapping[str, ResolvedRegex],
        catalog: TopicCatalog,
        *,
        updated: tuple[ConsumerMember, Target],
        replaced: str | None,
    ) -> dict[str, MemberSpec]:
        """Those of the members of the group, and of `updated`, which may be a new one. `replaced` leaves."""
        if self._version != catalog.version or len(self._subscribed) > len(members) + _FORMER:
            self._version = catalog.version
            self.forget_topics()
        kept, (joining, target) = self._specs, updated
        for member_id in members.keys() - kept.keys():
            found = self._topics(members[member_id].subscription, regexes, catalog)
            kept[member_id] = _spec(members[member_id], targets.get(member_id, {}), found)
        spec = _spec(joining, target, self._topics(joining.subscription, regexes, catalog))
        ordered = self._order.keys(None if joining.member_id in members else joining.member_id, replaced)
        specs = {member_id: kept.get(member_id, spec) for member_id in ordered}
        specs[joining.member_id] = spec
        return specs

    def _topics(
        self, subscription: Subscription, regexes: Mapping[str, ResolvedRegex], catalog: TopicCatalog
    ) -> _Subscribed:
        terms = subscription.topic_names, subscription.topic_regex
        found = self._subscribed.get(terms)
        if found is None:
            names = _names(subscription, regexes)
            ids = [topic_id for topic_id in map(catalog.topic_id, names) if topic_id is not None]
            found = self._subscribed[terms] = ids, len(names) - len(ids)
        return found


def _spec(member: ConsumerMember, target: Target, subscribed: _Subscribed) -> MemberSpec:
    subscription, (ids, missing) = member.subscription, subscribed
    return MemberSpec(ids, target, subscription.instance_id, subscription.rack_id, missing)


def _names(subscription: Subscription, regexes: Mapping[str, ResolvedRegex]) -> list[str]:
    """The topics of a subscription in the order of Java's sets; of names and a regular expression, the larger set comes first."""
    parts = [set_order(sorted(subscription.topic_names))]
    resolved = regexes.get(subscription.topic_regex) if subscription.topic_regex else None
    if resolved is not None:
        parts.append(set_order(sorted(resolved.topics)))
        if len(parts[0]) <= len(parts[1]):
            parts.reverse()
    return list(dict.fromkeys(chain.from_iterable(parts)))
