"""Fixtures for all tests: running clusters, ours and (with the marker `reference`) a real Kafka."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from hypothesis import HealthCheck, settings

from tests.harness.kafka_cases import CollectedTests
from tests.harness.scheduling import FileScheduling, rank

if TYPE_CHECKING:
    from xdist.remote import Producer

    from tests.harness.clusters import Cluster

# What collection creates lives until the end: the garbage collector need not look for garbage in it, then or later.
gc.disable()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Background jobs of a shell ignore SIGINT, and programs that tests start and interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def in_memory() -> str | None:
    """A folder in memory for temporary files, if there is one with room where programs can run.

    Stores sync thousands of times, which no test needs the disk for: a crash of the machine is simulated.
    """
    try:
        found = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return None
    has_room = found.f_bavail * found.f_frsize >= 4 << 30 and os.access("/dev/shm", os.W_OK | os.X_OK)
    return "/dev/shm" if has_room and not found.f_flag & os.ST_NOEXEC else None


if "TMPDIR" not in os.environ and (memory := in_memory()):
    os.environ["TMPDIR"] = tempfile.tempdir = memory

# The contexts of whoever runs the tests must not decide where they connect.
for name in ("KGCTL_BOOTSTRAP", "KGCTL_CONTEXT", "KGCTL_COMMAND_CONFIG"):
    os.environ.pop(name, None)
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
# Nor may their journal get what tests change.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="kgctl-test-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# On a machine that is busy with other tests, an example may take long.
settings.register_profile("busy", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_COLLECTED = pytest.StashKey[list[str]]()


@pytest.fixture
def collected_tests(request: pytest.FixtureRequest) -> CollectedTests:
    """What this run has collected, also what it does not run."""
    return CollectedTests(request.config.stash[_COLLECTED])


@pytest.fixture(scope="module")
def quick_collections() -> None:
    """What exists now is no garbage of the module's tests: each of their collections looks at newer objects alone."""
    gc.freeze()


BOTH = ["kgctl", pytest.param("kafka", marks=pytest.mark.reference)]


@pytest.fixture(scope="session")
def shared_clusters() -> Iterator[Callable[[str], Cluster]]:
    """Starts a cluster of each kind at its first use, and keeps it until the end of the run."""
    running: dict[str, Cluster] = {}
    with contextlib.ExitStack() as stack:

        def share(kind: str) -> Cluster:
            if kind not in running:
                running[kind] = stack.enter_context(_started(kind))
            return running[kind]

        yield share


@pytest.fixture(scope="session", params=BOTH)
def cluster(request: pytest.FixtureRequest, shared_clusters: Callable[[str], Cluster]) -> Cluster:
    """A running cluster of each kind. Tests share it, so they use unique names."""
    return shared_clusters(request.param)


@pytest.fixture(scope="session")
def our_cluster(shared_clusters: Callable[[str], Cluster]) -> Cluster:
    """Only our broker, shared like `cluster`."""
    return shared_clusters("kgctl")


@pytest.fixture(params=BOTH)
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of each kind for one test, which may kill it."""
    with _started(request.param) as running:
        yield running


def pytest_configure(config: pytest.Config) -> None:
    # At its end, each worker would collect the garbage of all tests five times.
    config.stash[gc_collect_iterations_key] = 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note all tests before markers deselect some, and mark some.

    Long tests come first, so that several processes end at about the same time.
    """
    config.stash[_COLLECTED] = [item.nodeid for item in items]
    for item in items:
        if "own_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling | None:
    return FileScheduling(config, log) if config.option.dist == "loadfile" else None


def pytest_collection_finish() -> None:
    """Keep the half million objects of the collected tests out of every later garbage collection."""
    gc.freeze()
    # A third of the dashboard's tests would be collections of objects that are still in use.
    gc.set_threshold(50_000, 10, 20)
    gc.enable()


def _started(kind: str) -> contextlib.AbstractContextManager[Cluster]:
    from tests.harness import clusters
    from tests.harness.reference_kafka import Unavailable

    try:
        return clusters.start(kind)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
