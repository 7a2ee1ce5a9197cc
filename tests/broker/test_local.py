"""LocalBroker and the pytest plugin: a broker that lives as long as a block of code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import broker
from broker.local import BrokerFailed, LocalBroker, broker_environment
from tests.harness.broker_program import accepts, eventually, is_alive
from tests.harness.ports import reserve

pytest_plugins = ["pytester"]


def test_a_broker_serves_inside_its_block_and_stops_at_the_end():
    with LocalBroker() as kafka:
        pid, data_dir, address = kafka.pid, kafka.data_dir, kafka.bootstrap_servers
        assert accepts(address)
        assert data_dir.is_dir()
    assert not is_alive(pid)
    assert not data_dir.exists()
    assert not accepts(address)


def test_it_is_a_lazy_attribute_of_the_package():
    assert broker.LocalBroker is LocalBroker
    with pytest.raises(AttributeError):
        _ = broker.Nothing
    code = "import sys, broker; sys.exit(bool({'broker.local', 'subprocess', 'asyncio'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_two_brokers_can_run_at_the_same_time():
    with LocalBroker() as one, LocalBroker() as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        assert one.data_dir != other.data_dir


def test_a_given_data_directory_is_kept(tmp_path: Path):
    with LocalBroker(data_dir=tmp_path / "d") as kafka:
        assert kafka.data_dir == tmp_path / "d"
        assert kafka.log_file.exists()
    assert (tmp_path / "d").is_dir()


@pytest.mark.parametrize("end", [LocalBroker.kill, LocalBroker.stop])
def test_a_restart_keeps_address_and_directory(end):
    with LocalBroker() as kafka:
        address, data_dir, pid = kafka.bootstrap_servers, kafka.data_dir, kafka.pid
        end(kafka)
        reserve(address)
        assert not is_alive(pid)
        assert data_dir.exists()
        with pytest.raises(RuntimeError, match="not running"):
            _ = kafka.bootstrap_servers
        kafka.restart()
        assert (kafka.bootstrap_servers, kafka.data_dir) == (address, data_dir)
        assert kafka.pid != pid
        assert accepts(address)
    assert not data_dir.exists()


def test_options_reach_the_broker_and_a_wrong_one_raises_its_error_message():
    with LocalBroker({"num.partitions": 3, "auto.create.topics.enable": False}):
        pass
    kafka = LocalBroker({"num.partitons": 3})
    with pytest.raises(BrokerFailed, match=r"did you mean num\.partitions\?") as caught:
        kafka.start()
    assert caught.value.code == 2
    kafka.close()


def test_a_broker_that_was_not_started_has_no_address():
    with pytest.raises(RuntimeError):
        _ = LocalBroker().bootstrap_servers
    with pytest.raises(RuntimeError):
        _ = LocalBroker().data_dir


def test_an_unknown_durability_is_a_value_error():
    with pytest.raises(ValueError, match="durability 'luck' is not one of power, process"):
        LocalBroker(durability="luck")


def test_its_representation_shows_address_and_directory(tmp_path: Path):
    kafka = LocalBroker(data_dir=tmp_path)
    assert repr(kafka) == f"<LocalBroker not running, data in {tmp_path}>"
    assert repr(LocalBroker()) == "<LocalBroker not running, data in a temporary directory>"
    with LocalBroker() as kafka:
        assert repr(kafka) == f"<LocalBroker {kafka.bootstrap_servers}, data in {kafka.data_dir}>"


def test_starting_twice_is_refused():
    with LocalBroker() as kafka, pytest.raises(RuntimeError, match="already running"):
        kafka.start()


PARENT = """
import sys
from broker import LocalBroker
kafka = LocalBroker()
kafka.start()
print(kafka.pid, kafka.data_dir, flush=True)
{then}
"""


def run_parent(then: str) -> tuple[subprocess.Popen[str], int, Path]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=broker_environment(),
    )
    assert parent.stdout is not None
    pid, data_dir = parent.stdout.readline().split()
    return parent, int(pid), Path(data_dir)


@pytest.mark.parametrize(
    "then",
    ["sys.stdin.read()", "", "del kafka; print(flush=True); sys.stdin.read()", "import os; os._exit(3)", "1 / 0"],
    ids=["killed", "ended", "dropped it", "exited immediately", "failed"],
)
def test_it_stops_with_its_parent_however_that_ends(then: str):
    parent, pid, data_dir = run_parent(then)
    if then == "sys.stdin.read()":
        parent.kill()
    elif then.startswith("del"):
        assert parent.stdout is not None
        parent.stdout.readline()
        assert not is_alive(pid)
    eventually(lambda: not is_alive(pid), "the broker to end")
    eventually(lambda: not data_dir.exists(), "the directory to be removed")
    parent.communicate("")


def test_it_stops_with_its_parent_even_if_a_fork_of_the_parent_survives():
    parent, pid, data_dir = run_parent(
        "import os; child = os.fork()\nif child: print(child, flush=True)\nsys.stdin.read()"
    )
    assert parent.stdout is not None
    forked = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    try:
        eventually(lambda: not is_alive(pid), "the broker to end")
        eventually(lambda: not data_dir.exists(), "the directory to be removed")
    finally:
        os.kill(forked, signal.SIGKILL)
        parent.communicate()


def test_a_fork_that_exits_does_not_stop_the_broker():
    fork = "import os\nif os.fork() == 0: sys.exit()\nos.wait(); print(flush=True); sys.stdin.read()"
    parent, pid, data_dir = run_parent(fork)
    assert parent.stdout is not None
    parent.stdout.readline()
    assert is_alive(pid)
    assert data_dir.exists()
    parent.communicate("")
    assert not is_alive(pid)


def test_a_broker_package_in_the_current_directory_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "__init__.py").write_text("raise SystemExit('wrong package')")
    monkeypatch.chdir(tmp_path)
    with LocalBroker() as kafka:
        assert accepts(kafka.bootstrap_servers)


def test_the_plugin_shares_one_broker_per_run_and_starts_a_fresh_one_per_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    assert [point.value for point in entry_points(group="pytest11", name="kgctl")] == ["broker.pytest_plugin"]
    # Loading all installed plugins would take most of the time.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        seen = []

        def test_first(local_kafka, fresh_kafka):
            seen.append((local_kafka.pid, fresh_kafka.pid))

        def test_second(local_kafka, fresh_kafka):
            seen.append((local_kafka.pid, fresh_kafka.pid))
            (one, fresh), (other, fresher) = seen
            assert one == other
            assert len({one, fresh, fresher}) == 3

        def test_third(secure_kafka):
            assert secure_kafka.client_properties["security.protocol"] == "SASL_SSL"
        """
    )
    pytester.runpytest_subprocess("-p", "broker.pytest_plugin").assert_outcomes(passed=3)


def test_the_plugin_imports_only_pytest():
    code = (
        "import sys, pytest; before = set(sys.modules); import broker.pytest_plugin; print(*set(sys.modules) - before)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) == {"broker", "broker.pytest_plugin"}
