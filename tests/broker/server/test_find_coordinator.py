"""FindCoordinator: this broker coordinates every group and every transactional id."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.server.handlers.find_coordinator import respond


@pytest.mark.parametrize("key_type", [0, 1])
def test_the_coordinator_of_any_group_and_transactional_id_is_this_node(key_type: int) -> None:
    one = respond(FindCoordinatorRequest(key="", key_type=key_type), 3, 1, "localhost", 9092)
    assert (one.error_code, one.error_message, one.node_id, one.host, one.port) == (0, "NONE", 1, "localhost", 9092)
    many = respond(FindCoordinatorRequest(coordinator_keys=["g", "h"], key_type=key_type), 4, 1, "localhost", 9092)
    assert [(row.key, row.error_code, row.error_message, row.node_id) for row in many.coordinators] == [
        ("g", 0, "", 1),
        ("h", 0, "", 1),
    ]


@pytest.mark.parametrize("key_type", [-1, 2, 3])
def test_other_coordinators_are_refused_with_a_final_error(key_type: int) -> None:
    error = ErrorCode.INVALID_REQUEST
    one = respond(FindCoordinatorRequest(key="t", key_type=key_type), 2, 1, "localhost", 9092)
    assert (one.error_code, one.node_id, one.host, one.port) == (error, -1, "", -1)
    many = respond(FindCoordinatorRequest(coordinator_keys=["t"], key_type=key_type), 6, 1, "localhost", 9092)
    assert [(row.error_code, row.node_id) for row in many.coordinators] == [(error, -1)]
    assert one.error_message == many.coordinators[0].error_message != ""
    assert not error.retriable
