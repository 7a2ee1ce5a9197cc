"""kgctl with the address of the cluster that a test runs on."""

from __future__ import annotations

import pytest

from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl


@pytest.fixture
def kgctl(cluster: Cluster) -> Kgctl:
    return Kgctl(cluster.bootstrap_servers)
