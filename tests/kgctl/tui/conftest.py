"""Fixtures for tests of the dashboard on our running broker; a module that needs other clusters overrides them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.kgctl.tui.dialogs import cluster_feed
from tests.kgctl.tui.quick_textual import few_renders, quick_styles


@pytest.fixture
def kgctl(our_cluster: Cluster) -> Kgctl:
    return Kgctl(our_cluster.bootstrap_servers)


@pytest.fixture
def feed(our_cluster: Cluster) -> Iterator[ClusterFeed]:
    found = cluster_feed(our_cluster.bootstrap_servers)
    yield found
    found.close()


@pytest.fixture(scope="module")
def topic(our_cluster: Cluster) -> str:
    """A topic with two partitions and no records."""
    name = fresh("t")
    assert Kgctl(our_cluster.bootstrap_servers)("topics", "create", name, "--partitions", 2).exit_code == 0
    return name


@pytest.fixture(scope="package", autouse=True)
def styles() -> Iterator[None]:
    with quick_styles():
        yield


@pytest.fixture
def every_render() -> None:
    """The terminal draws every update of the screen."""


@pytest.fixture(autouse=True)
def renders(request: pytest.FixtureRequest) -> Iterator[None]:
    is_complete = {"every_render", "snap_compare"} & set(request.fixturenames)
    with contextlib.nullcontext() if is_complete else few_renders():
        yield
