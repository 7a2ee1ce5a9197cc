"""Transactions are not served: a client learns it at once, in an error that it does not retry."""

from __future__ import annotations

import time

import pytest

from tests.clients.adapters import Client
from tests.harness.clusters import Cluster, fresh

AT_ONCE_S = 5.0


def test_a_transactional_producer_fails_at_once(our_cluster: Cluster, client: Client) -> None:
    began = time.monotonic()
    with pytest.raises(Exception, match=r".") as refused:
        client.begin_transaction(our_cluster.bootstrap_servers, fresh("transaction"), timeout_s=30)
    assert time.monotonic() - began < AT_ONCE_S, refused.value
    assert not client.retriable(refused.value), refused.value
