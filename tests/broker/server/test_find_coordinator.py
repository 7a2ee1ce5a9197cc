"""FindCoordinator: this broker coordinates every group, and no transaction yet."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.server.handlers.find_coordinator import respond


def test_the_coordinator_of_any_group_is_this_node() -> None:
    one = respond(FindCoordinatorRequest(key=""), 3, 1, "localhost", 9092)
    assert (one.error_code, one.error_message, one.node_id, one.host, one.port) == (0, "NONE", 1, "localhost", 9092)
    many = respond(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4, 1, "localhost", 9092)
    assert [(row.key, row.error_code, row.error_message, row.node_id) for row in many.coordinators] == [
        ("g", 0, "", 1),
        ("h", 0, "", 1),
    ]


@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (2, ErrorCode.INVALID_REQUEST),
        (7, ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_coordinators_are_refused_with_a_final_error(key_type: int, error: ErrorCode) -> None:
    one = respond(FindCoordinatorRequest(key="t", key_type=key_type), 2, 1, "localhost", 9092)
    assert (one.error_code, one.node_id, one.host, one.port) == (error, -1, "", -1)
    many = respond(FindCoordinatorRequest(coordinator_keys=["t"], key_type=key_type), 6, 1, "localhost", 9092)
    assert [(row.error_code, row.node_id) for row in many.coordinators] == [(error, -1)]
    assert one.error_message == many.coordinators[0].error_message != ""
    assert not error.retriable
