"""What the requests of the newer group protocols (KIP-848, KIP-932) have in common: the guards of heartbeats and descriptions.

Kafka checks whether a protocol is enabled before it checks ACLs; so guards pass everything if it is not, and handlers refuse it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from broker.cores.groups.descriptions import undescribed
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.server.guards import PASS, Acl, Guard, Narrowed, Refused, Verdict, on_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.exchange import Answerable
    from broker.server.resources import Resources

    Check: TypeAlias = "Callable[[Any, Access, Answerable, Resources], Verdict]"

# Groups per slice of a description. A group may have a thousand members.
SLICE = 10
READ_GROUP = Acl(Operation.READ, ResourceType.GROUP)
DESCRIBE_GROUP = Acl(Operation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_TOPIC = Acl(Operation.DESCRIBE, ResourceType.TOPIC)
GROUP_DENIED, TOPIC_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def itself(name: Any) -> str:
    return str(name)


def if_enabled(is_enabled: Callable[[Resources], bool], check: Check, *acls: Acl) -> Guard:
    """The guard of a request to groups of a protocol that may be disabled."""

    def checked(request: Any, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        return check(request, access, exchange, resources) if is_enabled(resources) else PASS

    return Guard(checked, *acls)


def heartbeat_check(response: Callable[..., Message]) -> Check:
    """A member may read the group, and describe the topics that it names."""

    def check(request: Any, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        if not access.allows(*READ_GROUP, request.group_id):
            return Refused(response(error_code=GROUP_DENIED))
        visible = access.of(*DESCRIBE_TOPIC)
        if not all(visible[topic] for topic in request.subscribed_topic_names or ()):
            return Refused(response(error_code=TOPIC_DENIED))
        return PASS

    return check


def describe_check(row: Callable[..., Any], assignments: Callable[[Any], Iterable[Any]]) -> Check:
    """As in Kafka, a group is described only to who may describe all the topics in the assignments of its members."""
    of_groups = on_each(
        DESCRIBE_GROUP, "group_ids", itself, "groups", lambda group_id: undescribed(row, group_id, GROUP_DENIED)
    )

    def check(request: Any, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        verdict = of_groups.check(request, access, exchange, resources)
        visible = access.of(*DESCRIBE_TOPIC)

        def complete(response: Any) -> Message:
            for place, group in enumerate(response.groups):
                if group.error_code:
                    continue
                if request.include_authorized_operations:
                    group.authorized_operations = access.operations_of(ResourceType.GROUP, group.group_id)
                parts = (part for member in group.members for part in assignments(member))
                topics = {assigned.topic_name for part in parts for assigned in part.topic_partitions}
                if not all(visible[topic] for topic in topics):
                    response.groups[place] = undescribed(row, group.group_id, TOPIC_DENIED, HIDDEN_TOPICS)
            found: Message = verdict.complete(response) if isinstance(verdict, Narrowed) else response
            return found

        return verdict if isinstance(verdict, Refused) else Narrowed(request, complete)

    return check
