"""A refusal for lack of authorization names the operation and the resource of what kgctl asked."""

from __future__ import annotations

import re

import pytest

from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.produce import ProduceRequest
from kgctl.client.net.authorization import Asked, missing_permission
from kgctl.client.net.errors import BrokerError
from kgctl.exit_codes import UNREACHABLE, exit_code_of
from tests.harness import ROOT

GROUP, TOPIC, CLUSTER, TRANSACTION = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)

REFUSALS = (GROUP, TOPIC, CLUSTER, TRANSACTION)


@pytest.mark.parametrize(
    ("code", "asked", "sentence"),
    [
        (GROUP, Asked(DescribeGroupsRequest, group="orders"), "not authorised for DESCRIBE on group orders"),
        (GROUP, Asked(DeleteGroupsRequest, group="orders"), "not authorised for DELETE on group orders"),
        (TOPIC, Asked(OffsetDeleteRequest, "orders", "sales"), "not authorised for READ on topic sales"),
        (TOPIC, Asked(ProduceRequest, topic="sales"), "not authorised for WRITE on topic sales"),
        (
            TRANSACTION,
            Asked(EndTxnRequest, transactional_id="import"),
            "not authorised for WRITE on transactional id import",
        ),
        (CLUSTER, Asked(CreateTopicsRequest, topic="sales"), "not authorised for CREATE on the cluster"),
        (
            CLUSTER,
            Asked(InitProducerIdRequest),
            "not authorised for WRITE on any topic, nor for IDEMPOTENT_WRITE on the cluster",
        ),
        (
            CLUSTER,
            Asked(InitProducerIdRequest, topic="sales"),
            "not authorised for WRITE on topic sales, nor on any other topic, nor for IDEMPOTENT_WRITE on the cluster",
        ),
    ],
)
def test_the_missing_permission_is_named(code: int, asked: Asked, sentence: str) -> None:
    assert missing_permission(code, asked) == sentence


def test_the_error_is_no_more_than_the_permission_where_that_says_it_all() -> None:
    asked = Asked(DescribeGroupsRequest, group="orders")
    error = BrokerError(GROUP, "group 'orders'", "Group authorization failed.", asked=asked)
    assert str(error) == "not authorised for DESCRIBE on group orders (GROUP_AUTHORIZATION_FAILED)"
    assert exit_code_of(error) == UNREACHABLE
    error = BrokerError(TOPIC, "record 3 to sales-0", asked=Asked(ProduceRequest, topic="sales"))
    assert str(error).startswith("record 3 to sales-0: not authorised for WRITE on topic sales (")


def test_other_errors_stay_as_they_are() -> None:
    asked = Asked(DescribeGroupsRequest, group="orders")
    assert "another broker" in str(BrokerError(ErrorCode.NOT_COORDINATOR, "group 'orders'", asked=asked))


def test_every_request_of_kgctl_that_can_be_refused_has_its_operations() -> None:
    # ListTransactions leaves out what the client may not describe.
    never_refused = {"ApiVersionsRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest", "ListTransactionsRequest"}
    requests = {api.request.__name__: api.request for api in APIS.values()}
    used = {
        name
        for path in (ROOT / "kgctl").rglob("*.py")
        for name in re.findall(r"\b\w+Request\b", path.read_text())
        if name in requests
    }
    assert {"FetchRequest", "DescribeGroupsRequest"} <= used
    for name in sorted(used - never_refused):
        refusals = [missing_permission(code, Asked(requests[name], "g", "t")) for code in REFUSALS]
        named = [text for text in refusals if text and name.removesuffix("Request") not in text]
        assert named, f"{name} has no operations in kgctl/client/net/authorization.py"
