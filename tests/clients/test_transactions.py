"""Transactions are not supported: clients get a fatal error immediately."""

from __future__ import annotations

import time

import pytest

from tests.clients.adapters import Client
from tests.harness.clusters import Cluster, fresh

IMMEDIATELY_S = 5.0


def test_a_transactional_producer_fails_immediately(our_cluster: Cluster, client: Client) -> None:
    began = time.monotonic()
    with pytest.raises(Exception, match=r".") as refused:
        client.begin_transaction(our_cluster.bootstrap_servers, fresh("transaction"), timeout_s=30)
    assert time.monotonic() - began < IMMEDIATELY_S, refused.value
    assert not client.retriable(refused.value), refused.value
