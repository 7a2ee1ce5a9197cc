"""Runs the matrix on a cluster: who may send what, and how it is refused.

Each case is sent in every version by: a super user, a client that did not authenticate, a user without ACLs, a user who may
describe everything, a user with exactly the ACLs that the case needs, and for each of these a user who may do everything else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from broker.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.create_acls import CreateAclsRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.protocol.wire_types import Message
from tests.harness.authorization.cases import (
    CASES,
    CLUSTER,
    DOOMED,
    GROUP,
    MINE,
    NO_PRODUCER,
    THEIR_TRANSACTION,
    THEIRS,
    TOPIC,
    TRANSACTION,
    Case,
    Need,
    World,
)
from tests.harness.authorization.facts import facts
from tests.harness.requests import batch
from tests.harness.running import until
from tests.harness.wire_client import ConnectionClosed, WireClient

ADMIN = "User:admin"
ANONYMOUS = "User:ANONYMOUS"
UNKNOWN = "User:unknown"
DESCRIBER = "User:describer"
TYPES = (TOPIC, GROUP, CLUSTER, ResourceType.TRANSACTIONAL_ID)
TOPICS = (MINE, THEIRS, DOOMED)
# Requests that are sent before their answers are read.
AHEAD = 50

Answers = dict[str, dict[str, list[Any]]]
Connect = Callable[[str], WireClient]


class Acl(NamedTuple):
    """One ACL of a user."""

    permission: Permission
    operation: Operation
    kind: ResourceType
    name: str


def everything(operation: Operation) -> tuple[Acl, ...]:
    return tuple(Acl(Permission.ALLOW, operation, kind, CLUSTER_NAME if kind is CLUSTER else "*") for kind in TYPES)


class Sender(NamedTuple):
    """One sender of a case. `label` is the same on every cluster."""

    label: str
    principal: str


def senders_of(case: Case, users: Mapping[tuple[Acl, ...], str]) -> Iterator[Sender]:
    """From the weakest to the strongest, who may change what later ones find."""
    yield Sender("anonymous", ANONYMOUS)
    yield Sender("unknown", UNKNOWN)
    if case.only_refusals:
        yield Sender(f"all but {case.needs[0]}", users[all_but(case.needs[0])])
        return
    yield Sender("describer", DESCRIBER)
    for need in () if case.only_exact else case.needs:
        yield Sender(f"all but {need}", users[all_but(need)])
    yield Sender("only what it needs", users[only(case)])
    if not case.only_exact:
        yield Sender("admin", ADMIN)


def only(case: Case) -> tuple[Acl, ...]:
    return tuple(Acl(Permission.ALLOW, *need) for need in case.needs)


def all_but(need: Need) -> tuple[Acl, ...]:
    return (*everything(Operation.ALL), Acl(Permission.DENY, *need))


def users() -> dict[tuple[Acl, ...], str]:
    """The principals of the cases, by their ACLs."""
    made = {everything(Operation.DESCRIBE): DESCRIBER}
    for case in CASES:
        for acls in (*map(all_but, case.needs), only(case)):
            made.setdefault(acls, f"User:user-{len(made)}")
    return made


def names() -> list[str]:
    """All principals that must be able to authenticate."""
    return [ADMIN, UNKNOWN, *users().values()]


def prepare(admin: WireClient) -> World:
    """Create topics, offsets and ACLs."""
    topics = [CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
    created = admin.ask(CreateTopicsRequest(topics=topics))
    assert not any(row.error_code for row in created.topics), created
    # A Kafka answers before its broker knows them.
    metadata = until(lambda: _complete(admin.ask(MetadataRequest(topics=None), 12)))
    rows = [OffsetCommitRequest.Partition(partition_index=0, committed_offset=1, committed_metadata="")]
    for group in (MINE, THEIRS):
        committed = [OffsetCommitRequest.Topic(name=name, partitions=rows) for name in (MINE, THEIRS)]
        admin.ask(OffsetCommitRequest(group_id=group, member_id="", topics=committed), 8)
    # The first producer id takes a Kafka a moment.
    until(lambda: not admin.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)).error_code)
    for transactional_id in (TRANSACTION, THEIR_TRANSACTION):
        _begin_transaction(admin, transactional_id)
    creations = [
        CreateAclsRequest.Creation(
            resource_type=acl.kind,
            resource_name=acl.name,
            resource_pattern_type=PatternType.LITERAL,
            principal=principal,
            host="*",
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acls, principal in users().items()
        for acl in acls
    ]
    results = admin.ask(CreateAclsRequest(creations=creations)).results
    assert not any(row.error_code for row in results), results
    until(lambda: _count_acls(admin) == len(creations))
    _enable_share_groups(admin)
    ids = {row.name: row.topic_id for row in metadata.topics if row.name in TOPICS}
    transactional = batch(b"x", producer_id=NO_PRODUCER, producer_epoch=0, base_sequence=0, is_transactional=True)
    return World(ids, metadata.brokers[0].node_id, batch(b"x"), transactional)


def _enable_share_groups(admin: WireClient) -> None:
    update = UpdateFeaturesRequest.Update(feature="share.version", max_version_level=1, upgrade_type=1)
    answer = admin.ask(UpdateFeaturesRequest(feature_updates=[update]))
    assert not answer.error_code, answer.error_message
    versions = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    until(lambda: any(row.name == "share.version" for row in admin.ask(versions, 4).finalized_features))


def _begin_transaction(admin: WireClient, transactional_id: str) -> None:
    find = FindCoordinatorRequest(key=transactional_id, key_type=1)
    until(lambda: not admin.ask(find, 3).error_code)
    init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=600_000)
    producer = until(lambda: _without_error(admin.ask(init)))
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnRequest.Topic(name=name, partitions=[0]) for name in (MINE, THEIRS)],
    )
    admin.ask(added, 3)


def _without_error(answer: Any) -> Any:
    return None if answer.error_code else answer


def _complete(metadata: Any) -> Any:
    return metadata if {row.name for row in metadata.topics} >= set(TOPICS) else None


def _count_acls(admin: WireClient) -> int:
    any_acl = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
    asked = DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1, **any_acl
    )
    return sum(len(resource.acls) for resource in admin.ask(asked).resources)


class Sent(NamedTuple):
    """A request of one sender."""

    case: Case
    version: int
    label: str
    request: Message


def run(connect: Connect, world: World, cases: tuple[Case, ...] = CASES) -> Answers:
    """Send everything, over one connection for each principal. Returns facts by case, then by sender, one for each version."""
    of_principal: dict[str, list[Sent]] = defaultdict(list)
    known = users()
    for case in cases:
        for sender in senders_of(case, known):
            of_principal[sender.principal] += [
                Sent(case, version, sender.label, case.build(case.message, version, world))
                for version in case.all_versions()
            ]
    found: Answers = {str(case): {} for case in cases}
    strongest_last = sorted(of_principal, key=lambda principal: principal == ADMIN)
    for principal in strongest_last:
        with connect(principal) as client:
            for sent, answer in _pipelined(client, of_principal[principal]):
                rows = found[str(sent.case)].setdefault(sent.label, [])
                rows.append(facts(answer, world))
    return found


def _pipelined(client: WireClient, sent: list[Sent]) -> Iterator[tuple[Sent, Any]]:
    for at in range(0, len(sent), AHEAD):
        some = sent[at : at + AHEAD]
        client.send_bytes(b"".join(client.frame(each.request, each.version) for each in some))
        for each in some:
            try:
                answer = client.receive()
            except (ConnectionClosed, TimeoutError) as error:
                raise AssertionError(f"no answer to {each.case} v{each.version} of {each.label}") from error
            yield each, answer
